"""Which types take part in a head's high pairs, counted over the whole corpus in bounded memory.

A token type is its id. A word of one piece is counted at that piece's id too; a word of several
pieces at one of `JOINED` further places, by a hash. Should several such words meet at one place, it
bears the name of the one with more than half of the occurrences there.
"""

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from headscope.measures.seen import SeenPairs
from headscope.study.units import Unit

JOINED = 2**13


@dataclass(slots=True, eq=False)
class TypeCounts:
    """Ends of high pairs by type, and how often each type occurs."""

    ends: NDArray[np.int64]  # (types, layers, heads)
    occurrences: NDArray[np.int64]  # (types,)
    names: dict[int, tuple[str, int]] = field(default_factory=dict)  # joined words, with votes

    @classmethod
    def empty(cls, types: int, layers: int, heads: int) -> "TypeCounts":
        """Counts of nothing."""
        return cls(np.zeros((types, layers, heads), np.int64), np.zeros(types, np.int64))

    def add(self, types: NDArray[np.int64], taking_part: NDArray[np.float64]) -> None:
        """Count the ends (layers, heads, tokens) of one text whose tokens have these types."""
        order = np.argsort(types, kind="stable")
        there, starts, number = np.unique(types[order], return_index=True, return_counts=True)
        ends = np.add.reduceat(taking_part[..., order], starts, axis=-1)  # (layers, heads, types)
        self.ends[there] += np.moveaxis(ends, -1, 0).astype(np.int64)
        self.occurrences[there] += number

    def vote(self, joined: dict[int, str]) -> None:
        """Let the joined words of one text vote for the names of their places."""
        for place, word in sorted(joined.items()):
            name, votes = self.names.get(place, (word, 0))
            if name == word:
                self.names[place] = (name, votes + 1)
            else:
                self.names[place] = (name, votes - 1) if votes > 1 else (word, 1)


def word_places(unit: Unit, vocabulary: int) -> tuple[NDArray[np.int64], dict[int, str]]:
    """Where each token's word is counted, and the names of the joined words."""
    tokens = unit.tokens
    words, inverse, pieces = np.unique(tokens.words, return_inverse=True, return_counts=True)
    single = (pieces[inverse] == 1) | (words[inverse] < 0)
    places = np.array(tokens.ids)
    joined = {}
    for i in np.flatnonzero(~single):
        word = tokens.word_texts[i].casefold()
        place = vocabulary + int.from_bytes(blake2b(word.encode(), digest_size=4).digest()) % JOINED
        places[i], joined[place] = place, word
    return places, joined


def count_types(seen: SeenPairs, tokens: TypeCounts, words: TypeCounts) -> None:
    """Add what was seen of some texts to the counts by token and by word, but not their names."""
    taking_part = seen.high("taking_part")
    vocabulary = len(tokens.occurrences)
    for place, unit in enumerate(seen.units):
        ends = taking_part[place, ..., : len(unit)]
        tokens.add(unit.tokens.ids, ends)
        words.add(word_places(unit, vocabulary)[0], ends)
