"""In which order heads are taken away: by what a study says of them, by depth, at random."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.effects.correlations import places_of
from headscope.errors import NotPossible
from headscope.measures.base import Values
from headscope.study.told import told_view

if TYPE_CHECKING:
    from headscope.study.folder import Study

# What is called by a word of its own: the quantity, and whether its largest go first.
NAMED = {
    "noise": ("unrelated", True),
    "snr": ("snr", False),
    "effect": ("zero_effect", False),
    "gradient": ("gradient", False),
}
DEPTH, RANDOM = "depth", "random"


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Heads by the number they are taken away by, the smallest first."""

    name: str
    keys: Values  # (layers, heads); NaN goes last
    seed: int | None = None


def orders_of(study: "Study", seeds: int) -> list[Order]:
    """The orders that a study knows: those with words of their own, depth, and random ones."""
    known = [order_of(study, name) for name in NAMED if _values(study, NAMED[name][0]) is not None]
    shuffled = [order_of(study, RANDOM, seed) for seed in range(seeds)]
    return [*known, order_of(study, DEPTH), *shuffled]


def order_of(study: "Study", name: str, seed: int = 0) -> Order:
    """An order by its name: a word of its own, or a quantity, largest first with − before it."""
    shape = study.manifest.model.layers, study.manifest.model.heads
    if name == RANDOM:
        return Order(name, np.random.default_rng(seed).random(shape), seed)
    if name == DEPTH:
        return Order(name, -np.repeat(np.arange(float(shape[0])), shape[1]).reshape(shape))
    quantity, largest = NAMED.get(name, (name.lstrip("-"), name.startswith("-")))
    values = _values(study, quantity)
    if values is None:
        if name in ("effect", "gradient"):
            raise NotPossible(
                f"The study holds no {name} to prune by.",
                command=f"This adds it: headscope effects CORPUS --out {study.path}",
                python="scope.effects(corpus, folder) adds it.",
            )
        words = ", ".join([*NAMED, DEPTH, RANDOM])
        raise NotPossible(
            f"Heads are pruned by {words}, or a quantity of the study, not by {name!r}."
        )
    return Order(name, -values if largest else values)


def heads_of(
    order: Order, share: float, shape: tuple[int, int], *, even: bool
) -> frozenset[tuple[int, int]]:
    """The heads (layer, head), from 0, that are taken away: this share of all, or of each layer."""
    keys = np.where(np.isfinite(order.keys), order.keys, np.inf)
    if even:
        number = round(share * shape[1])
        ranked = np.argsort(keys, axis=1, kind="stable")[:, :number]
        return frozenset((layer, int(head)) for layer in range(shape[0]) for head in ranked[layer])
    number = round(share * keys.size)
    places = np.argsort(keys, axis=None, kind="stable")[:number]
    return frozenset((int(place) // shape[1], int(place) % shape[1]) for place in places)


def _values(study: "Study", quantity: str) -> Values | None:
    """A quantity of every head, as it is told: (layers, heads); None where there is none."""
    from headscope.effects.added import added_rows
    from headscope.measures.registry import MEASURES

    view, model = told_view(study.manifest.parameters), study.manifest.model
    rows = [row for _, row in added_rows(study) if row["quantity"] == quantity]
    for name, measure in MEASURES.items():
        if name in study.tables and any(one.name == quantity for one in measure.definitions):
            rows += [
                row
                for row in study.table(name).to_pylist()
                if row["quantity"] == quantity
                and row["level"] == "head"
                and row["mode"] == "real"
                and view.has(row)
            ]
    found, places = np.full((model.layers, model.heads), np.nan), places_of(study)
    for row in rows:
        if row["value"] is not None:
            found[places[row["layer"]], row["head"] - 1] = row["value"]
    return found if np.isfinite(found).any() else None
