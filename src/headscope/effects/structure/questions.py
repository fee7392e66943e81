"""What is asked of a head in a window of annotated text: which candidate is this word's mate?

Words are asked within a sentence (trees, words of one name) or within the window (mentions of one
thing, names of one kind). What depends on the window alone, not on the head, is worked out here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.effects.structure.gold import Gold
from headscope.text import Tokens

Values = NDArray[np.float64]
Ints = NDArray[np.int64]

ANY = "any arc"
LEFT_OUT = ("punct", "root", "dep")  # relations that no theory stands behind
EXACT = 8  # distances up to this are bins of their own; the next end at twice as much, and so on


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Pairs of a word asked and a candidate, and which of them are gold."""

    kind: str
    first: Ints  # (pairs,) the word that is asked, by place in the window
    second: Ints  # (pairs,) the candidate
    steps: Ints  # (pairs,) how many candidates further on it stands; negative: before
    gold: Mapping[str, Ints]  # relation → places among the pairs, ascending
    alike: Ints  # (pairs,) 1 where both are spelled alike


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of a window, and the tokens each is made of."""

    numbers: Ints  # (words,) in the document
    mean: Values  # (words, tokens): takes the mean over a word's pieces
    total: Values  # (words, tokens): takes their sum


def words_of(gold: Gold, tokens: Tokens) -> Words:
    """The words that have a piece in the window; a piece is of the word it begins in."""
    starts = np.array([first for first, _ in gold.spans])
    ends = np.array([last for _, last in gold.spans])
    owner = np.searchsorted(starts, tokens.starts, side="right") - 1
    owner[tokens.special | (owner < 0)] = -1
    owner[(owner >= 0) & (tokens.starts >= ends[owner])] = -1
    numbers = np.unique(owner[owner >= 0])
    total = (owner[None, :] == numbers[:, None]).astype(np.float64)
    return Words(numbers, total / total.sum(axis=1, keepdims=True), total)


def questions(gold: Gold, words: Words) -> list[Question]:
    """Everything that can be asked of a window: what it has no gold pair of is left out."""
    place = {int(number): here for here, number in enumerate(words.numbers)}
    sentences = np.array(gold.sentences)[words.numbers]
    everything = np.arange(len(words.numbers))
    spelled = np.array([gold.spelled(int(n)).casefold() for n in words.numbers])
    found = [
        _question("dependency", everything, sentences, _arcs(gold, place), spelled),
        _question("name", everything, sentences, {"one name": _in_names(gold, place)}, spelled),
    ]
    heads = _heads([(one.head, one.thing) for one in gold.mentions], place)
    found.append(_of_window("coreference", "mention of the same", heads, spelled))
    firsts = _heads([(one.first, one.kind) for one in gold.names], place)
    found.append(_of_window("kind of name", "name of the same kind", firsts, spelled))
    return [question for question in found if question.gold]


def _arcs(gold: Gold, place: Mapping[int, int]) -> dict[str, list[tuple[int, int]]]:
    """A word and what it hangs on, by relation."""
    arcs: dict[str, list[tuple[int, int]]] = {}
    for arc in gold.arcs:
        if arc.relation not in LEFT_OUT and arc.word in place and arc.head in place:
            for relation in (ANY, arc.relation):
                arcs.setdefault(relation, []).append((place[arc.word], place[arc.head]))
    return arcs


def _in_names(gold: Gold, place: Mapping[int, int]) -> list[tuple[int, int]]:
    """Words of one name, each with each."""
    pairs = []
    for name in gold.names:
        inside = [place[word] for word in range(name.first, name.last + 1) if word in place]
        pairs += [(one, other) for one in inside for other in inside if one != other]
    return pairs


def _heads(marked: Sequence[tuple[int, str]], place: Mapping[int, int]) -> dict[int, str]:
    """What each head in the window stands for; of several the first."""
    found: dict[int, str] = {}
    for word, thing in marked:
        if word in place:
            found.setdefault(place[word], thing)
    return dict(sorted(found.items()))


def _of_window(kind: str, relation: str, heads: Mapping[int, str], spelled: Any) -> Question:
    words = np.array(list(heads), np.int64)
    mates = [
        (one, other)
        for one, thing in heads.items()
        for other, same in heads.items()
        if thing == same and one != other
    ]
    return _question(kind, words, np.zeros(len(words), np.int64), {relation: mates}, spelled)


def _question(
    kind: str,
    words: Ints,
    groups: Ints,
    gold: Mapping[str, Sequence[tuple[int, int]]],
    spelled: Any,
) -> Question:
    """Pairs of different words of one group, ordered by the first and then the second."""
    one, other = np.nonzero((groups[:, None] == groups) & ~np.eye(len(words), dtype=bool))
    first, second = words[one], words[other]
    most = int(words.max(initial=0)) + 1
    keys = first * most + second  # ascending, as the words are
    places = {}
    for relation, pairs in gold.items():
        wanted = np.unique([a * most + b for a, b in pairs]).astype(np.int64)
        at = np.searchsorted(keys, wanted)
        inside = at < len(keys)
        inside[inside] = keys[at[inside]] == wanted[inside]  # an arc may leave the sentence
        if inside.any():
            places[relation] = at[inside]
    alike = (spelled[first] == spelled[second]).astype(np.int64)
    return Question(kind, first, second, other - one, places, alike)


def distance_bins(first: Ints, second: Ints) -> Ints:
    """A number from 0 on for every pair, equal where they are as far apart, and to one side."""
    apart = second - first
    size = np.abs(apart)
    far = EXACT + np.ceil(np.log2(np.maximum(size, EXACT) / EXACT)).astype(np.int64)
    signed = np.sign(apart) * np.where(size <= EXACT, size, far)
    _, numbers = np.unique(signed, return_inverse=True)
    found: Ints = numbers.astype(np.int64)
    return found
