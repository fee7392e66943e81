"""Which heads of two studies differ: the same model on two corpora, or two models of one shape.

For every quantity of every head the difference of the two values, with a 95 % interval. A document
has the same weight in a replicate of the bootstrap wherever it stands, so the difference is taken
replicate by replicate: documents that both studies read are compared with themselves. (With other
seeds the studies are taken as independent.) Since thousands of numbers are compared, a head is said
to differ only when it passes the rule of Benjamini and Hochberg at 5 % among all of them.
"""

from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.store import CannotStudy, Study
from headscope.study.bootstrap import Values, standard_error
from headscope.study.sums import MEASURES

FALSE_DISCOVERIES = 0.05
WHERE = ("measure", "reading", "special", "rule", "quantity", "layer", "head")


def compare(one: Study, other: Study) -> pa.Table:
    """A row for each quantity of each head that both studies have, the surest difference first."""
    shapes = [
        tuple(s.manifest["model"][part] for part in ("layers", "heads")) for s in (one, other)
    ]
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
    if one.manifest["parameters"]["seed"] == other.manifest["parameters"]["seed"]:
        replicates = [_replicates(study) for study in (one, other)]
        for n, place in enumerate(shared):
            found = [each.get(place) for each in replicates]
            if found[0] is not None and found[1] is not None and len(found[0]) == len(found[1]):
                error[n] = standard_error(np.concatenate([[apart[n]], found[1] - found[0]]))
    z = np.divide(apart, error, out=np.zeros_like(apart), where=error > 0)
    reach = NormalDist().inv_cdf(0.975) * error
    p = np.array([2 * NormalDist().cdf(-abs(score)) for score in z])
    order = np.argsort(-np.abs(z), kind="stable")
    differs = _discovered(p)
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
    columns |= {name: array[order] for name, array in numbers.items()}
    return pa.table(columns | {"differs": differs[order]})


def _numbers(study: Study) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Value and standard error by where they stand."""
    found = {}
    for measure in MEASURES:
        if measure not in study.tables:
            continue
        for row in study.table(measure).to_pylist():
            known = row["value"] is not None and row["error"] is not None
            if row["mode"] == "real" and row["level"] == "head" and known:
                place = (measure, *(row[name] for name in WHERE[1:]))
                found[place] = (row["value"], row["error"])
    return found


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
