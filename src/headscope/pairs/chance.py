"""Counts over all pairs of a text, which no head changes: counted once a text, by groups.

Tokens of one sentence, and of one word, are few beside the text, so going through the pairs inside
each group costs much less than going through all pairs.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headscope.compute.compiled import exact
from headscope.pairs.distances import into_bins
from headscope.pairs.statistics import ChancePairs, Counts, Values
from headscope.pairs.tokens import UNRELATED_DISTANCE, WORD_CLASSES, PairTokens, Special


@dataclass(frozen=True, slots=True)
class TextChance:
    """The counts of one text, at every distance."""

    at_distance: Counts  # (S,) pairs at each distance; entry 0 is 0
    inside: Counts  # (S,) pairs inside one sentence at each distance
    repeated: Counts  # (classes,) pairs of the same word, by its class
    same_token: int
    special: int
    unrelated: int

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return int(self.at_distance.sum())

    @property
    def inside_share(self) -> Values:
        """The share of the pairs at each distance that lie inside one sentence."""
        share: Values = self.inside / np.maximum(self.at_distance, 1)  # (S,)
        return share


@exact
def _pairs_at_distance(
    kept: npt.NDArray[np.bool_], left_out: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Pairs of kept tokens at each distance: all, less those with an end left out."""
    size = len(kept)
    counts = np.empty(size, np.int64)
    for distance in range(size):
        counts[distance] = size - distance
    counts[:1] = 0
    for s in left_out:
        for distance in range(1, size):
            if s + distance < size:
                counts[distance] -= 1
            if s - distance >= 0 and kept[s - distance]:
                counts[distance] -= 1
    return counts


@exact
def _pairs_in_groups(
    labels: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    kept: npt.NDArray[np.bool_],
    special: npt.NDArray[np.bool_],
    not_of: npt.NDArray[np.int32],
    by_distance: npt.NDArray[np.int64],
) -> int:
    """Count pairs of equal label (at least 0) by distance; `order` sorts the labels stably.

    Returns how many of them are further apart than `UNRELATED_DISTANCE`, touch no special token
    and have no equal label in `not_of`.
    """
    far = 0
    for a in range(len(order)):
        i = order[a]
        if not kept[i] or labels[i] < 0:
            continue
        for b in range(a + 1, len(order)):
            j = order[b]
            if labels[j] != labels[i]:
                break
            if not kept[j]:
                continue
            by_distance[j - i] += 1
            apart = not_of[i] != not_of[j] or not_of[i] < 0
            if j - i > UNRELATED_DISTANCE and not special[i] and not special[j] and apart:
                far += 1
    return far


@exact
def _repetitions(
    words: npt.NDArray[np.int32],
    order: npt.NDArray[np.int64],
    kept: npt.NDArray[np.bool_],
    occurrences: npt.NDArray[np.int32],
    word_classes: npt.NDArray[np.int32],
    repeated: npt.NDArray[np.int64],
) -> None:
    """Count pairs of two occurrences of a word by class; `order` sorts the words."""
    for a in range(len(order)):
        i = order[a]
        if not kept[i] or words[i] < 0:
            continue
        for b in range(a + 1, len(order)):
            j = order[b]
            if words[j] != words[i]:
                break
            if kept[j] and occurrences[j] != occurrences[i]:
                repeated[max(word_classes[i], word_classes[j])] += 1


@exact
def _count(
    kept: npt.NDArray[np.bool_],
    special: npt.NDArray[np.bool_],
    sentences: npt.NDArray[np.int32],
    words: npt.NDArray[np.int32],
    ids: npt.NDArray[np.int32],
    occurrences: npt.NDArray[np.int32],
    word_classes: npt.NDArray[np.int32],
    repeated: npt.NDArray[np.int64],  # (classes,) out
    at_distance: npt.NDArray[np.int64],  # (S,) out
    inside: npt.NDArray[np.int64],  # (S,) out
) -> tuple[int, int, int]:
    """Everything about one text, in one call; the last three counts of `TextChance`."""
    nothing, ids_kept = np.full(len(kept), -1, np.int32), np.sort(ids[kept])
    plain = _pairs_at_distance(~special, np.flatnonzero(special))  # (S,) no end special
    at_distance[:] = _pairs_at_distance(kept, np.flatnonzero(~kept))
    order = np.argsort(sentences, kind="mergesort")
    far = _pairs_in_groups(sentences, order, kept, special, nothing, inside)
    order = np.argsort(words, kind="mergesort")
    far += _pairs_in_groups(words, order, kept, special, sentences, np.zeros_like(inside))
    _repetitions(words, order, kept, occurrences, word_classes, repeated)
    alike, same_token = 0, 0  # tokens before this one that are the same, pairs so far
    for i in range(1, len(ids_kept)):
        alike = alike + 1 if ids_kept[i] == ids_kept[i - 1] else 0
        same_token += alike
    touching = at_distance.sum() - plain.sum()
    unrelated = plain[UNRELATED_DISTANCE + 1 :].sum() - far
    return same_token, touching, unrelated


def text_chance(tokens: PairTokens, setting: Special) -> TextChance:
    """Count all pairs of one text."""
    at_distance, inside = np.zeros((2, len(tokens)), np.int64)
    repeated = np.zeros(WORD_CLASSES, np.int64)
    counts = _count(
        tokens.kept(setting),
        tokens.special,
        tokens.sentences,
        tokens.words,
        tokens.ids,
        tokens.occurrences,
        tokens.word_classes,
        repeated,
        at_distance,
        inside,
    )
    return TextChance(at_distance, inside, repeated, *counts)


def chance_pairs(texts: list[TextChance]) -> ChancePairs:
    """Put the counts of the texts of a batch side by side, in distance bins."""

    def column(name: str) -> Counts:
        return np.array([getattr(text, name) for text in texts], np.int64)  # (B,)

    def binned(name: str) -> Counts:
        return np.stack([into_bins(getattr(text, name)) for text in texts])  # (B, D)

    return ChancePairs(
        count=column("count"),
        by_distance=binned("at_distance"),
        same_sentence=np.array([text.inside.sum() for text in texts], np.int64),
        same_sentence_by_distance=binned("inside"),
        same_token=column("same_token"),
        same_word=np.array([text.repeated.sum() for text in texts], np.int64),
        repeated=np.stack([text.repeated for text in texts]),
        special=column("special"),
        unrelated=column("unrelated"),
    )
