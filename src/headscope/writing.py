"""What a head writes: z W_O, read off against the words of the model's own vocabulary.

The output projection W_O adds each head's vectors into the stream that all layers share. Held
against the embeddings of the vocabulary, what is added says which words it raises and which it
lowers, by the direct way: what later layers and norms make of it is not in it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headscope.capture import HeadOutputs, find_attention
from headscope.errors import CannotObserve
from headscope.observed import ObservedModel
from headscope.text import tokenize

SHORT = "The lamp is lit, and the keeper sleeps."


@dataclass(frozen=True, slots=True)
class Written:
    """Words that a head raises and lowers, in standard deviations over the vocabulary."""

    layer: int  # from 1
    head: int
    position: int | None  # of the token whose vector it is; None: the mean over the text
    raised: tuple[tuple[str, float], ...]  # the most first
    lowered: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        parts = (
            f"{name} {', '.join(f'{word!r} {much:+.1f}' for word, much in words)}"
            for name, words in (("raises", self.raised), ("lowers", self.lowered))
        )
        return f"layer {self.layer}, head {self.head}: {'; '.join(parts)}"


def written(
    model: ObservedModel, z: Tensor, layer: int, head: int, position: int | None, top: int
) -> Written:
    """The words that vectors z (tokens, head size) of a head raise and lower most."""
    W = output_weights(model, layer, head)  # (hidden, head size)
    E = _embeddings(model, W.shape[0])  # (vocabulary, hidden)
    vector = z.mean(0) if position is None else z[position]  # (head size,)
    return _read_off(model, E, _through(W, vector), layer, head, position, top)


def written_by_all(model: ObservedModel, means: Sequence[Tensor], top: int) -> list[list[Written]]:
    """The same of every head, by layer: `means` is (heads, head size) for each layer."""
    weights = [_weight(module) for module in output_projections(model)]
    E = _embeddings(model, weights[0].shape[0])  # (vocabulary, hidden)
    found: list[list[Written]] = []
    for layer, W, vectors in zip(model.shape.numbers, weights, means, strict=True):
        parts = W.chunk(len(vectors), dim=1)  # each (hidden, head size)
        found.append(
            [
                _read_off(model, E, _through(own, vector), layer, head, None, top)
                for head, (own, vector) in enumerate(zip(parts, vectors, strict=True), 1)
            ]
        )
    return found


def _through(W: Tensor, vector: Tensor) -> Tensor:
    """What a vector becomes; where layers differ in their head size, the shorter end in zeros."""
    return W @ vector[: W.shape[1]].float()


def _read_off(
    model: ObservedModel,
    E: Tensor,
    added: Tensor,
    layer: int,
    head: int,
    position: int | None,
    top: int,
) -> Written:
    """What is added to the stream (hidden), held against the embeddings of the vocabulary."""
    raised = (E @ added)[: len(model.tokenizer)]  # (vocabulary,)
    scores = (raised - raised.mean()) / raised.std().clamp(min=torch.finfo(torch.float32).tiny)
    order = scores.argsort(descending=True, stable=True).tolist()

    def words(places: Sequence[int]) -> tuple[tuple[str, float], ...]:
        return tuple((_word(model.tokenizer, n), float(scores[n])) for n in places)

    return Written(layer, head, position, words(order[:top]), words(order[: -top - 1 : -1]))


def output_weights(model: ObservedModel, layer: int, head: int) -> Tensor:
    """The part of W_O that a head writes through: (hidden, head size), on the CPU in float32."""
    weight = _weight(output_projections(model)[model.shape.place(layer)])
    size = weight.shape[1] // model.shape.heads
    return weight[:, (head - 1) * size : head * size]


def _weight(module: Any) -> Tensor:
    """The weights of an output projection: (hidden, heads × head size)."""
    weight: Tensor = module.weight.detach().float().cpu()
    return weight.T if isinstance(module, Conv1D) else weight


def output_projections(model: ObservedModel) -> list[Any]:
    """The module of each layer that takes the heads' vectors side by side.

    Found by what it is given, so that no family has to be known: the first linear module after an
    attention call whose input is that call's z. (Off the attention interface heads are seen there.)
    """
    attention = find_attention(model.model)
    found: dict[int, nn.Module] = {
        layer: site.projection
        for module, site in attention.joined.items()
        if attention.places[module].stack == model.shape.stack
        for layer in attention.places[module].layers
    }
    waiting: list[tuple[int, Tensor]] = []

    def observe(outputs: HeadOutputs) -> None:
        waiting.append((outputs.site.layer, outputs.z.transpose(1, 2).flatten(-2)))

    def look(module: nn.Module, args: tuple[Any, ...]) -> None:
        for place, (layer, joined) in enumerate(waiting):
            given = args[0]
            if given.shape == joined.shape and torch.equal(given, joined):
                found[layer] = module
                del waiting[place]
                return

    linear = [m for m in model.loaded.backbone.modules() if isinstance(m, (nn.Linear, Conv1D))]
    hooks = [module.register_forward_pre_hook(look) for module in linear]
    try:
        model.observe(tokenize(SHORT, model.tokenizer), observe)
    finally:
        for hook in hooks:
            hook.remove()
    if any(number - 1 not in found for number in model.shape.numbers):
        raise CannotObserve(
            f"What the heads of {model.shape.family} write cannot be told: in "
            f"{model.shape.layers - len(found)} of {model.shape.layers} layers no linear module "
            "takes their vectors as they are."
        )
    return [found[number - 1] for number in model.shape.numbers]


def _embeddings(model: ObservedModel, hidden: int) -> Tensor:
    """The output embedding of the model's language head; the input's where there is none."""
    module = None
    for of, which in (
        (model.model, "get_output_embeddings"),
        (model.model, "get_input_embeddings"),
        (model.loaded.backbone, "get_input_embeddings"),
    ):
        with suppress(NotImplementedError, AttributeError):  # a model of several kinds of input
            module = module or getattr(of, which)()
    if not isinstance(getattr(module, "weight", None), Tensor):
        raise CannotObserve(
            f"What the heads of {model.shape.family} write cannot be told in words: it shows no "
            "embeddings of its vocabulary."
        )
    weight: Tensor = module.weight.detach().float().cpu()  # type: ignore[union-attr]
    if weight.shape[1] != hidden:
        raise CannotObserve(
            f"What the heads of {model.shape.family} write cannot be told in words: its embeddings "
            f"have {weight.shape[1]} dimensions and its layers {hidden}."
        )
    return weight


def _word(tokenizer: Any, number: int) -> str:
    """A token as a person reads it; a special one or a piece as the tokenizer spells it."""
    symbol = str(tokenizer.convert_ids_to_tokens(number))
    plain = str(tokenizer.decode([number])).strip()
    return plain if plain and not symbol.startswith("##") else symbol
