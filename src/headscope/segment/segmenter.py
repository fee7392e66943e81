"""What a segmenter knows of a model: which heads find units alike, and what a boundary looks like.

It is a small JSON file: made by `fit_segmenter` from labelled texts, shipped for the specimen, and
for any other model a plain choice of late heads until one is fitted.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.output import check_out, write_out
from headscope.segment.consensus import SHARPNESS
from headscope.segment.features import unit_vectors
from headscope.segment.segmenter_file import FORMAT, fields, read_fields
from headscope.segment.sides import of_length_one, sides_alike

if TYPE_CHECKING:
    from headscope.observed import ObservedModel
    from headscope.study.folder import Study

# Without labelled texts a boundary must gain this much, in squared lengths of a unit's vector: half
# as much again as the best boundary of a text does whose units are shuffled (1.3 to 1.5 with every
# model tried). Units have length 1 in every kernel, so it is the same for all models.
UNFITTED_PENALTY = 2.0
# And the gains of a kernel are no log odds: a way to cut that gains 1 more is e⁶ times as likely.
# Of shuffled units one boundary in a hundred places is then expected, hardly more than are found.
UNFITTED_SHARPNESS = 6.0

Vectors = NDArray[np.float32]
Worth = NDArray[np.float64]
Kernel = tuple[tuple[int, int, float], ...]  # layer, head (from 1), weight; weights sum to 1


@dataclass(frozen=True, eq=False)
class Segmenter:
    """The heads that a model's texts are cut by."""

    model: str  # the name of the model it was made for
    shape: tuple[int, int, int]  # layers, heads, head size of that model
    kernel: Kernel
    penalty: float  # what a boundary must be worth where the number of segments is not given
    shortest: int = 1  # units in a segment
    # (layers × heads, head size) each: what a unit that starts a segment, or ends one, looks like.
    starts: NDArray[np.float32] | None = None
    ends: NDArray[np.float32] | None = None
    # (layers × heads, comparisons): what it is worth that both sides are alike to a head.
    sides: NDArray[np.float32] | None = None
    made_from: str = "no labelled texts"

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Numbers of the kernel's heads among all heads of the model, from 0."""
        _, heads, _ = self.shape
        return np.array([(layer - 1) * heads + head - 1 for layer, head, _ in self.kernel])

    @property
    def learned(self) -> bool:
        """Whether it knows what a boundary is worth, from labelled texts."""
        return self.starts is not None and self.ends is not None and self.sides is not None

    @property
    def sharpness(self) -> float:
        """How much likelier a way to cut is whose total is higher: as log odds, if it learned."""
        return SHARPNESS if self.learned else UNFITTED_SHARPNESS

    def read(
        self, scope: "ObservedModel", units: list[str], advance: Callable[[int], None] | None = None
    ) -> Vectors:
        """The mean vectors of all heads for every unit: (units, layers × heads, head size)."""
        self.check(scope)
        layers, heads, size = self.shape
        found = np.empty((len(units), layers * heads, size), dtype=np.float32)
        first = 0
        for some in unit_vectors(scope, units, advance):
            found[first : first + len(some)] = some
            first += len(some)
        return found

    def evidence(self, heads: Vectors) -> "BoundaryEvidence":
        """What the segmenter makes of the heads' vectors, (units, layers × heads, head size)."""
        weights = np.array([weight for _, _, weight in self.kernel])
        vectors = kernel_vectors(heads[:, self.columns], weights)
        by_head = np.zeros(heads.shape[:2])
        if self.starts is not None and self.ends is not None and self.sides is not None:
            centred = heads - heads.mean(axis=0)
            by_head[1:] = np.einsum("uhs,hs->uh", sides_alike(centred), self.sides)[1:]
            by_head[1:] -= by_head[1:].mean(axis=0)
            by_head[1:] += np.einsum("uhd,hd->uh", centred, self.starts)[1:]
            by_head[1:] += np.einsum("uhd,hd->uh", centred, self.ends)[:-1]
        return BoundaryEvidence(vectors, by_head)

    def times(self, balance: float) -> "Segmenter":
        """The same with what was learned counting `balance` times as much against the kernel."""
        if self.starts is None or self.ends is None or self.sides is None:
            return self
        return replace(
            self,
            starts=balance * self.starts,
            ends=balance * self.ends,
            sides=balance * self.sides,
        )

    def check(self, scope: "ObservedModel") -> None:
        """Raise unless it was made for a model of this scope's shape."""
        shape = (scope.shape.layers, scope.shape.heads, scope.shape.head_size)
        if shape != self.shape:
            raise CannotRead(
                f"This segmenter was made for {self.model} ({' × '.join(map(str, self.shape))}), "
                f"and {scope.shape.name} is {' × '.join(map(str, shape))}.",
                python="Fit one for it: scope.fit_segmenter(examples).",
                command="Fit one for it in Python, with scope.fit_segmenter(examples), or leave "
                "--segmenter out.",
            )

    def save(self, path: str | Path) -> Path:
        """Write it as JSON."""
        return write_out(check_out(path, ".json"), json.dumps(self.as_dict()) + "\n")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": FORMAT,
            "model": self.model,
            "shape": self.shape,
            "made_from": self.made_from,
            "penalty": round(self.penalty, 4),
            "shortest": self.shortest,
            "kernel": [
                {"layer": layer, "head": head, "weight": round(weight, 6)}
                for layer, head, weight in self.kernel
            ],
            "starts": _numbers(self.starts),
            "ends": _numbers(self.ends),
            "sides": _numbers(self.sides),
        }

    @classmethod
    def from_study(cls, study: "Study") -> "Segmenter":
        """One for the model of a study, its heads chosen by the study's measures, nothing learned.

        Of the later half of the layers, the heads with most `same_sentence` and least
        `common_mode`, by the sum of both ranks: as many as two layers have.
        """
        model = study.manifest.model
        shape = (model.layers, model.heads, model.head_size)
        found = study.table("heads").to_pydict()
        late = [i for i, layer in enumerate(found["layer"]) if layer > shape[0] // 2]
        ranks = np.zeros(len(late))
        for measure, sign in (("same_sentence", -1), ("common_mode", 1)):
            values = sign * np.array([found[measure][i] for i in late], dtype=float)
            ranks += np.argsort(np.argsort(np.nan_to_num(values, nan=np.inf), kind="stable"))
        best = sorted(np.argsort(ranks, kind="stable")[: 2 * shape[1]])
        heads = [(found["layer"][late[i]], found["head"][late[i]]) for i in best]
        kernel = tuple((int(layer), int(head), 1 / len(heads)) for layer, head in heads)
        return cls(model.name, shape, kernel, UNFITTED_PENALTY)

    @classmethod
    def load(cls, path: str | Path) -> "Segmenter":
        """Read one from its file."""
        return cls(**read_fields(path))


@dataclass(frozen=True, eq=False)
class BoundaryEvidence:
    """What the heads see of a text's units, and between them."""

    vectors: Vectors  # (units, size): the kernel is their Gram matrix
    by_head: NDArray[np.float64]  # (units, heads): worth of a boundary before each unit

    @cached_property
    def worth(self) -> Worth:
        """What was learned says a boundary before each unit is worth."""
        found: Worth = self.by_head.sum(axis=1)
        return found


def default_segmenter(scope: "ObservedModel") -> Segmenter:
    """The one that comes with the specimen; for another model, all heads of its last two layers."""
    shape = scope.shape
    if shape.name == "specimen":
        own = files("headscope.segment") / "specimen.json"
        return Segmenter(**fields(own.read_bytes(), "the specimen's segmenter"))
    return Segmenter(
        model=shape.name,
        shape=(shape.layers, shape.heads, shape.head_size),
        kernel=late_heads(shape.layers, shape.heads),
        penalty=UNFITTED_PENALTY,
    )


def late_heads(layers: int, heads: int) -> Kernel:
    """All heads of the last two layers, with equal weights."""
    late = range(max(1, layers - 1), layers + 1)
    weight = 1 / (len(late) * heads)
    return tuple((layer, head, weight) for layer in late for head in range(1, heads + 1))


def kernel_vectors(vectors: Vectors, weights: NDArray[np.float64]) -> Vectors:
    """Head vectors of all units, (units, heads, size), as one vector a unit.

    Each head's vectors are centred over the text and brought to length 1, so that the kernel is
    the weighted sum of the heads' centred similarity matrices.
    """
    unit = of_length_one(vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32))
    weighted = unit * np.sqrt(weights / weights.sum())[None, :, None]
    flat: Vectors = np.ascontiguousarray(weighted.reshape(len(vectors), -1), dtype=np.float32)
    return flat


def _numbers(values: NDArray[np.float32] | None) -> list[list[float]] | None:
    """Four significant digits are more than the labels behind them support."""
    if values is None:
        return None
    return [[float(f"{value:.4g}") for value in row] for row in values]
