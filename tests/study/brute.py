"""Every measure once more, with double loops over a dense matrix and no shared code.

A text of one head is a similarity matrix C, an attention matrix A, and its tokens.
"""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass
class Text:
    """One head's view of one text."""

    z: np.ndarray  # (S, d)
    A: np.ndarray  # (S, S)
    sentences: list[int]
    ids: list[int]
    word_numbers: list[int]  # of the occurrence in the text; -1 for none
    word_texts: list[str]  # casefolded
    special: list[bool]
    classes: list[int]
    word_classes: list[int]
    share: float  # of the quantile rule
    keep_special: bool

    def __post_init__(self) -> None:
        self.C = self.z @ self.z.T
        size = len(self.ids)
        self.pairs = [
            (i, j)
            for i in range(size)
            for j in range(i + 1, size)
            if self.keep_special or not (self.special[i] or self.special[j])
        ]
        number = max(1, math.ceil(round(self.share * len(self.pairs), 9)))
        ranked = sorted(self.pairs, key=lambda pair: -self.C[pair])
        self.high = ranked[: min(number, len(self.pairs))]

    def same_sentence(self, pair: tuple[int, int]) -> bool:
        i, j = pair
        return self.sentences[i] == self.sentences[j] and self.sentences[i] >= 0

    def one_word(self, pair: tuple[int, int]) -> bool:
        i, j = pair
        some = self.word_numbers[i] >= 0 and self.word_numbers[j] >= 0
        return some and self.word_texts[i] == self.word_texts[j]

    def same_word(self, pair: tuple[int, int]) -> bool:
        return self.one_word(pair) and self.word_numbers[pair[0]] != self.word_numbers[pair[1]]

    def repeats(self, word_class: int):
        """Whether a pair repeats a word of this class; the later class of two ends counts."""
        return lambda pair: (
            self.same_word(pair) and max(self.word_classes[end] for end in pair) == word_class
        )

    def same_token(self, pair: tuple[int, int]) -> bool:
        return self.ids[pair[0]] == self.ids[pair[1]]

    def unrelated(self, pair: tuple[int, int]) -> bool:
        i, j = pair
        if self.special[i] or self.special[j] or j - i <= 32:
            return False
        return not self.same_sentence(pair) and not self.one_word(pair)

    def share_of(self, question, pairs) -> float:
        return sum(question(pair) for pair in pairs) / len(pairs) if pairs else 0.0


# The function words of the texts under test, by hand.
FUNCTION = {
    *("the", "he", "and", "was", "a", "another", "which", "nobody", "until", "down", "nothing"),
    *("except", "one", "of", "would", "before", "in", "it", "where", "here"),
}


def words(text: str) -> list[tuple[int, int]]:
    """Where words stand: letters and digits, with an apostrophe between; else a character alone."""
    found, at = [], 0
    while at < len(text):
        end = at + 1
        if text[at].isalnum():
            while end < len(text) and (
                text[end].isalnum()
                or (text[end] in "'’" and end + 1 < len(text) and text[end + 1].isalnum())
            ):
                end += 1
        if not text[at].isspace():
            found.append((at, end))
        at = end
    return found


def word_numbers(text: str, starts: list[int], special: list[bool]) -> list[int]:
    """For each token the number of the word that its first character is in; -1 for none."""
    spans = words(text)
    return [
        -1 if apart else next(n for n, (first, end) in enumerate(spans) if first <= start < end)
        for start, apart in zip(starts, special, strict=True)
    ]


def word_class(word: str) -> int:
    """Content, function or punctuation, as 0, 1, 2."""
    if not any(character.isalnum() for character in word):
        return 2
    return int(word.casefold() in FUNCTION)


def _over_high(texts, question) -> tuple[float, float]:
    """Share among the high pairs of all texts, and among as many pairs drawn from each text."""
    high = sum(len(t.high) for t in texts)
    found = sum(sum(question(t)(pair) for pair in t.high) for t in texts)
    chance = sum(len(t.high) * t.share_of(question(t), t.pairs) for t in texts)
    return found / high, chance / high


