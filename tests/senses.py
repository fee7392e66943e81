"""Tiny models that see and hear, and what they are shown: a checkerboard, and two tones."""

import wave
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as t

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 64,
    "patch_size": 16,
}
SETTINGS = {
    "do_resize": True,
    "size": {"height": 64, "width": 64},
    "resample": 2,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
}


def random_weights(kind: Any, config: Any) -> t.PreTrainedModel:
    """A model whose weights are far from zero, and the same each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(config).eval()
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.2)
    return model


def vit(**more: Any) -> t.PreTrainedModel:
    return random_weights(t.ViTModel, t.ViTConfig(**SMALL | more))


def dino() -> t.PreTrainedModel:
    config = t.Dinov2WithRegistersConfig(**SMALL | {"num_register_tokens": 3})
    return random_weights(t.Dinov2WithRegistersModel, config)


def clip_vision() -> t.PreTrainedModel:
    return random_weights(t.CLIPVisionModel, t.CLIPVisionConfig(**SMALL))


def siglip_vision() -> t.PreTrainedModel:
    return random_weights(t.SiglipVisionModel, t.SiglipVisionConfig(**SMALL))


def wav2vec2(kind: str = "Wav2Vec2") -> t.PreTrainedModel:
    config = getattr(t, f"{kind}Config")(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        conv_dim=(16, 16, 16),
        conv_kernel=(10, 8, 4),
        conv_stride=(10, 8, 4),
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )
    return random_weights(getattr(t, f"{kind}Model"), config)


def whisper() -> t.PreTrainedModel:
    config = t.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_mel_bins=16,
        max_source_positions=100,
        vocab_size=600,
        pad_token_id=1,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        begin_suppress_tokens=None,
    )
    return random_weights(t.WhisperModel, config)


def spectrogram_transformer() -> t.PreTrainedModel:
    config = t.ASTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        num_mel_bins=36,
        max_length=96,
    )
    return random_weights(t.ASTModel, config)


def checkerboard(height: int = 64, width: int = 64, square: int = 16) -> np.ndarray[Any, Any]:
    """Dark and light squares, as large as patches."""
    rows, columns = np.indices((height, width)) // square
    light = ((rows + columns) % 2).astype(bool)
    pixels = np.full((height, width, 3), (30, 40, 90), np.uint8)
    pixels[light] = (240, 220, 180)
    return pixels


def two_tones(rate: int = 16_000, seconds: float = 1.0) -> np.ndarray[Any, Any]:
    """A low tone, then a high one."""
    time = np.arange(int(rate * seconds)) / rate
    pitch = np.where(time < seconds / 2, 220.0, 880.0)
    return (0.5 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def write_wave(path: Path, samples: np.ndarray[Any, Any], rate: int = 16_000) -> Path:
    """A WAV file of 16 bits and two equal channels."""
    whole = (np.stack([samples, samples], axis=1) * 32767).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(whole.tobytes())
    return path
