"""The state of a study: named arrays to which every chunk of the corpus adds.

Sums (replicates + 1, layers, heads) hold the data in their first row and the bootstrap replicates
behind it; profiles and type counts hold the data alone. What a chunk adds does not depend on where
or in which batches it was read: contributions lie on a grid (`measures.base`), and products of the
few that do not are made in two exact parts. What a device has made is added up there, and comes to
the host when a stretch ends. Chunks are added in the order of the corpus, and every
`STRETCH` of them apart from those before, so that somebody else may add up a stretch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.compute.arrays import (
    Array,
    beside,
    library,
    on_device,
    put,
    stack,
    to_host,
    whole,
    zeros,
)
from headscope.measures import range as ranges
from headscope.measures.base import AnyMeasure, ObservedAttention, ObservedPairs, of_one_shape
from headscope.measures.registry import ATTENTION_MEASURES, PAIR_MEASURES
from headscope.measures.type_counts import JOINED, TypeCounts, count_types, word_places
from headscope.study.ballots import Ballots, elect
from headscope.study.bootstrap import Group, Values, group_of, weights
from headscope.units import Unit

REAL_ONLY = ("by_distance", "by_distance_chance")  # large, and of no use beside a null
WITHOUT_GRID = ("norm", "similarity", "similarity_std")  # of `measures.size`
STRETCH = 64  # chunks
ROWS = 1024  # of type counts that are added at once


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


def key_of(
    measure: AnyMeasure, mode: str, reading: str = "", special: str = "", rule: str = ""
) -> Key:
    """Where the arrays of a measure are, looked at in this way."""
    ways = {"reading": reading, "special": special, "rule": rule}
    return Key(mode, measure.name, *(ways[way] if way in measure.keys else "" for way in ways))


Arrays = dict[Key, dict[str, Values]]


class Counted(NamedTuple):
    """Type counts without the types that did not occur."""

    there: NDArray[np.int64]  # the types that did
    ends: Array  # (there, layers, heads)
    occurrences: NDArray[np.int64]  # (there,)
    shape: tuple[int, int, int]  # of all types

    @classmethod
    def of(cls, counts: TypeCounts) -> "Counted":
        """The same counts, where they are."""
        there = np.flatnonzero(counts.occurrences)
        ends = counts.ends[beside(there, counts.ends)]
        return cls(there, ends, counts.occurrences[there], tuple(counts.ends.shape))

    @property
    def small(self) -> NDArray[Any]:
        """The ends on the host, in as few bytes as there may be."""
        ends = to_host(self.ends)
        return ends.astype(np.int32) if ends.max(initial=0) < 2**31 else ends

    def add_to(self, counts: TypeCounts) -> None:
        """Add in place, by rows that stay near to the core."""
        if on_device(counts.ends):
            rows = put(self.there, counts.ends.device)
            counts.ends.index_add_(0, rows, whole(beside(self.ends, counts.ends)))
        else:
            ends = to_host(self.ends)
            for at in range(0, len(self.there), ROWS):
                some = slice(at, at + ROWS)
                counts.ends[self.there[some]] += ends[some]
        counts.occurrences[self.there] += self.occurrences


Types = dict[Key, Counted]


@dataclass(slots=True, eq=False)
class Chunked:
    """What the units of one chunk show, in whatever batches they arrive."""

    units: int
    arrays: Arrays = field(default_factory=dict)  # (units, layers, heads)
    profiles: Arrays = field(default_factory=dict)
    types: dict[Key, TypeCounts] = field(default_factory=dict)  # without names
    counted: Types = field(default_factory=dict)  # the same, of a chunk that was read elsewhere
    pieces: dict[Any, Array] = field(default_factory=dict)  # that `arrays` are parts of

    def take(
        self,
        vocabulary: int,
        mode: str,
        places: Sequence[int],
        result: Callable[[], tuple[ObservedAttention | None, Sequence[ObservedPairs]]],
    ) -> None:
        """Wait for what a batch shows, and take it in."""
        self.see(vocabulary, mode, places, *result())

    def see(
        self,
        vocabulary: int,
        mode: str,
        places: Sequence[int],
        attention: ObservedAttention | None,
        pairs: Sequence[ObservedPairs],
    ) -> None:
        """Take in what a batch showed in one mode; its units have these places in the chunk."""
        like = attention.statistics.columns if attention is not None else pairs[0].high("count")
        at = beside(np.array(places), like)
        if attention is not None:
            for measure in ATTENTION_MEASURES:
                self._put(key_of(measure, mode), at, measure.update(attention))
        for seen in pairs:
            self._see_pairs(mode, at, seen)
            if mode == "real":
                for own in seen.apart():
                    self._see_apart(vocabulary, own)

    def _put(self, key: Key, at: Array, arrays: Mapping[str, Array]) -> None:
        """Keep the contributions of the units at some places, those of one shape in one piece."""
        held = self.arrays.setdefault(key, {})
        for names in of_one_shape(arrays):
            values = stack([arrays[name] for name in names], 0)
            which = (key, *names)
            if which not in self.pieces:
                self.pieces[which] = zeros((len(names), self.units, *values.shape[2:]), values)
                for name, own in zip(names, self.pieces[which], strict=True):
                    if name in held:  # by an earlier run, which began this chunk
                        own[:] = beside(held[name], own)
                    held[name] = own
            self.pieces[which][:, at] = values

    def _see_pairs(self, mode: str, at: Array, seen: ObservedPairs) -> None:
        """Take in the pairs of a batch under one reading and rule."""
        pairs, rule = seen.statistics, str(seen.high_pairs.rule)
        settings, texts = seen.settings or (pairs.special,), len(seen.batch)
        for measure in PAIR_MEASURES:
            if seen.rule == 0 or "rule" in measure.keys:
                found = measure.update(seen)
                if mode != "real":
                    found = {name: one for name, one in found.items() if name not in REAL_ONLY}
                for n, special in enumerate(settings):
                    own = {name: one[n * texts :][:texts] for name, one in found.items()}
                    self._put(key_of(measure, mode, pairs.reading, special, rule), at, own)

    def _see_apart(self, vocabulary: int, seen: ObservedPairs) -> None:
        """Take in what of a batch of the real thing is not kept for every unit."""
        pairs, rule = seen.statistics, str(seen.high_pairs.rule)
        key = Key("real", "range", pairs.reading, pairs.special, rule)
        _add(self.profiles, {key: ranges.profile(seen)})
        if seen.rule:
            return
        sizes, like = {"token": vocabulary, "word": vocabulary + JOINED}, seen.high_pairs.count
        _, layers, heads = like.shape
        held = [
            self.types.setdefault(
                Key("real", kind, pairs.reading, pairs.special, rule),
                TypeCounts.empty(size, layers, heads, like),
            )
            for kind, size in sizes.items()
        ]
        for counts in held:
            counts.ends = beside(counts.ends, like)
        count_types(seen, *held)


@dataclass(slots=True, eq=False)
class Totals:
    """Everything a study has added up."""

    replicates: int
    seed: int
    sums: Arrays = field(default_factory=dict)  # of the stretch under way, until they settle
    profiles: Arrays = field(default_factory=dict)
    types: dict[Key, TypeCounts] = field(default_factory=dict)
    group: Group = "document"  # what the bootstrap draws
    stretch: int | None = None  # chunks that are added apart from those before; None: all together
    chunks: int = 0  # in the stretch under way
    sums_before: Arrays = field(default_factory=dict)  # of the stretches before it
    profiles_before: Arrays = field(default_factory=dict)

    def close(self, units: Sequence[Unit], chunk: Chunked, vocabulary: int) -> None:
        """Add a whole chunk, which comes next in the corpus."""
        if self.chunks == self.stretch:
            self._end_stretch()
        groups = [group_of(unit, self.group) for unit in units]
        weight: Array = weights(groups, self.seed, self.replicates).T  # (replicates + 1, units)
        for key, arrays in chunk.arrays.items():
            weight = beside(weight, next(iter(arrays.values())))
            _add(self.sums, {key: _weighed(weight, arrays)})
        _add(self.profiles, chunk.profiles)
        self.count({key: Counted.of(one) for key, one in chunk.types.items()})
        self.count(chunk.counted)
        self.chunks += 1
        if not any(key.mode == "real" for key in chunk.arrays):
            return  # a null: its words were counted with the real thing
        words = [counts for key, counts in self.types.items() if key.measure == "word"]
        for unit in units:
            joined = word_places(unit, vocabulary)[1]
            for counts in words:
                counts.vote(joined)

    def follow(self, stretch: "Totals", counted: Types, ballots: Ballots) -> None:
        """Add a stretch that somebody else has added up, and which comes next in the corpus."""
        self._end_stretch()
        self.sums, self.profiles, self.chunks = stretch.sums, stretch.profiles, stretch.chunks
        self.count(counted)
        for key, counts in self.types.items():
            if key.measure == "word":
                elect(counts.names, ballots)

    def settle(self) -> None:
        """Put all stretches together, when the corpus has come to its end."""
        self._end_stretch()
        self.sums, self.sums_before = self.sums_before, {}
        self.profiles, self.profiles_before = self.profiles_before, {}
        for counts in self.types.values():
            counts.ends = to_host(counts.ends)

    def _end_stretch(self) -> None:
        _add(self.sums_before, on_host(self.sums))
        _add(self.profiles_before, on_host(self.profiles))
        self.sums, self.profiles, self.chunks = {}, {}, 0

    def count(self, added: Types) -> None:
        """Add type counts."""
        for key, counted in added.items():
            if key not in self.types:
                self.types[key] = TypeCounts.empty(*counted.shape, like=counted.ends)
            counted.add_to(self.types[key])


def on_host(arrays: Arrays) -> Arrays:
    """The same arrays, on the host."""
    return {
        key: {name: to_host(value) for name, value in own.items()} for key, own in arrays.items()
    }


def _add(to: Arrays, added: Arrays) -> None:
    """Add in place; what is added belongs to the sums afterwards."""
    for key, arrays in added.items():
        held = to.setdefault(key, {})
        for name, value in arrays.items():
            if name not in held:
                held[name] = value if on_device(value) else np.require(value, requirements="W")
            elif on_device(value):
                held[name] = beside(held[name], value)
                held[name] += value
            else:
                held[name] += beside(value, held[name])


def _weighed(weight: Array, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Sums over units (replicates + 1, layers, heads), the same however they are multiplied.

    On the grid every product and sum is exact.
    """
    found = {name: _in_parts(weight, arrays[name]) for name in arrays if name in WITHOUT_GRID}
    exact = {name: value for name, value in arrays.items() if name not in WITHOUT_GRID}
    for names in of_one_shape(exact):
        if on_device(weight):
            together = stack([exact[name] for name in names], 1)  # (units, names, layers, heads)
            sums = weight @ together.reshape(len(together), -1)
            parts = sums.reshape(-1, *together.shape[1:]).transpose(0, 1)
            found |= dict(zip(names, parts, strict=True))
        else:
            found |= {name: _product(weight, exact[name]) for name in names}
    return {name: found[name] for name in arrays}


def _product(weight: Array, value: Array) -> Array:
    return (weight @ value.reshape(len(value), -1)).reshape(-1, *value.shape[1:])


def _in_parts(weight: Array, value: Array) -> Array:
    """Sums of what has no grid, split in two parts that have one.

    It is relative to a head's largest value in the chunk, since a product of matrices rounds by
    their shape, by the number of threads and by the processor.
    """
    maths = library(value)
    most = maths.amax(abs(value), 0).clip(min=1e-200)
    fraction = maths.frexp(most)[0]  # from a half on, below one
    # The next power of two: exact in any library, which a logarithm is not.
    largest = maths.where(fraction == 0.5, most, most / fraction)
    coarse, fine = largest * 2.0**-26, largest * 2.0**-60
    upper = maths.round(value / coarse) * coarse
    lower = maths.round((value - upper) / fine) * fine
    return _product(weight, upper) + _product(weight, lower)
