"""A table of a study in a person's hands: an Arrow table that shows itself to be read.

Everything else that can be asked of it is Arrow's.
"""

import io
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from headscope.errors import HeadscopeError
from headscope.markup import h, written
from headscope.terminal import Terminal
from headscope.visible import shortened

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 20
WIDTH = 120  # characters of a terminal
EDGES = 2  # of a table, in characters


class ShownTable:
    """An Arrow table, its first rows shown by `repr` and in a notebook."""

    def __init__(self, table: "pa.Table"):
        self.arrow = table

    def __getattr__(self, name: str) -> Any:
        if name == "arrow":  # a copy that is not made yet
            raise AttributeError(name)
        return getattr(self.arrow, name)

    def __getitem__(self, key: Any) -> Any:
        return self.arrow[key]

    def __len__(self) -> int:
        return self.arrow.num_rows  # type: ignore[no-any-return]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.arrow)})

    def to_pandas(self, **options: Any) -> Any:
        """As a data frame, which needs pandas."""
        try:
            import_module("pandas")
        except ImportError as error:
            raise HeadscopeError(
                "A data frame needs one more package: pip install 'headscope[pandas]'. Without it "
                'there are .to_pylist(), .to_pydict() and study.sql("select …").'
            ) from error
        return self.arrow.to_pandas(**options)

    def __repr__(self) -> str:
        """The columns that a terminal has room for, and the names of the others."""
        names, rows = self.arrow.column_names, self._cells()
        cut = [[shortened(cell, 30) for cell in row] for row in rows]
        widths = [2 + max(map(len, column)) for column in zip(names, *cut, strict=True)]
        fitting = max(sum(reach + EDGES <= WIDTH for reach in accumulate(widths)), 2)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in names[:fitting]:
            table.add_column(name, no_wrap=True)
        for row in cut:
            table.add_row(*row[:fitting])
        console = Terminal(file=io.StringIO(), width=WIDTH, no_color=True, force_terminal=False)
        console.print(table)
        assert isinstance(console.file, io.StringIO)
        lines = (line.rstrip() for line in console.file.getvalue().splitlines())
        others = f"More columns: {', '.join(names[fitting:])}." if names[fitting:] else ""
        return "\n".join(filter(None, [*lines, self._more(), others]))

    def _repr_html_(self) -> str:
        names = [h("th", {"scope": "col"}, name) for name in self.arrow.column_names]
        body = [h("tr", None, [h("td", None, cell) for cell in row]) for row in self._cells()]
        head = h("thead", None, h("tr", None, names))
        return written(h("table", None, head, h("tbody", None, body)), h("p", None, self._more()))

    def _cells(self) -> list[list[str]]:
        columns = self.arrow.slice(0, ROWS).to_pydict().values()
        return [[_cell(value) for value in row] for row in zip(*columns, strict=True)]

    def _more(self) -> str:
        return f"The first {ROWS} of {len(self):,} rows." if len(self) > ROWS else ""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return shortened(", ".join(_cell(one) for one in value[:20]), 60)
    return shortened(str(value), 60)
