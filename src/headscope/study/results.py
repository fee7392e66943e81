"""Every table of a finished study, made from its totals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.corpus import Skipped
from headscope.pairs import Rule
from headscope.study.cards import Card, cards, head_numbers
from headscope.study.findings import Evidence
from headscope.study.observe import Kind
from headscope.study.sums import Totals
from headscope.study.tables import (
    anchor_types,
    distance_table,
    measure_tables,
    null_table,
    replicate_table,
    skipped_table,
)
from headscope.study.verdicts import findings_table

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
}
PARTS = ("_low", "_high", "_chance", "_lift", "_lift_low")


def result_tables(
    totals: Totals,
    kinds: Sequence[Kind],
    rule: Rule,
    tokenizer: Any,
    examples: Sequence[dict[str, Any]],
    skipped: Sequence[Skipped],
) -> dict[str, pa.Table]:
    """All tables, by name."""
    tables = measure_tables(totals)
    tables["replicates"] = replicate_table(totals)
    tables["distances"] = distance_table(totals)
    tables["anchors"] = anchor_types(totals, tokenizer)
    tables["findings"] = findings_table(totals)
    tables["skipped"] = skipped_table(skipped)
    if any(key.mode != "real" for key in totals.sums):
        tables["nulls"] = null_table(totals)
    tables["examples"] = pa.table(
        {
            name: pa.array([row[name] for row in examples], kind)
            for name, kind in EXAMPLE_COLUMNS.items()
        }
    )
    # A separator is everybody's anchor; labels are told of the words, where they were looked at.
    told = next((kind for kind in kinds if kind.special == "left_out"), kinds[0])
    evidence = Evidence(totals, "real", told.reading, told.special, str(rule))
    made = cards(evidence, tables["anchors"])
    tables["heads"] = _heads_table(evidence, made)
    return tables


def _heads_table(evidence: Evidence, made: dict[tuple[int, int], Card]) -> pa.Table:
    """One row for each head: its card, and the value of every quantity."""
    places = sorted(made)
    columns = {
        "layer": pa.array([layer for layer, _ in places], pa.int32()),
        "head": pa.array([head for _, head in places], pa.int32()),
        "label": pa.array([made[place].label for place in places]),
        "strength": pa.array([made[place].strength for place in places]),
        "evidence": pa.array([made[place].evidence for place in places]),
    }
    for name, values in head_numbers(evidence).items():
        if not name.endswith(PARTS):
            numbers = [float(values[layer - 1, head - 1]) for layer, head in places]
            known = [None if np.isnan(number) else number for number in numbers]
            columns[name] = pa.array(known, pa.float64())
    return pa.table(columns)
