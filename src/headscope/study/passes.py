"""One batch going through a model: what its layers show, on a CPU or where a device has it.

On a CPU the statistics of a layer are there before the next layer is run. A device is given the
layers of a batch together, as many as `TOGETHER` allows, and nothing waits for it: all that a batch
shows stays there, and is looked at while the next batch is read.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from headscope.attention.statistics import AttentionStatistics
from headscope.attention.statistics import joined as joined_attention
from headscope.capture import HeadOutputs
from headscope.compute.arrays import Array, put
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
    start_on_device,
)
from headscope.pairs.statistics import joined
from headscope.pairs.tokens import SimilarityReading
from headscope.pairs.vector_statistics import start_vector_statistics, vector_statistics
from headscope.study.from_vectors import TokensThere, clustered_pairs, head_vectors
from headscope.study.modes import Mode, SimilarityKind
from headscope.units import Unit, shuffled

if TYPE_CHECKING:
    from headscope.study.observe import Observer

EXAMPLES = 32  # pairs to choose examples from, where a rule does not say how many are high
TOGETHER = 2**29  # bytes of float32 head vectors of the layers that a device is given at once
MOST_HEADS = 65_535  # of those layers: as many programs as a launch can have beside each other

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
        self._known: dict[torch.device, TokensThere] = {}

    def there(self, z: Tensor) -> TokensThere:
        """The tokens of the batch, where some vectors are."""
        if z.device not in self._known:
            by, length = self.by, z.shape[2]
            self._known[z.device] = TokensThere(
                self.units, self.batch, by.settings, by.seed, z.device, length
            )
        return self._known[z.device]

    def z_of(self, outputs: HeadOutputs) -> Tensor:
        """The head vectors that are looked at in this mode (texts, heads, tokens, d)."""
        return head_vectors(outputs, self.mode, self.batch.lengths, self.by.causal)

    def kinds_of(self, reading: SimilarityReading) -> list[SimilarityKind]:
        """The kinds of similarity that are of one reading."""
        return [kind for kind in self.by.kinds if kind.reading == reading]

    def observed(
        self,
        attention: AttentionStatistics | None,
        pairs: dict[SimilarityKind, PairStatistics],
        vectors: Sequence[dict[str, Array]],
        detection: dict[SimilarityKind, Array],
        clustered: dict[tuple[SimilarityKind, int], Array],
    ) -> Seen:
        """Everything, as the measures take it; all (texts, layers, heads, …)."""
        by, seen = self.by, None
        if attention is not None:
            seen = ObservedAttention(self.units, attention, by.causal)
        by_setting = dict(zip(by.settings, vectors, strict=True))
        return seen, [
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

        attention = joined_attention(self.attention, stacked) if self.attention else None
        vectors = [
            {name: on_host([own[name] for own in of_setting]) for name in of_setting[0]}
            for of_setting in zip(*self.vectors, strict=True)
        ]
        return self.observed(
            attention,
            {kind: joined(layers, stacked) for kind, layers in self.pairs.items()},
            vectors,
            {kind: on_host(layers) for kind, layers in self.detection.items()},
            {which: stacked(layers) for which, layers in self.clustered.items()},
        )


class OnDevice(Pass):
    """On a CUDA device, several layers at once; what they show stays there."""

    def __init__(
        self, observer: "Observer", model: ObservedModel, units: Sequence[Unit], mode: Mode
    ):
        super().__init__(observer, model, units, mode)
        self._layers: list[tuple[str, Tensor]] = []  # that wait for more
        self.attention: list[Callable[[], AttentionStatistics]] = []
        self.groups: list[_Group] = []

    def observe(self, outputs: HeadOutputs) -> None:
        """Start the attention statistics of a layer, and keep its vectors until there are more."""
        by, name, z = self.by, f"{outputs.site.layer + 1}", self.z_of(outputs)
        if by.no_focus is None:
            self.attention.append(
                by.attention_on_device(outputs, self.batch, self.classes, self.mode, name)
            )
        if self._layers and self._layers[0][1].device != z.device:
            self._launch()
        self._layers.append((name, z))
        number = len(self._layers) + 1
        if number * 4 * z.numel() > TOGETHER or number * z.shape[0] * z.shape[1] > MOST_HEADS:
            self._launch()

    def _launch(self) -> None:
        """Start everything about the vectors of the layers that wait."""
        names, layers = zip(*self._layers, strict=True)
        self._layers = []
        by, z = self.by, torch.cat(layers)  # (layers · texts, heads, tokens, d)
        there = self.there(z)
        pairs: dict[SimilarityKind, Callable[[], PairStatistics]] = {}
        for reading in by.readings:
            kinds = self.kinds_of(reading)
            settings = [kind.special for kind in kinds]
            started = start_on_device(
                z, self.batch, by.rules, settings, reading=reading, layers=names
            )
            pairs |= dict(zip(kinds, started, strict=True))
        vectors = vector_statistics(z, there.members.times(len(names)))
        clusters = any(isinstance(rule, Peak) for rule in by.rules)
        self.groups.append(
            _Group(
                len(names), pairs, vectors, there.detection(z, by.kinds), z if clusters else None
            )
        )

    def start(self) -> Callable[[], Seen]:
        """The batch has gone through: what is returned waits for the device, maybe elsewhere."""
        if self._layers:
            self._launch()
        return self._shown

    def _shown(self) -> Seen:
        groups, attention = self.groups, [layer() for layer in self.attention]
        found = [{kind: result() for kind, result in group.pairs.items()} for group in groups]
        clustered: dict[tuple[SimilarityKind, int], list[Array]] = {}
        for group, pairs in zip(groups, found, strict=True):
            for kind, own in pairs.items():
                for rule, high in enumerate(own.high):
                    if group.z is not None and isinstance(high.rule, Peak):
                        one = self._clustered(group.z, kind, high.threshold)
                        clustered.setdefault((kind, rule), []).append(one)
        device = groups[0].vectors[0]["norm"].device

        def together(parts: Sequence[Array]) -> Array:
            return torch.cat([part.to(device) for part in parts], 1)

        def by_text(number: int, one: Tensor) -> Tensor:
            """(layers · texts, heads) as (texts, layers, heads)."""
            apart: Tensor = one.unflatten(0, (groups[number].layers, -1))
            return apart.transpose(0, 1)

        vectors = [
            {
                name: together([by_text(n, own[name]) for n, own in enumerate(of_setting)])
                for name in of_setting[0]
            }
            for of_setting in zip(*(group.vectors for group in groups), strict=True)
        ]
        detection = {
            kind: together([by_text(n, group.detection[kind]) for n, group in enumerate(groups)])
            for kind in self.by.kinds
        }
        return self.observed(
            joined_attention(attention, lambda parts: together([p[:, None] for p in parts]))
            if attention
            else None,
            {kind: joined([pairs[kind] for pairs in found], together) for kind in self.by.kinds},
            vectors,
            detection,
            {which: together(parts) for which, parts in clustered.items()},
        )

    def _clustered(self, z: Tensor, kind: SimilarityKind, threshold: Array) -> Tensor:
        """Pairs in clusters (texts, layers, heads): counted on the host, a head at a time."""
        known, layers = threshold.cpu().numpy(), z.split(len(self.batch))
        found = [
            clustered_pairs(own, kind, self.batch, known[:, layer])
            for layer, own in enumerate(layers)
        ]
        return put(np.stack(found, 1), z.device)


class _Group:
    """Layers that a device was given together, and what is under way of them."""

    def __init__(
        self,
        layers: int,
        pairs: dict[SimilarityKind, Callable[[], PairStatistics]],
        vectors: list[dict[str, Tensor]],  # by setting, (layers · texts, heads)
        detection: dict[SimilarityKind, Tensor],  # (layers · texts, heads)
        z: Tensor | None,  # where clusters are to be found in it
    ):
        self.layers, self.pairs, self.vectors = layers, pairs, vectors
        self.detection, self.z = detection, z


def _highest(rule: Rule, batch: TokenBatch) -> int:
    """How many pairs to list: all high ones, if the rule is a quantile."""
    longest = int(max(batch.lengths))
    pairs = longest * (longest - 1) // 2
    return min(rule.number(pairs) if isinstance(rule, Quantile) else EXAMPLES, pairs)
