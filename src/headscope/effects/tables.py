"""Quantities that a verb adds, as tables: those of the measures, but for the ways of seeing pairs.

Layers and heads are counted from 1 here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.measures.base import Quantity, Values
from headscope.study.estimates import LEVELS, estimate
from headscope.study.tables import NUMBERS, WHERE


def quantity_table(quantities: Mapping[str, Quantity]) -> pa.Table:
    """A row for each number: quantities of heads, of layers or of the model, with replicates.

    They are (replicates + 1, layers, heads), (replicates + 1, layers) or (replicates + 1,), the
    first entry that of the data; a number that does not exist is NaN, and becomes a null.
    """
    columns: dict[str, list[Any]] = {name: [] for name in (*WHERE, *NUMBERS)}
    for name, quantity in quantities.items():
        level = LEVELS[3 - quantity.value.ndim]
        shape = quantity.value.shape[1:]
        found = estimate(quantity)
        for place in np.ndindex(shape):
            columns["level"].append(level)
            columns["layer"].append(place[0] + 1 if place else None)
            columns["head"].append(place[1] + 1 if len(place) > 1 else None)
            columns["quantity"].append(name)
            for number in NUMBERS:
                columns[number].append(_known(getattr(found, number)[place]))
    kinds = WHERE | dict.fromkeys(NUMBERS, pa.float64())
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


def replicate_table(quantities: Mapping[str, Quantity]) -> pa.Table:
    """What every replicate gave for quantities of heads: a row for each head."""
    columns: dict[str, list[Any]] = {name: [] for name in ("quantity", "layer", "head")}
    found = []
    for name, quantity in quantities.items():
        if quantity.value.ndim == 3:
            replicates, layers, heads = quantity.value[1:].shape
            found.append(quantity.value[1:].reshape(replicates, -1).T)
            columns["quantity"] += [name] * (layers * heads)
            columns["layer"] += [n // heads + 1 for n in range(layers * heads)]
            columns["head"] += [n % heads + 1 for n in range(layers * heads)]
    kinds = {"quantity": pa.string(), "layer": pa.int32(), "head": pa.int32()}
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})
    values = pa.array(np.concatenate(found).astype(np.float32).ravel())
    lists = pa.FixedSizeListArray.from_arrays(values, found[0].shape[1])
    return table.append_column("values", lists)


def _known(value: Values) -> float | None:
    return float(value) if np.isfinite(value) else None


def table_of(rows: Iterable[Mapping[str, Any]], kinds: Mapping[str, pa.DataType]) -> pa.Table:
    """Rows as a table; a number that does not exist becomes a null."""
    listed = list(rows)
    columns = {}
    for name, kind in kinds.items():
        values = [row[name] for row in listed]
        if kind == pa.float64():
            values = [None if value is None else _known(value) for value in values]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)
