"""Inputs that a model of any type may take: a text, an image, a sound, or what goes together."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

Inputs = dict[str, Any]
TOKENS, FRAMES, SAMPLES = 12, 64, 4000
WHAT = {"input_ids": "text", "pixel_values": "image", "input_features": "sound"}


def inputs_of(model: PreTrainedModel, vocabulary: int) -> Iterator[tuple[str, Inputs]]:
    """What to try, the likeliest first: its name ("text", "image", "sound"), and the inputs."""
    names = signature(model.forward).parameters
    config = model.config
    main = getattr(model, "main_input_name", "input_ids")
    text = _text(model, names, vocabulary)
    if main == "input_ids" and text:
        yield "text", text
    for name, own in _others(main, config, names):
        yield _modality(name), own | _decoder(names)
        if text:
            yield _modality(name), own | text
    if main != "input_ids" and text:
        yield "text", text
    yield "vectors", _required(names, config)


def _text(model: PreTrainedModel, names: Any, vocabulary: int) -> Inputs:
    if "input_ids" not in names:
        return {}
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, max(6, vocabulary - 64), (2, TOKENS), generator=generator)
    given: Inputs = {"input_ids": ids} | _decoder(names)
    if "bbox" in names:
        given["bbox"] = torch.tensor([1, 2, 3, 4]).expand(2, TOKENS, 4)
    return given


def _decoder(names: Any) -> Inputs:
    return {"decoder_input_ids": torch.arange(5, 12).expand(2, 7)} if _decodes(names) else {}


def _decodes(names: Any) -> bool:
    return "decoder_input_ids" in names


def _required(names: Any, config: Any) -> Inputs:
    """Vectors for whatever a part of a larger model is handed by the others."""
    width = _number(config, "hidden_size", "d_model", "embed_dim", "hidden_dim") or 64
    generator = torch.Generator().manual_seed(4)
    return {
        name: torch.ones(2, TOKENS, dtype=torch.long)
        if name.endswith("mask")
        else torch.randn(2, TOKENS, width, generator=generator)
        for name, one in names.items()
        if one.default is one.empty and one.kind == one.POSITIONAL_OR_KEYWORD
    }


def _others(main: str, config: Any, names: Any) -> Iterator[tuple[str, Inputs]]:
    """Inputs that are no text, the model's main one first."""
    generator = torch.Generator().manual_seed(2)

    def some(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    vision = getattr(config, "vision_config", config)
    channels = _number(vision, "num_channels", "in_channels", "in_chans") or 3
    size = _number(vision, "image_size", "img_size") or 32
    mels = _number(config, "num_mel_bins", "n_mels", "feature_size", "input_feat_per_channel") or 16
    images = [
        ("pixel_values", some(2, channels, size, size)),
        ("pixel_values", some(2, 2, channels, size, size)),
        ("pixel_values_videos", some(2, 2, channels, size, size)),
    ]
    sounds = [
        ("input_features", some(2, mels, 2 * FRAMES)),
        ("input_features", some(2, FRAMES, mels)),
        ("input_values", some(2, SAMPLES)),
        ("input_values", some(2, 1, SAMPLES)),
        ("input_values", some(2, _number(config, "max_length") or FRAMES, mels)),
    ]
    patch = _number(vision, "patch_size", "spatial_patch_size") or 8
    frames = _number(vision, "temporal_patch_size") or 1
    flat = some(16, channels * frames * patch * patch)
    if "grid_thw" in names:
        first = "hidden_states" if "hidden_states" in names else "pixel_values"
        yield first, {first: flat, "grid_thw": torch.tensor([[1, 4, 4]])}
    series = [("past_values", some(2, 32, _number(config, "num_input_channels") or 1))]
    for name, tensor in sorted([*images, *sounds, *series], key=lambda one: one[0] != main):
        if name in names or "kwargs" in names:
            yield name, {name: tensor}


def _number(config: Any, *names: str) -> int | None:
    for name in names:
        value = getattr(config, name, None)
        if isinstance(value, (list, tuple)) and value:
            value = value[0]
        if isinstance(value, int):
            return value
    return None


def _modality(name: str) -> str:
    if name.startswith("input"):
        return "sound"
    return "series" if name == "past_values" else "image"
