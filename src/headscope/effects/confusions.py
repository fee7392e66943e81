"""Which token was answered where another was right, counted in bounded memory.

There may be as many such pairs as the square of the vocabulary. The counts kept are those of Misra
and Gries (1982): where there are too many, the same amount is taken from every count, so that the
pairs that matter stay, and what a count may fall short by is known.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

KEPT = 2**16


@dataclass(slots=True, eq=False)
class Confusions:
    """How often one token was answered for another."""

    kept: int = KEPT
    counts: Counter[tuple[int, int]] = field(default_factory=Counter)
    short: int = 0  # what a count may fall short by

    def add(self, truth: Iterable[int], given: Iterable[int]) -> None:
        """Count answers, each a true token and the one given."""
        pairs = zip(map(int, truth), map(int, given), strict=True)
        self.counts.update(pairs)
        if len(self.counts) > self.kept:
            taken = sorted(self.counts.values(), reverse=True)[self.kept]
            left = {pair: count - taken for pair, count in self.counts.items() if count > taken}
            self.counts, self.short = Counter(left), self.short + taken

    def of(self, truth: int, most: int) -> list[tuple[int, int]]:
        """The tokens given most often for one, and how often."""
        own = [(given, count) for (true, given), count in self.counts.items() if true == truth]
        return sorted(own, key=lambda one: (-one[1], one[0]))[:most]
