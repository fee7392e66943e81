"""What differs between two studies: the same model on two corpora, or two models of one shape.

First what a person reads: the verdicts and the labels that are not the same. Then every number.

For every quantity of every head the difference of the two values, with a 95 % interval. A document
has the same weight in a replicate of the bootstrap wherever it stands, so the difference is taken
replicate by replicate: documents that both studies read are compared with themselves. (With other
seeds the studies are taken as independent.) Since thousands of numbers are compared, a head is said
to differ only when it passes the rule of Benjamini and Hochberg at 5 % among all of them.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headscope.errors import CannotStudy
from headscope.measures.registry import MEASURES
from headscope.output import check_out, write_out
from headscope.study.bootstrap import Values, standard_error
from headscope.study.folder import Study, reads_tables
from headscope.study.told import told_claims, told_view

FALSE_DISCOVERIES = 0.05
WHERE = ("measure", "reading", "special", "rule", "quantity", "layer", "head")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two studies, and what is not the same in them."""

    first: Study
    second: Study
    verdicts: pa.Table  # claim, says, first, second, and the values that were tested
    labels: pa.Table  # layer, head, both (labels of a head), only_first, only_second
    numbers: pa.Table  # a row for each quantity of each head, the surest difference first

    @property
    def unsure(self) -> bool:
        """Whether no number has an interval, since one of the studies is of one group."""
        return len(self.numbers) > 0 and self.numbers["low"].null_count == len(self.numbers)

    @property
    def differing(self) -> int:
        """How many numbers differ, at most 5 % of them by chance."""
        return int(pc.sum(self.numbers["differs"]).as_py() or 0)

    def save(self, path: str | Path) -> Path:
        """Write a page about it that needs no other file."""
        from headscope.report.comparison import comparison_page

        path = check_out(path, ".html", ".htm")
        return write_out(path, comparison_page(self))

    def __repr__(self) -> str:
        return (
            f"<Comparison of {self.first.path} with {self.second.path}; different: "
            f"{len(self.verdicts)} verdicts, {len(self.labels)} heads in their labels, "
            f"{self.differing:,} of {len(self.numbers):,} numbers>"
        )


@reads_tables
def compare(first: Study, second: Study) -> Comparison:
    """What differs between two studies of models with as many layers and heads."""
    numbers = _differences(first, second)
    return Comparison(
        first, second, _verdict_changes(first, second), _label_changes(first, second), numbers
    )


def _verdict_changes(first: Study, second: Study) -> pa.Table:
    """The claims that each study tells with another verdict."""
    told = [
        {
            claim.row["claim"]: claim.row
            for claim in told_claims(
                study.table("findings").to_pylist(), told_view(study.manifest.parameters)
            )
        }
        for study in (first, second)
    ]
    changed = [
        (row, told[1][claim])
        for claim, row in told[0].items()
        if claim in told[1] and told[1][claim]["verdict"] != row["verdict"]
    ]
    return pa.table(
        {
            "claim": pa.array([row["claim"] for row, _ in changed], pa.string()),
            "says": pa.array([row["says"] for row, _ in changed], pa.string()),
            "first": pa.array([row["verdict"] for row, _ in changed], pa.string()),
            "second": pa.array([row["verdict"] for _, row in changed], pa.string()),
            "first_value": pa.array([row["value"] for row, _ in changed], pa.float64()),
            "second_value": pa.array([row["value"] for _, row in changed], pa.float64()),
        }
    )


