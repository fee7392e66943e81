"""What the processors beside a model do to pictures and sounds, as their configurations say it.

Only the numbers are taken: the processors themselves may need packages that are not here.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import FeatureExtractionMixin
from transformers.image_processing_base import ImageProcessingMixin


@dataclass(frozen=True, slots=True)
class Settings:
    """Of the processor of pictures and of that of sounds; empty where there is none."""

    image: Mapping[str, Any] = field(default_factory=dict)
    sound: Mapping[str, Any] = field(default_factory=dict)


def settings_beside(where: str | Path, options: Mapping[str, Any]) -> Settings | None:
    """What preprocessor_config.json or processor_config.json beside a model says."""
    asked = {name: options[name] for name in ("revision", "local_files_only") if name in options}
    image: dict[str, Any] = {}
    sound: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        image, _ = ImageProcessingMixin.get_image_processor_dict(where, **asked)
    with contextlib.suppress(OSError):
        sound, _ = FeatureExtractionMixin.get_feature_extractor_dict(where, **asked)
    return _settings(image, sound)


def settings_of(given: Any) -> tuple[Any, Settings | None]:
    """A tokenizer and what a processor does, of whatever was passed as the one or the other."""
    if given is None or hasattr(given, "convert_ids_to_tokens"):
        return given, None
    parts = [
        given,
        *(getattr(given, name, None) for name in ("image_processor", "feature_extractor")),
    ]
    told = [
        one.to_dict()
        for one in parts
        if isinstance(one, (ImageProcessingMixin, FeatureExtractionMixin))
    ]
    if not told:
        return given, None
    image = next((one for one in told if "image_mean" in one or "size" in one), {})
    sound = next((one for one in told if "sampling_rate" in one), {})
    return getattr(given, "tokenizer", None), _settings(image, sound)


def _settings(image: dict[str, Any], sound: dict[str, Any]) -> Settings | None:
    pictures = image if "image_mean" in image or "size" in image else {}
    sounds = sound if "sampling_rate" in sound else {}
    return Settings(pictures, sounds) if pictures or sounds else None
