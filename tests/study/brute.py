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
    words: list[int]  # -1 for none
    word_texts: list[str]  # casefolded
    special: list[bool]
    classes: list[int]
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

    def same_word(self, pair: tuple[int, int]) -> bool:
        i, j = pair
        return self.words[i] == self.words[j] and self.words[i] >= 0

    def same_token(self, pair: tuple[int, int]) -> bool:
        return self.ids[pair[0]] == self.ids[pair[1]]

    def unrelated(self, pair: tuple[int, int]) -> bool:
        i, j = pair
        if self.special[i] or self.special[j] or j - i <= 32:
            return False
        return not self.same_sentence(pair) and not self.same_word(pair)

    def share_of(self, question, pairs) -> float:
        return sum(question(pair) for pair in pairs) / len(pairs) if pairs else 0.0


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


def surroundings(text: Text, types: list, anchor: object) -> tuple[float, float]:
    """Share of high pairs, and of all pairs, with an end within two places of the anchor."""
    occurrences = [i for i, kind in enumerate(types) if kind == anchor]
    reached = {place + step for place in occurrences for step in (-2, -1, 0, 1, 2)}

    def near(pair: tuple[int, int]) -> bool:
        return pair[0] in reached or pair[1] in reached

    return text.share_of(near, text.high), text.share_of(near, text.pairs)


def anchor(by_head: list[list[list[Text]]], kind: str) -> dict[str, np.ndarray]:
    """Quantities (layers, heads) from texts by layer, head and number."""
    layers, heads, number = len(by_head), len(by_head[0]), len(by_head[0][0])
    found = {
        name: np.zeros((layers, heads))
        for name in ("share", "uniqueness_in_layer", "uniqueness_in_model", "around", "chance")
    }
    some = 0
    for t in range(number):
        if not by_head[0][0][t].high:
            continue
        some += 1
        leaders = {}
        for layer in range(layers):
            for head in range(heads):
                text = by_head[layer][head][t]
                types = text.ids if kind == "token" else text.word_texts
                leaders[layer, head], share = leading_type(text, types)
                around, chance = surroundings(text, types, leaders[layer, head])
                found["share"][layer, head] += share
                found["around"][layer, head] += around
                found["chance"][layer, head] += chance
        for layer, head in leaders:
            same = [place for place in leaders if leaders[place] == leaders[layer, head]]
            found["uniqueness_in_model"][layer, head] += 1 / len(same)
            found["uniqueness_in_layer"][layer, head] += 1 / sum(p[0] == layer for p in same)
    return {name: value / some for name, value in found.items()}
