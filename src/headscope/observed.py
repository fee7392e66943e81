"""A model whose heads are observed: everything below that reads with it goes through here.

One way to run it, whoever asks: over a window, a batch, or as the person who owns the model would,
with the same heads silenced.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.capture import Change, HeadOutputs, Observe, capture, silence
from headscope.errors import CannotObserve, NoSuchHead, NotPossible
from headscope.models import LoadedModel
from headscope.shapes import ModelShape, check_vocabulary
from headscope.text import Tokens


class ObservedModel:
    """A model, its tokenizer, and the heads of it that are silenced; the model never changes."""

    def __init__(
        self,
        loaded: LoadedModel,
        silenced: frozenset[tuple[int, int]] = frozenset(),
        elsewhere: frozenset[tuple[str, int, int]] = frozenset(),
    ):
        self.loaded = loaded
        self.silenced = silenced  # (layer, head), 1-based, of the stack that is read
        self.elsewhere = elsewhere  # (stack, layer, head) of the others

    @property
    def model(self) -> PreTrainedModel:
        """The transformers model."""
        return self.loaded.model

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer."""
        if self.loaded.sense is not None:
            what = {"image": "pictures", "sound": "sounds"}[self.loaded.sense.kind]
            raise NotPossible(f"{self.shape.name} is loaded to read {what}, and this needs a text.")
        return self.loaded.tokenizer

    @property
    def shape(self) -> ModelShape:
        """Layers, heads, window and how the heads are seen."""
        return self.loaded.shape

    def check_head(self, layer: int, head: int) -> None:
        """Raise unless there is such a head; layers and heads are counted from 1."""
        numbers, heads = self.shape.numbers, self.shape.heads
        if layer not in numbers:
            if 1 <= layer <= numbers[-1]:
                raise NoSuchHead(f"layer {layer} has no heads: {self.shape.layers_in_words}")
            raise NoSuchHead(f"layer {layer} does not exist: layers are 1 to {numbers[-1]}")
        if not 1 <= head <= heads:
            raise NoSuchHead(f"head {head} does not exist: heads are 1 to {heads}")

    def forward(self, **inputs: Any) -> Any:
        """The model's own output for its own inputs, under this scope's ablation."""
        with torch.inference_mode(), capture(self.model, change=self.silencing()):
            return self.model(**inputs)

    def head_vectors(self, tokens: Tokens, also: Observe | None = None) -> list[Tensor]:
        """z of every layer for one window, each (heads, tokens, head size), on the CPU.

        `also` is shown every layer in the same pass.
        """
        layers: list[Tensor] = []

        def observe(seen: HeadOutputs) -> None:
            layers.append(seen.z[0, :, : len(tokens)].cpu())
            if also is not None:
                also(seen)

        self.observe(tokens, observe)
        return layers

    def observe(self, tokens: Tokens, observe: Observe, **options: Any) -> Any:
        """Run the part of the model that reads over one window and show each layer's heads."""
        return self.observe_batch(torch.as_tensor(tokens.ids)[None], None, observe, **options)

    def observe_batch(
        self, ids: Tensor, mask: Tensor | None, observe: Observe, **options: Any
    ) -> Any:
        """As `observe`, over a batch of ids (texts, tokens); `mask` is 0 where one is padded."""
        if mask is not None:
            name = "decoder_attention_mask" if self.loaded.needs_source else "attention_mask"
            options[name] = _sent(mask, self.model.device)
        check_vocabulary(self.shape.name, self.loaded.backbone, ids)
        own, tokens = self.shape.own, ids.shape[1]

        def within_reach(seen: HeadOutputs) -> None:
            if seen.site.stack == own.name:
                part = _as_wide(_of_text(seen, own.before, tokens), own.head_size)
                observe(part.where_statistics_are())

        # Not inference_mode: statistics of what is seen may be made in other threads.
        with torch.no_grad(), capture(self.model, within_reach, change=self.silencing()):
            given = {name: one.expand(len(ids), -1) for name, one in self.loaded.given.items()}
            options = {self.loaded.takes: _sent(ids, self.model.device), **given, **options}
            return self.loaded.backbone(**options)

    def observe_inputs(self, inputs: dict[str, Tensor], observe: Observe) -> None:
        """As `observe`, over inputs that are no text: all positions of the model are shown."""
        model, own = self.model, self.shape.own
        given = {
            name: one.to(model.device, model.dtype if one.is_floating_point() else one.dtype)
            for name, one in inputs.items()
        }

        def within_reach(seen: HeadOutputs) -> None:
            if seen.site.stack == own.name:
                observe(seen.where_statistics_are())

        with torch.no_grad(), capture(model, within_reach, change=self.silencing()):
            self.loaded.backbone(**given)

    def observe_attention(self, tokens: Tokens, observe: Observe) -> None:
        """As `observe`, but every family's calls can `weigh`.

        A family seen through its output projection is asked for its attention weights, which
        takes memory for tokens² × heads × layers; the others never make them.
        """
        if self.shape.own.weighs:
            self.observe(tokens, observe)
            return
        if self.shape.seam == "interface":
            raise CannotObserve(
                f"The heads of {self.shape.family} attend to other positions than those of a text, "
                "so their weights cannot be told token by token. similarity() and high_pairs() "
                "work, attention() and focus() do not."
            )
        seen: list[HeadOutputs] = []
        output = self.observe(tokens, seen.append, output_attentions=True)
        shown = getattr(output, "attentions", None) or ()
        for outputs, weights in zip(seen, shown, strict=False):
            if not _are_weights(weights, len(tokens)):
                break
            observe(replace(outputs, v=outputs.z, attend=partial(_weigh_dense, weights)))
        else:
            if shown:
                return
        raise CannotObserve(
            f"{self.shape.family} does not show its attention weights token by token; only its "
            "head vectors can be seen. similarity() and high_pairs() work, attention() and focus() "
            "do not."
        )

    def silencing(self) -> Change | None:
        """What its silenced heads change in a forward pass."""
        own = {(self.shape.stack, layer, head) for layer, head in self.silenced}
        by_stack: dict[str, list[tuple[int, int]]] = {}
        for stack, layer, head in own | self.elsewhere:
            by_stack.setdefault(stack, []).append((layer - 1, head - 1))
        changes = {stack: silence(heads, stack) for stack, heads in by_stack.items()}

        def change(outputs: HeadOutputs) -> Tensor | None:
            found = changes.get(outputs.site.stack)
            return None if found is None else found(outputs)

        return change if changes else None


