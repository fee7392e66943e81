"""The model's own loss of a text: what it is asked, and how far its answers are from the truth.

A masked-language head is asked for tokens that were masked, a causal one for every next token; a
person may give a number of their own instead. Which tokens are masked is drawn from the seed and
the text alone, so that every variant of a model is asked the same, in whatever batch. Losses are
sums by window: intervals over documents are made from them as a study makes its own.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

from headscope.errors import CannotObserve, NotPossible
from headscope.observed import ObservedModel
from headscope.study.bootstrap import Group, Values, group_of, weights
from headscope.units import Unit

MASKED = 0.15  # of the tokens of a text that are not special; at least one
ROWS = 2**12  # answers that the language head gives at once

LossKind = Literal["masked", "causal", "embedding"]
Metric = Callable[[Tensor, Tensor, Tensor], Tensor]
"""A loss of one's own: the last hidden state (texts, tokens, size) of the changed model, that of
the unchanged one, and which tokens there are (texts, tokens); a number for each text."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A batch of windows as a model reads them, and what it is asked about each."""

    units: Sequence[Unit]
    ids: Tensor  # (texts, tokens)
    mask: Tensor | None  # (texts, tokens), 0 where padded; None where nothing is
    texts: Tensor  # (answers,): of which text
    places: Tensor  # (answers,): where the hidden state is that answers
    truth: Tensor  # (answers,): the token asked for

    @property
    def counts(self) -> Values:
        """How many answers each text gives: (texts,)."""
        return np.bincount(self.texts.numpy(), minlength=len(self.units)).astype(np.float64)

    @property
    def there(self) -> Tensor:
        """Which tokens there are: (texts, tokens)."""
        return torch.ones_like(self.ids) if self.mask is None else self.mask


class Loss:
    """What a model is asked, and the loss of its answers."""

    def __init__(
        self, scope: ObservedModel, kind: LossKind | Metric | None = None, seed: int = 0
    ) -> None:
        self.scope, self.seed = scope, seed
        self.metric: Metric | None = None
        if kind is None:
            kind = own_kind(scope)
        if not callable(kind) and kind not in get_args(LossKind):
            raise NotPossible(f"loss is one of {', '.join(get_args(LossKind))}, not {kind!r}.")
        if kind == "embedding":
            self.kind, self.metric = "embedding", embedding_distance
        elif callable(kind):
            self.kind, self.metric = getattr(kind, "__name__", "metric"), kind
        else:
            self.kind = kind
            self.head = language_head(scope)
            if kind == "masked" and scope.tokenizer.mask_token_id is None:
                raise CannotObserve(
                    f"The tokenizer of {scope.shape.name} has no mask token, so nothing can be "
                    "masked. Ask for the next token (causal), or give a metric of your own."
                )

    @property
    def says(self) -> str:
        """What a loss is, in words."""
        known = {
            "masked": "nats per masked token",
            "causal": "nats per token",
            "embedding": "1 − cosine of the mean hidden state to that of the unchanged model",
        }
        return known.get(self.kind, self.kind)

    def ask(self, units: Sequence[Unit], size: int | None = None) -> Asked:
        """The questions about some windows, padded to `size` tokens."""
        longest = max(len(unit) for unit in units)
        size = max(size or longest, longest)
        ids = np.full((len(units), size), self.scope.tokenizer.pad_token_id or 0, np.int64)
        there = np.zeros((len(units), size), np.int64)
        texts, places, truth = [], [], []
        for row, unit in enumerate(units):
            own = unit.tokens.ids.astype(np.int64)
            ids[row, : len(own)], there[row, : len(own)] = own, 1
            at, answers = self._questions(unit)
            if self.kind == "masked":
                ids[row, at] = self.scope.tokenizer.mask_token_id
            texts.append(np.full(len(at), row))
            places.append(at)
            truth.append(answers)
        return Asked(
            units,
            torch.from_numpy(ids),
            None if there.all() else torch.from_numpy(there),
            *(torch.from_numpy(np.concatenate(one)) for one in (texts, places, truth)),
        )

    def _questions(self, unit: Unit) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Where a window is asked, and the tokens asked for."""
        ids, plain = unit.tokens.ids.astype(np.int64), ~unit.tokens.special
        if self.kind == "masked":
            among = np.flatnonzero(plain)
            number = min(len(among), max(1, round(MASKED * len(among))))
            at = np.sort(unit.random(self.seed, "mask").choice(among, number, replace=False))
            return at, ids[at]
        if self.kind == "causal":
            at = np.flatnonzero(plain[1:])
            return at, ids[at + 1]
        return np.zeros(1, np.int64), ids[:1]  # one number a text

    @torch.no_grad()
    def sums(self, hidden: Tensor, asked: Asked, unchanged: Tensor | None = None) -> Values:
        """The loss of each text, from last hidden states (…, texts, tokens, size): (…, texts).

        A metric of a person's own also needs those of the unchanged model.
        """
        if self.metric is not None:
            plain = hidden if unchanged is None else unchanged
            there = asked.there.to(hidden.device)
            flat = hidden.reshape(-1, *hidden.shape[-3:])
            found = torch.stack([self.metric(one, plain, there) for one in flat])
            own: Values = found.double().reshape(hidden.shape[:-2]).cpu().numpy()
            return own
        losses = self.losses(answering(hidden, asked), asked.truth)  # (…, answers)
        one_hot = np.equal.outer(asked.texts.numpy(), np.arange(len(asked.units)))
        summed: Values = losses.double().cpu().numpy() @ one_hot.astype(np.float64)
        return summed

    def losses(self, rows: Tensor, truth: Tensor) -> Tensor:
        """Cross entropy of every answer, from the hidden states (…, answers, size) that give it."""
        flat = rows.reshape(-1, rows.shape[-1])
        wanted = truth.to(flat.device).expand(rows.shape[:-1]).reshape(-1)
        found = [
            nn.functional.cross_entropy(_exact(self.head(some)), right, reduction="none")
            for some, right in zip(flat.split(ROWS), wanted.split(ROWS), strict=True)
        ]
        return torch.cat(found).reshape(rows.shape[:-1])


def _exact(logits: Tensor) -> Tensor:
    """Logits in float32 at least: a sum over a vocabulary needs it."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def answering(hidden: Tensor, asked: Asked) -> Tensor:
    """The hidden states that answer: (…, answers, size) of (…, texts, tokens, size)."""
    texts, places = asked.texts.to(hidden.device), asked.places.to(hidden.device)
    return hidden[..., texts, places, :]


