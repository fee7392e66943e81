"""Anchor: the one type that a head's high pairs of a text gather around.

Count types (token ids, or words with their pieces joined) over both ends of the high pairs of a
text. The *anchor* of a head in the text is the type with the largest count; of equals, the one that
comes first in the text. 1 / (heads of the layer with the same anchor), averaged over the heads, is
(distinct anchors / heads): uniqueness. Texts weigh by their ends, so that lines with one pair, all
of whose ends are anchors, do not decide.

Chance keeps the graph of the pairs, whose hubs any similarity matrix has, and permutes the tokens:
the same permutation for all heads of a text, seeded by it, `DRAWS` times; special tokens stay. The
pair statistics find anchors, and those of the permuted text as types of further kinds.
"""

import numpy as np
from numpy.typing import NDArray

from headscope.compute.arrays import Array, on_device, real, stack
from headscope.measures.base import (
    Definition,
    Measure,
    ObservedPairs,
    Quantity,
    Sums,
    all_on_grid,
    ratio,
)
from headscope.pairs.tokens import AROUND
from headscope.units import Unit

KINDS = ("token", "word")
DRAWS = 2


def permutations(unit: Unit, seed: int) -> list[NDArray[np.int64]]:
    """Which token stands where, in each draw of chance."""
    content, found = np.flatnonzero(~unit.tokens.special), []
    for draw in range(DRAWS):
        order = np.arange(len(unit))
        order[content] = unit.random(seed, f"anchor {draw}").permutation(content)
        found.append(order)
    return found


def types_of(unit: Unit, seed: int) -> NDArray[np.int64]:
    """Numbers (kinds, tokens) that are equal where types are: of `KINDS`, then of each draw."""

    def made() -> NDArray[np.int32]:
        tokens = unit.tokens
        # A special token is a word of its own, which the numbers of words leave out.
        own = np.stack([tokens.ids, np.where(tokens.special, -1 - tokens.ids, tokens.word_types)])
        orders = permutations(unit, seed)
        return np.concatenate([own, *(own[:, order] for order in orders)], dtype=np.int32)

    return unit.remember(("types", seed), made).astype(np.int64)


def update(observed: ObservedPairs) -> dict[str, Array]:
    """Contributions of each text."""
    count = observed.high("count")  # (texts, layers, heads)
    # A text weighs alike for all heads, so that uniqueness stays (distinct anchors / heads).
    weight = count.mean((1, 2), keepdims=True) * (count > 0)
    leaders, ends, around = (observed.anchors(name) for name in ("place", "ends", "around"))
    found = {"pairs": count, "weight": weight}
    for number, kind in enumerate(KINDS):
        draws = slice(number + len(KINDS), None, len(KINDS))
        for name, those in (("", slice(number, number + 1)), ("_chance", draws)):
            own = leaders[..., those]  # (texts, layers, heads, draws)
            leader = stack([own[..., one] for one in range(own.shape[-1])], 0)
            everyone = _fellows(leader.reshape(*leader.shape[:2], -1)).reshape(leader.shape)
            found[f"{kind}_share{name}"] = real(ends[..., those]).mean(-1) / 2
            found[f"{kind}_surroundings{name}"] = real(around[..., those]).mean(-1)
            found[f"{kind}_uniqueness_in_layer{name}"] = weight * (1 / _fellows(leader)).mean(0)
            found[f"{kind}_uniqueness_in_model{name}"] = weight * (1 / everyone).mean(0)
    return all_on_grid(found)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    below = dict.fromkeys(("uniqueness_in_layer", "uniqueness_in_model"), "weight")
    over = {"share": "pairs", **below, "surroundings": "pairs"}
    return {
        f"{kind}_{name}": Quantity(
            ratio(sums[f"{kind}_{name}"], sums[by]),
            ratio(sums[f"{kind}_{name}_chance"], sums[by]),
        )
        for kind in KINDS
        for name, by in over.items()
    }


def _fellows(leaders: Array) -> Array:
    """How many heads of a row (…, heads) have the same leader, the head itself included."""
    if on_device(leaders):
        return real(leaders[..., None] == leaders[..., None, :]).sum(-1)
    rows = leaders.reshape(-1, leaders.shape[-1]) + 1
    key = rows + (rows.max(initial=0) + 1) * np.arange(len(rows))[:, None]
    return real(np.bincount(key.ravel())[key].reshape(leaders.shape))


PERMUTED = "the same pairs between the permuted tokens of the text"


def _definitions(kind: str) -> tuple[Definition, ...]:
    """Those of one kind of type."""
    return (
        Definition(
            f"{kind}_share",
            f"share of the ends of high pairs that are the anchor of their text, the {kind} with "
            "most ends there (of equals, the first)",
            "share of ends",
            "percent",
            f"pairs gather around one {kind}",
            PERMUTED,
            "paper",
        ),
        *(
            Definition(
                f"{kind}_uniqueness_in_{where}",
                f"distinct anchors / heads of the {where}; mean over texts, weighed by their ends",
                "share of heads",
                "percent",
                f"heads have a {kind} of their own",
                PERMUTED,
                "paper",
            )
            for where in ("layer", "model")
        ),
        Definition(
            f"{kind}_surroundings",
            f"share of the high pairs with an end within ±{AROUND} places of their text's anchor",
            "share of high pairs",
            "percent",
            f"pairs gather around the {kind} and its neighbours",
            PERMUTED,
            "paper",
        ),
    )


MEASURE = Measure(
    "anchor",
    "the one type that a head's high pairs of a text gather around",
    ("pairs",),
    ("reading", "special", "rule"),
    tuple(definition for kind in KINDS for definition in _definitions(kind)),
    update,
    compute,
)
