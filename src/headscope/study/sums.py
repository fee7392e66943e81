"""The state of a study: named arrays to which every chunk of the corpus adds.

Sums (replicates + 1, layers, heads) hold the data in their first row and the bootstrap replicates
behind it; profiles and type counts hold the data alone. States of different parts of a corpus merge
by adding their arrays. Contributions lie on a grid (`measures.seen`), so their sums are exact and
the same in any order; only lengths and similarities, which have no unit to make a grid of, are
rounded, and the units of a chunk are therefore added in the order of the corpus.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from headscope.measures import anchor, focus, noise, range, repetition, sentence, size
from headscope.measures.seen import Measure, SeenAttention, SeenPairs
from headscope.measures.types import JOINED, TypeCounts, count_types, word_places
from headscope.study.bootstrap import Values, weights
from headscope.study.units import Unit

PAIR_MEASURES = {
    name: cast(Measure, module)
    for name, module in {
        "size": size,
        "range": range,
        "sentence": sentence,
        "repetition": repetition,
        "anchor": anchor,
        "noise": noise,
    }.items()
}
MEASURES = {"focus": cast(Measure, focus), **PAIR_MEASURES}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """Whose arrays these are. A measure that needs no similarity, or no rule, leaves them empty."""

    mode: str
    measure: str
    reading: str = ""
    special: str = ""
    rule: str = ""

    def __str__(self) -> str:
        return "|".join((self.mode, self.measure, self.reading, self.special, self.rule))

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Read what `str` wrote."""
        return cls(*text.split("|"))


Arrays = dict[Key, dict[str, Values]]


@dataclass(slots=True, eq=False)
class Chunked:
    """Contributions of the units of one chunk (units, layers, heads), in any order of arrival."""

    units: int
    arrays: Arrays = field(default_factory=dict)

    def put(self, key: Key, places: Sequence[int], arrays: dict[str, Values]) -> None:
        """Keep the contributions of the units at some places."""
        held = self.arrays.setdefault(key, {})
        for name, value in arrays.items():
            if name not in held:
                held[name] = np.zeros((self.units, *value.shape[1:]))
            held[name][list(places)] = value


@dataclass(slots=True, eq=False)
class Totals:
    """Everything a study has added up."""

    replicates: int
    seed: int
    sums: Arrays = field(default_factory=dict)
    profiles: Arrays = field(default_factory=dict)
    types: dict[Key, TypeCounts] = field(default_factory=dict)

    def see(
        self,
        to: Chunked,
        vocabulary: int,
        mode: str,
        places: Sequence[int],
        attention: SeenAttention | None,
        pairs: Sequence[SeenPairs],
    ) -> None:
        """Take in what a batch showed in one mode; its units have these places in the chunk."""
        if attention is not None:
            self._see_attention(mode, places, attention, to)
        for seen in pairs:
            self._see_pairs(mode, places, seen, to)
            if mode == "real" and seen.rule == 0:
                self._see_types(vocabulary, seen)

    def _see_attention(
        self, mode: str, places: Sequence[int], seen: SeenAttention, to: Chunked
    ) -> None:
        """Take in the attention of a batch."""
        to.put(Key(mode, "focus"), places, MEASURES["focus"].update(seen))

    def _see_pairs(self, mode: str, places: Sequence[int], seen: SeenPairs, to: Chunked) -> None:
        """Take in the pairs of a batch under one reading and rule."""
        first = seen.layers[0]
        reading, special, rule = first.reading, first.special, str(first.high[seen.rule].rule)
        for name, measure in PAIR_MEASURES.items():
            if name == "size":
                if seen.rule == 0:
                    to.put(Key(mode, name, reading, special), places, measure.update(seen))
            else:
                to.put(Key(mode, name, reading, special, rule), places, measure.update(seen))
        key = Key(mode, "range", reading, special, rule)
        held = self.profiles.setdefault(key, {})
        for name, added in range.profile(seen).items():
            held[name] = held[name] + added if name in held else added

    def _see_types(self, vocabulary: int, seen: SeenPairs) -> None:
        """Count the types of a batch of the real thing."""
        first = seen.layers[0]
        rule = str(first.high[seen.rule].rule)
        layers, heads = len(seen.layers), first.mean.shape[1]
        sizes = {"token": vocabulary, "word": vocabulary + JOINED}
        held = [
            self.types.setdefault(
                Key("real", kind, first.reading, first.special, rule),
                TypeCounts.empty(size, layers, heads),
            )
            for kind, size in sizes.items()
        ]
        count_types(seen, *held)

    def close(self, units: Sequence[Unit], chunk: Chunked, vocabulary: int) -> None:
        """Add a whole chunk, its units in the order of the corpus."""
        by_document = weights([unit.identity for unit in units], self.seed, self.replicates)
        for key, arrays in chunk.arrays.items():
            held = self.sums.setdefault(key, {})
            for name, value in arrays.items():
                flat = value.reshape(len(units), -1)
                added = (by_document.T @ flat).reshape(-1, *value.shape[1:])
                held[name] = held[name] + added if name in held else added
        words = [counts for key, counts in self.types.items() if key.measure == "word"]
        for unit in units:
            joined = word_places(unit, vocabulary)[1]
            for counts in words:
                counts.vote(joined)

    def merged(self, other: "Totals") -> "Totals":
        """The state of two parts of a corpus together."""
        return Totals(
            self.replicates,
            self.seed,
            _added(self.sums, other.sums),
            _added(self.profiles, other.profiles),
            {
                key: _counted(self.types.get(key), other.types.get(key))
                for key in self.types | other.types
            },
        )


def _added(one: Arrays, other: Arrays) -> Arrays:
    return {
        key: {
            name: one.get(key, {}).get(name, np.zeros(()))
            + other.get(key, {}).get(name, np.zeros(()))
            for name in one.get(key, {}) | other.get(key, {})
        }
        for key in one | other
    }


def _counted(one: TypeCounts | None, other: TypeCounts | None) -> TypeCounts:
    if one is None or other is None:
        found = one or other
        assert found is not None
        return found
    both = TypeCounts(one.ends + other.ends, one.occurrences + other.occurrences, dict(one.names))
    for place, (word, votes) in other.names.items():
        name, own = both.names.get(place, (word, 0))
        if name == word:
            both.names[place] = (word, own + votes)
        else:
            both.names[place] = (name, own - votes) if own >= votes else (word, votes - own)
    return both
