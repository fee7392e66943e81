"""The claims of the paper, each with the statistic that tests it and a verdict by a fixed rule.

A claim *holds* when its statistic lies above its threshold with its whole interval, when the trend
over layers that it speaks of is there, and when it exceeds what random weights give, where they
were run. It *does not hold* when one of these fails clearly; else it is *undecided*. Claims about
pairs need similarities that differ at all (contrast). docs/findings.md says why and how much.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headscope.measures.seen import Quantity, ratio
from headscope.study.bootstrap import Values, interval
from headscope.study.estimates import quantities
from headscope.study.sums import Key, Totals

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
CONTRAST = 0.05  # below, all pairs of a head are alike and the high ones do not stand out
SIGNIFICANT = 0.05
PERMUTATIONS = 9999


class Evidence:
    """The quantities of one mode, reading and rule, with their replicates."""

    def __init__(self, totals: Totals, mode: str, reading: str, special: str, rule: str):
        self.totals, self.mode, self.reading = totals, mode, reading
        self.special, self.rule = special, rule
        self._known: dict[tuple[str, str], dict[str, Quantity]] = {}

    def key(self, measure: str) -> Key:
        """Where the sums of a measure are."""
        if measure == "focus":
            return Key(self.mode, measure)
        rule = "" if measure == "size" else self.rule
        return Key(self.mode, measure, self.reading, self.special, rule)

    def has(self, measure: str) -> bool:
        """Whether a measure was taken."""
        return self.key(measure) in self.totals.sums

    def quantity(self, measure: str, name: str, level: str) -> Quantity:
        """A quantity (replicates + 1, layers, heads)."""
        at = (measure, level)
        if at not in self._known:
            self._known[at] = quantities(self.totals, self.key(measure), level)
        return self._known[at][name]

    def layers(self, measure: str, name: str, lift: bool = False) -> Values:
        """A quantity, or its lift, by layer: (replicates + 1, layers)."""
        found = self.quantity(measure, name, "layer")
        value: Values = ratio(found.value, found.chance) if lift else found.value
        return value.reshape(value.shape[:2])

    def model(self, measure: str, name: str) -> Quantity:
        """A quantity of the whole model: (replicates + 1,)."""
        found = self.quantity(measure, name, "model")
        chance = None if found.chance is None else found.chance[:, 0, 0]
        return Quantity(found.value[:, 0, 0], chance)

    @cached_property
    def contrast(self) -> Values:
        """By head: (layers, heads)."""
        found: Values = self.quantity("size", "contrast", "head").value[0]
        return found

    def strongest(self, measure: str, name: str, lift: bool = False) -> Values:
        """A quantity of the head that has most of it, among heads whose pairs differ at all."""
        found = self.quantity(measure, name, "head")
        value = ratio(found.value, found.chance) if lift else found.value
        allowed = (self.contrast >= CONTRAST) & np.isfinite(value[0])
        if not allowed.any():
            return np.full(len(value), np.nan)
        layer, head = np.unravel_index(np.where(allowed, value[0], -np.inf).argmax(), allowed.shape)
        return value[:, layer, head]


def first(curve: Values) -> Values:
    """Mean over the first quarter of the layers: (replicates + 1,)."""
    found: Values = curve[:, : _quarter(curve)].mean(axis=1)
    return found


def last(curve: Values) -> Values:
    """Mean over the last quarter of the layers: (replicates + 1,)."""
    found: Values = curve[:, -_quarter(curve) :].mean(axis=1)
    return found


def _quarter(curve: Values) -> int:
    return max(1, round(int(curve.shape[1]) / 4))


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and how it is tested."""

    name: str
    says: str
    statistic: str
    measure: str
    value: Callable[[Evidence], Values]  # (replicates + 1,)
    threshold: float
    curve: Callable[[Evidence], Values] | None = None  # (replicates + 1, layers)
    rising: bool = True
    nulls: tuple[str, ...] = ("random",)  # that the statistic has to exceed


