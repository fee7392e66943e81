"""Scores of gold pairs held against loops over words and candidates."""

from itertools import combinations, product

import numpy as np
import pytest

import headscope as hs
from headscope.effects.structure.gold import Arc, Gold, Mention, Name
from headscope.effects.structure.questions import (
    ANY,
    Question,
    distance_bins,
    questions,
    words_of,
)
from headscope.effects.structure.scores import AMONG, HIGH, Asked, Sums, middle_ranks
from headscope.text import tokenize

SENTENCES = (
    "the old keeper lit the lamp and he slept .",
    "the lamp burned for the keepers while he dreamt of Ann Lee and of Bo Lee in Oslo .",
)
WORDS = " ".join(SENTENCES).split()


def gold_text() -> Gold:
    starts = np.cumsum([0, *(len(word) + 1 for word in WORDS)])
    spans = tuple((int(a), int(a) + len(word)) for a, word in zip(starts, WORDS, strict=False))
    hangs = {
        0: (2, "det"), 1: (2, "amod"), 2: (3, "nsubj"), 4: (5, "det"), 5: (3, "obj"),
        6: (8, "cc"), 7: (8, "nsubj"), 8: (3, "conj"), 9: (3, "punct"), 10: (11, "det"),
        11: (12, "nsubj"), 14: (15, "det"), 13: (15, "case"), 15: (12, "obl"), 17: (18, "nsubj"),
    }  # fmt: skip
    return Gold(
        "keeper",
        " ".join(WORDS),
        spans,
        (0,) * 10 + (1,) * (len(WORDS) - 10),
        tuple(Arc(word, head, relation) for word, (head, relation) in hangs.items()),
        (
            Mention(0, 2, 2, "k"), Mention(7, 7, 7, "k"), Mention(17, 17, 17, "k"),
            Mention(4, 5, 5, "l"), Mention(10, 11, 11, "l"), Mention(14, 15, 15, "s"),
        ),
        (Name(20, 21, "PER"), Name(24, 25, "PER"), Name(27, 27, "LOC")),
    )  # fmt: skip


@pytest.fixture(scope="module")
def asked(tiny: hs.Scope) -> dict[str, Question]:
    gold = gold_text()
    words = words_of(gold, tokenize(gold.text, tiny.tokenizer))
    assert words.numbers.tolist() == list(range(len(WORDS)))
    return {question.kind: question for question in questions(gold, words)}


def test_questions_are_asked_within_sentences_or_among_mentions(asked: dict[str, Question]) -> None:
    tree, mentions = asked["dependency"], asked["coreference"]
    sizes = [10, len(WORDS) - 10]
    assert len(tree.first) == sum(size * (size - 1) for size in sizes)
    pairs = set(zip(tree.first[tree.gold["nsubj"]], tree.second[tree.gold["nsubj"]], strict=True))
    assert pairs == {(2, 3), (7, 8), (11, 12), (17, 18)}
    assert "punct" not in tree.gold
    assert len(tree.gold[ANY]) == 14
    heads = [2, 5, 7, 11, 15, 17]
    assert set(mentions.first.tolist()) == set(heads)
    found = mentions.gold["mention of the same"]
    mates = {frozenset(p) for p in zip(mentions.first[found], mentions.second[found], strict=True)}
    assert mates == {frozenset(p) for p in [(2, 7), (2, 17), (7, 17), (5, 11)]}
    assert mentions.steps[mentions.first == 5].tolist() == [-1, 1, 2, 3, 4]
    assert len(asked["name"].gold["one name"]) == 4
    kind = asked["kind of name"].gold["name of the same kind"]
    assert asked["kind of name"].first[kind].tolist() == [20, 24]


def test_pieces_are_brought_together_to_words(tiny: hs.Scope) -> None:
    gold = gold_text()
    tokens = tokenize(gold.text, tiny.tokenizer)
    words = words_of(gold, tokens)
    assert len(tokens) > len(WORDS)
    for place, word in enumerate(WORDS):
        pieces = np.flatnonzero(words.total[place])
        assert "".join(tokens.pieces[piece] for piece in pieces) == word
        np.testing.assert_allclose(words.mean[place, pieces], 1 / len(pieces))
    assert not words.total[:, tokens.special].any()


