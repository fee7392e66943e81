"""The table of findings: every claim, for every mode, reading, setting of special and rule."""

from typing import Any

import numpy as np
import pyarrow as pa

from headscope.study.bootstrap import Values, interval
from headscope.study.findings import (
    CLAIMS,
    CONTRAST,
    FAILS,
    OPEN,
    SIGNAL,
    Claim,
    Evidence,
    Trend,
    Verdict,
    judge,
    trend,
)
from headscope.study.sums import Totals

COLUMNS = {
    "claim": pa.string(),
    "says": pa.string(),
    "verdict": pa.string(),
    "reason": pa.string(),
    "mode": pa.string(),
    "reading": pa.string(),
    "special": pa.string(),
    "rule": pa.string(),
    "statistic": pa.string(),
    **dict.fromkeys(("value", "low", "high", "threshold"), pa.float64()),
    "null": pa.string(),
    **dict.fromkeys(("null_value", "difference", "difference_low"), pa.float64()),
    **dict.fromkeys(("difference_high", "trend", "trend_p", "trend_low"), pa.float64()),
    "trend_high": pa.float64(),
}


def findings_table(totals: Totals) -> pa.Table:
    """A row for each claim and each way it was looked at, the study's own first."""
    settings = [
        (key.mode, key.reading, key.special, key.rule)
        for key in totals.sums
        if key.measure == "range"
    ]
    rows: list[dict[str, Any]] = []
    for mode, reading, special, rule in settings:
        evidence = Evidence(totals, mode, reading, special, rule)
        nulls = {
            other: Evidence(totals, other, reading, special, rule)
            for other in dict.fromkeys(m for m, *_ in settings)
            if other != "real" and mode == "real"
        }
        looked_at = {row["mode"] for row in rows}  # attention has no reading and no rule
        rows += [
            _row(claim, evidence, nulls)
            for claim in CLAIMS
            if evidence.has(claim.measure) and not (claim.measure == "focus" and mode in looked_at)
        ]
    return pa.table(
        {
            name: pa.array([_plain(row[name]) for row in rows], kind)
            for name, kind in COLUMNS.items()
        }
    )


def _row(claim: Claim, evidence: Evidence, nulls: dict[str, Evidence]) -> dict[str, Any]:
    value = claim.value(evidence)
    low, high = (float(end) for end in interval(value))
    moved = trend(claim.curve(evidence)) if claim.curve is not None else None
    against = _nearest_null(claim, value, nulls)
    layers = evidence.contrast.shape[0]
    beyond = None if against is None else against["difference_low"] > 0
    verdict = _without_contrast(claim, evidence) or judge(low, high, claim, moved, layers, beyond)
    about_pairs = claim.measure != "focus"
    return {
        "claim": claim.name,
        "says": claim.says,
        "verdict": verdict.word,
        "reason": verdict.reason,
        "mode": evidence.mode,
        "reading": evidence.reading if about_pairs else None,
        "special": evidence.special if about_pairs else None,
        "rule": evidence.rule if about_pairs else None,
        "statistic": claim.statistic,
        "value": float(value[0]),
        "low": low,
        "high": high,
        "threshold": claim.threshold,
        **(against or dict.fromkeys(_AGAINST)),
        **_told(moved),
    }


_AGAINST = ("null", "null_value", "difference", "difference_low", "difference_high")


def _nearest_null(claim: Claim, value: Values, nulls: dict[str, Evidence]) -> dict[str, Any] | None:
    """The null that comes closest to the real thing, among those the claim has to exceed."""
    found: list[dict[str, Any]] = []
    for name in claim.nulls:
        if name in nulls and nulls[name].has(claim.measure):
            null = claim.value(nulls[name])
            low, high = interval(value - null)
            if np.isfinite(null[0]):
                numbers = (float(null[0]), float(value[0] - null[0]), float(low), float(high))
                found.append(dict(zip(_AGAINST, (name, *numbers), strict=True)))
    return min(found, key=lambda one: float(one["difference_low"])) if found else None


def _without_contrast(claim: Claim, evidence: Evidence) -> Verdict | None:
    """The verdict where there is nothing to tell high pairs from others."""
    if claim.measure == "focus":
        return None
    _, high = interval(evidence.model("size", "contrast").value)
    if float(high) < CONTRAST or not (evidence.contrast >= CONTRAST).any():
        return Verdict(FAILS, f"all pairs are alike (contrast below {CONTRAST:g})")
    if claim.name == "noise":
        low, high = interval(evidence.model("noise", "snr").value)
        if not float(low) > SIGNAL:
            sure = float(high) < SIGNAL
            return Verdict(FAILS if sure else OPEN, f"no signal beside it (snr {SIGNAL:g})")
    return None


def _told(moved: Trend | None) -> dict[str, float | None]:
    names = ("trend", "trend_p", "trend_low", "trend_high")
    numbers = (None,) * 4 if moved is None else (moved.rho, moved.p, moved.low, moved.high)
    return dict(zip(names, numbers, strict=True))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
