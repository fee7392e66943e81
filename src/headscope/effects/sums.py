"""Sums over windows of a corpus, as every replicate of the bootstrap counts its documents."""

from collections.abc import Sequence

from headscope.effects.loss import replicated
from headscope.measures.base import Values
from headscope.study.bootstrap import REPLICATES, Group
from headscope.units import Unit


class ReplicateSums:
    """Named sums (replicates + 1, …), the first entry the data's own.

    A document weighs in each replicate what it weighs there in a study of the same seed, so that
    sums of both can be put together replicate by replicate.
    """

    def __init__(self, seed: int, replicates: int = REPLICATES, group: Group = "document"):
        self.seed, self.replicates, self.group = seed, replicates, group
        self._held: dict[str, Values] = {}

    def add(self, units: Sequence[Unit], **values: Values) -> None:
        """Add what some windows gave, each (windows, …)."""
        for name, value in values.items():
            added = replicated(units, value, self.seed, self.replicates, self.group)
            self._held[name] = self._held[name] + added if name in self._held else added

    def __getitem__(self, name: str) -> Values:
        return self._held[name]
