"""One batch going through a model on a CUDA device: several layers, and all settings, at once.

The device is given the layers of a batch together, as many as its memory allows, and nothing waits
for it: all that a batch shows stays there, and is looked at while the next batch is read.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from headscope.attention.statistics import AttentionStatistics
from headscope.attention.statistics import joined as joined_attention
from headscope.capture import HeadOutputs
from headscope.compute.arrays import Array, put
from headscope.compute.underway import done
from headscope.measures import repetition
from headscope.measures.base import ObservedAttention, ObservedPairs
from headscope.observed import ObservedModel
from headscope.pairs import PairStatistics, Peak, start_on_device
from headscope.pairs.cuda import MOST_HEADS, VECTORS, bytes_of
from headscope.pairs.statistics import joined
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vector_statistics import Members, vector_statistics
from headscope.pairs.vectors import read_vectors
from headscope.study.from_vectors import clustered_pairs
from headscope.study.modes import Mode, SimilarityKind
from headscope.study.passes import Pass, Seen
from headscope.units import Unit, padded

if TYPE_CHECKING:
    from headscope.study.observe import Observer


class OnDevice(Pass):
    """A batch on its way through a model on a device, in one mode."""

    def __init__(
        self, observer: "Observer", model: ObservedModel, units: Sequence[Unit], mode: Mode
    ):
        super().__init__(observer, model, units, mode)
        self._layers: list[tuple[str, Tensor]] = []  # that wait for more
        self._tokens: dict[torch.device, _Tokens] = {}
        self.attention: list[Any] = []  # what `Observer.attention` gives
        self.groups: list[_Group] = []

    def observe(self, outputs: HeadOutputs) -> None:
        """Start the attention statistics of a layer, and keep its vectors until there are more."""
        by, name, z = self.by, f"{outputs.site.layer + 1}", self.z_of(outputs)
        if by.no_focus is None:
            self.attention.append(by.attention(outputs, self.batch, self.classes, self.mode, name))
        if self._layers and self._layers[0][1].device != z.device:
            self._launch()
        self._layers.append((name, z))
        # Centred vectors are in float32 and once for each setting, others are read as they are.
        rows, apart = len(z) * len(by.settings), "centred" in by.readings
        bytes_ = z.numel() * (4 * len(by.settings) if apart else z.element_size())
        number = len(self._layers) + 1
        room = bytes_of(VECTORS, by.memory)
        if number * bytes_ > room or number * rows * z.shape[1] > MOST_HEADS:
            self._launch()

    def _launch(self) -> None:
        """Start everything about the vectors of the layers that wait."""
        names, layers = zip(*self._layers, strict=True)
        self._layers = []
        # (layers · texts, heads, tokens, d), in the order in which a model has them in memory
        by, z = self.by, torch.cat([own.transpose(1, 2) for own in layers]).transpose(1, 2)
        if z.device not in self._tokens:
            self._tokens[z.device] = _Tokens(self, z)
        tokens = self._tokens[z.device]
        pairs, detection = {}, {}
        for reading in by.readings:
            settings = self.settings_of(reading)
            pairs[reading] = start_on_device(
                z, self.batch, by.rules, settings, reading=reading, layers=names, memory=by.memory
            )
            detection[reading] = tokens.detection(z, reading, settings)
        clusters = any(isinstance(rule, Peak) for rule in by.rules)
        self.groups.append(_Group(pairs, tokens.vectors(z), detection, layers if clusters else ()))

    def settings_of(self, reading: SimilarityReading) -> tuple[Special, ...]:
        """The settings of special tokens that one reading is looked at under."""
        return tuple(kind.special for kind in self.kinds_of(reading))

    def start(self) -> Callable[[], Seen]:
        """The batch has gone through: what is returned waits for the device, maybe elsewhere."""
        if self._layers:
            self._launch()
        attention = self._start_attention() if self.attention else done(None)
        return lambda: self._shown(attention())

    def _start_attention(self) -> Callable[[], AttentionStatistics]:
        """The attention statistics of all layers."""
        if self.mode != "identity":
            from headscope.attention.cuda.backend import left_on_device

            return left_on_device(self.attention)
        device = next(iter(self._tokens))
        own = [layer() for layer in self.attention]
        return done(joined_attention(own, lambda found: put(np.stack(found, 1), device)))

    def _shown(self, attention: AttentionStatistics | None) -> Seen:
        by, groups = self.by, self.groups
        found = [{name: result() for name, result in group.pairs.items()} for group in groups]
        device = next(iter(self._tokens))

        def together(parts: Sequence[Array]) -> Array:
            return torch.cat([part.to(device) for part in parts], 1) if parts[1:] else parts[0]

        vectors = {
            name: together([group.vectors[name] for group in groups]) for name in groups[0].vectors
        }  # (settings · texts, layers, heads)
        seen = []
        for reading in by.readings:
            settings = self.settings_of(reading)
            pairs = joined([own[reading] for own in found], together)
            detection = together([group.detection[reading] for group in groups])
            own_vectors = {name: self._under(settings, all_) for name, all_ in vectors.items()}
            for rule, high in enumerate(pairs.high):
                clustered = None
                if isinstance(high.rule, Peak):
                    clustered = self._clustered(reading, settings, high.threshold)
                seen.append(
                    ObservedPairs(
                        self.units,
                        self.batch,
                        pairs,
                        rule,
                        own_vectors,
                        detection,
                        by.seed,
                        clustered,
                        settings,
                    )
                )
        if attention is None:
            return None, seen
        return ObservedAttention(self.units, attention, by.causal), seen

    def _under(self, settings: tuple[Special, ...], values: Tensor) -> Tensor:
        """Those of all settings (settings · texts, …) that are of some."""
        if settings == self.by.settings:
            return values
        own: Tensor = values.unflatten(0, (len(self.by.settings), -1))
        return own[[self.by.settings.index(special) for special in settings]].flatten(0, 1)

    def _clustered(
        self, reading: SimilarityReading, settings: tuple[Special, ...], threshold: Array
    ) -> Tensor:
        """Pairs in clusters (settings · texts, layers, heads), counted on the host."""
        layers = [z for group in self.groups for z in group.z]
        known = threshold.unflatten(0, (len(settings), -1)).cpu().numpy()
        found = [
            [
                clustered_pairs(z, SimilarityKind(reading, special), self.batch, own[:, layer])
                for layer, z in enumerate(layers)
            ]
            for special, own in zip(settings, known, strict=True)
        ]  # (settings, layers, texts, heads)
        return put(np.stack(found).swapaxes(1, 2), threshold.device).flatten(0, 1)


class _Group:
    """Layers that a device was given together, and what is under way of them."""

    def __init__(
        self,
        pairs: dict[SimilarityReading, Callable[[], PairStatistics]],
        vectors: dict[str, Tensor],  # (all settings · texts, layers, heads)
        detection: dict[SimilarityReading, Tensor],  # (its settings · texts, layers, heads)
        z: Sequence[Tensor],  # of each layer, where clusters are to be found
    ):
        self.pairs, self.vectors, self.detection, self.z = pairs, vectors, detection, z


class _Tokens:
    """What the statistics of vectors need to know of the tokens of a batch, on a device."""

    def __init__(self, batch: Pass, z: Tensor):
        by, size = batch.by, int(max(batch.batch.lengths))
        kept = [padded(batch.batch.kept(special), size, False) for special in by.settings]
        self.settings, self.number = by.settings, len(batch.units)
        self.kept = put(np.stack(kept).astype(np.int32), z.device)  # (settings, texts, tokens)
        self.couples = put(repetition.couples(batch.units, by.seed), z.device)

    def vectors(self, z: Tensor) -> dict[str, Tensor]:
        """Their sizes and rank (settings · texts, layers, heads)."""
        from headscope.pairs.cuda import head_vectors

        if head_vectors.can_do(z):
            return head_vectors.vector_statistics(z, self.kept)
        longer = [(0, 0), (0, z.shape[2] - self.kept.shape[2])]
        kept = [np.pad(own > 0, longer) for own in self.kept.cpu().numpy()]
        found = vector_statistics(z, Members.of(kept, z.device).times(len(z) // self.number))
        return {
            name: torch.stack([own[name] for own in found])
            .unflatten(1, (-1, self.number))
            .transpose(1, 2)
            .flatten(0, 1)
            for name in found[0]
        }

    def detection(
        self, z: Tensor, reading: SimilarityReading, settings: tuple[Special, ...]
    ) -> Tensor:
        """How well similarity detects repeated words (settings · texts, layers, heads)."""
        from headscope.pairs.cuda.head_vectors import wins_of_repeated

        z = z[:, :, : self.kept.shape[2]]
        layers, found = len(z) // self.number, []
        # Special tokens are in no couple; they only move the mean that is taken away.
        for special in settings if reading == "centred" else settings[:1]:
            vectors = z
            if reading == "centred":
                own = self.kept[self.settings.index(special)] > 0
                members = own.repeat(layers, 1)[:, None].expand(z.shape[:3])
                vectors = read_vectors(z, reading, members).vectors
            wins = wins_of_repeated(vectors, self.couples, cosine=reading == "cosine")
            by_layer = wins.unflatten(0, (layers, -1)).transpose(0, 1)
            found.append(repetition.shares(by_layer, self.couples))
        return torch.cat(found * (len(settings) // len(found)))
