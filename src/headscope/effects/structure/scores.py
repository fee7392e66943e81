"""How well a signal between words finds gold pairs, beside chance and distance-matched chance.

A head that looks at the previous token finds many arcs without knowing one. So beside every score
stands what the distances of the head's own picks would give, taken from the other words of the same
window, and the AUC is also taken among pairs that are equally far apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

import numpy as np

from headscope.effects.structure.questions import Ints, Question, Values, distance_bins

AMONG = 5
HIGH = 0.01  # of the pairs: the high ones
SCORES = ("found", "found_among_5", "auc", "auc_matched", "high_pairs", "beyond_distance")
EXPECTED = ("chance", "matched")


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Of one relation in one window: what adds up, by score."""

    counts: dict[str, float]  # of words asked, of gold pairs or of high pairs
    values: dict[str, Values]  # score → (rows,)
    chance: dict[str, Values]  # score → (rows,), of those that have a chance level
    matched: dict[str, Values]  # the same where only distances are kept


class Asked:
    """A question of a window, ready to be put to the signals of one layer after another."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.words, self.row = np.unique(question.first, return_inverse=True)
        self.bins = distance_bins(question.first, question.second)
        self.by_word, self.by_distance = _Groups(self.row), _Groups(self.bins)
        self.candidates = np.bincount(self.row)  # (words,)
        self.distances = np.bincount(self.bins)  # (bins,)
        shape = (len(self.words), len(self.distances))
        cells = self.row * shape[1] + self.bins
        self.by_cell = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        self.high = max(1, round(HIGH * len(self.row)))
        keys = question.second * (int(question.first.max(initial=0)) + 1) + question.first
        self.turned = np.argsort(np.argsort(keys, kind="stable"), kind="stable")
        """Where the pair stands that is the same the other way round."""

    def scores(self, values: Values, symmetric: bool) -> dict[str, Sums]:
        """Every relation's sums, of signals (rows, pairs); symmetric ones know no direction."""
        from_top = self.candidates[self.row] + 1 - self.by_word.ranks(values)  # 1: the largest
        by_distance = self.by_distance.ranks(values)
        picks = self._picks(values)
        rates = self._rates(picks)
        top = np.argpartition(values, -self.high, axis=1)[:, -self.high :]  # (rows, high)
        found = {}
        for relation, gold in self.question.gold.items():
            both = np.union1d(gold, self.turned[gold]) if symmetric else gold
            found[relation] = self._sums(gold, both, from_top, by_distance, rates, top)
        return found

    def steps_found(self, steps: range) -> Mapping[str, Values]:
        """What always picking the candidate so many steps on finds, by relation: (steps,)."""
        own = self.question.steps
        return {
            relation: np.array([float((own[gold] == step).sum()) for step in steps])
            for relation, gold in self.question.gold.items()
        }

    def alike_found(self) -> Mapping[str, float]:
        """What picking among the candidates spelled alike finds, by relation."""
        alike = self.question.alike
        number = np.maximum(np.bincount(self.row, alike), 1)
        return {
            relation: float((alike[gold] / number[self.row[gold]]).sum())
            for relation, gold in self.question.gold.items()
        }

    def _picks(self, values: Values) -> Ints:
        """The candidate that each word has the largest signal to, as a place among the pairs."""
        padded = self.by_word.spread(values, -np.inf)  # (rows, words, most candidates)
        best = padded.argmax(axis=-1)
        found: Ints = self.by_word.index[np.arange(len(self.words)), best]  # (rows, words)
        return found

    def _rates(self, picks: Ints) -> Values:
        """How likely each distance is picked, by the head's picks for the other words.

        (rows, words, bins): such that a word's candidates, each with the rate of its distance, add
        up to 1. Where the others say nothing all candidates are alike.
        """
        bins = self.bins[picks]  # (rows, words)
        own = bins[..., None] == np.arange(len(self.distances))  # (rows, words, bins)
        others = self.distances - self.by_cell  # (words, bins) candidates of the other words
        rates = (own.sum(axis=1, keepdims=True) - own) / np.maximum(others, 1)
        total = (rates * self.by_cell).sum(axis=-1, keepdims=True)  # (rows, words, 1)
        even = 1 / self.candidates[:, None]
        spread: Values = np.where(total > 0, rates / np.where(total > 0, total, 1), even)
        return spread

    def _sums(
        self,
        gold: Ints,
        both: Ints,
        from_top: Values,
        by_distance: Values,
        rates: Values,
        top: Ints,
    ) -> Sums:
        rows = len(from_top)
        asked, starts, mates = np.unique(self.row[gold], return_index=True, return_counts=True)
        best = np.minimum.reduceat(from_top[:, gold], starts, axis=1)  # (rows, asked)
        others = self.candidates[asked]
        found = (best <= 1).sum(axis=1).astype(np.float64)
        likely = rates[:, self.row[gold], self.bins[gold]].sum(axis=1)
        counts = {"found": float(len(asked)), "beyond_distance": float(len(asked))}
        values = {"found": found, "beyond_distance": found - likely}
        chance = {"found": _same(rows, (mates / others).sum())}
        matched = {"found": likely}
        counts["found_among_5"] = float(len(asked))
        values["found_among_5"] = (best <= AMONG).sum(axis=1).astype(np.float64)
        chance["found_among_5"] = _same(rows, _drawn(mates, others))
        # Of a word: how often a mate is above another candidate, by the ranks of its mates.
        right = others > mates
        summed = np.add.reduceat(from_top[:, gold], starts, axis=1)  # (rows, asked)
        below = mates * (others + 1) - summed - mates * (mates + 1) / 2
        apart = np.maximum(mates * (others - mates), 1)
        counts["auc"] = float(right.sum())
        values["auc"] = (below / apart)[:, right].sum(axis=1)
        chance["auc"] = _same(rows, right.sum() / 2)
        self._among_as_far(gold, by_distance, counts, values, chance)
        inside = np.zeros(len(self.row), bool)
        inside[both] = True
        share = np.bincount(self.bins[both], minlength=len(self.distances)) / self.distances
        counts["high_pairs"] = float(self.high)
        values["high_pairs"] = inside[top].sum(axis=1).astype(np.float64)
        chance["high_pairs"] = _same(rows, self.high * len(both) / len(self.row))
        matched["high_pairs"] = share[self.bins[top]].sum(axis=1)
        return Sums(counts, values, chance, matched)

    def _among_as_far(
        self,
        gold: Ints,
        ranks: Values,
        counts: dict[str, float],
        values: dict[str, Values],
        chance: dict[str, Values],
    ) -> None:
        """AUC among pairs equally far apart; a gold pair weighs as much as any other."""
        bins = self.bins[gold]
        mates = np.bincount(bins, minlength=len(self.distances))
        others = self.distances - mates
        told = others[bins] > 0
        kept, of = gold[told], bins[told]
        worth = 1 / others[of]
        less = ((mates[of] + 1) / 2 * worth).sum()
        counts["auc_matched"] = float(len(kept))
        values["auc_matched"] = ranks[:, kept] @ worth - less
        chance["auc_matched"] = _same(len(ranks), len(kept) / 2)