def sentence(texts) -> dict[str, tuple[float, float]]:
    matched = 0.0
    for text in texts:
        alike: dict[int, list[tuple[int, int]]] = {}
        for i, j in text.pairs:
            alike.setdefault(j - i, []).append((i, j))
        inside = {apart: text.share_of(text.same_sentence, pairs) for apart, pairs in alike.items()}
        matched += sum(inside[j - i] for i, j in text.high)
    value, chance = _over_high(texts, lambda t: t.same_sentence)
    high = sum(len(t.high) for t in texts)
    return {
        "same_sentence": (value, chance),
        "same_sentence_matched": (value, matched / high),
    }


def repetition(texts) -> dict[str, tuple[float, float]]:
    return {
        "same_token": _over_high(texts, lambda t: t.same_token),
        "same_word": _over_high(texts, lambda t: t.same_word),
        "same_content_word": _over_high(texts, lambda t: t.repeats(0)),
        "same_function_word": _over_high(texts, lambda t: t.repeats(1)),
        "same_punctuation": _over_high(texts, lambda t: t.repeats(2)),
        "same_unknown_or_markup": _over_high(texts, lambda t: t.repeats(3)),
    }


def place_of(distance: int) -> float:
    """Where a distance stands: itself up to 64, then the middle of a quarter of an octave."""
    edges = [64, 76, 90, 107, 128, 152, 181]
    if distance <= 64:
        return distance
    return next((a + 1 + b) / 2 for a, b in pairwise(edges) if distance <= b)


def distance(texts) -> dict[str, tuple[float, float]]:
    return {
        "mean_distance": _over_high(texts, lambda t: lambda pair: place_of(pair[1] - pair[0])),
        "beyond_64": _over_high(texts, lambda t: lambda pair: pair[1] - pair[0] > 64),
        "beyond_128": _over_high(texts, lambda t: lambda pair: pair[1] - pair[0] > 128),
        "median_distance": (
            middle_of([(j - i, 1.0) for t in texts for i, j in t.high]),
            middle_of(
                [(j - i, len(t.high) / len(t.pairs)) for t in texts for i, j in t.pairs if t.high]
            ),
        ),
    }


def middle_of(weighted: list[tuple[int, float]]) -> float:
    """The place of the distance below which half of the weight lies."""
    half, reached = sum(weight for _, weight in weighted) / 2, 0.0
    for far, weight in sorted(weighted):
        reached += weight
        if reached >= half - 1e-9:
            return place_of(far)
    return math.nan


def noise(texts) -> dict[str, tuple[float, float | None]]:
    ratios = []
    for text in texts:
        far = [text.C[pair] for pair in text.pairs if text.unrelated(pair)]
        near = [text.C[pair] for pair in text.pairs if not text.unrelated(pair)]
        if len(far) > 1 and near:
            ratios.append((np.mean(near) - np.mean(far)) / np.std(far))
    return {
        "unrelated": _over_high(texts, lambda t: t.unrelated),
        "snr": (float(np.mean(ratios)) if ratios else math.nan, None),
    }


def selection(texts) -> dict[str, tuple[float, float | None]]:
    unresolved = large = high = 0
    chance = 0.0
    for text in texts:
        if not text.high:
            continue
        lengths = [math.sqrt(sum(float(x) ** 2 for x in row)) for row in text.z]
        sure = [4 * 2**-23 * lengths[i] * lengths[j] for i, j in text.high]
        least = min(text.C[pair] for pair in text.high)
        near = sum(text.C[p] - least <= s for p, s in zip(text.high, sure, strict=True))
        by_size = sorted(text.pairs, key=lambda pair: -lengths[pair[0]] * lengths[pair[1]])
        unresolved += near - 1
        large += len(set(by_size[: len(text.high)]) & set(text.high))
        high += len(text.high)
        chance += len(text.high) ** 2 / len(text.pairs)
    return {
        "unresolved": (unresolved / high, None),
        "explained_by_size": (large / high, chance / high),
    }


def size(texts) -> dict[str, tuple[float, None]]:
    rows: dict[str, list[float]] = {}
    for text in texts:
        kept = [i for i in range(len(text.ids)) if text.keep_special or not text.special[i]]
        Z = np.array([text.z[i] for i in kept])
        lengths = np.array([math.sqrt(sum(x * x for x in row)) for row in Z])
        energy = np.linalg.svd(Z, compute_uv=False) ** 2
        energy = energy[energy > 0] / energy.sum()
        found = {
            "norm": lengths.mean(),
            "norm_spread": lengths.std() / lengths.mean(),
            "common_mode": np.linalg.norm(Z.mean(axis=0)) / lengths.mean(),
            "effective_rank": math.exp(-sum(p * math.log(p) for p in energy)),
        }
        values = [text.C[pair] for pair in text.pairs]
        if values:
            mean, std = float(np.mean(values)), float(np.std(values))
            found |= {"similarity": mean, "similarity_std": std}
            found["contrast"] = std / math.hypot(mean, std) if std else 0.0
        for name, value in found.items():
            rows.setdefault(name, []).append(float(value))
    return {name: (float(np.mean(values)), None) for name, values in rows.items()}


