"""Every table of a finished study, made from its totals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.corpus import Skipped
from headscope.study.evidence import Evidence
from headscope.study.examples import chosen
from headscope.study.findings import findings_table
from headscope.study.labels import Label, head_labels, head_numbers
from headscope.study.parameters import Parameters
from headscope.study.sums import Totals
from headscope.study.tables import (
    anchor_types,
    distance_table,
    measure_tables,
    null_table,
    replicate_table,
    skipped_table,
)
from headscope.study.told import told_view

EXAMPLE_COLUMNS = {
    "reading": pa.string(),
    "special": pa.string(),
    "layer": pa.int32(),
    "head": pa.int32(),
    "similarity": pa.float64(),
    "first": pa.string(),
    "second": pa.string(),
    "first_context": pa.string(),
    "second_context": pa.string(),
    "distance": pa.int32(),
    "same_sentence": pa.bool_(),
    "same_word": pa.bool_(),
    "source": pa.string(),
    "line": pa.int64(),
    "text": pa.int32(),
    "first_position": pa.int32(),
    "second_position": pa.int32(),
    "shows": pa.string(),
}
TEXT_COLUMNS = {
    "number": pa.int32(),
    "source": pa.string(),
    "line": pa.int64(),
    "window": pa.int32(),
    "text": pa.string(),
}
PARTS = ("_low", "_high", "_chance", "_lift", "_lift_low")


def result_tables(
    totals: Totals,
    parameters: Parameters,
    cannot: Mapping[str, str],
    tokenizer: Any,
    examples: Sequence[dict[str, Any]],
    kept: Sequence[dict[str, Any]],
    skipped: Sequence[Skipped],
) -> dict[str, pa.Table]:
    """All tables, by name."""
    tables = measure_tables(totals)
    tables["replicates"] = replicate_table(totals)
    tables["distances"] = distance_table(totals)
    tables["anchors"] = anchor_types(totals, tokenizer)
    told = told_view(parameters)
    others = [view for view in parameters.views if view != told]
    modes = ("real", *(mode for mode in parameters.modes if mode not in cannot))
    tables["findings"] = findings_table(totals, modes, [told, *others], cannot)
    tables["skipped"] = skipped_table(skipped)
    if any(key.mode != "real" for key in totals.sums):
        tables["nulls"] = null_table(totals)
    if parameters.texts:
        texts = [one | {"number": n} for n, one in enumerate(kept[: parameters.texts], 1)]
        tables["texts"] = _rows(texts, TEXT_COLUMNS)
    evidence = Evidence(totals, "real", told)
    nulls = [Evidence(totals, mode, told) for mode in modes if mode != "real"]
    made = head_labels(evidence, nulls, tables["anchors"])
    tables["examples"] = _rows(chosen(examples, made), EXAMPLE_COLUMNS)
    tables["heads"] = heads_table(evidence, made)
    return tables


def _rows(rows: Sequence[dict[str, Any]], columns: dict[str, pa.DataType]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in columns.items()}
    )


def heads_table(evidence: Evidence, made: dict[tuple[int, int], list[Label]]) -> pa.Table:
    """One row for each head: its labels, the strongest first, and the value of every quantity."""
    places = sorted(made)
    columns = {
        "layer": pa.array([layer for layer, _ in places], pa.int32()),
        "head": pa.array([head for _, head in places], pa.int32()),
        "labels": pa.array([[one.name for one in made[place]] for place in places]),
        "strengths": pa.array([[one.strength for one in made[place]] for place in places]),
        "evidence": pa.array([[one.evidence for one in made[place]] for place in places]),
    }
    for name, values in head_numbers(evidence).items():
        if not name.endswith(PARTS):
            numbers = [float(values[layer - 1, head - 1]) for layer, head in places]
            known = [None if np.isnan(number) else number for number in numbers]
            columns[name] = pa.array(known, pa.float64())
    return pa.table(columns)
