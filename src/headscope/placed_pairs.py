"""The high pairs of a head among patches, frames or labelled positions, as a table."""

import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from headscope.inputs.positions import Floats, Ints, Positions
from headscope.terminal import Terminal

if TYPE_CHECKING:
    import pyarrow

SHOWN = 20
TOLD = ("similarity", "first_label", "second_label", "distance", "special")  # labels say the rest


class PlacedPairs(Sequence[dict[str, Any]]):
    """The high pairs of a head, most similar first; a pair is a row of named values.

    Where a column means nothing it is not there: a sound has no rows, labels have no distance.
    """

    def __init__(
        self, positions: Positions, first: Ints, second: Ints, similarity: Floats, caption: str
    ):
        self.caption = caption
        self.columns = _columns(positions, first, second, similarity)

    def __len__(self) -> int:
        return len(self.columns["similarity"])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return {name: column[index].item() for name, column in self.columns.items()}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[at] for at in range(len(self)))

    def rows(self) -> list[dict[str, Any]]:
        """A plain dictionary per pair."""
        return list(self)

    def to_arrow(self) -> "pyarrow.Table":
        """As an Arrow table (`.to_pandas()` from there)."""
        import pyarrow as pa

        return pa.table(dict(self.columns))

    def __repr__(self) -> str:
        return self.told(SHOWN)

    def told(self, rows: int) -> str:
        """The first pairs as a table of plain text."""
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
        shown = [name for name in TOLD if name in self.columns]
        for name in shown:
            table.add_column(name.replace("_", " "))
        for pair in self[:rows]:
            table.add_row(*[Text(_told(pair[name])) for name in shown])
        if len(self) > rows:
            table.caption = f"The first {rows} of {len(self)}."
        console = Terminal(file=io.StringIO(), width=120, no_color=True, force_terminal=False)
        console.print(self.caption, highlight=False, markup=False)
        console.print(table)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().rstrip()


def _columns(
    positions: Positions, first: Ints, second: Ints, similarity: Floats
) -> dict[str, NDArray[Any]]:
    labels = np.array(positions.labels, dtype=np.str_)
    columns: dict[str, NDArray[Any]] = {
        "similarity": similarity,
        "first": first,
        "second": second,
        "first_label": labels[first],
        "second_label": labels[second],
    }
    places = {"row": positions.rows, "column": positions.columns, "seconds": positions.seconds}
    for name, values in places.items():
        if values is not None:
            columns |= {f"first_{name}": values[first], f"second_{name}": values[second]}
    if positions.points is not None:
        apart = positions.points[first] - positions.points[second]
        columns["distance"] = np.sqrt((apart**2).sum(axis=1))
    columns["special"] = positions.special[first] | positions.special[second]
    return columns


def _told(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
