"""What families of models make of a sound before their attention, and when each position is.

Samples for Wav2Vec2 and its kin, a mel spectrogram in frames for Whisper, one in patches for AST:
made by transformers' own feature extractors, which need no further package.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from headscope.errors import CannotObserve, CannotRead
from headscope.inputs.positions import Floats
from headscope.inputs.sound import Wave

RATE = 16_000
UNKNOWN = (
    "how it makes positions of a sound is not known here (known are samples as Wav2Vec2 reads "
    "them, frames as Whisper's, patches as AST's)."
)


def sound_settings(part: PreTrainedModel, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the processor, what it does not say as the family of the model has it."""
    config, found = part.config, {"sampling_rate": RATE} | dict(given)
    if hasattr(config, "max_source_positions"):
        hop = found.setdefault("hop_length", 160)
        found.setdefault("feature_size", config.num_mel_bins)
        window = 2 * config.max_source_positions * hop / found["sampling_rate"]
        found.setdefault("chunk_length", window)
        found["hop_seconds"] = hop / found["sampling_rate"]
    elif hasattr(config, "time_stride"):
        found.setdefault("num_mel_bins", config.num_mel_bins)
        found.setdefault("max_length", config.max_length)
        found["hop_seconds"] = 0.01  # as Kaldi's filter banks, which it was trained on
    return found


def features_of(
    part: PreTrainedModel, takes: str, settings: Mapping[str, Any], samples: Wave
) -> Tensor:
    """What the model is given for a sound at its own rate."""
    from transformers import ASTFeatureExtractor, Wav2Vec2FeatureExtractor, WhisperFeatureExtractor

    rate = int(settings["sampling_rate"])
    extractor: Any
    plain: tuple[str, ...]
    if takes == "input_features" and hasattr(part.config, "max_source_positions"):
        _refuse_longer(samples, rate, settings["chunk_length"])
        plain = ("feature_size", "sampling_rate", "hop_length", "chunk_length", "n_fft")
        chosen = {key: settings[key] for key in plain if key in settings}
        whole = float(chosen["chunk_length"])
        extractor = WhisperFeatureExtractor(**chosen | {"chunk_length": max(int(whole), 1)})
        extractor.n_samples = round(whole * rate)
        extractor.nb_max_frames = extractor.n_samples // extractor.hop_length
    elif takes == "input_values" and hasattr(part.config, "time_stride"):
        _refuse_longer(samples, rate, settings["max_length"] * settings["hop_seconds"])
        plain = ("sampling_rate", "num_mel_bins", "max_length", "do_normalize", "mean", "std")
        extractor = ASTFeatureExtractor(**{k: settings[k] for k in plain if k in settings})
    elif takes == "input_values" and hasattr(part.config, "conv_stride"):
        plain = ("sampling_rate", "do_normalize")
        extractor = Wav2Vec2FeatureExtractor(**{k: settings[k] for k in plain if k in settings})
    else:
        raise CannotObserve(UNKNOWN)
    made = extractor(samples, sampling_rate=rate, return_tensors="pt")
    values: Tensor = made[takes]
    return values.to(torch.float32)


def seconds_of(
    part: PreTrainedModel, takes: str, settings: Mapping[str, Any], length: int, total: int
) -> Floats:
    """When in a sound each of a model's positions is: the middle of what it is made from.

    `length` is that of the input; the number of positions has to be what follows from it.
    """
    config, rate = part.config, float(settings["sampling_rate"])
    if takes == "input_features":
        if total < 1 or length % total:
            raise CannotObserve(UNKNOWN)
        step = length // total * float(settings["hop_seconds"])
        heard: Floats = np.arange(total, dtype=np.float64) * step
        return heard
    stride_of_all, covered, left = 1, 1, length
    for kernel, stride in zip(config.conv_kernel, config.conv_stride, strict=True):
        covered += (kernel - 1) * stride_of_all
        stride_of_all *= stride
        left = (left - kernel) // stride + 1
    if left != total:
        raise CannotObserve(UNKNOWN)
    middle: Floats = (np.arange(total, dtype=np.float64) * stride_of_all + covered / 2) / rate
    return middle


def _refuse_longer(samples: Wave, rate: int, most: float) -> None:
    if len(samples) > round(most * rate):
        raise CannotRead(
            f"The sound lasts {len(samples) / rate:.1f} s, and the model reads {most:.4g} s at "
            "once.",
            python="Read a part of it: scope.read((samples[start:end], rate)).",
        )
