"""An input that is no text as a model reads it: the patches of a picture, the frames of a sound.

What can be asked of a text can be asked here too, but for what only a text has: words, sentences,
separators. Layers and heads are counted from 1, positions from 0.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.errors import CannotRead, NotPossible
from headscope.inputs.attended import (
    ROWS,
    attention_rows,
    mass_in_a_row,
    targets,
    where_targets_are,
)
from headscope.inputs.picture import Pixels, open_picture
from headscope.inputs.positions import Positions, labelled
from headscope.inputs.sense import SenseKind
from headscope.inputs.sound import SOUNDS, Wave, open_sound
from headscope.output import check_out, write_out
from headscope.pairs import Rule, SimilarityReading, parse_rule, plain_tokens, quantile, reference
from headscope.pairs.tokens import Special
from headscope.placed_pairs import PlacedPairs
from headscope.reading import Focus, refuse_not_finite

if TYPE_CHECKING:
    from headscope.scope import Scope
    from headscope.viewer.widget import Viewer


class Range(NamedTuple):
    """The mean distance of the high pairs of a head, beside that of all pairs."""

    distance: float
    chance: float
    unit: str  # "patches" or "seconds"

    @property
    def of_chance(self) -> float:
        """Below 1 the head brings together what is near, above 1 what is far."""
        return self.distance / self.chance


class PlacedReading:
    """One input read by one model, its positions standing on a grid, in time, or as labelled."""

    def __init__(
        self,
        scope: "Scope",
        given: dict[str, Tensor],
        positions: Positions,
        picture: Pixels | None = None,
        sound: tuple[Wave, int] | None = None,
    ):
        self.scope = scope
        self.given = given  # what the model is given
        self.positions = positions
        self.picture = picture  # as the model reads it
        self.sound = sound  # at the model's rate
        self.layers = [
            self._kept(seen) for seen in _observed(scope, given)
        ]  # (heads, positions, d)
        refuse_not_finite(self.layers)

    def _kept(self, z: Tensor) -> Tensor:
        if z.shape[1] != self.positions.total:
            raise CannotRead(
                f"The model has {z.shape[1]:,} positions for this input, and there are "
                f"{self.positions.total:,} labels."
            )
        return z[:, torch.from_numpy(self.positions.places)].cpu()

    def __len__(self) -> int:
        return len(self.positions)

    def __repr__(self) -> str:
        shape = self.scope.shape
        what = {"image": "a picture", "sound": "a sound", "inputs": "inputs"}[self.positions.kind]
        return (
            f"<Reading of {what} by {shape.name} ({shape.layers_in_words} × {shape.heads} heads): "
            f"{self.positions.in_words}>"
        )

    def save(self, path: str | Path) -> Path:
        """Write the viewer with this reading inside: one file that needs nothing else."""
        from headscope.viewer.page import saved_page

        path = check_out(path, ".html", ".htm")
        return write_out(path, saved_page(self))

    def show(self, height: int = 760) -> "Viewer":
        """Show the viewer in a notebook; `height` in pixels."""
        from headscope.viewer.widget import Viewer

        return Viewer(self, height=height)

    def head_vectors(self, layer: int, head: int) -> NDArray[np.float32]:
        """z of one head: (positions, head size)."""
        self.scope.check_head(layer, head)
        place = self.scope.shape.place(layer)
        vectors: NDArray[np.float32] = self.layers[place][head - 1].float().numpy()
        return vectors

    def similarity(
        self, layer: int, head: int, reading: SimilarityReading = "raw"
    ) -> NDArray[np.float64]:
        """The context similarity matrix of one head: C_ij = z_i · z_j (positions, positions).

        `reading` is "raw", "cosine" or "centred" (cosine once the mean vector is taken away).
        """
        return reference.similarity(self.head_vectors(layer, head), reading)

    def high_pairs(
        self,
        layer: int,
        head: int,
        rule: Rule | str | None = None,
        *,
        reading: SimilarityReading = "raw",
        special: Special = "kept",
    ) -> PlacedPairs:
        """The pairs of positions that a head brings together, most similar first.

        `rule` says which pairs are high: `quantile(0.01)` unless given, or its name as a string.
        """
        chosen = quantile() if rule is None else parse_rule(rule) if isinstance(rule, str) else rule
        marks = plain_tokens(np.arange(len(self), dtype=np.int32), special=self.positions.special)
        kept = marks.kept(special)
        C = reference.similarity(self.head_vectors(layer, head), reading, kept)
        first, second = np.nonzero(reference.high_pairs(C, chosen, kept, None))
        order = np.argsort(-C[first, second], kind="stable")
        first, second = first[order], second[order]
        caption = (
            f"layer {layer}, head {head}: {len(first)} high pair{'s' * (len(first) != 1)} of "
            f"{int(reference.all_pairs(kept, None).sum()):,} ({reading}, {chosen})"
        )
        return PlacedPairs(self.positions, first, second, C[first, second], caption)

    def range(
        self,
        layer: int,
        head: int,
        rule: Rule | str | None = None,
        *,
        reading: SimilarityReading = "raw",
    ) -> Range:
        """How far apart the high pairs of a head stand, and all pairs: in patches, or in seconds.

        Of what stands somewhere: special positions take no part, in the pairs either.
        """
        apart = self.positions.distances()
        if apart is None:
            raise NotPossible(
                "Positions that only have labels stand nowhere: there is no distance."
            )
        pairs = self.high_pairs(layer, head, rule, reading=reading, special="left_out")
        plain = np.flatnonzero(~self.positions.special)
        every = apart[np.ix_(plain, plain)][np.triu_indices(len(plain), 1)]
        unit = "patches" if self.positions.grid is not None else "seconds"
        return Range(float(np.mean(pairs.columns["distance"])), float(every.mean()), unit)

    def attention(self, layer: int, head: int) -> NDArray[np.float64]:
        """The attention weights of one head: A_ij (positions, positions), a row for each reader.

        Of a sound that the model fills up with silence, what falls on the silence is missing here,
        and rows do not add up to 1: `focus` tells how much it is.
        """
        self.scope.check_head(layer, head)
        places = self.positions.places
        found: list[NDArray[np.float64]] = []

        def observe(seen: HeadOutputs) -> None:
            if seen.site.layer == layer - 1:
                rows = [A[head - 1] for _, A in attention_rows(seen, self.positions)]
                weights = torch.cat(rows).double().cpu().numpy()
                found.append(weights[np.ix_(places, places)])

        self.scope.observe_inputs(self.given, observe)
        return found[0]

    def focus(self) -> Focus:
        """Where the attention of every head goes, by what is near and far here: see `targets`."""
        return self._focus

    @cached_property
    def _focus(self) -> Focus:
        shape, names = self.scope.shape, targets(self.positions)
        sums = np.zeros((shape.layers, shape.heads, len(names)))
        shares = np.zeros(len(names))
        inside = np.zeros(self.positions.total, dtype=bool)
        inside[self.positions.places] = True
        masks = {}
        for start in range(0, self.positions.total, ROWS):
            readers = np.arange(start, min(start + ROWS, self.positions.total))
            masks[start] = (
                readers[inside[readers]] - start,
                where_targets_are(self.positions, readers[inside[readers]]),
            )
            shares += masks[start][1].mean(axis=2).sum(axis=1)

        def observe(seen: HeadOutputs) -> None:
            own = sums[shape.place(seen.site.layer + 1)]
            if self.positions.grid is None:
                own += mass_in_a_row(self.positions, seen)
                return
            for start, A in attention_rows(seen, self.positions):
                readers, on = masks[start]
                mass = A[:, torch.from_numpy(readers)].double().cpu()  # (heads, readers, keys)
                own += torch.einsum("hrk,trk->ht", mass, torch.from_numpy(on).double()).numpy()

        self.scope.observe_inputs(self.given, observe)
        return Focus(names, sums / len(self), shares / len(self), shape.numbers)


def _observed(scope: "Scope", given: dict[str, Tensor]) -> list[Tensor]:
    layers: list[Tensor] = []
    scope.observe_inputs(given, lambda seen: layers.append(seen.z[0]))
    return layers


def read_input(scope: "Scope", source: Any, labels: Sequence[str] | None) -> PlacedReading:
    """Read a picture, a sound, or inputs that are ready for the model."""
    if isinstance(source, Mapping):
        return _read_ready(scope, source, labels)
    if labels is not None:
        raise NotPossible("labels are for inputs that are ready for the model: a dict of tensors.")
    kind = _kind(scope, source)
    sensing = scope.with_sense(kind)
    assert sensing.loaded.sense is not None
    if kind == "image":
        given, positions, seen = sensing.loaded.sense.see(open_picture(source))
        return PlacedReading(sensing, given, positions, picture=seen)
    given, positions, heard = sensing.loaded.sense.hear(*open_sound(source))
    rate = int(sensing.loaded.sense.settings["sampling_rate"])
    return PlacedReading(sensing, given, positions, sound=(heard, rate))


def is_input(scope: "Scope", source: Any) -> bool:
    """Whether something is to be read as a picture, a sound or inputs; else it is a text."""
    if isinstance(source, str):  # the name of a file, for a model that reads no texts
        return scope.loaded.sense is not None
    pair = isinstance(source, tuple) and len(source) == 2
    picture = isinstance(source, np.ndarray) or hasattr(source, "getbands")
    return pair or picture or isinstance(source, (Mapping, Path, Tensor))


def _kind(scope: "Scope", source: Any) -> SenseKind:
    if isinstance(source, tuple):
        return "sound"
    if isinstance(source, (str, Path)):
        if not Path(source).is_file():
            none = f"There is no file '{source}'"
            raise CannotRead(
                f"{none}."
                if scope.loaded.sense is None
                else f"{none}, and {scope.shape.name} reads pictures or sounds, no texts."
            )
        return "sound" if Path(source).suffix.lower() in SOUNDS else "image"
    if isinstance(source, np.ndarray) and source.ndim == 1:
        raise CannotRead("A sound is read with its rate: scope.read((array, samples in a second)).")
    return "image"


def _read_ready(
    scope: "Scope", source: Mapping[Any, Any], labels: Sequence[str] | None
) -> PlacedReading:
    """Inputs as the part of the model that reads takes them, a label for each position."""
    wrong = [name for name, one in source.items() if not isinstance(one, Tensor)]
    if wrong or not source:
        raise CannotRead(
            "Inputs that are ready are tensors by their names, each a batch of one: "
            f"{{'pixel_values': tensor}}. {', '.join(map(repr, wrong)) or 'There are none'}."
        )
    given = {str(name): one for name, one in source.items()}
    if any(one.shape[:1] != (1,) for one in given.values()):
        raise CannotRead("Inputs that are ready are a batch of one: their first dimension is 1.")
    if labels is None:
        raise NotPossible(
            "What stands at the positions of inputs that are ready has to be said: "
            "scope.read(inputs, labels=['first', 'second', …]), a label for each position."
        )
    return PlacedReading(scope, given, labelled(labels))
