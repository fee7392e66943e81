"""Claims about what heads are worth, each tested as the paper's are: threshold, null, interval.

Heads are compared with heads of their own layer, since depth goes along with nearly everything. The
null is chance among heads: the same effects, those of each layer in random order. Thresholds and
statistics are ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headscope.effects.correlations import Column, places_of
from headscope.effects.ranks import within_layers
from headscope.measures.base import Values
from headscope.study.evidence import CONTRAST, UNRESOLVED
from headscope.study.findings import as_table, finding
from headscope.study.told import View, told_view
from headscope.study.verdicts import AgainstNull, Examined, judge, over

if TYPE_CHECKING:
    from headscope.study.folder import Study

PERMUTED = 999
SHUFFLED = "heads in random order"  # the null: those of each layer


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What a claim is tested on, in one view."""

    effect: Values  # (replicates + 1, layers, heads)
    columns: Mapping[tuple[str, str], Values]  # by measure and quantity
    labels: NDArray[Any]  # of each head, a list of names: (layers, heads)

    def of(self, measure: str, quantity: str) -> Values:
        """A quantity of the heads whose pairs stand out, NaN of the others."""
        found = self.columns[measure, quantity].copy()
        alike = self.columns["size", "contrast"][0] < CONTRAST
        unsure = self.columns.get(("selection", "unresolved"))
        out = alike if unsure is None else alike | (unsure[0] > UNRESOLVED)
        found[:, out] = np.nan
        return found

    def labelled(self, label: str) -> NDArray[np.bool_]:
        """Which heads bear a label: (layers, heads)."""
        bears = [[any(x.split(":")[0] == label for x in y) for y in row] for row in self.labels]
        return np.array(bears)


@dataclass(frozen=True, slots=True, eq=False)
class EffectClaim:
    """One claim about effects, and how it is tested."""

    name: str
    says: str
    statistic: str
    threshold: float
    value: Callable[[Facts, Values], Values]  # of effects (…, layers, heads): (…,)
    about_pairs: bool = True
    in_every_view: bool = True  # labels are those of the view that is told
    rising: bool = True
    curve: None = None
    nulls: tuple[str, ...] = (SHUFFLED,)


def _association(measure: str, quantity: str, sign: int) -> Callable[[Facts, Values], Values]:
    def value(facts: Facts, effect: Values) -> Values:
        column = facts.of(measure, quantity)
        column = column if len(column) == len(effect) else column[:1].repeat(len(effect), 0)
        return sign * within_layers(column, effect)

    return value


def _standing(label: str, *, more: bool) -> Callable[[Facts, Values], Values]:
    """How many of the others in its layer a head with a label costs more than: mean over heads."""

    def value(facts: Facts, effect: Values) -> Values:
        bears = facts.labelled(label)
        shares = []
        for layer, head in np.argwhere(bears):
            others = effect[:, layer, ~bears[layer]]
            if others.shape[1]:
                own = effect[:, layer, head, None]
                shares.append(((own > others) + 0.5 * (own == others)).mean(1))
        if not shares:
            return np.full(len(effect), np.nan)
        found: Values = np.mean(shares, axis=0)
        return found if more else 1 - found

    return value


ASSOCIATED, STANDING = 0.2, 0.6
CLAIMS = (
    EffectClaim(
        "noisy_heads",
        "heads that the similarity calls noisy matter less",
        "−ρ of unrelated high pairs and effect, within layers",
        ASSOCIATED,
        _association("noise", "unrelated", -1),
    ),
    EffectClaim(
        "clear_heads",
        "heads whose signal stands out matter more",
        "ρ of SNR and effect, within layers",
        ASSOCIATED,
        _association("noise", "snr", 1),
    ),
    EffectClaim(
        "repetition_heads_matter",
        "repetition heads matter more than others of their layer",
        "share of the other heads of the layer that cost less, mean over repetition heads",
        STANDING,
        _standing("repetition", more=True),
        in_every_view=False,
    ),
    EffectClaim(
        "separator_heads_matter_less",
        "heads that look at separators matter less than others of their layer",
        "share of the other heads of the layer that cost more, mean over separator sinks",
        STANDING,
        _standing("separator sink", more=False),
        about_pairs=False,
        in_every_view=False,
    ),
    EffectClaim(
        "anchor_heads_matter",
        "heads around one word matter more than others of their layer",
        "share of the other heads of the layer that cost less, mean over anchor heads",
        STANDING,
        _standing("anchor", more=True),
        in_every_view=False,
    ),
)


def findings_of(
    study: "Study", columns: Sequence[Column], effect: Values, groups: float
) -> pa.Table:
    """A row for each claim and view, as in the table of findings; `groups` of like size."""
    told = told_view(study.manifest.parameters)
    ways = dict.fromkeys(column.way for column in columns if all(column.way))
    views = [told, *(view for way in ways if (view := View(*map(str, way))) != told)]
    shape = effect.shape[1:]
    labels, places = np.empty(shape, dtype=object), places_of(study)
    for row in study.table("heads").to_pylist():
        labels[places[row["layer"]], row["head"] - 1] = row["labels"]
    rows = []
    for view in views:
        known = {
            (one.measure, one.quantity): one.values
            for one in columns
            if all(part in (None, own) for part, own in zip(one.way, _parts(view), strict=True))
        }
        facts = Facts(effect, known, labels)
        claims = [one for one in CLAIMS if view == told or one.in_every_view]
        claims = [one for one in claims if _measured(one, facts)]
        tested = [_examined(one, facts, groups) for one in claims]
        for one, verdict in zip(tested, judge(tested), strict=True):
            rows.append(finding(one, verdict, "real", view) | {"told": view == told})
    return as_table(rows)


def _parts(view: View) -> tuple[str, str, str]:
    return view.reading, view.special, view.rule


def _measured(claim: EffectClaim, facts: Facts) -> bool:
    return ("noise", "snr") in facts.columns or not claim.in_every_view


def _examined(claim: EffectClaim, facts: Facts, groups: float) -> Examined:
    effect = facts.effect
    value = claim.value(facts, effect)
    missing = None if np.isfinite(value[0]) else "no head is like this"
    low, high, p = over(value, claim.threshold, 1, groups)
    return Examined(
        claim,
        float(value[0]),
        low,
        high,
        p,
        () if missing else (_shuffled(claim, facts, float(value[0])),),
        layers=effect.shape[1],
        groups=groups,
        missing=missing,
    )


def _shuffled(claim: EffectClaim, facts: Facts, value: float) -> AgainstNull:
    """The statistic beside that of effects in random order within their layers."""
    generator = np.random.default_rng(0)
    own = np.broadcast_to(facts.effect[:1], (PERMUTED, *facts.effect.shape[1:]))
    found = claim.value(facts, generator.permuted(own, axis=2))
    least, middle, most = np.quantile(found, (0.025, 0.5, 0.975))
    as_far = int((found >= value - 1e-12).sum())
    p = (1 + as_far) / (1 + PERMUTED)
    low, high = value - float(most), value - float(least)
    return AgainstNull(SHUFFLED, float(middle), value - float(middle), low, high, p, True)