class _Groups:
    """Pairs in groups, laid out as a table (groups, most of a group)."""

    def __init__(self, group: Ints) -> None:
        number = np.bincount(group)
        order = np.argsort(group, kind="stable")
        self.index = np.zeros((len(number), int(number.max(initial=0))), np.int64)
        self.there = np.arange(self.index.shape[1]) < number[:, None]
        self.index[self.there] = order

    def spread(self, values: Values, nothing: float) -> Values:
        """Values (rows, pairs) as tables (rows, groups, most), with something where no pair is."""
        return np.where(self.there, values[:, self.index], nothing)

    def ranks(self, values: Values) -> Values:
        """The rank of each pair in its group, 1 for the smallest; equal ones share the middle."""
        ranked = middle_ranks(self.spread(values, np.inf))
        found = np.empty_like(values)
        found[:, self.index[self.there]] = ranked[:, self.there]
        return found


def middle_ranks(values: Values) -> Values:
    """Ranks from 1 along the last axis; equal values share the middle of theirs."""
    order = values.argsort(axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, -1)
    size = values.shape[-1]
    places = np.broadcast_to(np.arange(size), values.shape)
    new = np.ones(values.shape, bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ends = np.ones(values.shape, bool)
    ends[..., :-1] = new[..., 1:]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    last = np.minimum.accumulate(np.where(ends, places, size)[..., ::-1], axis=-1)[..., ::-1]
    found = np.empty(values.shape)
    np.put_along_axis(found, order, (first + last) / 2 + 1, -1)
    return found


def _drawn(mates: Ints, others: Ints) -> float:
    """How often one of a word's mates is among `AMONG` candidates drawn by chance, summed."""
    known: dict[tuple[int, int], float] = {}
    for pair in set(zip(mates.tolist(), others.tolist(), strict=True)):
        draw = min(AMONG, pair[1])
        known[pair] = 1 - comb(pair[1] - pair[0], draw) / comb(pair[1], draw)
    return sum(known[pair] for pair in zip(mates.tolist(), others.tolist(), strict=True))


def _same(rows: int, value: float) -> Values:
    return np.full(rows, float(value))
