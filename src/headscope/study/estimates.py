"""From sums to numbers: every quantity per head, per layer and for the model, with replicates.

Sums are added over the heads of a layer, or of the model, before quantities are computed, so that
a layer's number is that of all its high pairs, rows or texts together; but for `peak` and `sigma`,
whose layers are the mean over heads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from headscope.measures.base import Quantity, Sums, ratio
from headscope.measures.registry import MEASURES
from headscope.study.bootstrap import Values, interval, standard_error
from headscope.study.sums import Key, Totals

LEVELS = ("head", "layer", "model")


class Computed(Protocol):
    """What makes quantities of sums: a measure, whatever it observes."""

    @property
    def name(self) -> str:
        """Of its table, too."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What its numbers depend on: "reading", "special", "rule"."""

    @property
    def compute(self) -> Callable[[Sums], dict[str, Quantity]]:
        """Quantities from sums."""


@dataclass(slots=True, eq=False)
class OtherTotals(Totals):
    """Sums of other measures than those of texts, by their names."""

    measures: Mapping[str, Computed] = field(default_factory=dict)


def measures_of(totals: Totals) -> Mapping[str, Computed]:
    """The measures whose sums these are."""
    return totals.measures if isinstance(totals, OtherTotals) else MEASURES


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A quantity (layers, heads) with interval, chance level and lift; one entry where pooled."""

    value: Values
    error: Values  # standard error, from the replicates
    low: Values
    high: Values
    chance: Values
    lift: Values
    lift_low: Values
    lift_high: Values


def quantities(totals: Totals, key: Key, level: str = "head") -> dict[str, Quantity]:
    """Every quantity of a measure, (replicates + 1, layers, heads)."""
    if level == "layer" and key.rule.startswith(("peak", "sigma")):
        return _over_heads(quantities(totals, key, "head"))
    axes = {"head": (), "layer": (2,), "model": (1, 2)}[level]
    sums = {
        name: value.sum(axis=axes, keepdims=True) if axes else value
        for name, value in totals.sums[key].items()
    }
    return measures_of(totals)[key.measure].compute(sums)


def _over_heads(quantities: dict[str, Quantity]) -> dict[str, Quantity]:
    """The mean over the heads of each layer, of those that have a value.

    Under a rule with a threshold of its own a head has as many high pairs as it happens to; added
    up, a layer would be that of the heads with most.
    """
    return {
        name: Quantity(
            _mean(quantity.value),
            None if quantity.chance is None else _mean(quantity.chance),
        )
        for name, quantity in quantities.items()
    }


def _mean(values: Values) -> Values:
    known = np.isfinite(values)
    summed = np.where(known, values, 0.0).sum(axis=2, keepdims=True)
    return ratio(summed, known.sum(axis=2, keepdims=True))


def estimate(quantity: Quantity) -> Estimate:
    """The numbers a person reads, from replicates."""
    value = quantity.value
    low, high = interval(value)
    error = standard_error(value)
    missing = np.full(value.shape[1:], np.nan)
    if quantity.chance is None:
        return Estimate(value[0], error, low, high, missing, missing, missing, missing)
    lift = ratio(value, quantity.chance)
    lift_low, lift_high = interval(lift)
    return Estimate(value[0], error, low, high, quantity.chance[0], lift[0], lift_low, lift_high)


def difference(one: Quantity, other: Quantity) -> tuple[Values, Values, Values]:
    """The difference of two values with its interval, replicate by replicate."""
    apart = one.value - other.value
    low, high = interval(apart)
    return apart[0], low, high
