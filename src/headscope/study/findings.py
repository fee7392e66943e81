"""The table of findings: every claim, in every mode and view; it says which view is told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.study.claims import CLAIMS, Claim
from headscope.study.evidence import Evidence, alone
from headscope.study.modes import Mode
from headscope.study.sums import Totals
from headscope.study.told import View
from headscope.study.trends import Shape, passes_half
from headscope.study.verdicts import AgainstNull, Examined, Stated, Verdict, examine, judge

NUMBER = pa.float64()
COLUMNS = {
    **dict.fromkeys(("claim", "says", "verdict", "reason", "mode"), pa.string()),
    **dict.fromkeys(("reading", "special", "rule"), pa.string()),
    "told": pa.bool_(),
    "statistic": pa.string(),
    **dict.fromkeys(("value", "low", "high", "threshold", "p"), NUMBER),
    "nulls": pa.list_(
        pa.struct(
            [
                ("null", pa.string()),
                *((name, NUMBER) for name in ("value", "difference", "low", "high")),
                ("needed", pa.bool_()),
                ("why_not", pa.string()),
            ]
        )
    ),
    **dict.fromkeys(("trend", "trend_p", "trend_low", "trend_high"), NUMBER),
    "shape": pa.string(),
    **dict.fromkeys(("turn", "turn_low", "turn_high"), NUMBER),
}


def findings_table(
    totals: Totals,
    modes: Sequence[Mode],
    views: Sequence[View],
    cannot: Mapping[str, str],
    claims: Sequence[Claim] = CLAIMS,
) -> pa.Table:
    """A row for each claim, mode and view: first the real thing, in the view that is told.

    `cannot` says which nulls could not be run, and why.
    """
    rows: list[dict[str, Any]] = []
    for mode in modes:
        for view in views:
            nulls: dict[Mode, Evidence] = {
                n: Evidence(totals, n, view) for n in modes if n != "real"
            }
            own = Evidence(totals, mode, view)
            rows += _rows(own, nulls, cannot, claims, told=view == views[0])
    return as_table(rows)


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Findings as a table."""
    return pa.table(
        {
            name: pa.array([_plain(row[name]) for row in rows], kind)
            for name, kind in COLUMNS.items()
        }
    )


def _rows(
    evidence: Evidence,
    nulls: Mapping[Mode, Evidence],
    cannot: Mapping[str, str],
    claims: Sequence[Claim],
    *,
    told: bool,
) -> list[dict[str, Any]]:
    """Every claim in one mode and view. All are judged together, but attention is told once."""
    # Nulls are held against nothing themselves, and are run under the study's own rule only.
    run = evidence.mode == "real" and all(null.has("range") for null in nulls.values())
    tested = [
        examine(claim, evidence, nulls if run else None, cannot)
        for claim in claims
        if evidence.has(claim.measure)
    ]
    beside = _separators(evidence)
    return [
        finding(one, verdict, evidence.mode, evidence.view, beside) | {"told": told}
        for one, verdict in zip(tested, judge(tested), strict=True)
        if told or one.claim.about_pairs
    ]


def finding(
    one: Examined, verdict: Verdict, mode: str, view: View, beside: str = ""
) -> dict[str, Any]:
    """A row of the table; `beside` stands beside where a curve turns."""
    claim, moved, bent = one.claim, one.trend, one.shape
    if alone(one.groups):  # what has no interval has none over the layers either
        moved = moved and replace(moved, low=np.nan, high=np.nan)
        bent = bent and replace(bent, low=np.nan, high=np.nan)
    return {
        "claim": claim.name,
        "says": claim.says,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "mode": mode,
        "reading": view.reading if claim.about_pairs else None,
        "special": view.special if claim.about_pairs else None,
        "rule": view.rule if claim.about_pairs else None,
        "statistic": claim.statistic,
        "value": one.value,
        "low": one.low,
        "high": one.high,
        "threshold": claim.threshold,
        "p": verdict.p,
        "nulls": [_null(null) for null in one.nulls or ()],
        "trend": None if moved is None else moved.rho,
        "trend_p": None if moved is None else moved.p,
        "trend_low": None if moved is None else moved.low,
        "trend_high": None if moved is None else moved.high,
        "shape": None if bent is None else _shape(claim, bent, beside),
        "turn": None if bent is None else bent.turn,
        "turn_low": None if bent is None else bent.low,
        "turn_high": None if bent is None else bent.high,
    }


def _null(null: AgainstNull) -> dict[str, Any]:
    names = ("null", "value", "difference", "low", "high", "needed", "why_not")
    return {name: _plain(getattr(null, name)) for name in names}


def _shape(claim: Stated, bent: Shape, beside: str) -> str | None:
    """How a curve goes; of pairs, where it turns beside where separators take over."""
    turns = np.isfinite(bent.turn) and claim.about_pairs
    return bent.words + (beside if turns else "") or None


def _separators(evidence: Evidence) -> str:
    """Where separators take over attention, to be told beside where a curve turns."""
    if not evidence.gives("focus", "separators"):
        return ""
    curve = evidence.layers("focus", "separators")
    if not np.isfinite(curve[0]).all() or curve.shape[1] < 2:
        return ""
    layer, low, high = passes_half(curve)
    where = f"{layer:.0f}" if low == high else f"{layer:.0f} ({low:.0f} … {high:.0f})"
    return f"; attention on separators passes half of its most at layer {where}"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