def _label_changes(first: Study, second: Study) -> pa.Table:
    """The heads whose labels are not the same, whatever their order."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("layer", "head", "both", "only_first", "only_second")
    }
    own = [study.table("heads").select(["layer", "head", "labels"]) for study in (first, second)]
    for row, other in zip(*(table.to_pylist() for table in own), strict=True):
        mine, theirs = row["labels"], other["labels"]
        if set(mine) == set(theirs):
            continue
        columns["layer"].append(row["layer"])
        columns["head"].append(row["head"])
        columns["both"].append([label for label in mine if label in theirs])
        columns["only_first"].append([label for label in mine if label not in theirs])
        columns["only_second"].append([label for label in theirs if label not in mine])
    kinds = {"layer": pa.int32(), "head": pa.int32()}
    words = pa.list_(pa.string())
    return pa.table({name: pa.array(v, kinds.get(name, words)) for name, v in columns.items()})


def _differences(one: Study, other: Study) -> pa.Table:
    """A row for each quantity of each head that both studies have, the surest difference first."""
    shapes = [(s.manifest.model.layers, s.manifest.model.heads) for s in (one, other)]
    if shapes[0] != shapes[1]:
        said = " and ".join(f"{layers} × {heads}" for layers, heads in shapes)
        raise CannotStudy(
            f"The studies are of models with {said} layers × heads: head by head there is nothing "
            "to compare. Their findings can be: study.findings."
        )
    first, second = _numbers(one), _numbers(other)
    shared = sorted(set(first) & set(second), key=lambda place: tuple(str(part) for part in place))
    if not shared:
        raise CannotStudy(
            "The studies share no quantity: they were made with different readings, settings of "
            "special tokens or rules."
        )
    values = np.array([[*first[place], *second[place]] for place in shared], np.float64)
    apart = values[:, 2] - values[:, 0]
    error = np.hypot(values[:, 1], values[:, 3])
    if one.manifest.parameters.seed == other.manifest.parameters.seed:
        replicates = [_replicates(study) for study in (one, other)]
        for n, place in enumerate(shared):
            found = [each.get(place) for each in replicates]
            if found[0] is not None and found[1] is not None and len(found[0]) == len(found[1]):
                error[n] = standard_error(np.concatenate([[apart[n]], found[1] - found[0]]))
    error[~np.isfinite(values).all(axis=1)] = np.nan  # one group has no interval: nothing is sure
    z = np.divide(apart, error, out=np.zeros_like(apart), where=error > 0)
    reach = NormalDist().inv_cdf(0.975) * error
    p = np.array([2 * NormalDist().cdf(-abs(score)) for score in z])
    p[np.isnan(error)] = np.nan
    order = np.argsort(-np.abs(z), kind="stable")
    differs = _discovered(np.nan_to_num(p, nan=1.0))
    columns: dict[str, Any] = {
        name: [shared[place][n] for place in order] for n, name in enumerate(WHERE)
    }
    numbers = {
        "first": values[:, 0],
        "second": values[:, 2],
        "difference": apart,
        "low": apart - reach,
        "high": apart + reach,
        "p": p,
    }
    columns |= {name: pa.array(array[order], from_pandas=True) for name, array in numbers.items()}
    return pa.table(columns | {"differs": differs[order]})


def _numbers(study: Study) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Value and standard error by where they stand; of one group there is no error to speak of."""
    rows = [
        (measure, row)
        for measure in MEASURES
        if measure in study.tables
        for row in study.table(measure).to_pylist()
        if row["mode"] == "real" and row["level"] == "head" and row["value"] is not None
    ]
    sure = any(row["error"] is not None for _, row in rows)
    return {
        (measure, *(row[name] for name in WHERE[1:])): (row["value"], row["error"] or 0.0)
        if sure
        else (row["value"], np.nan)
        for measure, row in rows
        if row["error"] is not None or not sure
    }


def _replicates(study: Study) -> dict[tuple[Any, ...], Values]:
    """The replicates by where they stand; nothing in studies that did not keep them."""
    if "replicates" not in study.tables:
        return {}
    table = study.table("replicates")
    places = zip(*(table[name].to_pylist() for name in WHERE), strict=True)
    values = table["values"].combine_chunks()
    numbers = values.flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)
    return dict(zip(places, numbers.astype(np.float64), strict=True))


def _discovered(p: "np.ndarray[Any, np.dtype[np.float64]]") -> "np.ndarray[Any, Any]":
    """Which p-values pass when false discoveries are to stay below the agreed share."""
    order = np.argsort(p, kind="stable")
    allowed = FALSE_DISCOVERIES * np.arange(1, len(p) + 1) / len(p)
    passing = np.flatnonzero(p[order] <= allowed)
    found = np.zeros(len(p), dtype=bool)
    if len(passing):
        found[order[: passing[-1] + 1]] = True
    return found
