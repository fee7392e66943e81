"""Anchor: the one type that a head's high pairs of a text gather around.

Count types (token ids, or words with their pieces joined) over both ends of the high pairs of a
text. The *anchor* of a head in the text is the type with the largest count; of equals, the one that
comes first in the text.

    share          count of the anchor / ends
                   chance: as many ends drawn by the frequency of types in the text
    surroundings   high pairs with an end within ±2 places of the anchor / high pairs
                   chance: the share of such pairs among all pairs
    uniqueness_in_layer, _in_model   1 / heads of the layer, or model, with the same anchor;
                   its mean over heads is (distinct anchors / heads)
                   chance: the anchors of the drawn counts

Each is averaged over texts. Counts are drawn as independent Poisson numbers over the 16 most
frequent types of a text, seeded by the text. The pair statistics find the anchors themselves.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio
from headscope.pairs.compiled import exact
from headscope.pairs.tokens import AROUND
from headscope.pairs.workers import TOGETHER, in_parallel
from headscope.study.units import Unit

KINDS = ("token", "word")
DRAWN_TYPES = 16
PER_TEXT = ("share", "uniqueness_in_layer", "uniqueness_in_model")


def types_of(unit: Unit) -> NDArray[np.int64]:
    """Numbers (kinds, tokens) that are equal where the types of each of `KINDS` are equal."""
    tokens = unit.tokens
    # A special token is a word of its own, which the numbers of words leave out.
    return np.stack([tokens.ids, np.where(tokens.special, -1 - tokens.ids, tokens.word_types)])


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    count = seen.high("count")  # (texts, layers, heads)
    some = (count > 0).astype(np.float64)
    types = seen.batch.types
    assert types is not None
    kept = [unit.marks.kept(seen.layers[0].special) for unit in seen.units]
    leaders, ends, around = (seen.anchors(name) for name in ("place", "ends", "around"))
    found = {"texts": some}
    for number, kind in enumerate(KINDS):
        drawn_leaders, drawn_ends = _drawn(seen, number, types, kept, count)
        for name, leader, most in (
            ("", leaders[..., number], ends[..., number]),
            ("_chance", drawn_leaders, np.minimum(drawn_ends, 2 * count)),
        ):
            found[f"{kind}_share{name}"] = ratio(most, 2 * count, 0.0)
            found[f"{kind}_uniqueness_in_layer{name}"] = some / _fellows(leader)
            everyone = _fellows(leader.reshape(len(leader), -1)).reshape(leader.shape)
            found[f"{kind}_uniqueness_in_model{name}"] = some / everyone
        members = np.stack(
            [
                _kept_near(own[number], keep)[leader]
                for own, keep, leader in zip(types, kept, leaders[..., number], strict=True)
            ]
        )
        sizes = np.array([keep.sum() for keep in kept])[:, None, None]
        found[f"{kind}_surroundings"] = ratio(around[..., number], count, 0.0)
        found[f"{kind}_surroundings_chance"] = some * _pairs_touching(members, sizes)
    return {name: on_grid(value) for name, value in found.items()}


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    return {
        f"{kind}_{name}": Quantity(
            ratio(sums[f"{kind}_{name}"], sums["texts"]),
            ratio(sums[f"{kind}_{name}_chance"], sums["texts"]),
        )
        for kind in KINDS
        for name in (*PER_TEXT, "surroundings")
    }


def _drawn(
    seen: SeenPairs,
    kind: int,
    types: Sequence[NDArray[np.int32]],
    kept: list[NDArray[np.bool_]],
    count: Values,
) -> tuple[NDArray[np.int64], Values]:
    """The leader and its ends (texts, layers, heads), of as many ends drawn by frequency."""
    leaders, ends = np.zeros(count.shape, np.int64), np.zeros(count.shape)

    def draw(first: int) -> None:
        for text in range(first, min(first + TOGETHER, len(types))):
            occurrences = np.bincount(types[text][kind, kept[text]], minlength=1)
            frequency = np.sort(occurrences[occurrences > 0])[::-1][:DRAWN_TYPES]
            if len(frequency):
                mean = 2 * count[text, ..., None] * frequency / int(kept[text].sum())
                numbers = seen.units[text].random(seen.seed, f"anchor {KINDS[kind]}").poisson(mean)
                leaders[text], ends[text] = numbers.argmax(-1), numbers.max(-1)

    in_parallel(draw, ((first,) for first in range(0, len(types), TOGETHER)))
    return leaders, ends


def _fellows(leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many heads of a row (…, heads) have the same leader, the head itself included."""
    rows = leaders.reshape(-1, leaders.shape[-1]) + 1
    key = rows + (rows.max(initial=0) + 1) * np.arange(len(rows))[:, None]
    fellows: NDArray[np.int64] = np.bincount(key.ravel())[key].reshape(leaders.shape)
    return fellows


@exact
def _kept_near(types: Any, kept: Any) -> Any:
    """How many kept places are near a type, at the place where the type first occurs (tokens,)."""
    size = len(types)
    near, next_place = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for s in range(size):
        own = types[s]
        for place in range(max(s - AROUND, next_place[own]), min(s + AROUND + 1, size)):
            near[own] += kept[place]
        next_place[own] = s + AROUND + 1
    return near


def _pairs_touching(members: NDArray[np.int64], size: NDArray[np.int64]) -> Values:
    """Share of the pairs of `size` places that have an end among `members` of them."""
    outside = size - members
    return 1 - ratio(outside * (outside - 1), size * (size - 1), 0.0)
