"""Anchor: the one type that a head's high pairs of a text gather around.

Count types (token ids, or words with their pieces joined) over both ends of the high pairs of a
text. The *anchor* of a head in the text is the type with the largest count.

    share          count of the anchor / ends
                   chance: as many ends drawn by the frequency of types in the text
    surroundings   high pairs with an end within ±2 places of the anchor / high pairs
                   chance: the share of such pairs among all pairs
    uniqueness_in_layer, _in_model   1 / heads of the layer, or model, with the same anchor;
                   its mean over heads is (distinct anchors / heads)
                   chance: the anchors of the drawn counts

Each is averaged over texts. Counts are drawn as independent Poisson numbers over the 16 most
frequent types of a text, seeded by the text. `surroundings` needs the pairs themselves, which are
there for quantile rules up to the study's own.
"""

import numpy as np
from numpy.typing import NDArray

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio
from headscope.pairs import Quantile
from headscope.study.units import Unit

KINDS = ("token", "word")
AROUND = 2
DRAWN_TYPES = 16
PER_TEXT = ("share", "uniqueness_in_layer", "uniqueness_in_model")


def type_numbers(unit: Unit, kind: str) -> NDArray[np.int64]:
    """A number for each token, equal where the types are equal."""
    if kind == "token":
        return unit.tokens.ids
    words = [word.casefold() for word in unit.tokens.word_texts]
    return np.unique(words, return_inverse=True)[1]


def counts_by_type(
    taking_part: Values, numbers: NDArray[np.int64]
) -> tuple[Values, NDArray[np.int64]]:
    """Counts (layers, heads, types) from counts by place (layers, heads, tokens), and the types."""
    order = np.argsort(numbers, kind="stable")
    types, starts = np.unique(numbers[order], return_index=True)
    return np.add.reduceat(taking_part[..., order], starts, axis=-1), types


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    taking_part, count = seen.high("taking_part"), seen.high("count")
    rows = [
        _text(seen, place, taking_part[place, ..., : len(unit)], count[place])
        for place, unit in enumerate(seen.units)
    ]
    return {name: on_grid(np.stack([row[name] for row in rows])) for name in rows[0]}


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    found = {}
    for kind in KINDS:
        for name in PER_TEXT:
            key = f"{kind}_{name}"
            value, chance = sums[key], sums[f"{key}_chance"]
            found[key] = Quantity(ratio(value, sums["texts"]), ratio(chance, sums["texts"]))
        key = f"{kind}_surroundings"
        found[key] = Quantity(
            ratio(sums[key], sums["paired_texts"]),
            ratio(sums[f"{key}_chance"], sums["paired_texts"]),
        )
    return found


def _text(seen: SeenPairs, place: int, taking_part: Values, count: Values) -> dict[str, Values]:
    """Contributions of one text, each (layers, heads)."""
    unit, some = seen.units[place], (count > 0).astype(np.float64)
    kept = unit.marks.kept(seen.layers[0].special)
    pairs = _pairs(seen, place, unit)
    found: dict[str, Values] = {
        "texts": some,
        "paired_texts": some * (pairs is not None),
    }
    for kind in KINDS:
        numbers = type_numbers(unit, kind)
        counts, types = counts_by_type(taking_part, numbers)
        anchor = counts.argmax(-1)  # (layers, heads), the first of equals
        drawn = _drawn(seen, unit, kind, numbers[kept], count)
        for name, leaders, most in (
            ("", anchor, counts.max(-1)),
            ("_chance", drawn.argmax(-1), np.minimum(drawn.max(-1), 2 * count)),
        ):
            found[f"{kind}_share{name}"] = ratio(most, 2 * count, 0.0)
            found[f"{kind}_uniqueness_in_layer{name}"] = some / _fellows(leaders)
            everyone = _fellows(leaders.reshape(1, -1)).reshape(leaders.shape)
            found[f"{kind}_uniqueness_in_model{name}"] = some / everyone
        near = _near(numbers, types)[anchor]  # (layers, heads, tokens)
        around, chance = np.zeros_like(count), np.zeros_like(count)
        if pairs is not None:
            ends = [np.take_along_axis(near, end, -1) for end in pairs]
            around = (ends[0] | ends[1]).mean(-1)
            chance = _pairs_touching((near & kept).sum(-1), int(kept.sum()))
        found[f"{kind}_surroundings"] = around * some
        found[f"{kind}_surroundings_chance"] = chance * some
    return found


def _pairs(seen: SeenPairs, place: int, unit: Unit) -> tuple[NDArray[np.int64], ...] | None:
    """Both ends (layers, heads, pairs) of the high pairs of a text, where they are known."""
    rule = seen.layers[0].high[seen.rule].rule
    everything = int(seen.layers[0].chance.count[place])
    if not isinstance(rule, Quantile) or not everything:
        return None
    number = rule.number(everything)
    tops = [layer.top for layer in seen.layers]
    if any(top is None or top.first.shape[-1] < number for top in tops):
        return None
    ends = ("first", "second")
    return tuple(np.stack([getattr(t, end)[place, :, :number] for t in tops]) for end in ends)


def _drawn(
    seen: SeenPairs, unit: Unit, kind: str, numbers: NDArray[np.int64], count: Values
) -> Values:
    """Counts (layers, heads, types) of as many ends drawn by frequency."""
    frequency = np.sort(np.unique(numbers, return_counts=True)[1])[::-1][:DRAWN_TYPES]
    mean = 2 * count[..., None] * frequency / max(len(numbers), 1)
    random = unit.random(seen.seed, f"anchor {kind}")
    return random.poisson(mean).astype(np.float64)


def _fellows(leaders: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many heads of a row (rows, heads) have the same leader, the head itself included."""
    fellows: NDArray[np.int64] = (leaders[:, :, None] == leaders[:, None, :]).sum(-1)
    return fellows


def _near(numbers: NDArray[np.int64], types: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each type (types, tokens): which places are within reach of an occurrence."""
    here: NDArray[np.bool_] = numbers[None, :] == types[:, None]
    near = here.copy()
    for step in range(1, AROUND + 1):
        near[:, step:] |= here[:, :-step]
        near[:, :-step] |= here[:, step:]
    return near


def _pairs_touching(members: NDArray[np.int64], size: int) -> Values:
    """Share of the pairs of `size` places that have an end among `members` of them."""
    outside = size - members
    return 1 - ratio(outside * (outside - 1), size * (size - 1), 0.0)
