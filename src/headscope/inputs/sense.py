"""The part of a model that sees or hears: what it is given, and what its positions are.

Nothing is taken on trust from a configuration. A run shows how many positions there are; pictures
that differ in one corner show where in them the patches stand.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.capture import HeadOutputs, capture
from headscope.errors import CannotObserve, CannotRead
from headscope.inputs.features import features_of, seconds_of, sound_settings
from headscope.inputs.picture import Pixels, as_read, normalised, open_picture
from headscope.inputs.positions import Bools, Floats, Positions, frames, patches
from headscope.inputs.settings import Settings
from headscope.inputs.sound import Wave, open_sound, resampled
from headscope.shapes import ModelShape, no_trace, shape_of_input

SenseKind: TypeAlias = Literal["image", "sound"]
TAKES: dict[SenseKind, tuple[str, ...]] = {
    "image": ("pixel_values",),
    "sound": ("input_features", "input_values"),
}
MOST_SPECIAL = 16  # [CLS], registers and the like beside the patches
YOURSELF = (
    "Prepare the inputs yourself, with a label for each position: "
    "scope.read({{'{takes}': tensor}}, labels=[…])."
)
LOAD = {
    "image": "Load one that sees, such as a ViT, DINOv2 or CLIP.",
    "sound": "Load one that hears, such as a Whisper, Wav2Vec2 or AST.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Sense:
    """How a part of a model reads pictures or sounds."""

    kind: SenseKind
    part: PreTrainedModel
    takes: str  # the name of its input
    settings: Mapping[str, Any]  # of the processor beside the model, or as its family has them
    grid: tuple[int, int] | None = None  # rows and columns of patches
    before: int = 0  # special positions before the patches
    total: int = 0  # positions of a picture
    known: dict[torch.Size, int] = field(default_factory=dict)  # positions of sounds so long

    def take(self, source: Any) -> tuple[dict[str, Tensor], Positions]:
        """What the model is given for a picture or a sound, however it comes; its positions."""
        if self.kind == "image":
            given, positions, _ = self.see(open_picture(source))
            return given, positions
        given, positions, _ = self.hear(*open_sound(source))
        return given, positions

    def see(self, pixels: Pixels) -> tuple[dict[str, Tensor], Positions, Pixels]:
        """What the model is given for a picture, its positions, and the picture as it is read."""
        assert self.grid is not None
        seen = as_read(pixels, self.settings)
        given = {self.takes: normalised(seen, self.settings)}
        return given, patches(self.grid, self.before, self.total), seen

    def hear(self, samples: Wave, rate: int) -> tuple[dict[str, Tensor], Positions, Wave]:
        """The same for a sound, at the model's rate."""
        own = int(self.settings["sampling_rate"])
        heard = resampled(samples, rate, own)
        values = features_of(self.part, self.takes, self.settings, heard)
        if self.grid is not None:  # patches of a spectrogram
            step = self.part.config.time_stride * float(self.settings["hop_seconds"])
            middle = self.part.config.patch_size * float(self.settings["hop_seconds"]) / 2
            columns = np.arange(self.grid[1]) * step + middle
            return {self.takes: values}, patches(self.grid, self.before, self.total, columns), heard
        if values.shape not in self.known:
            self.known[values.shape] = positions_of(self.part, {self.takes: values})
        total = self.known[values.shape]
        seconds = seconds_of(self.part, self.takes, self.settings, values.shape[-1], total)
        inside: Floats = seconds[seconds <= len(heard) / own]
        return {self.takes: values}, frames(inside, total), heard


def may_sense(model: PreTrainedModel) -> Iterator[SenseKind]:
    """What a model may take beside text: "image", "sound"."""
    for kind, names in TAKES.items():
        if any(True for name in names for _ in _parts(model, name)):
            yield kind


def find_sense(
    name: str, model: PreTrainedModel, kind: SenseKind, settings: Settings | None
) -> tuple[Sense, ModelShape]:
    """The part of a model that takes pictures or sounds, and what of it can be observed."""
    said: list[str] = []
    for takes in TAKES[kind]:
        for part in _parts(model, takes):
            try:
                own = _settings(kind, part, settings)
                made = _with_layout(Sense(kind, part, takes, own))
                return made, shape_of_input(name, model, part, _two(made))
            except (CannotObserve, CannotRead) as error:
                said.append(f"{type(part).__name__}: {error}")
            except Exception as error:
                first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
                said.append(f"{type(part).__name__}: {first.rstrip('.')}.")
    what = {"image": "pictures", "sound": "sounds"}[kind]
    if not said and not _takes(model, kind):
        raise CannotObserve(
            f"{name} reads no {what}: no part of {type(model).__name__} takes them. {LOAD[kind]}"
        )
    why = " ".join(said[:2]) or f"{type(model).__name__} takes them with a text beside them only."
    yourself = YOURSELF.format(takes=TAKES[kind][0])
    raise CannotObserve(f"{name} cannot be read with {what}. {why}", python=yourself)


def _takes(model: PreTrainedModel, kind: SenseKind) -> bool:
    """Whether any part of a model takes pictures or sounds, be it with a text."""
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    return any(name in signature(one.forward).parameters for one in parts for name in TAKES[kind])


