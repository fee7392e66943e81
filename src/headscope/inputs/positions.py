"""What stands at each position of an input that is no text: a patch, a frame, or a label."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

InputKind: TypeAlias = Literal["image", "sound", "inputs"]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Positions:
    """The positions of one input; arrays have one entry for each.

    Rows and columns are counted from 1 at the top left. What is special ([CLS], registers) stands
    nowhere: its row and column are 0, its time is NaN.
    """

    kind: InputKind
    labels: tuple[str, ...]
    special: Bools
    places: Ints  # among the positions of the model, which may have more: silence that it adds
    total: int  # positions that the model has
    rows: Ints | None = None
    columns: Ints | None = None
    seconds: Floats | None = None  # where in a sound: the middle of what is heard at once

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Positions: {self.in_words}>"

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the patches, where there are any."""
        if self.rows is None or self.columns is None:
            return None
        return int(self.rows.max(initial=0)), int(self.columns.max(initial=0))

    @property
    def in_words(self) -> str:
        """ "196 patches in 14 rows and 14 columns, 1 special"."""
        count, special = int((~self.special).sum()), int(self.special.sum())
        more = f", {special} special" if special else ""
        if self.grid is not None:
            return f"{count:,} patches in {self.grid[0]} rows and {self.grid[1]} columns{more}"
        return f"{count:,} {'frames' if self.kind == 'sound' else 'positions'}{more}"

    @cached_property
    def points(self) -> Floats | None:
        """Where each stands, (positions, 2 or 1): rows and columns, or seconds; NaN for nowhere."""
        if self.rows is not None and self.columns is not None:
            points = np.stack([self.rows, self.columns], axis=1).astype(np.float64)
        elif self.seconds is not None:
            points = self.seconds[:, None].astype(np.float64)
        else:
            return None
        points[self.special] = np.nan
        return points

    def distances(self) -> Floats | None:
        """How far apart every two stand: in patches on the grid, or in seconds."""
        if self.points is None:
            return None
        apart: Floats = np.sqrt(((self.points[:, None] - self.points[None]) ** 2).sum(-1))
        return apart


def patches(
    grid: tuple[int, int], before: int, total: int, seconds: Floats | None = None
) -> Positions:
    """The patches of a picture in reading order, special positions before and after them.

    `seconds` are those of the columns, where the picture is the spectrogram of a sound.
    """
    count = grid[0] * grid[1]
    special = np.ones(total, dtype=bool)
    special[before : before + count] = False
    rows, columns = np.zeros((2, total), dtype=np.int64)
    rows[~special] = np.repeat(np.arange(1, grid[0] + 1), grid[1])
    columns[~special] = np.tile(np.arange(1, grid[1] + 1), grid[0])
    times = None
    if seconds is not None:
        times = np.full(total, np.nan)
        times[~special] = np.tile(seconds, grid[0])
    named = iter(_special_names(int(special.sum())))
    labels = tuple(
        next(named)
        if special[at]
        else f"row {rows[at]}, column {columns[at]}"
        if times is None
        else f"{times[at]:.2f} s, band {rows[at]}"
        for at in range(total)
    )
    return Positions(
        "image" if times is None else "sound",
        labels,
        special,
        np.arange(total),
        total,
        rows,
        columns,
        times,
    )


def frames(seconds: Floats, total: int) -> Positions:
    """The frames of a sound; the model may go on after them with silence that it adds."""
    count = len(seconds)
    labels = tuple(f"{time:.2f} s" for time in seconds)
    nothing = np.zeros(count, dtype=bool)
    return Positions("sound", labels, nothing, np.arange(count), total, seconds=seconds)


def labelled(labels: Sequence[str], special: Sequence[bool] | None = None) -> Positions:
    """Positions of which a person says what they are."""
    count = len(labels)
    marked = np.zeros(count, dtype=bool) if special is None else np.array(special, dtype=bool)
    return Positions("inputs", tuple(map(str, labels)), marked, np.arange(count), count)


def _special_names(count: int) -> list[str]:
    """[CLS] is the first, or the only one, in every family that has some."""
    return ["[CLS]", *(f"[special {n}]" for n in range(2, count + 1))][:count]