def focus(texts) -> dict[str, tuple[float, float | None]]:
    names = ("first_token", "separator", "sentence_end", "comma", "other_punctuation", "word")
    rows = sum(len(t.ids) for t in texts)
    sums: Counter[str] = Counter()
    chance: Counter[str] = Counter()
    columns, even, sinks = [], [], []
    for text in texts:
        n = len(text.ids)
        for i in range(n):
            row = text.A[i]
            sums["entropy"] -= sum(a * math.log(a) for a in row if a > 0)
            chance["entropy"] += math.log(n)
            sums["confidence"] += max(row)
            chance["confidence"] += 1 / n
            for j in range(n):
                targets = [names[text.classes[j]]]
                targets += ["previous_token"] * (j == i - 1) + ["next_token"] * (j == i + 1)
                targets += ["own_token"] * (j == i)
                inside = text.sentences[i] == text.sentences[j] and text.sentences[i] >= 0
                targets += ["own_sentence"] * inside
                for target in targets:
                    sums[target] += row[j]
                    chance[target] += 1 / n
        received = [sum(text.A[i][j] for i in range(n)) / n for j in range(n)]
        columns.append(math.exp(-sum(a * math.log(a) for a in received if a > 0)))
        even.append(float(n))
        sinks.append(float(max(received) > 0.3))
    found = {name: (sums[name] / rows, chance[name] / rows) for name in chance}
    found["separators"] = (
        (sums["separator"] + sums["sentence_end"]) / rows,
        (chance["separator"] + chance["sentence_end"]) / rows,
    )
    found["attended_columns"] = (float(np.mean(columns)), float(np.mean(even)))
    found["sink"] = (float(np.mean(sinks)), None)
    return found


def leading_type(text: Text, types: list) -> tuple[object, float]:
    """The type with most ends of high pairs, of equals the first in the text, and its share."""
    counts = Counter(types[end] for pair in text.high for end in pair)
    most = max(counts.values())
    leader = next(kind for kind in types if counts[kind] == most)
    return leader, most / (2 * len(text.high))


def surroundings(text: Text, types: list, anchor: object) -> int:
    """High pairs with an end within two places of the anchor."""
    occurrences = [i for i, kind in enumerate(types) if kind == anchor]
    reached = {place + step for place in occurrences for step in (-2, -1, 0, 1, 2)}
    return sum(i in reached or j in reached for i, j in text.high)


def anchor(by_head: list[list[list[Text]]], kind: str, orders: list) -> dict[str, np.ndarray]:
    """Quantities (layers, heads) from texts by layer, head and number.

    orders: for each text the order in which its tokens stand, or several, to be averaged over.
    """
    layers, heads, number = len(by_head), len(by_head[0]), len(by_head[0][0])
    names = ("share", "uniqueness_in_layer", "uniqueness_in_model", "surroundings")
    found = {name: np.zeros((layers, heads)) for name in names}
    pairs = 0
    for t in range(number):
        high = len(by_head[0][0][t].high)  # the same for every head
        pairs += high
        if not high:
            continue
        for order in orders[t]:
            leaders = {}
            weight = high / len(orders[t])
            for layer, head in np.ndindex(layers, heads):
                text = by_head[layer][head][t]
                own = text.ids if kind == "token" else text.word_texts
                types = [own[place] for place in order]
                leaders[layer, head], share = leading_type(text, types)
                around = surroundings(text, types, leaders[layer, head])
                found["share"][layer, head] += weight * share
                found["surroundings"][layer, head] += weight * around / high
            for layer, head in leaders:
                same = [place for place in leaders if leaders[place] == leaders[layer, head]]
                alike = sum(place[0] == layer for place in same)
                found["uniqueness_in_model"][layer, head] += weight / len(same)
                found["uniqueness_in_layer"][layer, head] += weight / alike
    return {name: value / pairs for name, value in found.items()}