def _parts(model: PreTrainedModel, takes: str) -> Iterator[PreTrainedModel]:
    """Parts of a model that take such an input, the likeliest first."""
    base = cast(PreTrainedModel, model.base_model)
    found = [base]
    if getattr(model.config, "is_encoder_decoder", False):
        found.insert(0, cast(PreTrainedModel, model.get_encoder()))
    found += [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    once = {id(part): part for part in found}
    for part in once.values():
        names = signature(part.forward).parameters
        if takes in names and "input_ids" not in names:
            yield part


def positions_of(part: PreTrainedModel, given: dict[str, Tensor]) -> int:
    """How many positions the first attention of a part has over some inputs."""
    return _first_call(part, given)[0].shape[2]


def _first_call(part: PreTrainedModel, given: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
    """z and v of the first attention call."""
    found: list[HeadOutputs] = []

    def observe(seen: HeadOutputs) -> None:
        if not found:
            found.append(seen)

    here = {key: value.to(part.device, part.dtype) for key, value in given.items()}
    with no_trace(part), torch.no_grad(), capture(part, observe):
        part(**here)
    if not found:
        raise CannotObserve("its attention is out of sight.")
    return found[0].z, found[0].v


def _two(sense: Sense) -> dict[str, Tensor]:
    """Two inputs that differ at their end only."""
    given = _sample(sense)
    changed = given.clone()
    if sense.kind == "image":
        changed[..., -1:, -1:] += 1
    else:
        changed[..., -given.shape[-1] // 8 :] += 1
    both = torch.cat([given, changed])
    return {sense.takes: both.to(sense.part.dtype)}


def _sample(sense: Sense) -> Tensor:
    """A picture or a sound of noise, the same each time."""
    random = np.random.default_rng(0)
    if sense.kind == "image":
        pixels = random.integers(0, 256, (64, 64, 3), dtype=np.uint8)
        return normalised(as_read(pixels, sense.settings), sense.settings)
    rate = int(sense.settings["sampling_rate"])
    samples = random.standard_normal(rate // 2, dtype=np.float32) / np.float32(4)
    return features_of(sense.part, sense.takes, sense.settings, samples)


def _settings(
    kind: SenseKind, part: PreTrainedModel, settings: Settings | None
) -> Mapping[str, Any]:
    """Those of the processor that was found; without one what is usual, and a person is told."""
    if kind == "sound":
        return sound_settings(part, settings.sound if settings else {})
    if settings and settings.image:
        return settings.image
    size = getattr(part.config, "image_size", None)
    if size is None:
        raise CannotObserve("there is no preprocessor_config.json, and no size in its config.json.")
    size = list(size) if isinstance(size, (list, tuple)) else [size, size]
    warnings.warn(
        f"There is no preprocessor configuration beside {type(part).__name__}: pictures are "
        f"resized to {size[0]} × {size[1]} and their numbers brought to -1 … 1, which it may not "
        "have been trained with. Pass its processor: hs.load(model, processor).",
        stacklevel=2,
    )
    return {"size": {"height": size[0], "width": size[1]}}


def _with_layout(sense: Sense) -> Sense:
    """The same, with where the patches stand among the positions; of frames that is plain."""
    given = _sample(sense)
    grid, kernel = _grid(sense, given)
    total = positions_of(sense.part, {sense.takes: given})
    if grid is None:
        if sense.kind == "image":
            raise CannotObserve("its patches are not made by a convolution.")
        seconds_of(sense.part, sense.takes, sense.settings, given.shape[-1], total)
        return sense
    count = grid[0] * grid[1]
    if not 0 <= total - count <= MOST_SPECIAL:
        raise CannotObserve(
            f"its attention has {total} positions, and its picture {grid[0]} × {grid[1]} patches, "
            "so that they cannot be told apart."
        )
    first = _changed(sense, given, kernel, True, True)
    last = _changed(sense, given, kernel, False, False)
    right = _changed(sense, given, kernel, True, False)
    if first is None or last is None or right is None:
        raise CannotObserve("where its patches stand in its attention is out of sight.")
    before = int(first.argmax())
    stands = int(np.flatnonzero(last).max()) == before + count - 1
    in_rows = int(right.argmax()) < before + grid[1] or 1 in grid
    if not (stands and in_rows):
        raise CannotObserve("its patches do not stand in its attention in reading order.")
    return Sense(sense.kind, sense.part, sense.takes, sense.settings, grid, before, total)


def _grid(sense: Sense, given: Tensor) -> tuple[tuple[int, int] | None, tuple[int, int]]:
    """Rows and columns that the last convolution before attention makes, and what it covers."""
    found: list[tuple[nn.Conv2d, tuple[int, int]]] = []
    seen = False

    def look(module: nn.Module, _: Any, made: Any) -> None:
        if not seen and isinstance(module, nn.Conv2d) and made.ndim == 4:
            found.append((module, (int(made.shape[2]), int(made.shape[3]))))

    def observe(_: HeadOutputs) -> None:
        nonlocal seen
        seen = True

    part = sense.part
    hooks = [m.register_forward_hook(look) for m in part.modules() if isinstance(m, nn.Conv2d)]
    try:
        with no_trace(part), torch.no_grad(), capture(part, observe):
            part(**{sense.takes: given.to(part.device, part.dtype)})
    finally:
        for hook in hooks:
            hook.remove()
    if not found:
        return None, (1, 1)
    module, grid = found[-1]
    height, width = module.kernel_size[0], module.kernel_size[1]
    return grid, (height, width)


def _changed(
    sense: Sense, given: Tensor, kernel: tuple[int, int], top: bool, left: bool
) -> Bools | None:
    """Which positions of the first layer change with a corner of the input; None: unseen."""
    changed = given.clone()
    rows = slice(0, kernel[0]) if top else slice(-kernel[0], None)
    columns = slice(0, kernel[1]) if left else slice(-kernel[1], None)
    if sense.kind == "image":
        changed[..., rows, columns] += 1
    else:  # (1, times, bands): a spectrogram stands on its side
        changed[:, columns, rows] += 1
    _, v = _first_call(sense.part, {sense.takes: torch.cat([given, changed])})
    if v is None:
        return None
    found: Bools = (v[0] != v[1]).any(dim=-1).any(dim=0).cpu().numpy()
    return found if found.any() else None
