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
    start_pair_statistics,
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


@dataclass(slots=True, eq=False)
class _Layers:
    """What the layers of one pass showed, in order."""

    attention: list[AttentionStatistics]
    pairs: dict[Kind, list[PairStatistics]]
    vectors: dict[Special, list[dict[str, Tensor]]]
    detection: dict[Kind, list[Tensor]]
    clustered: dict[tuple[Kind, int], list[Values]]  # by number of the rule


class Observer:
    """A model, and what is to be seen of it."""

    def __init__(
        self, scope: Scope, kinds: Sequence[Kind], rules: Sequence[Rule], seed: int, nulls: bool
    ):
        self.scope, self.kinds, self.rules, self.seed = scope, kinds, rules, seed
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
        if mode == "shuffle":
            units = [shuffled(unit, self.seed) for unit in units]
        batch = TokenBatch((unit.marks for unit in units), [anchor.types_of(u) for u in units])
        layers = _Layers(
            [],
            {kind: [] for kind in self.kinds},
            {kind.special: [] for kind in self.kinds},
            {kind: [] for kind in self.kinds},
            {},
        )
        loaded = self.twin if mode == "random" else self.scope.loaded
        longest, device = max(len(unit) for unit in units), loaded.model.device
        kept = {s: _padded(batch.kept(s), longest, False) for s in layers.vectors}
        members = size.Members.of(list(kept.values()), device)
        counted = {s: torch.from_numpy(mask).to(device) for s, mask in kept.items()}
        couples = np.stack([repetition.couples(unit, self.seed) for unit in units])
        places = torch.from_numpy(couples).to(device)
        classes = _classes(units)
        top = self._top(batch) if listed else 0
        waiting: list[Callable[[], None]] = []

        def observe(outputs: HeadOutputs) -> None:
            if outputs.site.stack != loaded.shape.stack:
                return
            name = f"{outputs.site.layer + 1}"
            z = _head_vectors(outputs, mode, batch.lengths, self.causal)
            z = z if z.is_cuda else z.contiguous()
            attention = None
            if self.no_focus is None:
                attention = self._attention(outputs, batch, classes, mode, name)
            pairs = {
                kind: start_pair_statistics(
                    z,
                    batch,
                    self.rules,
                    reading=kind.reading,
                    special=kind.special,
                    top=top,
                    layer=name,
                )
                for kind in self.kinds
            }
            vectors = size.vector_statistics(z, members)
            for special, statistics in zip(kept, vectors, strict=True):
                layers.vectors[special].append(statistics)
            detected: dict[Kind, Tensor] = {}
            for kind in self.kinds:
                # Special tokens are in no couple; they only move the mean that is taken away.
                like = kind if kind.reading == "centred" else Kind(kind.reading)
                if like not in detected:
                    detected[like] = _detected(z, like, counted[kind.special], places)
                layers.detection[kind].append(detected[like])
            waiting.append(lambda: finish(z, attention, pairs))
            # A device works on this layer while the host looks at the one before.
            if len(waiting) > 1:
                waiting.pop(0)()

        def finish(
            z: Tensor,
            attention: Callable[[], AttentionStatistics] | None,
            pairs: dict[Kind, Callable[[], PairStatistics]],
        ) -> None:
            if attention is not None:
                layers.attention.append(attention())
            for kind, result in pairs.items():
                layers.pairs[kind].append(found := result())
                for rule, high in enumerate(found.high):
                    if isinstance(high.rule, Peak):
                        clustered = _clustered(z, kind, batch, high.threshold)
                        layers.clustered.setdefault((kind, rule), []).append(clustered)

        self._run(loaded, units, observe)
        for rest in waiting:
            rest()
        return self._shown(units, batch, layers)

    def _shown(
        self, units: Sequence[Unit], batch: TokenBatch, layers: _Layers
    ) -> tuple[SeenAttention | None, list[SeenPairs]]:
        """The layers of a pass as the measures take them."""
        attention = None
        if self.no_focus is None:
            attention = SeenAttention(units, layers.attention, self.causal)
        vectors = {
            special: {name: _on_host([layer[name] for layer in found]) for name in found[0]}
            for special, found in layers.vectors.items()
        }
        return attention, [
            SeenPairs(
                units,
                batch,
                layers.pairs[kind],
                rule,
                vectors[kind.special],
                _on_host(layers.detection[kind]),
                self.seed,
                np.stack(layers.clustered[kind, rule], 1)
                if (kind, rule) in layers.clustered
                else None,
            )
            for kind in self.kinds
            for rule in range(len(self.rules))
        ]

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

    def _attention(
        self,
        outputs: HeadOutputs,
        batch: TokenBatch,
        classes: Sequence[NDArray[np.int32]],
        mode: Mode,
        layer: str | None = None,
    ) -> Callable[[], AttentionStatistics]:
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

    def _top(self, batch: TokenBatch) -> int:
        """How many pairs to list: all high ones of the first rule, if it is a quantile."""
        rule, longest = self.rules[0], int(max(batch.lengths))
        pairs = longest * (longest - 1) // 2
        return min(rule.number(pairs) if isinstance(rule, Quantile) else EXAMPLES, pairs)

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
                again = self._attention(outputs, batch, _classes(units), "real")().mass[0].sum(1)
                off.append(float(np.abs(own - again).max()) / len(units[0]))

        self._run(self.scope.loaded, units, observe)
        if max(off) <= AGREEMENT * (1 if self.scope.model.dtype == torch.float32 else 10):
            return None
        return (
            f"attention computed again from queries and keys is off by {max(off):.2g} of the mass: "
            f"{self.scope.shape.family} does more than a softmax of their products"
        )


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
