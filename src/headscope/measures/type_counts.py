"""Which types take part in a head's high pairs, counted over the whole corpus in bounded memory.

A token type is its id. A word of one piece is counted at that piece's id too; a word of several
pieces at one of `JOINED` further places, by a hash. Should several such words meet at one place, it
bears the name of the one with more than half of the occurrences there.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headscope.compute.arrays import Array, on_device, put, zeros
from headscope.compute.compiled import exact
from headscope.compute.threads import in_parallel
from headscope.measures.base import ObservedPairs
from headscope.units import Unit

JOINED = 2**13


@dataclass(slots=True, eq=False)
class TypeCounts:
    """Ends of high pairs by type, and how often each type occurs."""

    ends: Array  # (types, layers, heads)
    occurrences: NDArray[np.int64]  # (types,)
    names: dict[int, tuple[str, int]] = field(default_factory=dict)  # joined words, with votes

    @classmethod
    def empty(cls, types: int, layers: int, heads: int, like: Array = None) -> "TypeCounts":
        """Counts of nothing; of ends, where another array is."""
        ends = zeros((types, layers, heads), like, counts=True)
        return cls(ends, np.zeros(types, np.int64))

    def vote(self, joined: dict[int, str]) -> None:
        """Let the joined words of one text vote for the names of their places."""
        for place, word in sorted(joined.items()):
            name, votes = self.names.get(place, (word, 0))
            if name == word:
                self.names[place] = (name, votes + 1)
            else:
                self.names[place] = (name, votes - 1) if votes > 1 else (word, 1)


@lru_cache(maxsize=2**16)
def _joined_place(word: str) -> int:
    return int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % JOINED


def word_places(unit: Unit, vocabulary: int) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Where each token's word is counted, and the names of the joined words."""
    return unit.remember(("word places", vocabulary), lambda: _word_places(unit, vocabulary))


def _word_places(unit: Unit, vocabulary: int) -> tuple[NDArray[np.int64], dict[int, str]]:
    tokens = unit.tokens
    pieces = np.bincount(tokens.words + 1)  # of each word, behind those of none
    single = (pieces[tokens.words + 1] == 1) | (tokens.words < 0)
    places = np.array(tokens.ids)
    joined = {}
    for i in np.flatnonzero(~single):
        word = tokens.word_texts[i].casefold()
        places[i] = vocabulary + _joined_place(word)
        joined[int(places[i])] = word
    return places, joined


def count_types(observed: ObservedPairs, tokens: TypeCounts, words: TypeCounts) -> None:
    """Add what was seen of some texts to the counts by token and by word, but not their names."""
    vocabulary = len(tokens.occurrences)
    by_word = observed.batch.remember(
        ("words", vocabulary), lambda: [word_places(unit, vocabulary)[0] for unit in observed.units]
    )
    part: Array = observed.high_pairs.taking_part  # (texts, layers, heads, tokens)
    kinds = ((tokens, [unit.tokens.ids for unit in observed.units]), (words, by_word))
    for counts, types in kinds:
        counts.occurrences += np.bincount(np.concatenate(types), minlength=len(counts.occurrences))
        numbers = np.full((len(types), part.shape[-1]), -1)
        for row, own in zip(numbers, types, strict=True):
            row[: len(own)] = own
        if on_device(part):
            _add_ends_there(part, put(numbers, part.device), counts.ends)
            continue

        def add(layer: int, counts: TypeCounts, numbers: NDArray[np.int64]) -> None:
            _add_ends(part[:, layer], numbers, counts.ends[:, layer])

        in_parallel(add, ((layer, counts, numbers) for layer in range(part.shape[1])))


def _add_ends_there(part: Tensor, numbers: Tensor, ends: Array) -> None:
    """Add ends (texts, layers, heads, tokens) on a device; whole numbers, in any order."""
    rows = part.permute(0, 3, 1, 2).flatten(0, 1).long()  # (texts · tokens, layers, heads)
    # What is padded takes part in no pair.
    ends.index_add_(0, numbers.flatten().clamp(min=0), rows)


@exact
def _add_ends(taking_part: Any, numbers: Any, ends: Any) -> None:
    """Add the ends (texts, heads, tokens) of tokens of these types to ends (types, heads)."""
    texts, heads, _ = taking_part.shape
    for b in range(texts):
        for s in range(numbers.shape[1]):
            if numbers[b, s] >= 0:
                for h in range(heads):
                    ends[numbers[b, s], h] += taking_part[b, h, s]
