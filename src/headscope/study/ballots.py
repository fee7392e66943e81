"""Votes of words for the names of their places, in an order that can be handed on.

Words of several pieces are counted at places that several may share (`measures.type_counts`), and
who holds the majority there is found by votes in the order of the corpus. A stretch of the corpus
that is added up elsewhere brings its votes as runs of the same word, few where few words share.
"""

from collections.abc import Sequence
from typing import TypeAlias

from headscope.measures.type_counts import word_places
from headscope.units import Unit

Ballots: TypeAlias = dict[int, list[tuple[str, int]]]  # place: words and how often, in order
Names: TypeAlias = dict[int, tuple[str, int]]  # of `TypeCounts`


def cast(ballots: Ballots, units: Sequence[Unit], vocabulary: int) -> None:
    """Add the votes of the units that come next."""
    for unit in units:
        for place, word in word_places(unit, vocabulary)[1].items():
            runs = ballots.setdefault(place, [])
            if runs and runs[-1][0] == word:
                runs[-1] = (word, runs[-1][1] + 1)
            else:
                runs.append((word, 1))


def elect(names: Names, ballots: Ballots) -> None:
    """Count votes, as `TypeCounts.vote` counts them one by one."""
    for place, runs in ballots.items():
        for word, votes in runs:
            name, ahead = names.get(place, (word, 0))
            if name == word:
                names[place] = (name, ahead + votes)
            elif votes < ahead:
                names[place] = (name, ahead - votes)
            else:
                names[place] = (word, votes - ahead + 1)
