"""The totals of a study as plain arrays and back, so that a run can go on where another stopped."""

from typing import Any

import numpy as np

from headscope.measures.types import TypeCounts
from headscope.study.sums import Key, Totals

Packed = dict[str, Any]

STATE = 2  # changes whenever other arrays are added up: states of before would lack them


def packed(totals: Totals) -> tuple[Packed, Packed]:
    """Named arrays, and names and sizes of type counts for JSON; only types that occurred."""
    arrays: Packed = {}
    for part, held in (("sums", totals.sums), ("profiles", totals.profiles)):
        for key, named in held.items():
            arrays |= {f"{part}/{key}/{name}": value for name, value in named.items()}
    types: Packed = {}
    for key, counts in totals.types.items():
        there = np.flatnonzero(counts.occurrences)
        arrays[f"types/{key}/there"] = there
        arrays[f"types/{key}/ends"] = counts.ends[there]
        arrays[f"types/{key}/occurrences"] = counts.occurrences[there]
        names = {str(place): said for place, said in counts.names.items()}
        types[str(key)] = {"shape": list(counts.ends.shape), "names": names}
    return arrays, types


def unpack(arrays: Packed, types: Packed, totals: Totals) -> None:
    """Put what `packed` gave into totals that are still empty."""
    for path, value in arrays.items():
        part, key, name = path.split("/")
        if part != "types":
            held = totals.sums if part == "sums" else totals.profiles
            held.setdefault(Key.parse(key), {})[name] = value
    for key, said in types.items():
        counts = TypeCounts.empty(*said["shape"])
        there = arrays[f"types/{key}/there"]
        counts.ends[there] = arrays[f"types/{key}/ends"]
        counts.occurrences[there] = arrays[f"types/{key}/occurrences"]
        counts.names = {int(place): (word, votes) for place, (word, votes) in said["names"].items()}
        totals.types[Key.parse(key)] = counts
