"""Run a model over a batch of units and hand the measures what every layer showed.

A *mode* is the real thing or one of the nulls, all through the same code: `shuffle` reads the
tokens in random order, `random` is the same architecture with random weights, `uniform` replaces
attention by an even one (z = mean v), `identity` by none at all (z = v).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs, capture, silence
from headscope.errors import CannotObserve
from headscope.measures import anchor, noise, repetition, size
from headscope.measures.seen import SeenAttention, SeenPairs, Values
from headscope.models import LoadedModel, load_model
from headscope.pairs import (
    PairStatistics,
    Peak,
    Quantile,
    Rule,
    TokenBatch,
    start_for_settings,
)
from headscope.pairs.attention import AttentionStatistics, start_attention_statistics
from headscope.pairs.later import done
from headscope.pairs.tokens import Reading, Special
from headscope.pairs.vectors import read_vectors
from headscope.sample import sample_text
from headscope.scope import Scope
from headscope.study.units import Unit, read_units, shuffled
from headscope.text import TokenClass

Mode: TypeAlias = Literal["real", "shuffle", "random", "uniform", "identity"]
NULLS: tuple[Mode, ...] = ("shuffle", "random", "uniform", "identity")
CLASSES = len(TokenClass)
EXAMPLES = 32  # pairs to choose examples from, where a rule does not say how many are high
AGREEMENT = 1e-3  # largest difference of attention mass, computed again, from the model's own


@dataclass(frozen=True, slots=True)
class Kind:
    """How similarities are read: which reading, and whether special tokens take part."""

    reading: Reading = "raw"
    special: Special = "kept"


class Observer:
    """A model, and what is to be seen of it."""

    def __init__(
        self, scope: Scope, kinds: Sequence[Kind], rules: Sequence[Rule], seed: int, nulls: bool
    ):
        self.scope, self.kinds, self.rules, self.seed = scope, kinds, rules, seed
        self.settings = tuple(dict.fromkeys(kind.special for kind in kinds))
        self.causal = scope.shape.stack == "decoder"
        self._twin: LoadedModel | None = None
        if nulls and scope.shape.seam == "projection":
            raise CannotObserve(
                f"The values of {scope.shape.family} are out of sight, so --null uniform and "
                "identity cannot be made. shuffle and random can."
            )
        self.no_focus = self._why_no_focus()

    def see(
        self, units: Sequence[Unit], mode: Mode, *, listed: bool = False
    ) -> tuple[SeenAttention | None, list[SeenPairs]]:
        """What some units show in one mode: attention, and pairs for every kind and rule.

        listed: with the high pairs of the first rule one by one.
        """
        loaded = self.twin if mode == "random" else self.scope.loaded
        one = _Pass(self, loaded, units, mode, listed)
        self._run(loaded, one.units, one.observe)
        return one.shown()

    @property
    def twin(self) -> LoadedModel:
        """The same architecture with random weights."""
        if self._twin is None:
            model = self.scope.model
            with torch.random.fork_rng():
                torch.manual_seed(self.seed)
                fresh: Any = type(model)(model.config)
                fresh = fresh.to(model.device, model.dtype)
            self._twin = load_model(fresh, self.scope.tokenizer)
        return self._twin

    def _run(
        self, loaded: LoadedModel, units: Sequence[Unit], observe: Callable[[HeadOutputs], None]
    ) -> None:
        lengths = [len(unit) for unit in units]
        padding = self.scope.tokenizer.pad_token_id or 0
        ids = torch.from_numpy(_padded([u.tokens.ids for u in units], max(lengths), padding))
        inputs = {"input_ids": ids.to(loaded.model.device)}
        if min(lengths) < max(lengths):
            there = _padded([np.ones(n, np.int64) for n in lengths], max(lengths), 0)
            inputs["attention_mask"] = torch.from_numpy(there).to(loaded.model.device)
        heads = [(layer - 1, head - 1) for layer, head in self.scope.silenced]
        change = silence(heads, loaded.shape.stack) if heads else None
        # Not inference_mode: the pair statistics work in threads of their own.
        with torch.no_grad(), capture(loaded.backbone, observe, change=change):
            loaded.backbone(**inputs)

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
        from headscope.corpus import Document

        window = min(self.scope.shape.window or 64, 64)
        sample = Document(sample_text()[:400], "sample")
        units = read_units(0, sample, self.scope.tokenizer, window, "en")[:1]
        batch = TokenBatch([units[0].marks])
        columns = torch.eye(CLASSES)[torch.from_numpy(units[0].tokens.classes)]
        off = [0.0]

        def observe(outputs: HeadOutputs) -> None:
            if outputs.site.stack == self.scope.shape.stack:
                own = outputs.weigh(columns)[0].double().sum(1).cpu().numpy()  # (heads, classes)
                again = self.attention(outputs, batch, _classes(units), "real")().mass[0].sum(1)
                off.append(float(np.abs(own - again).max()) / len(units[0]))

        self._run(self.scope.loaded, units, observe)
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
        loaded: LoadedModel,
        units: Sequence[Unit],
        mode: Mode,
        listed: bool,
    ):
        self.by, self.loaded, self.mode = observer, loaded, mode
        shuffle = mode == "shuffle"
        self.units = [shuffled(unit, observer.seed) for unit in units] if shuffle else units
        marks, types = [u.marks for u in self.units], [anchor.types_of(u) for u in self.units]
        self.batch = TokenBatch(marks, types)
        self.classes = _classes(self.units)
        self.top = _highest(observer.rules[0], self.batch) if listed else 0
        self.attention: list[AttentionStatistics] = []
        self.pairs: dict[Kind, list[PairStatistics]] = {kind: [] for kind in observer.kinds}
        self.vectors: list[list[dict[str, Tensor]]] = []  # by layer and setting of special tokens
        self.detection: dict[Kind, list[Tensor]] = {kind: [] for kind in observer.kinds}
        self.clustered: dict[tuple[Kind, int], list[Values]] = {}  # by number of the rule
        self._waiting: list[Callable[[], None]] = []
        self._known: dict[torch.device, _TokensThere] = {}

    def observe(self, outputs: HeadOutputs) -> None:
        """Start all statistics of a layer, and take those of the layer before."""
        if outputs.site.stack != self.loaded.shape.stack:
            return
        by, name = self.by, f"{outputs.site.layer + 1}"
        z = _head_vectors(outputs, self.mode, self.batch.lengths, by.causal)
        z = z if z.is_cuda else z.contiguous()
        if z.device not in self._known:
            self._known[z.device] = _TokensThere(self.units, self.batch, by, z.device)
        there = self._known[z.device]
        attention = None
        if by.no_focus is None:
            attention = by.attention(outputs, self.batch, self.classes, self.mode, name)
        pairs: dict[Kind, Callable[[], PairStatistics]] = {}
        for reading in dict.fromkeys(kind.reading for kind in by.kinds):
            kinds = [kind for kind in by.kinds if kind.reading == reading]
            settings = [kind.special for kind in kinds]
            started = start_for_settings(
                z, self.batch, by.rules, settings, reading=reading, top=self.top, layer=name
            )
            pairs |= dict(zip(kinds, started, strict=True))
        vectors = size.start_vector_statistics(z, there.members)
        detected: dict[Kind, Tensor] = {}
        for kind in by.kinds:
            # Special tokens are in no couple; they only move the mean that is taken away.
            like = kind if kind.reading == "centred" else Kind(kind.reading)
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
        pairs: dict[Kind, Callable[[], PairStatistics]],
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

    def shown(self) -> tuple[SeenAttention | None, list[SeenPairs]]:
        """Everything, as the measures take it."""
        for rest in self._waiting:
            rest()
        by, attention = self.by, None
        if by.no_focus is None:
            attention = SeenAttention(self.units, self.attention, by.causal)
        vectors = {
            special: {
                name: _on_host([layer[number][name] for layer in self.vectors])
                for name in self.vectors[0][number]
            }
            for number, special in enumerate(by.settings)
        }
        return attention, [
            SeenPairs(
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

    def __init__(
        self, units: Sequence[Unit], batch: TokenBatch, by: Observer, device: torch.device
    ):
        longest = max(len(unit) for unit in units)
        kept = [_padded(batch.kept(special), longest, False) for special in by.settings]
        masks = [torch.from_numpy(mask).to(device) for mask in kept]
        couples = np.stack([repetition.couples(unit, by.seed) for unit in units])
        self.members = size.Members.of(kept, device)
        self.kept = dict(zip(by.settings, masks, strict=True))
        self.couples = torch.from_numpy(couples).to(device)


def _highest(rule: Rule, batch: TokenBatch) -> int:
    """How many pairs to list: all high ones, if the rule is a quantile."""
    longest = int(max(batch.lengths))
    pairs = longest * (longest - 1) // 2
    return min(rule.number(pairs) if isinstance(rule, Quantile) else EXAMPLES, pairs)


def _detected(z: Tensor, kind: Kind, members: Tensor, places: Tensor) -> Tensor:
    """How well similarity detects repeated words, under a reading."""
    read = z.float()
    if kind.reading != "raw":
        read = read_vectors(z, kind.reading, members[:, None].expand(z.shape[:3])).vectors
    return repetition.detection(read, places)


def _on_host(layers: Sequence[Tensor]) -> Values:
    """Numbers of every layer (texts, heads) as (texts, layers, heads)."""
    found: Values = torch.stack(list(layers), 1).cpu().numpy()
    return found


def _clustered(z: Tensor, kind: Kind, batch: TokenBatch, threshold: Values) -> Values:
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
