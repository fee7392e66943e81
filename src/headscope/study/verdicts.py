"""Verdicts on the claims, by a fixed rule.

A claim *holds* when everything it needs is sure, after a correction for the number of claims: its
statistic lies above the threshold, above every null, and the trend it speaks of is there. It *does
not hold* when an interval contradicts it. Everything else is *undecided*, and the reason is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Protocol

import numpy as np

from headscope.measures.base import ratio
from headscope.study.bootstrap import LEVEL, Values, interval, standard_error
from headscope.study.claims import Claim
from headscope.study.evidence import CONTRAST, Evidence, alone
from headscope.study.modes import Mode, null_of
from headscope.study.told import FAILS, HOLDS, OPEN
from headscope.study.trends import Shape, Trend, shape, trend

SIGNIFICANT = 0.05
FEWEST_GROUPS = 5  # of like size: fewer say nothing about another one
FEWEST_LAYERS = 5
ALIKE = "all pairs are alike"


@dataclass(frozen=True, slots=True)
class AgainstNull:
    """The statistic beside that of a null."""

    null: str
    value: float
    difference: float
    low: float
    high: float
    p: float  # that the statistic is no more than the null
    needed: bool  # the claim has to exceed it
    why_not: str | None = None  # it was not run, or there is nothing to measure in it


class Stated(Protocol):
    """A claim as it is judged, whatever its statistic is made from."""

    @property
    def name(self) -> str:
        """A word."""

    @property
    def says(self) -> str:
        """The claim in words."""

    @property
    def statistic(self) -> str:
        """What tests it, in words."""

    @property
    def threshold(self) -> float:
        """What the statistic has to pass."""

    @property
    def rising(self) -> bool:
        """Whether its curve has to rise, where it has one."""

    @property
    def nulls(self) -> Sequence[str]:
        """What the statistic has to exceed."""

    @property
    def about_pairs(self) -> bool:
        """Whether it speaks of high pairs, and so needs a view."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The numbers of one claim."""

    claim: Stated
    value: float
    low: float
    high: float
    p: float  # that the statistic is not above its threshold
    nulls: tuple[AgainstNull, ...] | None = ()  # None of a null, which is held against nothing
    trend: Trend | None = None
    shape: Shape | None = None
    layers: int = 12
    groups: float = np.inf
    missing: str | None = None  # why there is no statistic
    alike: bool = False  # no head's pairs stand out

    @property
    def run(self) -> list[AgainstNull]:
        """The nulls that gave a number."""
        return [null for null in self.nulls or () if null.why_not is None]

    @property
    def held_against(self) -> bool:
        """Whether a null that it has to exceed was run; where its pairs are alike there is none."""
        needed = [null for null in self.nulls or () if null.needed]
        return any(null.why_not is None or null.why_not.startswith(ALIKE) for null in needed)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule says, and why."""

    word: str
    reason: str
    p: float = field(default=np.nan)  # of the least sure part, corrected for the number of claims


def examine(
    claim: Claim,
    evidence: Evidence,
    nulls: Mapping[Mode, Evidence] | None,
    cannot: Mapping[str, str],
) -> Examined:
    """The numbers of a claim; `nulls` is None for a null itself, which is held against nothing."""
    value, heads = surest(claim, claim.value(evidence))
    low, high, p = over(value, claim.threshold, heads, evidence.groups)
    curve = None if claim.curve is None else claim.curve(evidence)
    return Examined(
        claim,
        float(value[0]),
        low,
        high,
        p,
        None if nulls is None else _against(claim, value, heads, nulls, cannot),
        None if curve is None else trend(curve, claim.rising),
        None if curve is None else shape(curve),
        evidence.number_of_layers,
        evidence.groups,
        _missing(claim, evidence, value),
        claim.about_pairs and evidence.raw_contrast is not None and not evidence.stand_out.any(),
    )


def surest(claim: Claim, value: Values) -> tuple[Values, int]:
    """The statistic (replicates + 1,), and among how many heads it was picked.

    The head with the highest lower end: picked by that, and not by its value, and with the level of
    its interval shared among all heads, it says no more than any of them allows.
    """
    if not claim.of_heads:
        return value, 1
    heads = value.shape[1]
    if not heads:
        return np.full(len(value), np.nan), 1
    low, _ = interval(value, 1 - (1 - LEVEL) / heads)
    if not np.isfinite(low).any():
        return value[:, int(np.nanargmax(value[0]))], heads
    return value[:, int(np.nanargmax(low))], heads


def over(value: Values, least: float, heads: int, groups: float) -> tuple[float, float, float]:
    """The interval of a statistic, and how likely it is not above something."""
    low, high = interval(value, 1 - (1 - LEVEL) / heads)
    error = float(standard_error(value))
    if alone(groups) or not np.isfinite(error) or not np.isfinite(value[0]):
        return float("nan"), float("nan"), float("nan")
    z = float(ratio(value[0] - least, error, 1e9 * np.sign(value[0] - least)))
    # As of Student's t with a degree of freedom less than groups (Abramowitz and Stegun 26.7.8).
    free = max(groups - 1, 1.0)
    z *= (1 - 1 / (4 * free)) / np.sqrt(1 + z * z / (2 * free))
    return float(low), float(high), min(1.0, 2 * heads * NormalDist().cdf(-z))


def _against(
    claim: Claim,
    value: Values,
    heads: int,
    nulls: Mapping[Mode, Evidence],
    cannot: Mapping[str, str],
) -> tuple[AgainstNull, ...]:
    """The statistic beside every null, those that could not be run too."""
    found = []
    for mode, null in nulls.items():
        needed = null_of(mode) in claim.nulls
        if not null.has(claim.measure):
            found.append(_nothing(mode, needed, "not measured"))
            continue
        other = claim.value(null)
        if claim.of_heads:  # the strongest: a null that is taken too high makes nothing hold
            other = _strongest(other)
        if (missing := _missing(claim, null, other)) is not None:
            found.append(_nothing(mode, needed, missing))
            continue
        low, high, p = over(value - other, 0.0, heads, null.groups)
        apart = float(value[0] - other[0])
        found.append(AgainstNull(mode, float(other[0]), apart, low, high, p, needed))
    for other_mode, why in cannot.items():
        needed = null_of(other_mode) in claim.nulls
        found.append(_nothing(other_mode, needed, f"not run: {why}"))
    return tuple(found)


def _nothing(mode: str, needed: bool, why: str) -> AgainstNull:
    nothing = float("nan")
    return AgainstNull(mode, nothing, nothing, nothing, nothing, nothing, needed, why)


def _strongest(value: Values) -> Values:
    if not value.shape[1]:
        return np.full(len(value), np.nan)
    return value[:, int(np.nanargmax(value[0]))]


def _missing(claim: Claim, evidence: Evidence, value: Values) -> str | None:
    """Why there is no statistic; None where there is one."""
    if claim.about_pairs and evidence.raw_contrast is None:
        return "raw similarity was not read, which says whether pairs differ at all"
    if claim.about_pairs and not evidence.stand_out.any():
        return f"{ALIKE} (contrast below {CONTRAST:g})"
    if np.isfinite(value[0]):
        return None
    if not claim.about_pairs:
        return "the texts have nothing of the kind"
    if not evidence.totals.sums[evidence.key("range")]["high"][0].any():
        return f"no pair is high under {evidence.view.rule}"
    return f"too few pairs are high under {evidence.view.rule}"


def judge(tested: Sequence[Examined]) -> list[Verdict]:
    """Verdicts on the claims of one view, corrected for their number.

    By the rule of Benjamini and Hochberg: of the claims that hold, few are false.
    """
    p = [_least_sure(one) for one in tested]
    order = sorted(range(len(p)), key=lambda n: -p[n])
    corrected, reached = [1.0] * len(p), 1.0
    for rank, n in enumerate(order):
        reached = min(reached, p[n] * len(p) / (len(p) - rank))
        corrected[n] = reached
    return [
        _verdict(one, adjusted, len(p)) for one, adjusted in zip(tested, corrected, strict=True)
    ]


def _least_sure(one: Examined) -> float:
    """The largest p of all that a claim needs."""
    parts = [one.p, *(null.p for null in one.run if null.needed)]
    if one.trend is not None:
        parts.append(one.trend.p)
    return max(parts) if np.isfinite(parts).all() else 1.0


def _verdict(one: Examined, p: float, claims: int) -> Verdict:
    return _contradicted(one, p) or _open(one, p, claims) or Verdict(HOLDS, _why(one), p)


def _contradicted(one: Examined, p: float) -> Verdict | None:
    """The verdict where an interval contradicts the claim."""
    claim, groups = one.claim, one.groups
    if one.alike:
        return Verdict(FAILS, f"{ALIKE} (contrast below {CONTRAST:g})", p)
    if groups < FEWEST_GROUPS or one.missing or not np.isfinite(one.low + one.high):
        return None
    if one.high < claim.threshold:
        return Verdict(FAILS, f"below the threshold of {claim.threshold:g}", p)
    for null in one.run:
        if null.needed and null.high < 0:
            return Verdict(FAILS, f"less than {_named(null.null)} gives", p)
    moved = one.trend
    if moved is not None and one.layers >= FEWEST_LAYERS:
        against = moved.high < 0 if claim.rising else moved.low > 0
        if against and moved.p >= 1 - SIGNIFICANT:
            return Verdict(FAILS, f"{'falls' if claim.rising else 'rises'} over the layers", p)
    return None


def _open(one: Examined, p: float, claims: int) -> Verdict | None:
    """The verdict where something the claim needs is not sure."""
    return next((Verdict(OPEN, why, p) for why in _doubts(one, p, claims) if why), None)


def _doubts(one: Examined, p: float, claims: int) -> list[str]:
    claim, moved = one.claim, one.trend
    if one.missing:
        return [one.missing]
    if one.groups < FEWEST_GROUPS:
        few = "one group has" if alone(one.groups) else "so few groups have"
        return [
            f"{few} no interval that speaks of another one (--group window: of other parts of a "
            "long document)"
        ]
    if not np.isfinite(one.low + one.high):
        return ["too few documents have it for an interval"]
    doubts = []
    if one.low <= claim.threshold:
        doubts.append(f"the interval holds the threshold of {claim.threshold:g}")
    if one.nulls is not None and claim.nulls and not one.held_against:
        doubts.append("no null was run that it has to exceed")
    doubts += [
        f"not surely more than {_named(null.null)} gives"
        for null in one.run
        if null.needed and not null.low > 0
    ]
    if moved is not None:
        way = "rise" if claim.rising else "fall"
        if one.layers < FEWEST_LAYERS:
            doubts.append(f"{one.layers} layers are too few for a trend")
        elif moved.p > SIGNIFICANT:
            doubts.append(f"no sure {way} over the layers (p {moved.p:.2g})")
        elif (moved.low if claim.rising else -moved.high) <= 0:
            doubts.append("the trend depends on the documents")
    if p > SIGNIFICANT:
        doubts.append(f"not sure enough among {claims} claims (p {p:.2g})")
    return doubts


def _why(one: Examined) -> str:
    parts = [f"above {one.claim.threshold:g}"]
    if any(null.needed for null in one.run):
        parts.append("above the nulls")
    if one.trend is not None:
        parts.append("with the trend")
    return ", ".join(parts)


def _named(mode: str) -> str:
    names = {
        "random": "random weights",
        "permuted": "permuted weights",
        "shuffle": "shuffled text",
        "heads in random order": "heads in random order",
    }
    return names.get(null_of(mode), f"{mode} attention")