CLAIMS = (
    Claim(
        "separators",
        "final layers focus on separators",
        "attention mass on separators and sentence ends over chance, last quarter of the layers",
        "focus",
        lambda e: last(e.layers("focus", "separators", lift=True)),
        2.0,
        lambda e: e.layers("focus", "separators"),
    ),
    Claim(
        "centralisation",
        "attention centralises",
        "attended columns over chance, first quarter of the layers / last quarter",
        "focus",
        lambda e: ratio(
            first(e.layers("focus", "attended_columns", lift=True)),
            last(e.layers("focus", "attended_columns", lift=True)),
        ),
        1.25,
        lambda e: e.layers("focus", "attended_columns", lift=True),
        rising=False,
    ),
    Claim(
        "repetition_heads",
        "there are repetition heads",
        "share of repeated words among the high pairs of the strongest head",
        "repetition",
        lambda e: e.strongest("repetition", "same_word"),
        0.2,
    ),
    Claim(
        "common_token_heads",
        "there are heads around a common token",
        "share of the anchor among the ends of high pairs over chance, strongest head",
        "anchor",
        lambda e: e.strongest("anchor", "word_share", lift=True),
        2.0,
    ),
    Claim(
        "range",
        "long range turns short with depth",
        "mean distance of high pairs over chance, first quarter of the layers / last quarter",
        "range",
        lambda e: ratio(
            first(e.layers("range", "mean_distance", lift=True)),
            last(e.layers("range", "mean_distance", lift=True)),
        ),
        1.1,
        lambda e: e.layers("range", "mean_distance", lift=True),
        rising=False,
    ),
    Claim(
        "same_sentence",
        "preference for the same sentence grows",
        "same-sentence share of high pairs over chance, last quarter of the layers",
        "sentence",
        lambda e: last(e.layers("sentence", "same_sentence", lift=True)),
        1.2,
        lambda e: e.layers("sentence", "same_sentence", lift=True),
    ),
    Claim(
        "same_sentence_beyond_distance",
        "preference for the same sentence grows beyond what distance explains",
        "same-sentence share over that of pairs as far apart, last quarter of the layers",
        "sentence",
        lambda e: last(e.layers("sentence", "same_sentence_matched", lift=True)),
        1.05,
        lambda e: e.layers("sentence", "same_sentence_matched", lift=True),
        nulls=("random", "shuffle"),
    ),
    Claim(
        "unique_anchors",
        "each head has an anchor of its own",
        "distinct anchors / heads of a layer, above those of counts drawn by frequency",
        "anchor",
        lambda e: _above_chance(e.model("anchor", "word_uniqueness_in_layer")),
        0.1,
        nulls=(),  # heads of random weights differ too, by chance; contrast tells them apart
    ),
    Claim(
        "noise",
        "there is noise beside the signal",
        "share of unrelated pairs among high pairs",
        "noise",
        lambda e: e.model("noise", "unrelated").value,
        0.05,
        nulls=(),  # everything is noise with random weights; the signal tells them apart
    ),
)
SIGNAL = 0.05  # snr that has to be there for noise to be noise


def _above_chance(quantity: Quantity) -> Values:
    assert quantity.chance is not None
    return quantity.value - quantity.chance


@dataclass(frozen=True, slots=True)
class Trend:
    """Spearman's ρ of a curve with the layer number."""

    rho: float
    p: float  # share of permutations of the layers with as strong a correlation
    low: float  # over documents
    high: float


def spearman(curve: Values) -> Values:
    """Spearman's ρ of curves (…, layers) with the layer number; NaN for a constant curve."""
    ranks = _ranks(curve)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    order = np.arange(curve.shape[-1]) - (curve.shape[-1] - 1) / 2
    scale = np.sqrt((ranks**2).sum(-1) * (order**2).sum())
    return ratio((ranks * order).sum(-1), scale)


def _ranks(values: Values) -> Values:
    """Ranks along the last axis; equals share their mean rank."""
    below = (values[..., :, None] > values[..., None, :]).sum(-1)
    equal = (values[..., :, None] == values[..., None, :]).sum(-1)
    ranks: Values = below + (equal - 1) / 2
    return ranks


def trend(curve: Values, seed: int = 0) -> Trend:
    """The trend of a curve (replicates + 1, layers)."""
    rho = spearman(curve)
    low, high = interval(rho)
    random = np.random.Generator(np.random.Philox(seed))
    shuffled = random.permuted(np.tile(curve[0], (PERMUTATIONS, 1)), axis=1)
    as_strong = (np.abs(spearman(shuffled)) >= abs(rho[0]) - 1e-12).sum()
    p = (1 + float(as_strong)) / (1 + PERMUTATIONS)
    return Trend(float(rho[0]), p if np.isfinite(rho[0]) else 1.0, float(low), float(high))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rule says, and why."""

    word: str
    reason: str


def judge(
    low: float,
    high: float,
    claim: Claim,
    moved: Trend | None,
    layers: int,
    beyond_null: bool | None,
) -> Verdict:
    """The rule, once the evidence is numbers; `beyond_null` is None where no null was run."""
    if not np.isfinite(low + high):
        return Verdict(OPEN, "too few documents for an interval")
    if high < claim.threshold:
        return Verdict(FAILS, f"below the threshold of {claim.threshold:g}")
    if beyond_null is False:
        return Verdict(FAILS, "no more than the null gives")
    if moved is not None:
        right = moved.rho > 0 if claim.rising else moved.rho < 0
        if layers < 5:
            return Verdict(OPEN, f"{layers} layers are too few for a trend")
        if moved.p > SIGNIFICANT or not right:
            return Verdict(FAILS, f"no {'rise' if claim.rising else 'fall'} over the layers")
        if (moved.low if claim.rising else -moved.high) <= 0:
            return Verdict(OPEN, "the trend depends on the documents")
    if low <= claim.threshold:
        return Verdict(OPEN, f"the interval holds the threshold of {claim.threshold:g}")
    return Verdict(HOLDS, f"above {claim.threshold:g}" + (", with the trend" if moved else ""))
