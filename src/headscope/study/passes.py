"""One batch going through a model: what its layers show, one after the other.

On a CPU the statistics of a layer are there before the next layer is run; `on_device` is for where
nothing waits for them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.attention.statistics import AttentionStatistics
from headscope.attention.statistics import joined as joined_attention
from headscope.capture import HeadOutputs
from headscope.compute.arrays import Array
from headscope.measures import anchor
from headscope.measures.base import ObservedAttention, ObservedPairs, Values
from headscope.observed import ObservedModel
from headscope.pairs import (
    PairStatistics,
    Peak,
    Quantile,
    Rule,
    TokenBatch,
    start_for_settings,
)
from headscope.pairs.statistics import joined
from headscope.pairs.tokens import SimilarityReading
from headscope.pairs.vector_statistics import start_vector_statistics
from headscope.study.from_vectors import TokensThere, clustered_pairs, head_vectors
from headscope.study.modes import Mode, SimilarityKind
from headscope.units import Unit, shuffled

if TYPE_CHECKING:
    from headscope.study.observe import Observer

EXAMPLES = 32  # pairs to choose examples from, where a rule does not say how many are high

Seen = tuple[ObservedAttention | None, list[ObservedPairs]]


class Pass:
    """A batch on its way through a model in one mode."""

    def __init__(
        self, observer: "Observer", model: ObservedModel, units: Sequence[Unit], mode: Mode
    ):
        self.by, self.model, self.mode = observer, model, mode
        shuffle = mode == "shuffle"
        self.units = [shuffled(unit, observer.seed) for unit in units] if shuffle else units
        types = [anchor.types_of(unit, observer.seed) for unit in self.units]
        self.batch = TokenBatch([unit.marks for unit in self.units], types)
        self.classes = [unit.tokens.classes.astype(np.int32) for unit in self.units]

    def z_of(self, outputs: HeadOutputs) -> Tensor:
        """The head vectors that are looked at in this mode (texts, heads, tokens, d)."""
        return head_vectors(outputs, self.mode, self.batch.lengths, self.by.causal)

    def kinds_of(self, reading: SimilarityReading) -> list[SimilarityKind]:
        """The kinds of similarity that are of one reading."""
        return [kind for kind in self.by.kinds if kind.reading == reading]


class LayerByLayer(Pass):
    """On a CPU, or where the high pairs of the first rule are to be listed one by one."""

    def __init__(
        self,
        observer: "Observer",
        model: ObservedModel,
        units: Sequence[Unit],
        mode: Mode,
        listed: bool,
    ):
        super().__init__(observer, model, units, mode)
        self.top = _highest(observer.rules[0], self.batch) if listed else 0
        self.attention: list[AttentionStatistics] = []
        self.pairs: dict[SimilarityKind, list[PairStatistics]] = {
            kind: [] for kind in observer.kinds
        }
        self.vectors: list[list[dict[str, Tensor]]] = []  # by layer and setting of special tokens
        self.detection: dict[SimilarityKind, list[Tensor]] = {kind: [] for kind in observer.kinds}
        self.clustered: dict[tuple[SimilarityKind, int], list[Values]] = {}  # by number of the rule
        self._waiting: list[Callable[[], None]] = []
        self._known: dict[torch.device, TokensThere] = {}

    def there(self, z: Tensor) -> TokensThere:
        """The tokens of the batch, where some vectors are."""
        if z.device not in self._known:
            by, length = self.by, z.shape[2]
            self._known[z.device] = TokensThere(
                self.units, self.batch, by.settings, by.seed, z.device, length
            )
        return self._known[z.device]

    def observe(self, outputs: HeadOutputs) -> None:
        """Start all statistics of a layer, and take those of the layer before."""
        by, name = self.by, f"{outputs.site.layer + 1}"
        z = self.z_of(outputs)
        z = z if z.is_cuda else z.contiguous()
        there = self.there(z)
        attention = None
        if by.no_focus is None:
            attention = by.attention(outputs, self.batch, self.classes, self.mode, name)
        pairs: dict[SimilarityKind, Callable[[], PairStatistics]] = {}
        for reading in by.readings:
            kinds = self.kinds_of(reading)
            settings = [kind.special for kind in kinds]
            started = start_for_settings(
                z, self.batch, by.rules, settings, reading=reading, top=self.top, layer=name
            )
            pairs |= dict(zip(kinds, started, strict=True))
        vectors = start_vector_statistics(z, there.members)
        for kind, detected in there.detection(z, by.kinds).items():
            self.detection[kind].append(detected)
        self._waiting.append(lambda: self._finish(z, attention, pairs, vectors))
        # A device works on this layer while the host looks at the one before.
        if len(self._waiting) > z.is_cuda:
            self._waiting.pop(0)()

    def _finish(
        self,
        z: Tensor,
        attention: Callable[[], AttentionStatistics] | None,
        pairs: dict[SimilarityKind, Callable[[], PairStatistics]],
        vectors: Callable[[], list[dict[str, Tensor]]],
    ) -> None:
        self.vectors.append(vectors())
        if attention is not None:
            self.attention.append(attention())
        for kind, result in pairs.items():
            self.pairs[kind].append(found := result())
            for rule, high in enumerate(found.high):
                if isinstance(high.rule, Peak):
                    clustered = clustered_pairs(z, kind, self.batch, high.threshold)
                    self.clustered.setdefault((kind, rule), []).append(clustered)

    def shown(self) -> Seen:
        """Everything, on the host."""
        for rest in self._waiting:
            rest()

        def stacked(layers: Sequence[Array]) -> Array:
            return np.stack(layers, 1)

        def on_host(layers: Sequence[Tensor]) -> Array:
            return torch.stack(list(layers), 1).cpu().numpy()

        attention = None
        if self.attention:
            found = joined_attention(self.attention, stacked)
            attention = ObservedAttention(self.units, found, self.by.causal)
        vectors = [
            {name: on_host([own[name] for own in of_setting]) for name in of_setting[0]}
            for of_setting in zip(*self.vectors, strict=True)
        ]
        by, pairs = self.by, {kind: joined(own, stacked) for kind, own in self.pairs.items()}
        by_setting = dict(zip(by.settings, vectors, strict=True))
        detection = {kind: on_host(layers) for kind, layers in self.detection.items()}
        clustered = {which: stacked(layers) for which, layers in self.clustered.items()}
        return attention, [
            ObservedPairs(
                self.units,
                self.batch,
                pairs[kind],
                rule,
                by_setting[kind.special],
                detection[kind],
                by.seed,
                clustered.get((kind, rule)),
            )
            for kind in by.kinds
            for rule in range(len(by.rules))
        ]


def _highest(rule: Rule, batch: TokenBatch) -> int:
    """How many pairs to list: all high ones, if the rule is a quantile."""
    longest = int(max(batch.lengths))
    pairs = longest * (longest - 1) // 2
    return min(rule.number(pairs) if isinstance(rule, Quantile) else EXAMPLES, pairs)