def brute(question: Question, values: np.ndarray, gold: np.ndarray, both: np.ndarray) -> dict:
    """Every sum of one row of values, pair by pair and word by word."""
    pairs = list(zip(question.first.tolist(), question.second.tolist(), strict=True))
    value = dict(zip(pairs, values.tolist(), strict=True))
    bins = dict(zip(pairs, distance_bins(question.first, question.second).tolist(), strict=True))
    wanted = {pairs[place] for place in gold}
    candidates = {a: [b for x, b in pairs if x == a] for a, _ in pairs}
    pick = {a: max(some, key=lambda b: value[a, b]) for a, some in candidates.items()}
    out = dict.fromkeys(
        ("found", "among", "chance", "chance_among", "likely", "auc", "aucs", "far", "fars"), 0.0
    )
    for a in {a for a, _ in wanted}:
        mates = [b for b in candidates[a] if (a, b) in wanted]
        rest = [b for b in candidates[a] if (a, b) not in wanted]
        ranks = [sum(value[a, c] > value[a, b] for c in candidates[a]) for b in mates]
        out["found"] += min(ranks) < 1
        out["among"] += min(ranks) < AMONG
        out["chance"] += len(mates) / len(candidates[a])
        draw = min(AMONG, len(candidates[a]))
        drawn = [set(some) & set(mates) for some in combinations(candidates[a], draw)]
        out["chance_among"] += np.mean([bool(one) for one in drawn])
        rate = {}
        for b in candidates[a]:
            others = [p for p in pairs if p[0] != a and bins[p] == bins[a, b]]
            hits = sum(pick[x] == y for x, y in others)
            rate[b] = hits / len(others) if others else 0
        total = sum(rate.values())
        out["likely"] += sum(rate[b] / total if total else 1 / len(rate) for b in mates)
        if rest:
            out["auc"] += np.mean([value[a, b] > value[a, c] for b, c in product(mates, rest)])
            out["aucs"] += 1
    for p in wanted:
        rest = [q for q in pairs if bins[q] == bins[p] and q not in wanted]
        if rest:
            out["far"] += np.mean([value[p] > value[q] for q in rest])
            out["fars"] += 1
    number = max(1, round(HIGH * len(pairs)))
    top = sorted(pairs, key=lambda p: -value[p])[:number]
    inside = {pairs[place] for place in both}
    out["high"] = sum(p in inside for p in top)
    out["high_likely"] = sum(
        np.mean([q in inside for q in pairs if bins[q] == bins[p]]) for p in top
    )
    return out


@pytest.mark.parametrize("kind", ["dependency", "name", "coreference", "kind of name"])
def test_sums_are_those_of_loops(asked: dict[str, Question], kind: str) -> None:
    question = asked[kind]
    random = np.random.default_rng(0)
    matrix = random.normal(size=(2, len(WORDS), len(WORDS)))
    matrix[1] += 5 * np.eye(len(WORDS), k=1)  # looks at the next word
    values = matrix[:, question.first, question.second]
    found = Asked(question).scores(values, symmetric=False)
    assert set(found) == set(question.gold)
    for relation, sums in found.items():
        gold = question.gold[relation]
        for row in range(2):
            check(sums, row, brute(question, values[row], gold, gold))


def check(sums: Sums, row: int, wanted: dict) -> None:
    got = {
        "found": sums.values["found"], "among": sums.values["found_among_5"],
        "chance": sums.chance["found"], "chance_among": sums.chance["found_among_5"],
        "likely": sums.matched["found"], "auc": sums.values["auc"],
        "far": sums.values["auc_matched"], "high": sums.values["high_pairs"],
        "high_likely": sums.matched["high_pairs"],
    }  # fmt: skip
    for name, value in got.items():
        assert value[row] == pytest.approx(wanted[name]), name
    assert sums.counts["auc"] == wanted["aucs"]
    assert sums.counts["auc_matched"] == wanted["fars"]
    beyond = sums.values["beyond_distance"][row]
    assert beyond == pytest.approx(wanted["found"] - wanted["likely"])


def test_of_a_symmetric_signal_high_pairs_count_either_way(asked: dict[str, Question]) -> None:
    question = asked["dependency"]
    matrix = np.random.default_rng(1).normal(size=(1, len(WORDS), len(WORDS)))
    matrix += matrix.swapaxes(1, 2)
    for a, b in [(3, 2), (12, 11)]:  # verbs and their subjects
        matrix[0, a, b] = matrix[0, b, a] = 50
    values = matrix[:, question.first, question.second]
    nsubj = Asked(question).scores(values, symmetric=True)["nsubj"]
    assert nsubj.counts["high_pairs"] == 4
    assert nsubj.values["high_pairs"].tolist() == [4]


def test_a_head_that_looks_one_word_ahead_finds_nothing_beyond_distance(
    asked: dict[str, Question],
) -> None:
    question = asked["dependency"]
    ahead = np.where(question.second - question.first == 1, 1.0, 0.0)[None]
    ahead = ahead - 1e-3 * np.arange(len(question.first)) / len(question.first)
    sums = Asked(question).scores(ahead, symmetric=False)["det"]
    assert sums.values["found"][0] == 3  # of four; "the old keeper" is the fourth
    assert sums.chance["found"][0] < 0.4
    assert sums.values["beyond_distance"][0] == pytest.approx(0, abs=0.2)


def test_offsets_and_equal_words_find_what_they_find(asked: dict[str, Question]) -> None:
    tree, mentions = Asked(asked["dependency"]), Asked(asked["coreference"])
    det = dict(zip(range(-2, 3), tree.steps_found(range(-2, 3))["det"], strict=True))
    assert det == {-2: 0, -1: 0, 0: 0, 1: 3, 2: 1}
    found = mentions.alike_found()["mention of the same"]
    assert found == 4  # lamp and lamp, he and he, each asked


def test_equal_values_share_the_middle_of_their_ranks() -> None:
    values = np.array([[3.0, 1, 3, 2], [0, 0, 0, 0]])
    assert middle_ranks(values).tolist() == [[3.5, 1, 3.5, 2], [2.5] * 4]


def test_distances_are_exact_up_to_eight_and_then_double() -> None:
    first = np.zeros(12, np.int64)
    second = np.array([1, 2, 8, 9, 16, 17, 32, 33, -1, -9, -16, -17])
    bins = distance_bins(first, second)
    assert bins[3] == bins[4] != bins[2]
    assert bins[5] == bins[6] != bins[7]
    assert bins[9] == bins[10] != bins[11]
    assert len(set(bins.tolist())) == 9
