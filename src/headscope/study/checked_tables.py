"""A table of a study, checked before it is used: every byte, its size in memory, and its heads."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headscope.errors import CannotStudy
from headscope.study.manifest import TableEntry

ROOM = 2**29 + 2**28  # most bytes that a table may take in memory
WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}  # of a value; 8 of others, 4 of texts


def read_table(file: Path, entry: TableEntry, heads: tuple[int, int]) -> pa.Table:
    """The table in a file, if it is what the manifest says, of a model with such layers × heads."""
    try:
        if not file.is_file() or file.stat().st_size > ROOM:
            raise CannotStudy(
                f"There is no file '{file}', or none that is small enough to be a table, though "
                "the manifest lists it. Copy the study again, whole."
            )
        data = file.read_bytes()
    except OSError as error:
        raise CannotStudy(f"'{file}' cannot be read: {error.strerror or error}.") from error
    if sha256(data).hexdigest() != entry.sha256:
        raise CannotStudy(
            f"'{file}' is not as it was written: its checksum is not the one in the manifest. Copy "
            "the study again, or make it again."
        )
    try:
        table = _unpacked(pa.py_buffer(data), file)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise CannotStudy(f"'{file}' is no table that can be read: {error}") from error
    if len(table) != entry.rows:
        raise CannotStudy(
            f"'{file}' has {len(table):,} rows, and {entry.rows:,} in the manifest. Copy the study "
            "again, or make it again."
        )
    for name, most in zip(("layer", "head"), heads, strict=True):
        if name in table.column_names and not _within(table[name], most):
            raise CannotStudy(f"'{file}' is of other heads than the model has: its column {name}.")
    return table


def _unpacked(data: pa.Buffer, file: Path) -> pa.Table:
    """The table in Parquet, if there is room for it."""
    about = pq.read_metadata(pa.BufferReader(data))
    size = 0
    for group in range(about.num_row_groups):
        columns = [about.row_group(group).column(n) for n in range(about.num_columns)]
        for one in columns:
            width = 4 if one.physical_type == "BYTE_ARRAY" else WIDTHS.get(one.physical_type, 8)
            size += max(one.num_values * width, one.total_uncompressed_size)
    _check_room(size, about.num_rows, file)
    # Texts as numbers of different texts first: a million rows of one long text fit in a few bytes.
    schema = about.schema.to_arrow_schema()
    texts = [field.name for field in schema if _is_text(field.type)]
    table = pq.read_table(pa.BufferReader(data), read_dictionary=texts)
    size += sum(_bytes_of_texts(table[name]) for name in texts)
    _check_room(size, about.num_rows, file)
    for name in texts:
        table = table.set_column(
            table.column_names.index(name), name, table[name].cast(pa.string())
        )
    table.validate(full=True)
    return table


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind.value_type if pa.types.is_dictionary(kind) else kind))


def _bytes_of_texts(column: pa.ChunkedArray) -> int:
    total = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            lengths = pc.binary_length(chunk.dictionary).take(chunk.indices)
            total += pc.sum(lengths).as_py() or 0
        else:
            total += chunk.nbytes
    return total


def _check_room(size: int, rows: int, file: Path) -> None:
    if size > ROOM:
        raise CannotStudy(
            f"'{file}' would take {size / 2**30:,.1f} GiB in memory ({rows:,} rows), more than the "
            f"{ROOM / 2**30:.2f} GiB that a table of a study may take. It is plain Parquet: other "
            "programs read it in pieces."
        )


def _within(column: Any, most: int) -> bool:
    """Whether numbers of layers or heads are from 1, where there are any."""
    if not pa.types.is_integer(column.type):
        return False
    found = pc.min_max(column).as_py()
    return found["min"] is None or (found["min"] >= 1 and found["max"] <= most)