def embedding_distance(changed: Tensor, unchanged: Tensor, there: Tensor) -> Tensor:
    """1 − cosine of the mean hidden state of each text to that of the unchanged model."""
    weight = there[..., None].to(changed)
    one, other = (((hidden * weight).sum(1) / weight.sum(1)) for hidden in (changed, unchanged))
    return 1 - nn.functional.cosine_similarity(one.double(), other.double(), dim=-1)


def own_kind(scope: ObservedModel) -> LossKind:
    """How a model was trained to answer, by its own language head."""
    language_head(scope)  # raises where there is none
    return "causal" if scope.shape.stack == "decoder" else "masked"


def language_head(scope: ObservedModel) -> Callable[[Tensor], Tensor]:
    """What a model does after the part that reads: last hidden states (n, size) into logits.

    The model itself, but for the part that reads, which is handed the states instead. So scaling,
    soft caps and whatever else a family does are its own.
    """
    model, backbone = scope.model, scope.loaded.backbone
    place = next((name for name, one in model.named_children() if one is backbone), None)
    by_decoder = getattr(model.config, "is_encoder_decoder", False)
    if place is None or by_decoder or model.get_output_embeddings() is None:
        more = "has no language head"
        if by_decoder:
            more = "answers with a decoder, and headscope's heads are those of its encoder"
        raise CannotObserve(
            f"{scope.shape.name} ({type(model).__name__}) {more}, so it has no loss of its own.",
            python="Ask for something else: loss='embedding', or a function of hidden states.",
            command="Ask for the change of its sentence embedding: --loss embedding.",
        )
    reads = _HandedStates(backbone)
    shell = copy.copy(model)  # the same weights; the model itself is not touched
    shell.__dict__["_modules"] = {**model._modules, place: reads}

    def head(hidden: Tensor) -> Tensor:
        reads.states = hidden[None]
        given = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
        output = shell(input_ids=given)
        logits = getattr(output, "logits", None)
        return cast(Tensor, output.prediction_logits if logits is None else logits)[0]

    return head


class _HandedStates(nn.Module):
    """In the place of the part of a model that reads: hands on the states it was given."""

    def __init__(self, backbone: nn.Module):
        super().__init__()
        self.__dict__["backbone"] = backbone  # not a part of it
        self.states = torch.zeros(0)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a language head asks of it, such as its embeddings."""
        return getattr(self.__dict__["backbone"], name)

    def forward(self, *_: Any, **__: Any) -> "_States":
        return _States(last_hidden_state=self.states)


class _States(BaseModelOutputWithPastAndCrossAttentions):
    """Last hidden states alone: None for whatever else a family's own output has."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def replicated(
    units: Sequence[Unit], values: Values, seed: int, replicates: int, group: Group = "document"
) -> Values:
    """Sums over windows (windows, …) as each replicate counts them: (replicates + 1, …)."""
    by_document = weights([group_of(unit, group) for unit in units], seed, replicates)
    flat = values.reshape(len(units), -1)
    summed: Values = (by_document.T @ flat).reshape(-1, *values.shape[1:])
    return summed
