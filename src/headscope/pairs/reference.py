"""The pair statistics written down plainly: dense, float64, one head at a time.

This file is the specification. It makes the whole similarity matrix and asks every question of it
in the most direct way; `cpu/` and `cuda/` must give the same answers. Given the very products
that a fast backend compares (`similarity` may be any symmetric matrix of values), every count must
agree exactly; sums agree to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import NotPossible
from headscope.pairs.batch import TokenBatch
from headscope.pairs.distances import into_bins
from headscope.pairs.rules import Nearest, Peak, Quantile, Rule, Sigma
from headscope.pairs.statistics import (
    Anchors,
    ChancePairs,
    Counts,
    HighPairs,
    PairStatistics,
    TopPairs,
    Values,
)
from headscope.pairs.tokens import (
    AROUND,
    READINGS,
    UNRELATED_DISTANCE,
    WORD_CLASSES,
    Bools,
    Floats,
    Ints,
    PairTokens,
    SimilarityReading,
    Special,
)

if TYPE_CHECKING:
    from torch import Tensor

NO_DIRECTION = 1e-6
"""A centred vector this much shorter than the longest vector of the text has no direction left."""


def similarity(z: Floats, reading: SimilarityReading = "raw", kept: Bools | None = None) -> Values:
    """The similarity matrix C (S, S) of one head's vectors z (S, d), under a reading.

    `raw` is the scalar product, `cosine` that of the unit vectors, `centred` the cosine after the
    mean over the kept tokens is taken away. A vector of length 0, or one that centring leaves with
    less than `NO_DIRECTION` of the longest vector's length, is similar to nothing: 0.
    """
    if reading not in READINGS:
        raise NotPossible(f"a reading is one of {', '.join(READINGS)}, not {reading!r}")
    vectors = np.asarray(z, np.float64)  # (S, d)
    longest = np.linalg.norm(vectors, axis=1).max(initial=0)
    if reading == "centred":
        members = vectors if kept is None else vectors[kept]  # (kept, d)
        vectors = vectors - (members.mean(axis=0) if len(members) else 0)  # (S, d)
    if reading != "raw":
        length = np.linalg.norm(vectors, axis=1, keepdims=True)  # (S, 1)
        shortest = NO_DIRECTION * longest if reading == "centred" else 0
        vectors = np.where(length > shortest, vectors / np.where(length > 0, length, 1), 0)
    product: Values = vectors @ vectors.T  # (S, S)
    return product


def all_pairs(kept: Bools, windows: Ints | None = None) -> Bools:
    """The pairs i < j of tokens that take part, as a mask (S, S).

    Given the window (S,) that each token was read in, pairs across windows take no part.
    """
    pairs: Bools = np.triu(kept[:, None] & kept[None, :], 1)
    return pairs if windows is None else pairs & (windows[:, None] == windows[None, :])


def mean_and_variance(values: Values) -> tuple[float, float]:
    """Mean and variance of some values; of equal values exactly that value and 0."""
    if not len(values):
        return np.nan, np.nan
    if values.min() == values.max():
        return float(values[0]), 0.0
    return float(values.mean()), float(values.var())


def thresholds(C: Values, rule: Rule, kept: Bools, windows: Ints | None = None) -> Values:
    """The similarity (S,) from which on each token calls a pair high; infinite without pairs."""
    size = len(kept)
    pairs = all_pairs(kept, windows)  # (S, S)
    values = C[pairs]  # (pairs,)
    if not len(values):
        return np.full(size, np.inf)
    match rule:
        case Quantile():
            return np.full(size, np.sort(values)[-rule.number(len(values))])
        case Peak(f):
            return np.full(size, f * values.max())
        case Sigma(k):
            mean, variance = mean_and_variance(values)
            return np.full(size, mean + k * np.sqrt(variance))
        case Nearest(k):
            others = (pairs | pairs.T).astype(bool)  # (S, S) every token's partners
            ranked = [np.sort(C[i][others[i]]) for i in range(size)]
            return np.array([r[-min(k, len(r))] if len(r) else np.inf for r in ranked])


def high_pairs(C: Values, rule: Rule, kept: Bools, windows: Ints | None = None) -> Bools:
    """Which pairs i < j are high, as a mask (S, S); `windows` as in `all_pairs`."""
    reach = thresholds(C, rule, kept, windows)  # (S,)
    return all_pairs(kept, windows) & ((reach[:, None] <= C) | (reach[None, :] <= C))


class _Kinds:
    """The questions asked of a pair, each as a mask (S, S)."""

    def __init__(self, tokens: PairTokens) -> None:
        position = np.arange(len(tokens))
        sentence, word, special = tokens.sentences, tokens.words, tokens.special
        self.distance = np.abs(position[:, None] - position[None, :])
        self.same_sentence = (sentence[:, None] == sentence[None, :]) & (sentence[:, None] >= 0)
        self.same_token = tokens.ids[:, None] == tokens.ids[None, :]
        one_word = (word[:, None] == word[None, :]) & (word[:, None] >= 0)
        occurrence, word_class = tokens.occurrences, tokens.word_classes
        self.same_word = one_word & (occurrence[:, None] != occurrence[None, :])
        self.word_class = np.maximum(word_class[:, None], word_class[None, :])
        self.special = special[:, None] | special[None, :]
        self.unrelated = (
            ~self.same_sentence & ~one_word & (self.distance > UNRELATED_DISTANCE) & ~self.special
        )

    def repeated(self, pairs: Bools) -> Counts:
        """Pairs of the same word, by its class (classes,)."""
        return np.bincount(self.word_class[pairs & self.same_word], minlength=WORD_CLASSES)


def chance_pairs(tokens: PairTokens, special: Special = "kept") -> ChancePairs:
    """Counts over all pairs of one text (B = 1)."""
    pairs = all_pairs(tokens.kept(special))
    kinds = _Kinds(tokens)
    size = max(len(tokens), 1)
    same_sentence = np.bincount(kinds.distance[pairs & kinds.same_sentence], minlength=size)
    return ChancePairs(
        count=np.array([pairs.sum()]),
        by_distance=into_bins(np.bincount(kinds.distance[pairs], minlength=size))[None],
        same_sentence=np.array([(pairs & kinds.same_sentence).sum()]),
        same_sentence_by_distance=into_bins(same_sentence)[None],
        same_token=np.array([(pairs & kinds.same_token).sum()]),
        same_word=np.array([(pairs & kinds.same_word).sum()]),
        repeated=kinds.repeated(pairs)[None],
        special=np.array([(pairs & kinds.special).sum()]),
        unrelated=np.array([(pairs & kinds.unrelated).sum()]),
    )


def anchors(high: Bools, types: Ints) -> Anchors:
    """The anchors of one head in one text (B = H = 1), from high pairs (S, S) and types (K, S)."""
    first, second = np.nonzero(high)
    found = []
    for places in types:
        ends = np.bincount(places[np.concatenate([first, second])], minlength=len(places))  # (S,)
        leader = int(ends.argmax())  # the first of equals
        position = np.arange(len(places))
        occurrences = np.flatnonzero(places == leader)
        near = (np.abs(position[:, None] - occurrences[None, :]) <= AROUND).any(1)  # (S,)
        around = int((near[first] | near[second]).sum())
        found.append((leader if len(first) else -1, ends[leader], around))
    return Anchors(*np.array(found, np.int64).reshape(-1, 3).T[:, None, None])


def large_pairs(lengths: Floats, rule: Rule, kept: Bools) -> Bools:
    """As many pairs as a quantile rule takes, of the largest products of two lengths (S,)."""
    pairs, products = all_pairs(kept), lengths[:, None] * lengths[None, :]
    if not isinstance(rule, Quantile) or not pairs.any():
        return np.zeros_like(pairs)
    least = np.sort(products[pairs])[-rule.number(int(pairs.sum()))]
    large: Bools = pairs & (products >= least)
    return large


def high_statistics(
    C: Values,
    tokens: PairTokens,
    rule: Rule,
    special: Special = "kept",
    types: Ints | None = None,
    sizes: tuple[Floats, Floats] | None = None,
) -> HighPairs:
    """Counts over the high pairs of one head in one text (B = H = 1).

    sizes: as in `vectors.VectorSizes`; without them all vectors are alike and nothing is rounded.
    """
    kept = tokens.kept(special)
    pairs, kinds, size = all_pairs(kept), _Kinds(tokens), max(len(tokens), 1)
    high = high_pairs(C, rule, kept)
    distances = np.bincount(kinds.distance[high], minlength=size)  # (S,)
    at_distance = np.bincount(kinds.distance[pairs], minlength=size)  # (S,)
    inside = np.bincount(kinds.distance[pairs & kinds.same_sentence], minlength=size)  # (S,)
    reached = thresholds(C, rule, kept)  # (S,)
    reach = np.nan if isinstance(rule, Nearest) or not pairs.any() else reached[0]
    lengths, rounding = sizes or (np.ones(len(tokens)), np.zeros(len(tokens)))
    if isinstance(rule, Nearest):  # a token with too few partners turns none away
        partners = (pairs | pairs.T).sum(1)  # (S,)
        reached = np.where(partners < rule.k, -np.inf, reached)
    # In 24 bits, as the smallest float32 that reaches it: similarities are compared with that.
    part, power = np.frexp(reached)
    above = np.ldexp(np.ceil(part * 2**24) / 2**24, power)
    least = np.minimum(above[:, None], above[None, :])  # (S, S)
    with np.errstate(invalid="ignore"):  # infinite without pairs
        unresolved = C - least <= rounding[:, None] * rounding[None, :]
    return HighPairs(
        rule=rule,
        threshold=np.array([[reach]]),
        count=np.array([[high.sum()]]),
        by_distance=into_bins(distances)[None, None],
        same_sentence=np.array([[(high & kinds.same_sentence).sum()]]),
        same_sentence_expected=np.array(
            [[(distances * inside / np.maximum(at_distance, 1)).sum()]]
        ),
        same_token=np.array([[(high & kinds.same_token).sum()]]),
        same_word=np.array([[(high & kinds.same_word).sum()]]),
        repeated=kinds.repeated(high)[None, None],
        special=np.array([[(high & kinds.special).sum()]]),
        unrelated=np.array([[(high & kinds.unrelated).sum()]]),
        unresolved=np.array([[(high & unresolved).sum()]]),
        large=np.array([[(high & large_pairs(lengths, rule, kept)).sum()]]),
        taking_part=(high.sum(axis=0) + high.sum(axis=1))[None, None],
        anchors=None if types is None else anchors(high, types),
    )


def top_pairs(C: Values, kept: Bools, number: int) -> TopPairs:
    """The `number` most similar pairs of one head in one text (B = H = 1)."""
    first, second = np.nonzero(all_pairs(kept))  # in the order of positions
    order = np.argsort(-C[first, second], kind="stable")[:number]
    missing = number - len(order)
    return TopPairs(
        first=np.pad(first[order], (0, missing), constant_values=-1)[None, None],
        second=np.pad(second[order], (0, missing), constant_values=-1)[None, None],
        value=np.pad(C[first, second][order], (0, missing), constant_values=np.nan)[None, None],
    )


def head_statistics(
    C: Values,
    tokens: PairTokens,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading = "raw",
    special: Special = "kept",
    top: int = 0,
    types: Ints | None = None,
    sizes: tuple[Floats, Floats] | None = None,
) -> PairStatistics:
    """Every statistic of one similarity matrix C (S, S): one head, one text (B = H = 1)."""
    kept, kinds, size = tokens.kept(special), _Kinds(tokens), max(len(tokens), 1)
    pairs = all_pairs(kept)
    values, distances = C[pairs], kinds.distance[pairs]
    related, unrelated = C[pairs & ~kinds.unrelated], C[pairs & kinds.unrelated]
    some = len(values) > 0
    mean, variance = mean_and_variance(values)
    sums = np.bincount(distances, values, minlength=size)
    return PairStatistics(
        reading=reading,
        special=special,
        chance=chance_pairs(tokens, special),
        mean=np.array([[mean]]),
        variance=np.array([[variance]]),
        maximum=np.array([[values.max() if some else np.nan]]),
        sum_by_distance=into_bins(sums)[None, None],
        related_sum=np.array([[related.sum()]]),
        unrelated_sum=np.array([[unrelated.sum()]]),
        unrelated_square=np.array([[(unrelated**2).sum()]]),
        high=tuple(high_statistics(C, tokens, rule, special, types, sizes) for rule in rules),
        top=top_pairs(C, kept, top) if top else None,
    )


def pair_statistics(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading,
    special: Special,
    top: int,
    layer: str | None,
) -> PairStatistics:
    """Every statistic of z (B, H, S, d), a head and a text at a time."""
    from headscope.pairs.vectors import refuse_not_finite

    refuse_not_finite(z.isfinite().all(-1).all(-1), layer)
    size, texts = int(max(batch.lengths)), []
    for b, (vectors, tokens) in enumerate(zip(z.double().cpu().numpy(), batch.texts, strict=True)):
        heads, types = [], None if batch.types is None else batch.types[b]
        all_sizes = sizes_of(z[b, :, : len(tokens)], reading, tokens.kept(special))
        for head, *sizes in zip(vectors[:, : len(tokens)], *all_sizes, strict=True):
            C = similarity(head, reading, tokens.kept(special))  # (S, S)
            found = head_statistics(
                C,
                tokens,
                rules,
                reading=reading,
                special=special,
                top=top,
                types=types,
                sizes=(sizes[0], sizes[1]),
            )
            padding = [(0, 0), (0, 0), (0, size - len(tokens))]
            padded = (replace(h, taking_part=np.pad(h.taking_part, padding)) for h in found.high)
            heads.append(replace(found, high=tuple(padded)))
        texts.append(_joined(heads, 1))
    joined: PairStatistics = _joined(texts, 0)
    return joined


def sizes_of(z: Tensor, reading: SimilarityReading, kept: Bools) -> tuple[Floats, Floats]:
    """Lengths and rounding (H, S) of head vectors (H, S, d), as the fast backends take them."""
    import torch

    from headscope.pairs.vectors import read_vectors, vector_sizes

    z, members = z.cpu(), torch.from_numpy(kept).expand(z.shape[:2])
    read = read_vectors(z, reading, members)
    sizes = vector_sizes(z, read.vectors, reading, members)
    scale = torch.exp2(read.exponent.float())[:, None]  # (H, 1)
    return sizes.lengths.numpy(), (sizes.rounding * scale).numpy()


def _joined(parts: Sequence[Any], axis: int) -> Any:
    """One result from several: arrays joined along an axis, and what has no head kept as it is."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts, axis)
    if isinstance(first, tuple):
        return tuple(_joined(each, axis) for each in zip(*parts, strict=True))
    if isinstance(first, PairStatistics | HighPairs | TopPairs | Anchors) or (
        isinstance(first, ChancePairs) and axis == 0
    ):
        names = [field.name for field in fields(first)]
        return replace(first, **{n: _joined([getattr(p, n) for p in parts], axis) for n in names})
    return first
