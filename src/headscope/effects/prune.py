"""The verb `prune`: how much of a model's heads can go, in which order, and the model without them.

Heads are taken away from the head of an order on, more and more of them, and the loss is asked
again, on the same texts with the same questions. Beside orders by what a study says stand random
ones, and that of depth.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headscope.capture import silence
from headscope.effects.adding import Adding
from headscope.effects.change import run
from headscope.effects.loss import Loss, LossKind, Metric
from headscope.effects.orders import Order, heads_of, order_of, orders_of
from headscope.effects.pruned_model import Pruned, write_pruned
from headscope.effects.sample import Reads
from headscope.effects.tables import quantity_table
from headscope.effects.verb import Verb
from headscope.errors import NotPossible
from headscope.measures.base import Definition, Quantity, Values, ratio
from headscope.observed import ObservedModel
from headscope.output import check_new_folder
from headscope.study.bootstrap import interval
from headscope.study.folder import Study
from headscope.study.progress import Progress

if TYPE_CHECKING:
    from headscope.capture import Change

SHARES = tuple(place / 8 for place in range(1, 8))
SEEDS = 5

VERB = Verb(
    "prune",
    "how much of a model's heads can go, in which order",
    {
        "prune": (
            Definition(
                "pruned_loss",
                "loss with the heads silenced that `by` and `keep` leave out",
                "nats per answer",
                "number",
                "the model is surprised more",
                "",
                "ours",
            ),
            Definition(
                "pruned_cost",
                "pruned_loss minus the loss as it is, on the same texts with the same questions",
                "nats per answer",
                "number",
                "taking these heads away costs more",
                "the same for as many heads drawn at random, mean over five draws",
                "ours",
            ),
        ),
    },
    other_tables=("pruning",),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Variant:
    """Heads that are taken away together."""

    order: str
    seed: int | None
    removed: float  # share of all heads
    heads: frozenset[tuple[int, int]]  # (layer with heads, head), from 0


def prune(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    by: str = "noise",
    keep: float = 0.5,
    even: bool = False,
    save: str | Path | None = None,
    loss: LossKind | Metric | None = None,
    progress: Progress | None = None,
) -> Study:
    """Add to a study what taking heads away costs; write the model without them with `save`.

    Of the order `by` a share of `keep` is kept; with `even` as many in every layer.
    """
    if not 0 < keep < 1:
        raise NotPossible("keep is a share of the heads between 0 and 1, such as 0.5.")
    if save is not None:
        check_new_folder(save)
    asking = Loss(scope, loss, seed=(reads or Reads()).seed)
    adding = Adding(VERB, scope, source, out, reads, progress)
    orders = orders_of(adding.study, SEEDS)
    chosen = order_of(adding.study, by, adding.reads.seed)
    variants = _variants(scope, orders, chosen, keep, even=even)
    sums = adding.sums()
    for units in adding.batches():
        asked = asking.ask(units, adding.length(units))
        plain = run(scope, asked)
        own = asking.sums(plain, asked, plain)
        pruned = [
            asking.sums(run(scope, asked, _without(scope, one.heads)), asked, plain) - own
            for one in variants
        ]
        sums.add(units, answers=asked.counts, loss=own, cost=np.stack(pruned, 1))
    answers = sums["answers"]
    own_loss: Values = ratio(sums["loss"], answers)
    cost: Values = ratio(sums["cost"], answers[:, None])
    drawn = [
        n for n, one in enumerate(variants) if one.order == "random" and one.removed == 1 - keep
    ]
    mine = len(variants) - 1
    tables = {
        "prune": quantity_table(
            {
                "pruned_loss": Quantity(own_loss + cost[:, mine]),
                "pruned_cost": Quantity(cost[:, mine], cost[:, drawn].mean(1)),
            }
        ),
        "pruning": _curves(variants[:mine], own_loss, cost),
    }
    said: dict[str, Any] = {"loss": asking.kind, "by": by, "keep": keep, "even": even}
    if save is not None:
        heads = [(scope.shape.numbers[layer], head + 1) for layer, head in variants[mine].heads]
        said |= _told(write_pruned(scope, heads, save, next(iter(adding.batches()))))
    return adding.finish(tables, **said)


def _variants(
    scope: ObservedModel, orders: Sequence[Order], chosen: Order, keep: float, *, even: bool
) -> list[_Variant]:
    """Every order at every share, and last of all what was asked for."""
    shape, found = scope.shape, []
    shares = sorted({*SHARES, 1 - keep})
    for order in orders:
        for share in shares:
            heads = heads_of(order, share, (shape.layers, shape.heads), even=even)
            found.append(_Variant(order.name, order.seed, share, heads))
    heads = heads_of(chosen, 1 - keep, (shape.layers, shape.heads), even=even)
    return [*found, _Variant(chosen.name, chosen.seed, 1 - keep, heads)]


def _without(scope: ObservedModel, heads: Iterable[tuple[int, int]]) -> "Change":
    numbers = scope.shape.numbers
    return silence([(numbers[layer] - 1, head) for layer, head in heads], scope.shape.stack)


def _curves(variants: Sequence[_Variant], loss: Values, cost: Values) -> pa.Table:
    """A row for each order, seed and share: the loss, and what it is above the loss as it is."""
    low, high = interval(loss[:, None] + cost)
    cost_low, cost_high = interval(cost)
    return pa.table(
        {
            "order": pa.array([one.order for one in variants], pa.string()),
            "seed": pa.array([one.seed for one in variants], pa.int32()),
            "removed": pa.array([one.removed for one in variants], pa.float64()),
            "heads": pa.array([len(one.heads) for one in variants], pa.int32()),
            "loss": (loss[0] + cost[0])[: len(variants)],
            "low": low[: len(variants)],
            "high": high[: len(variants)],
            "cost": cost[0, : len(variants)],
            "cost_low": cost_low[: len(variants)],
            "cost_high": cost_high[: len(variants)],
        }
    )


def _told(pruned: Pruned) -> Mapping[str, Any]:
    return {
        "how": pruned.how,
        "parameters": f"{pruned.parameters:,} of {pruned.parameters_before:,}",
        "bytes": f"{pruned.size:,} of {pruned.size_before:,}",
        "speed": f"{pruned.speed:.2f} times that of the whole model",
        "apart": f"{pruned.apart:.2g}",
    }
