"""The communities of tokens that one head makes of one text, as a person gets them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headscope.effects.potts.couplings import (
    States,
    by_size,
    communities,
    couplings,
    energy,
    strength,
)
from headscope.pairs import SimilarityReading, reference
from headscope.pairs.tokens import Floats

SHOWN = 12  # tokens of a community that its line names


@dataclass(frozen=True, eq=False)
class Communities:
    """Which community each token is in, 0 being the largest; -1 for those that take no part."""

    of: States  # (tokens,)
    energy: float  # in units of all couplings
    pieces: tuple[str, ...]  # of the tokens
    caption: str

    def __len__(self) -> int:
        return int(self.of.max(initial=-1)) + 1

    def __iter__(self) -> Iterator[list[int]]:
        """The positions of the tokens of each community, the largest first."""
        for number in range(len(self)):
            yield np.flatnonzero(self.of == number).tolist()

    @property
    def sizes(self) -> list[int]:
        """How many tokens are in each."""
        return [len(one) for one in self]

    @property
    def labels(self) -> list[str | None]:
        """A label for each token, as `reading.mark` takes them."""
        return [None if number < 0 else str(number + 1) for number in self.of.tolist()]

    def __repr__(self) -> str:
        lines = [self.caption]
        for number, positions in enumerate(self, 1):
            said = " ".join(self.pieces[position] for position in positions[:SHOWN])
            more = " …" if len(positions) > SHOWN else ""
            lines.append(f"{number:>3}  {len(positions):>5} tokens  {said}{more}")
        return "\n".join(lines)


def communities_of(
    z: Floats,
    kept: NDArray[np.bool_],
    windows: NDArray[np.int32],
    reading: SimilarityReading,
    gamma: float,
    seed: int,
) -> tuple[States, float]:
    """Communities of the tokens that are kept, and their energy; of one window each.

    Pairs across windows were read apart, so no community reaches across.
    """
    C = reference.similarity(z, reading, kept)
    of = np.full(len(kept), -1, np.int64)
    lowest = whole = 0.0
    known = 0
    for window in np.unique(windows[kept]):
        places = np.flatnonzero(kept & (windows == window))
        own = C[np.ix_(places, places)]
        J = couplings(own, gamma)
        states = communities(J, seed)
        of[places] = known + states
        known += int(states.max(initial=-1)) + 1
        lowest += energy(J, states)
        whole += strength(own)
    of[kept] = by_size(of[kept])
    return of, lowest / whole if whole > 0 else 0.0
