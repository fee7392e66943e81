"""The tables of a study, as Arrow. Layers and heads are counted from 1 here.

The tables of the measures are long: a row for each quantity of each head, layer or model.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.corpus import Skipped
from headscope.measures.base import Values, ratio
from headscope.measures.type_counts import TypeCounts
from headscope.pairs.distances import LOWER_DISTANCES, UPPER_DISTANCES
from headscope.study.bootstrap import interval
from headscope.study.estimates import LEVELS, difference, estimate, quantities
from headscope.study.evidence import alone, number_of_groups
from headscope.study.sums import Key, Totals

POOLED = ("layer", "model")  # levels of nulls: another model has no head to be held against
ANCHORS = 10  # types listed for each head
WHOSE = {"mode": pa.string(), "reading": pa.string(), "special": pa.string(), "rule": pa.string()}
WHERE = {"level": pa.string(), "layer": pa.int32(), "head": pa.int32(), "quantity": pa.string()}
NUMBERS = ("value", "error", "low", "high", "chance", "lift", "lift_low", "lift_high")
UNSURE = {"error", "low", "high", "lift_low", "lift_high", "ratio_low", "ratio_high"}

Columns = dict[str, list[Any]]


def measure_tables(totals: Totals) -> dict[str, pa.Table]:
    """A table for each measure."""
    numbers = dict.fromkeys(NUMBERS, pa.float64())
    columns: dict[str, Columns] = {}
    for key in sorted(totals.sums):
        table = columns.setdefault(key.measure, {name: [] for name in (*WHOSE, *WHERE, *numbers)})
        for level in LEVELS if key.mode == "real" else POOLED:
            for name, quantity in quantities(totals, key, level).items():
                found = estimate(quantity)
                values = {number: getattr(found, number) for number in NUMBERS}
                _extend(table, key, level, name, values)
    kinds = WHOSE | WHERE | numbers
    return {name: _sure(_table(table, kinds), totals) for name, table in columns.items()}


def replicate_table(totals: Totals) -> pa.Table:
    """What every replicate of the bootstrap gave for each head, for comparing studies."""
    where = ("measure", "reading", "special", "rule", "quantity")
    columns: Columns = {name: [] for name in (*where, "layer", "head")}
    found: list[Values] = []
    for key in sorted(key for key in totals.sums if key.mode == "real"):
        for name, quantity in quantities(totals, key, "head").items():
            replicates, layers, heads = quantity.value[1:].shape
            found.append(quantity.value[1:].reshape(replicates, -1).T)  # (rows, replicates)
            told = (key.measure, key.reading or None, key.special or None, key.rule or None, name)
            for column, value in zip(where, told, strict=True):
                columns[column] += [value] * (layers * heads)
            columns["layer"] += [n // heads + 1 for n in range(layers * heads)]
            columns["head"] += [n % heads + 1 for n in range(layers * heads)]
    kinds = dict.fromkeys(where, pa.string()) | {"layer": pa.int32(), "head": pa.int32()}
    table = _table(columns, kinds)
    values = pa.array(np.concatenate(found).astype(np.float32).ravel())
    return table.append_column(
        "values", pa.FixedSizeListArray.from_arrays(values, found[0].shape[1])
    )


def null_table(totals: Totals) -> pa.Table:
    """Every quantity of a layer, and of the model, beside that of each null."""
    numbers = ("value", "null", "difference", "low", "high")
    kinds = {"measure": pa.string(), **WHOSE, **WHERE, **dict.fromkeys(numbers, pa.float64())}
    table: Columns = {name: [] for name in kinds}
    for key in sorted(totals.sums):
        if key.mode == "real":
            continue
        real = Key("real", key.measure, key.reading, key.special, key.rule)
        for level in POOLED:
            own, null = quantities(totals, real, level), quantities(totals, key, level)
            for name in null:
                apart, low, high = difference(own[name], null[name])
                found = (own[name].value[0], null[name].value[0], apart, low, high)
                before = len(table["mode"])
                _extend(table, key, level, name, dict(zip(numbers, found, strict=True)))
                table["measure"] += [key.measure] * (len(table["mode"]) - before)
    return _sure(_table(table, kinds), totals)


def distance_table(totals: Totals) -> pa.Table:
    """High pairs, their chance level and the mean similarity, by distance."""
    kinds = {
        **WHOSE,
        **{name: pa.int32() for name in ("layer", "head", "from", "to")},
        "high": pa.int64(),
        **dict.fromkeys(("chance", "ratio", "ratio_low", "ratio_high", "similarity"), pa.float64()),
    }
    table: Columns = {name: [] for name in kinds}
    for key in sorted(totals.profiles):
        profile = totals.profiles[key]
        there = np.flatnonzero(profile["pairs"].any(axis=(0, 1)))
        layers, heads = profile["high"].shape[:2]
        sums = totals.sums[key]
        # In a replicate, chance rises and falls with the texts as it does for the usual head.
        weight = ratio(sums["by_distance_chance"], sums["by_distance_chance"][:1])
        ratios = ratio(sums["by_distance"], profile["chance"] * weight)
        low, upper = interval(ratios)  # (layers, heads, bins)
        for layer, head in np.ndindex(layers, heads):
            high, chance = (profile[name][layer, head, there] for name in ("high", "chance"))
            similarity, pairs = (
                profile[name][layer, head, there] for name in ("similarity", "pairs")
            )
            mean = ratio(similarity, pairs)
            for name in WHOSE:
                table[name] += [getattr(key, name)] * len(there)
            table["layer"] += [layer + 1] * len(there)
            table["head"] += [head + 1] * len(there)
            table["from"] += LOWER_DISTANCES[there].tolist()
            table["to"] += UPPER_DISTANCES[there].tolist()
            table["high"] += high.astype(np.int64).tolist()
            for name, values in (
                ("chance", chance),
                ("ratio", ratios[0, layer, head, there]),
                ("ratio_low", low[layer, head, there]),
                ("ratio_high", upper[layer, head, there]),
                ("similarity", mean),
            ):
                table[name] += values.tolist()
    return _sure(_table(table, kinds), totals)


def anchor_types(totals: Totals, tokenizer: Any) -> pa.Table:
    """The types that take part in most high pairs of each head, over the whole corpus."""
    kinds = {
        "kind": pa.string(),
        **{name: kind for name, kind in WHOSE.items() if name != "mode"},
        **{name: pa.int32() for name in ("layer", "head", "rank")},
        "type": pa.string(),
        "ends": pa.int64(),
        **dict.fromkeys(("share", "chance", "lift"), pa.float64()),
    }
    table: Columns = {name: [] for name in kinds}
    for key in sorted(totals.types):
        counts = totals.types[key]
        occurring = max(int(counts.occurrences.sum()), 1)
        for layer, head in np.ndindex(counts.ends.shape[1:]):
            ends = counts.ends[:, layer, head]
            for rank, (name, number, occurs) in enumerate(
                _leading(counts, ends, tokenizer, joined=key.measure == "word"), 1
            ):
                share, chance = number / int(ends.sum()), occurs / occurring
                row = (key.measure, key.reading, key.special, key.rule, layer + 1, head + 1, rank)
                for column, value in zip(
                    kinds, (*row, name, number, share, chance, share / chance), strict=True
                ):
                    table[column].append(value)
    return _table(table, kinds)


def skipped_table(skipped: Sequence[Skipped]) -> pa.Table:
    """What could not be read."""
    return pa.table(
        {
            "source": pa.array([one.source for one in skipped], pa.string()),
            "line": pa.array([one.line for one in skipped], pa.int64()),
            "reason": pa.array([one.reason for one in skipped], pa.string()),
        }
    )


def _leading(
    counts: TypeCounts, ends: Any, tokenizer: Any, *, joined: bool
) -> Iterator[tuple[str, int, int]]:
    """Name, ends and occurrences of the types with most ends; words that differ in case meet."""
    order = np.argsort(-ends, kind="stable")[: 4 * ANCHORS]
    found: dict[str, list[int]] = {}
    for place in order[ends[order] > 0]:
        name = type_name(int(place), counts, tokenizer, joined=joined)
        both = found.setdefault(name, [0, 0])
        both[0] += int(ends[place])
        both[1] += int(counts.occurrences[place])
    ranked = sorted(found.items(), key=lambda item: (-item[1][0], item[0]))
    for name, (number, occurs) in ranked[:ANCHORS]:
        yield name, number, occurs


def type_name(place: int, counts: TypeCounts, tokenizer: Any, *, joined: bool) -> str:
    """What a person reads for a type."""
    if place in counts.names:
        return counts.names[place][0]
    if not joined or place in tokenizer.all_special_ids:
        return str(tokenizer.convert_ids_to_tokens(place))
    return str(tokenizer.decode([place])).strip().casefold() or str(
        tokenizer.convert_ids_to_tokens(place)
    )


def _extend(
    table: Columns, key: Key, level: str, quantity: str, numbers: dict[str, Values]
) -> None:
    """Add a row for each head, each layer or the model."""
    layers, heads = next(iter(numbers.values())).shape
    rows = layers * heads
    for name in WHOSE:
        table[name] += [getattr(key, name) or None] * rows
    table["level"] += [level] * rows
    table["layer"] += [None if level == "model" else n // heads + 1 for n in range(rows)]
    table["head"] += [n % heads + 1 if level == "head" else None for n in range(rows)]
    table["quantity"] += [quantity] * rows
    for name in table:
        if name in numbers:
            table[name] += numbers[name].ravel().tolist()
        elif name in NUMBERS:
            table[name] += [None] * rows


def _sure(table: pa.Table, totals: Totals) -> pa.Table:
    """Without intervals where there is one group: in every replicate it has the same ratios."""
    if not alone(number_of_groups(totals, "real")):
        return table
    for name in UNSURE & set(table.column_names):
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.nulls(len(table), pa.float64()))
    return table


def _table(columns: Columns, kinds: dict[str, pa.DataType]) -> pa.Table:
    """Typed columns; a number that does not exist is a null, not a NaN."""
    arrays = {}
    for name, kind in kinds.items():
        values = columns[name]
        if kind == pa.float64():
            values = [None if value is None or np.isnan(value) else value for value in values]
        arrays[name] = pa.array(values, kind)
    return pa.table(arrays)
