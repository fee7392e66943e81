"""A segmenter's file: JSON whose every field is checked, so that a broken one cuts no text.

docs/segmentation.md describes the fields.
"""

import json
import math
from pathlib import Path
from typing import Any, Never

import numpy as np
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.segment.sides import COMPARISONS
from headscope.visible import shortened

FORMAT = "headscope segmenter 3"
MOST_BYTES = 2**28
MOST = 10_000  # layers, heads, numbers in a head, units in a segment


def read_fields(path: str | Path) -> dict[str, Any]:
    """What a file holds, as `Segmenter` takes it."""
    path = Path(path)
    if not path.exists():
        raise CannotRead(f"There is no file '{path}' with a segmenter. Check the spelling.")
    if path.is_dir():
        raise CannotRead(f"'{path}' is a folder. Name the file in it that holds the segmenter.")
    if path.stat().st_size > MOST_BYTES:
        raise CannotRead(
            f"'{path}' is no segmenter: it is larger than {MOST_BYTES / 2**20:.0f} MB."
        )
    return fields(path.read_bytes(), str(path))


def fields(data: bytes, name: str) -> dict[str, Any]:
    """The fields of a segmenter from the bytes of a file called `name`."""
    return _Fields(name).read(data)


class _Fields:
    """Reads one file; what is wrong is said with its name and the field's."""

    def __init__(self, name: str):
        self.name = name

    def wrong(self, what: str) -> Never:
        raise CannotRead(
            f"'{self.name}' is no segmenter that can be used: {what}.",
            python="Make one with scope.fit_segmenter(examples).save(path).",
            command="Make one in Python, with scope.fit_segmenter(examples).save(path), or leave "
            "--segmenter out.",
        )

    def read(self, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data.decode("utf-8"), parse_constant=self._constant)
        except (ValueError, RecursionError):  # bytes, syntax, numbers of thousands of digits, depth
            self.wrong("it is not JSON")
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            self.wrong(f"it does not say 'format': '{FORMAT}'")
        shape = self._shape(found.get("shape"))
        layers, heads, size = shape
        learned = {
            field: self._array(field, found.get(field), (layers * heads, width))
            for field, width in (("starts", size), ("ends", size), ("sides", COMPARISONS))
        }
        if len({values is None for values in learned.values()}) > 1:
            self.wrong("of starts, ends and sides it holds some and not all")
        return {
            "model": self._text("model", found.get("model")),
            "shape": shape,
            "kernel": self._kernel(found.get("kernel"), layers, heads),
            "penalty": self._number("penalty", found.get("penalty")),
            "shortest": self._whole("shortest", found.get("shortest"), MOST),
            "made_from": self._text("made_from", found.get("made_from")),
            **learned,
        }

    def _constant(self, said: str) -> Never:
        self.wrong(f"it holds {said}, which is no number")

    def _text(self, field: str, value: Any) -> str:
        if not isinstance(value, str):
            self.wrong(f"its {field} is no text")
        return shortened(value, 200)

    def _whole(self, field: str, value: Any, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            self.wrong(f"its {field} is no whole number from 1 to {most:,}")
        return value

    def _number(self, field: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e30:
            self.wrong(f"its {field} is no number that can be worked with")
        if not math.isfinite(value):
            self.wrong(f"its {field} is no finite number")
        return float(value)

    def _shape(self, value: Any) -> tuple[int, int, int]:
        if not isinstance(value, list) or len(value) != 3:
            self.wrong("its shape is not [layers, heads, head size]")
        layers, heads, size = (self._whole("shape", one, MOST) for one in value)
        return layers, heads, size

    def _kernel(self, value: Any, layers: int, heads: int) -> tuple[tuple[int, int, float], ...]:
        if not isinstance(value, list) or not value or not all(isinstance(k, dict) for k in value):
            self.wrong("its kernel is no list of heads")
        kernel = tuple(
            (
                self._whole("kernel's layer", one.get("layer"), layers),
                self._whole("kernel's head", one.get("head"), heads),
                self._number("kernel's weight", one.get("weight")),
            )
            for one in value
        )
        if len({head[:2] for head in kernel}) < len(kernel):
            self.wrong("its kernel names a head twice")
        if any(weight < 0 for _, _, weight in kernel) or sum(w for _, _, w in kernel) <= 1e-30:
            self.wrong("the weights of its kernel are negative, or all nothing")
        return kernel

    def _array(self, field: str, values: Any, shape: tuple[int, int]) -> NDArray[np.float32] | None:
        if values is None:
            return None
        rows = values if isinstance(values, list) else []
        fits = len(rows) == shape[0] and all(
            isinstance(row, list) and len(row) == shape[1] for row in rows
        )
        if not fits:
            self.wrong(f"its {field} is not {shape[0]:,} lists of {shape[1]:,} numbers")
        numbers = [[self._number(field, value) for value in row] for row in rows]
        return np.array(numbers, dtype=np.float32)
