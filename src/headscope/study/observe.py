"""Run a model over a batch of units and hand the measures what every layer showed.

A *mode* (see `modes`) is the real thing or one of the nulls, all through the same code: another
order of the tokens, other weights, another attention.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.attention.statistics import AttentionStatistics, start_attention_statistics
from headscope.capture import HeadOutputs
from headscope.compute.underway import done
from headscope.measures import anchor, noise, repetition
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
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vector_statistics import Members, start_vector_statistics
from headscope.pairs.vectors import read_vectors
from headscope.sample import sample_text
from headscope.study.modes import OF_VALUES, Mode, null_of
from headscope.study.nulls import other_model
from headscope.text import TokenClass
from headscope.units import Padding, Unit, read_units, shuffled

CLASSES = len(TokenClass)
EXAMPLES = 32  # pairs to choose examples from, where a rule does not say how many are high
AGREEMENT = 1e-3  # largest difference of attention mass, computed again, from the model's own


@dataclass(frozen=True, slots=True)
class SimilarityKind:
    """How similarities are read: which reading, and whether special tokens take part."""

    reading: SimilarityReading = "raw"
    special: Special = "kept"


class Observer:
    """A model, and what is to be seen of it."""

    def __init__(
        self,
        scope: ObservedModel,
        kinds: Sequence[SimilarityKind],
        rules: Sequence[Rule],
        seed: int,
        padding: Padding = Padding(),  # noqa: B008 - it is frozen
    ):
        self.scope, self.kinds, self.rules, self.seed = scope, kinds, rules, seed
        self.padding = padding
        self.settings = tuple(dict.fromkeys(kind.special for kind in kinds))
        self.causal = scope.shape.causal
        self._others: tuple[Mode, ObservedModel] | None = None
        self.no_focus = self._why_no_focus()

    def see(
        self, units: Sequence[Unit], mode: Mode, *, listed: bool = False
    ) -> tuple[ObservedAttention | None, list[ObservedPairs]]:
        """What some units show in one mode: attention, and pairs for every kind and rule.

        listed: with the high pairs of the first rule one by one.
        """
        model = self._model(mode)
        one = _Pass(self, model, units, mode, listed)
        self._run(model, one.units, one.observe)
        return one.shown()

    def cannot(self, mode: Mode) -> str | None:
        """Why a mode cannot be run; None where it can."""
        if mode in OF_VALUES and not self.scope.shape.own.weighs:
            return f"the values of {self.scope.shape.family} are out of sight"
        return None

    def _model(self, mode: Mode) -> ObservedModel:
        """The model of a mode; of other models one is kept at a time."""
        if null_of(mode) not in ("random", "permuted"):
            return self.scope
        if self._others is None or self._others[0] != mode:
            self._others = (mode, other_model(self.scope, mode, self.seed))
        return self._others[1]

    def _run(
        self, model: ObservedModel, units: Sequence[Unit], observe: Callable[[HeadOutputs], None]
    ) -> None:
        lengths = [len(unit) for unit in units]
        size = self.padding.length(max(lengths))
        token = self.scope.tokenizer.pad_token_id or 0
        ids = torch.from_numpy(_padded([u.tokens.ids for u in units], size, token))
        mask = None
        if min(lengths) < size:
            there = _padded([np.ones(n, np.int64) for n in lengths], size, 0)
            mask = torch.from_numpy(there)
        model.observe_batch(ids, mask, observe)

    def attention(
        self,
        outputs: HeadOutputs,
        batch: TokenBatch,
        classes: Sequence[NDArray[np.int32]],
        mode: Mode,
        layer: str | None = None,
    ) -> Callable[[], AttentionStatistics]:
        """Start the attention statistics of a layer."""
        if mode == "identity":
            return done(_identity_attention(classes, outputs.z.shape[1]))
        query, key = outputs.q, outputs.k
        assert query is not None
        assert key is not None
        return start_attention_statistics(
            query * 0 if mode == "uniform" else query,
            key,
            batch,
            classes,
            number_of_classes=CLASSES,
            scaling=outputs.scaling,
            causal=self.causal and outputs.mask is None,
            mask=outputs.mask,
            normaliser=outputs.normaliser if mode == "real" else None,
            layer=layer,
        )

    def _why_no_focus(self) -> str | None:
        """Why attention cannot be computed again from queries and keys; None where it can.

        Computed again for a short text, it is held against the model's own attention function.
        """
        if self.scope.shape.seam == "projection":
            return f"the queries and keys of {self.scope.shape.family} are out of sight"
        if not self.scope.shape.own.weighs:
            return f"{self.scope.shape.family} attends to other positions than those of a text"
        from headscope.corpus import Document

        window = min(self.scope.shape.window or 64, 64)
        sample = Document(sample_text()[:400], "sample")
        units = read_units(0, sample, self.scope.tokenizer, window, "en")[:1]
        batch = TokenBatch([units[0].marks])
        columns = torch.eye(CLASSES)[torch.from_numpy(units[0].tokens.classes)]
        off = [0.0]

        def observe(outputs: HeadOutputs) -> None:
            own = outputs.weigh(columns)[0].double().sum(1).cpu().numpy()  # (heads, classes)
            again = self.attention(outputs, batch, _classes(units), "real")().mass[0].sum(1)
            off.append(float(np.abs(own - again).max()) / len(units[0]))

        self._run(self.scope, units, observe)
        if max(off) <= AGREEMENT * (1 if self.scope.model.dtype == torch.float32 else 10):
            return None
        return (
            f"attention computed again from queries and keys is off by {max(off):.2g} of the mass: "
            f"{self.scope.shape.family} does more than a softmax of their products"
        )


class _Pass:
    """One batch going through a model in one mode, and what its layers have shown so far."""

    def __init__(
        self,
        observer: Observer,
        model: ObservedModel,
        units: Sequence[Unit],
        mode: Mode,
        listed: bool,
    ):
        self.by, self.model, self.mode = observer, model, mode
        shuffle = mode == "shuffle"
        self.units = [shuffled(unit, observer.seed) for unit in units] if shuffle else units
        types = [anchor.types_of(unit, observer.seed) for unit in self.units]
        self.batch = TokenBatch([unit.marks for unit in self.units], types)
        self.classes = _classes(self.units)
        self.top = _highest(observer.rules[0], self.batch) if listed else 0
        self.attention: list[AttentionStatistics] = []
        self.pairs: dict[SimilarityKind, list[PairStatistics]] = {
            kind: [] for kind in observer.kinds
        }
        self.vectors: list[list[dict[str, Tensor]]] = []  # by layer and setting of special tokens
        self.detection: dict[SimilarityKind, list[Tensor]] = {kind: [] for kind in observer.kinds}
        self.clustered: dict[tuple[SimilarityKind, int], list[Values]] = {}  # by number of the rule
        self._waiting: list[Callable[[], None]] = []
        self._known: dict[torch.device, _TokensThere] = {}

    def observe(self, outputs: HeadOutputs) -> None:
        """Start all statistics of a layer, and take those of the layer before."""
        by, name = self.by, f"{outputs.site.layer + 1}"
        z = _head_vectors(outputs, self.mode, self.batch.lengths, by.causal)
        z = z if z.is_cuda else z.contiguous()
        if z.device not in self._known:
            self._known[z.device] = _TokensThere(self.units, self.batch, by, z)
        there = self._known[z.device]
        attention = None
        if by.no_focus is None:
            attention = by.attention(outputs, self.batch, self.classes, self.mode, name)
        pairs: dict[SimilarityKind, Callable[[], PairStatistics]] = {}
        for reading in dict.fromkeys(kind.reading for kind in by.kinds):
            kinds = [kind for kind in by.kinds if kind.reading == reading]
            settings = [kind.special for kind in kinds]
            started = start_for_settings(
                z, self.batch, by.rules, settings, reading=reading, top=self.top, layer=name
            )
            pairs |= dict(zip(kinds, started, strict=True))
        vectors = start_vector_statistics(z, there.members)
        detected: dict[SimilarityKind, Tensor] = {}
        for kind in by.kinds:
            # Special tokens are in no couple; they only move the mean that is taken away.
            like = kind if kind.reading == "centred" else SimilarityKind(kind.reading)
            if like not in detected:
                detected[like] = _detected(z, like, there.kept[kind.special], there.couples)
            self.detection[kind].append(detected[like])
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
                    clustered = _clustered(z, kind, self.batch, high.threshold)
                    self.clustered.setdefault((kind, rule), []).append(clustered)

    def shown(self) -> tuple[ObservedAttention | None, list[ObservedPairs]]:
        """Everything, as the measures take it."""
        for rest in self._waiting:
            rest()
        by, attention = self.by, None
        if by.no_focus is None:
            attention = ObservedAttention(self.units, self.attention, by.causal)
        vectors = {
            special: {
                name: _on_host([layer[number][name] for layer in self.vectors])
                for name in self.vectors[0][number]
            }
            for number, special in enumerate(by.settings)
        }
        return attention, [
            ObservedPairs(
                self.units,
                self.batch,
                self.pairs[kind],
                rule,
                vectors[kind.special],
                _on_host(self.detection[kind]),
                by.seed,
                np.stack(self.clustered[kind, rule], 1) if (kind, rule) in self.clustered else None,
            )
            for kind in by.kinds
            for rule in range(len(by.rules))
        ]


class _TokensThere:
    """What the statistics of vectors need to know of the tokens of a batch, on a device."""

    def __init__(self, units: Sequence[Unit], batch: TokenBatch, by: Observer, z: Tensor):
        device = z.device
        kept = [_padded(batch.kept(special), z.shape[2], False) for special in by.settings]
        masks = [torch.from_numpy(mask).to(device) for mask in kept]
        couples = np.stack([repetition.couples(unit, by.seed) for unit in units])
        self.members = Members.of(kept, device)
        self.kept = dict(zip(by.settings, masks, strict=True))
        self.couples = torch.from_numpy(couples).to(device)


def _highest(rule: Rule, batch: TokenBatch) -> int:
    """How many pairs to list: all high ones, if the rule is a quantile."""
    longest = int(max(batch.lengths))
    pairs = longest * (longest - 1) // 2
    return min(rule.number(pairs) if isinstance(rule, Quantile) else EXAMPLES, pairs)


def _detected(z: Tensor, kind: SimilarityKind, members: Tensor, places: Tensor) -> Tensor:
    """How well similarity detects repeated words, under a reading."""
    read = z.float()
    if kind.reading != "raw":
        read = read_vectors(z, kind.reading, members[:, None].expand(z.shape[:3])).vectors
    return repetition.detection(read, places)


def _on_host(layers: Sequence[Tensor]) -> Values:
    """Numbers of every layer (texts, heads) as (texts, layers, heads)."""
    found: Values = torch.stack(list(layers), 1).cpu().numpy()
    return found


def _clustered(z: Tensor, kind: SimilarityKind, batch: TokenBatch, threshold: Values) -> Values:
    """High pairs inside clusters (texts, heads), where a rule has one threshold a head."""
    found = np.zeros(threshold.shape)
    for text, kept in enumerate(batch.kept(kind.special)):
        members = torch.from_numpy(kept)
        own = z[text, :, : len(kept)].float().cpu()  # (heads, tokens, d)
        if kind.reading != "raw":
            own = read_vectors(own, kind.reading, members.expand(own.shape[:2])).vectors
        for head, vectors in enumerate(own[:, members].numpy()):
            found[text, head] = noise.clustered_pairs(vectors, float(threshold[text, head]))
    return found


def _padded(rows: Sequence[NDArray[Any]], length: int, fill: int | bool) -> NDArray[Any]:
    return np.stack([np.pad(row, (0, length - len(row)), constant_values=fill) for row in rows])


def _head_vectors(
    outputs: HeadOutputs, mode: Mode, lengths: NDArray[np.int64], causal: bool
) -> Tensor:
    """z (texts, heads, tokens, d) as it is, or as another attention would have made it."""
    if mode not in ("uniform", "identity"):
        return outputs.z
    values = outputs.v
    assert values is not None
    values = values.repeat_interleave(outputs.z.shape[1] // values.shape[1], dim=1)
    if mode == "identity":
        return values
    place = torch.arange(values.shape[2], device=values.device)
    size = torch.as_tensor(lengths, device=values.device)
    there = (place < size[:, None])[:, None, :, None]  # (texts, 1, tokens, 1)
    summed = (values.double() * there).cumsum(2)
    if causal:
        return (summed / (place + 1)[:, None]).to(values.dtype)
    mean = summed[:, :, -1:] / size[:, None, None, None]
    return mean.to(values.dtype).expand_as(values)


def _classes(units: Sequence[Unit]) -> list[NDArray[np.int32]]:
    return [unit.tokens.classes.astype(np.int32) for unit in units]


def _identity_attention(classes: Sequence[NDArray[np.int32]], heads: int) -> AttentionStatistics:
    """The statistics of A = I."""
    texts, longest = len(classes), max(len(own) for own in classes)
    rows = np.stack([np.bincount(own, minlength=CLASSES) for own in classes])
    by_row = np.broadcast_to(rows[:, None].astype(np.float64), (texts, heads, CLASSES))
    there = _padded([np.ones(len(own)) for own in classes], longest, 0)
    return AttentionStatistics(
        rows=rows,
        mass=by_row[..., None] * np.eye(CLASSES),
        entropy=np.zeros_like(by_row),
        maximum=by_row,
        own=by_row,
        previous=np.zeros_like(by_row),
        next=np.zeros_like(by_row),
        own_sentence=by_row,
        columns=np.broadcast_to(there[:, None], (texts, heads, longest)),
    )
