"""What a segmenter knows of a model: which heads find units alike, and how a segment begins.

It is a small JSON file: made by `fit_segmenter` from labelled texts, shipped for the specimen, and
for any other model a plain choice of late heads until one is fitted.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.segment.features import unit_vectors

if TYPE_CHECKING:
    from headscope.scope import Scope

FORMAT = "headscope segmenter 1"
UNFITTED_PENALTY = 1.2  # in squared lengths of a unit's vector; see docs/segmentation.md

Vectors = NDArray[np.float32]
Worth = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Segmenter:
    """The heads that a model's texts are cut by."""

    model: str  # the name of the model it was made for
    shape: tuple[int, int, int]  # layers, heads, head size of that model
    kernel: tuple[tuple[int, int, float], ...]  # layer, head (from 1), weight; weights sum to 1
    penalty: float  # what a boundary must be worth where the number of segments is not given
    shortest: int = 1  # units in a segment
    # (layers × heads, head size) each: what a unit that starts a segment, or ends one, looks like.
    starts: NDArray[np.float32] | None = None
    ends: NDArray[np.float32] | None = None
    made_from: str = "no labelled texts"

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """Numbers of the kernel's heads among all heads of the model, from 0."""
        _, heads, _ = self.shape
        return np.array([(layer - 1) * heads + head - 1 for layer, head, _ in self.kernel])

    def read(
        self, scope: "Scope", units: list[str], advance: Callable[[int], None] | None = None
    ) -> tuple[Vectors, Worth]:
        """The vectors of the units whose Gram matrix is the kernel, and the worth of boundaries.

        Only the kernel's heads are kept of each unit, so that memory stays small for long texts.
        """
        self.check(scope)
        kept, starts, ends = list[Vectors](), list[Vectors](), list[Vectors]()
        for vectors in unit_vectors(scope, units, advance):
            kept.append(vectors[:, self.columns])
            starts.append(_product(vectors, self.starts))
            ends.append(_product(vectors, self.ends))
        weights = np.array([weight for _, _, weight in self.kernel])
        kernel = kernel_vectors(np.concatenate(kept), weights)
        return kernel, worth_of(np.concatenate(starts), np.concatenate(ends))

    def check(self, scope: "Scope") -> None:
        """Raise unless it was made for a model of this scope's shape."""
        shape = (scope.shape.layers, scope.shape.heads, scope.shape.head_size)
        if shape != self.shape:
            raise CannotRead(
                f"This segmenter was made for {self.model} ({' × '.join(map(str, self.shape))}), "
                f"and {scope.shape.name} is {' × '.join(map(str, shape))}. Fit one for it: "
                "scope.fit_segmenter(examples)."
            )

    def save(self, path: str | Path) -> Path:
        """Write it as JSON."""
        path = Path(path)
        path.write_text(json.dumps(self.as_dict()) + "\n", encoding="utf-8")
        return path

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
        }

    @classmethod
    def load(cls, path: str | Path) -> "Segmenter":
        """Read one from JSON."""
        return cls.from_json(Path(path).read_text(encoding="utf-8"), str(path))

    @classmethod
    def from_json(cls, text: str, name: str) -> "Segmenter":
        """Read one from the text of a JSON file called `name`."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']!r}, not {FORMAT!r}")
            layers, heads, size = found["shape"]
            return cls(
                model=str(found["model"]),
                shape=(int(layers), int(heads), int(size)),
                kernel=tuple((k["layer"], k["head"], k["weight"]) for k in found["kernel"]),
                penalty=float(found["penalty"]),
                shortest=int(found["shortest"]),
                starts=_array(found["starts"], (layers * heads, size)),
                ends=_array(found["ends"], (layers * heads, size)),
                made_from=str(found["made_from"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CannotRead(
                f"{name} is no segmenter: {error}. Make one with scope.fit_segmenter(examples)"
                ".save(path)."
            ) from error


def default_segmenter(scope: "Scope") -> Segmenter:
    """The one that comes with the specimen; for another model, all heads of its last two layers."""
    shape = scope.shape
    if shape.name == "specimen":
        return Segmenter.from_json(
            (files("headscope.segment") / "specimen.json").read_text(encoding="utf-8"),
            "the specimen's segmenter",
        )
    late = [
        (layer, head)
        for layer in range(max(1, shape.layers - 1), shape.layers + 1)
        for head in range(1, shape.heads + 1)
    ]
    return Segmenter(
        model=shape.name,
        shape=(shape.layers, shape.heads, shape.head_size),
        kernel=tuple((layer, head, 1 / len(late)) for layer, head in late),
        penalty=UNFITTED_PENALTY,
    )


def kernel_vectors(vectors: Vectors, weights: NDArray[np.float64]) -> Vectors:
    """Head vectors of all units, (units, heads, size), as one vector a unit.

    Each head's vectors are centred over the text and brought to length 1, so that the kernel is
    the weighted sum of the heads' centred similarity matrices.
    """
    centred = vectors - vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = np.linalg.norm(centred, axis=2, keepdims=True)
    floor = 1e-6 * max(float(length.max(initial=0.0)), 1e-30)
    unit = np.where(length > floor, centred / np.maximum(length, floor), 0)
    weighted = unit * np.sqrt(weights / weights.sum())[None, :, None]
    flat: Vectors = np.ascontiguousarray(weighted.reshape(len(vectors), -1), dtype=np.float32)
    return flat


def worth_of(starts: NDArray[Any], ends: NDArray[Any]) -> Worth:
    """What a boundary before each unit is worth by how that unit starts and the one before ends."""
    worth = np.zeros(len(starts))
    worth[1:] = (starts - starts.mean())[1:] + (ends - ends.mean())[:-1]
    return worth


def _product(vectors: Vectors, weights: NDArray[np.float32] | None) -> Vectors:
    if weights is None:
        return np.zeros(len(vectors), dtype=np.float32)
    found: Vectors = np.einsum("uhd,hd->u", vectors, weights)
    return found


def _numbers(values: NDArray[np.float32] | None) -> list[list[float]] | None:
    """Four significant digits are more than the labels behind them support."""
    if values is None:
        return None
    return [[float(f"{value:.4g}") for value in row] for row in values]


def _array(values: Any, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    if values is None:
        return None
    made = np.array(values, dtype=np.float32)
    if made.shape != shape:
        raise ValueError(f"its weights are of shape {made.shape}, not {shape}")
    return made
