"""Run a model over a batch of units and hand the measures what every layer showed.

A *mode* (see `modes`) is the real thing or one of the nulls, all through the same code: another
order of the tokens, other weights, another attention.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.attention.statistics import (
    AttentionStatistics,
    start_attention_statistics,
)
from headscope.capture import HeadOutputs
from headscope.compute.background import Background, Behind, Later, garbage_of_before_left
from headscope.compute.underway import done
from headscope.observed import ObservedModel
from headscope.pairs import Rule, TokenBatch
from headscope.pairs.cuda import MEMORY
from headscope.sample import sample_text
from headscope.study.modes import OF_VALUES, Mode, SimilarityKind, null_of
from headscope.study.nulls import other_model
from headscope.study.on_device import OnDevice
from headscope.study.passes import LayerByLayer, Seen
from headscope.text import TokenClass
from headscope.units import Padding, Unit, padded, read_units

CLASSES = len(TokenClass)
AGREEMENT = 1e-3  # largest difference of attention mass, computed again, from the model's own


class Observer:
    """A model, and what is to be seen of it."""

    def __init__(
        self,
        scope: ObservedModel,
        kinds: Sequence[SimilarityKind],
        rules: Sequence[Rule],
        seed: int,
        padding: Padding = Padding(),  # noqa: B008 - it is frozen
        memory: float = MEMORY,  # GiB of a device
    ):
        self.scope, self.kinds, self.rules, self.seed = scope, kinds, rules, seed
        self.padding, self.memory = padding, memory
        self.settings = tuple(dict.fromkeys(kind.special for kind in kinds))
        self.readings = tuple(dict.fromkeys(kind.reading for kind in kinds))
        self.causal = scope.shape.causal
        self.on_device = scope.model.device.type == "cuda"  # where everything stays
        self._others: tuple[Mode, ObservedModel] | None = None
        self.no_focus = self._why_no_focus()

    def see(self, units: Sequence[Unit], mode: Mode, *, listed: bool = False) -> Seen:
        """What some units show in one mode: attention, and pairs for every kind and rule.

        listed: with the high pairs of the first rule one by one.
        """
        model = self._model(mode)
        one = LayerByLayer(self, model, units, mode, listed)
        self._run(model, one.units, one.observe)
        return one.shown()

    def start(self, units: Sequence[Unit], mode: Mode) -> Callable[[], Seen]:
        """The same; on a device without waiting for it, and what it shows stays there."""
        if not self.on_device:
            return done(self.see(units, mode))
        model = self._model(mode)
        one = OnDevice(self, model, units, mode)
        self._run(model, one.units, one.observe)
        return one.start()

    @contextmanager
    def behind(self) -> Iterator[Behind]:
        """Where what is seen is added up, while the next batch is read."""
        if self.on_device:
            with garbage_of_before_left(), Later() as later:
                yield later
        else:
            with Background() as thread:
                yield thread

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
        ids = torch.from_numpy(padded([u.tokens.ids for u in units], size, token))
        mask = None
        if min(lengths) < size:
            there = padded([np.ones(n, np.int64) for n in lengths], size, 0)
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
            backend="cuda" if self.on_device else "auto",
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


def _classes(units: Sequence[Unit]) -> list[NDArray[np.int32]]:
    return [unit.tokens.classes.astype(np.int32) for unit in units]


def _identity_attention(classes: Sequence[NDArray[np.int32]], heads: int) -> AttentionStatistics:
    """The statistics of A = I."""
    texts, longest = len(classes), max(len(own) for own in classes)
    rows = np.stack([np.bincount(own, minlength=CLASSES) for own in classes])
    by_row = np.broadcast_to(rows[:, None].astype(np.float64), (texts, heads, CLASSES))
    there = padded([np.ones(len(own)) for own in classes], longest, 0)
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
