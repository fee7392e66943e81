"""The tables of a study of pictures or sounds: those of a study of texts that mean something."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headscope.corpus import Skipped
from headscope.study.estimates import OtherTotals
from headscope.study.evidence import Evidence
from headscope.study.findings import findings_table
from headscope.study.labels import head_labels
from headscope.study.parameters import Parameters
from headscope.study.placed.claims import claims
from headscope.study.results import heads_table
from headscope.study.tables import (
    anchor_types,
    measure_tables,
    null_table,
    replicate_table,
    skipped_table,
)
from headscope.study.told import told_view


def result_tables(
    totals: OtherTotals,
    parameters: Parameters,
    cannot: Mapping[str, str],
    unit: str,
    skipped: Sequence[Skipped],
) -> dict[str, pa.Table]:
    """All tables, by name; distances are in a unit."""
    tables = measure_tables(totals)
    tables["replicates"] = replicate_table(totals)
    told = told_view(parameters)
    views = [told, *(view for view in parameters.views if view != told)]
    modes = ("real", *(mode for mode in parameters.modes if mode not in cannot))
    tables["findings"] = findings_table(totals, modes, views, cannot, claims(unit))
    tables["skipped"] = skipped_table(skipped)
    if any(key.mode != "real" for key in totals.sums):
        tables["nulls"] = null_table(totals)
    evidence = Evidence(totals, "real", told)
    nulls = [Evidence(totals, mode, told) for mode in modes if mode != "real"]
    made = head_labels(evidence, nulls, anchor_types(totals, None))
    tables["heads"] = heads_table(evidence, made)
    return tables