def _of_text(seen: HeadOutputs, before: int, tokens: int) -> HeadOutputs:
    """The part of a call that is about a text, where a model adds positions of its own."""
    others = seen.v is not None and seen.v.shape[2] != tokens
    if seen.z.shape[2] == tokens and (not others or seen.site.stack.startswith("cross")):
        return seen
    z = seen.z[:, :, before : before + tokens]
    return HeadOutputs(seen.site, z)  # weights would be spread over other positions too


def _as_wide(seen: HeadOutputs, size: int) -> HeadOutputs:
    """The same, its vectors as long as those of every layer: zeros change no scalar product."""
    missing = size - seen.z.shape[-1]
    return seen if not missing else replace(seen, z=nn.functional.pad(seen.z, (0, missing)))


def _are_weights(given: Any, tokens: int) -> bool:
    """Whether these are attention weights, a row for each token: some families hand out others."""
    if not isinstance(given, Tensor) or given.shape[-2:] != (tokens, tokens):
        return False
    return bool((given >= 0).all() and (given.sum(-1) < 1.01).all())


def _weigh_dense(weights: Tensor, values: Tensor, rows: slice) -> Tensor:
    return weights[:, :, rows].to(values.device) @ values


def _sent(values: Tensor, device: torch.device) -> Tensor:
    """What the host has, on a device, without waiting for what that does."""
    if device.type != "cuda" or values.is_cuda:
        return values.to(device)
    return values.pin_memory().to(device, non_blocking=True)
