"""Whether what heads look like says what they are worth: rank correlations over heads.

Every quantity of a study against the effect of silencing the head, in every replicate of both: a
document weighs the same in either, so that the intervals are those of the pair.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headscope.effects.ranks import rank_correlation, within_layers
from headscope.measures.base import Values
from headscope.measures.registry import MEASURES
from headscope.study.bootstrap import interval

if TYPE_CHECKING:
    from headscope.study.folder import Study

WAYS = ("reading", "special", "rule")
NUMBERS = ("rho", "low", "high", "within", "within_low", "within_high")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One quantity of all heads, in one way of seeing pairs."""

    measure: str
    quantity: str
    way: tuple[str | None, ...]  # reading, special, rule
    values: Values  # (replicates + 1, layers, heads)


def places_of(study: "Study") -> dict[int, int]:
    """By the number of a layer, as tables have it, which of the layers with heads it is, from 0."""
    return {number: place for place, number in enumerate(study.manifest.model.layer_numbers)}


def columns_of(study: "Study") -> Iterator[Column]:
    """Every quantity of a study that differs between heads, with its replicates."""
    places, heads = places_of(study), study.manifest.model.heads
    own: dict[tuple[Any, ...], Values] = {}
    for measure in MEASURES:
        for row in study.table(measure).to_pylist() if measure in study.tables else ():
            if row["level"] == "head" and row["mode"] == "real":
                key = (measure, row["quantity"], tuple(row[way] for way in WAYS))
                held = own.setdefault(key, np.full((len(places), heads), np.nan))
                held[places[row["layer"]], row["head"] - 1] = _number(row["value"])
    replicates = _by_key(study.table("replicates"), ("measure", "quantity", *WAYS), places, heads)
    for (measure, quantity, *way), found in replicates.items():
        key = (measure, quantity, tuple(way))
        if key in own and len(set(own[key][np.isfinite(own[key])])) > 1:
            values = np.concatenate([own[key][None], found])
            yield Column(measure, quantity, tuple(way), values)


def effect_of(study: "Study", quantity: str) -> Values:
    """An effect of all heads, with its replicates: (replicates + 1, layers, heads)."""
    places, heads = places_of(study), study.manifest.model.heads
    own = np.full((1, len(places), heads), np.nan)
    for row in study.table("effects").to_pylist():
        if row["quantity"] == quantity:
            own[0, places[row["layer"]], row["head"] - 1] = _number(row["value"])
    found = _by_key(study.table("effect_replicates"), ("quantity",), places, heads)
    return np.concatenate([own, found[quantity,]])


def correlation_table(columns: list[Column], effect: Values) -> pa.Table:
    """A row for each quantity: ρ with the effect over all heads, and within layers."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("measure", "quantity", *WAYS, *NUMBERS, "heads")
    }
    depth = np.broadcast_to(np.arange(effect.shape[1])[:, None], effect.shape).astype(float)
    for column in [Column("layer", "layer", (None, None, None), depth), *columns]:
        size = min(len(column.values), len(effect))
        one, other = column.values[:size], effect[:size]
        known = np.isfinite(one[0]) & np.isfinite(other[0])
        for name, value in zip(
            ("measure", "quantity", *WAYS),
            (column.measure, column.quantity, *column.way),
            strict=True,
        ):
            rows[name].append(value)
        whole = rank_correlation(one.reshape(size, -1), other.reshape(size, -1))
        inside = within_layers(one, other)
        for prefix, rho in (("rho", whole), ("within", inside)):
            low, high = interval(rho)
            names = ("rho", "low", "high") if prefix == "rho" else NUMBERS[3:]
            for name, value in zip(names, (rho[0], low, high), strict=True):
                rows[name].append(float(value) if np.isfinite(value) else None)
        rows["heads"].append(int(known.sum()))
    kinds = dict.fromkeys(("measure", "quantity", *WAYS), pa.string())
    kinds |= dict.fromkeys(NUMBERS, pa.float64()) | {"heads": pa.int32()}
    return pa.table({name: pa.array(rows[name], kind) for name, kind in kinds.items()})


def _by_key(
    table: pa.Table, names: tuple[str, ...], places: Mapping[int, int], heads: int
) -> dict[tuple[Any, ...], Values]:
    """Replicates (replicates, layers, heads) of each kind of row of a table."""
    values = np.stack(
        table["values"]
        .combine_chunks()
        .flatten()
        .to_numpy(zero_copy_only=False)
        .reshape(len(table), -1)
    ).astype(np.float64)
    keys = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    found: dict[tuple[Any, ...], Values] = {}
    where = zip(table["layer"].to_pylist(), table["head"].to_pylist(), strict=True)
    for row, (key, (layer, head)) in enumerate(zip(keys, where, strict=True)):
        held = found.setdefault(key, np.full((values.shape[1], len(places), heads), np.nan))
        held[:, places[layer], head - 1] = values[row]
    return found


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)
