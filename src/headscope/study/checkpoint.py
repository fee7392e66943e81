"""The totals of a study as plain arrays and back: to go on with, and to hand to another process."""

from typing import Any

from headscope.compute.arrays import to_host
from headscope.measures.type_counts import TypeCounts
from headscope.study.sums import Arrays, Chunked, Counted, Key, Totals, Types

Packed = dict[str, Any]

STATE = 5  # changes whenever other arrays are added up: states of before would lack them


def packed(totals: Totals, chunk: Chunked) -> tuple[Packed, Packed]:
    """Named arrays, and what else there is, for JSON; only types that occurred.

    Of a chunk under way, also what its units gave so far.
    """
    arrays: Packed = {}
    for part, held in _parts(totals, chunk).items():
        for key, named in held.items():
            arrays |= {f"{part}/{key}/{name}": to_host(value) for name, value in named.items()}
    said: Packed = {"chunks": totals.chunks, "units": chunk.units}
    for part, types in (("types", totals.types), ("chunk types", chunk.types)):
        said[part] = {}
        for key, counts in types.items():
            counted = Counted.of(counts)
            names = {"there": counted.there, "occurrences": counted.occurrences}
            arrays |= {f"{part}/{key}/{name}": value for name, value in names.items()}
            arrays[f"{part}/{key}/ends"] = counted.small
            elected = {str(place): name for place, name in counts.names.items()}
            said[part][str(key)] = {"shape": list(counted.shape), "names": elected}
    return arrays, said


def unpack(arrays: Packed, said: Packed, totals: Totals, chunk: Chunked) -> None:
    """Put what `packed` gave into totals, and a chunk, that are still empty; but no types."""
    parts = _parts(totals, chunk)
    for path, value in arrays.items():
        part, key, name = path.split("/")
        if part in parts:
            parts[part].setdefault(Key.parse(key), {})[name] = value
    totals.chunks, chunk.units = said["chunks"], said["units"]


def unpack_types(arrays: Packed, said: Packed, part: str) -> Types:
    """The type counts of the totals or of the chunk."""
    return {
        Key.parse(key): Counted(
            arrays[f"{part}/{key}/there"],
            arrays[f"{part}/{key}/ends"],
            arrays[f"{part}/{key}/occurrences"],
            tuple(about["shape"]),
        )
        for key, about in said[part].items()
    }


def resume(arrays: Packed, said: Packed, totals: Totals, chunk: Chunked) -> None:
    """Go on with totals, and a chunk under way, where `packed` left them."""
    unpack(arrays, said, totals, chunk)
    totals.count(unpack_types(arrays, said, "types"))
    for key, about in said["types"].items():
        names = {int(place): (word, votes) for place, (word, votes) in about["names"].items()}
        totals.types[Key.parse(key)].names = names
    for own, counted in unpack_types(arrays, said, "chunk types").items():
        chunk.types[own] = TypeCounts.empty(*counted.shape)
        counted.add_to(chunk.types[own])


def _parts(totals: Totals, chunk: Chunked) -> dict[str, Arrays]:
    return {
        "sums": totals.sums,
        "profiles": totals.profiles,
        "sums before": totals.sums_before,
        "profiles before": totals.profiles_before,
        "chunk": chunk.arrays,
        "chunk profiles": chunk.profiles,
    }
