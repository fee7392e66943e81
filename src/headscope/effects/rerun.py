"""The model that reads, run again with heads changed: from the layer of the heads on, no more.

A plain pass keeps what every layer gave. To change heads of one layer, the layers below it give
that again instead of running, whatever comes before attention in the layer itself gives what it
gave, and attention is not asked; from the output projection on everything runs as the model's own
code has it, so masks, positions and whatever a family does between its layers are its own. Many
changes of one layer run as one batch.

Whether a family allows this is tried, not believed: where a run from a layer on differs from a
whole pass, whole passes are made.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.capture import Capture, HeadOutputs, Place, capture, find_attention
from headscope.effects.change import put, run
from headscope.effects.loss import Asked
from headscope.effects.shadow import shadow
from headscope.observed import ObservedModel

Put = Mapping[int, Tensor]
"""Heads of a layer, 0-based, and the z each is put to: broadcasts to (texts, tokens, head size)."""

CLOSE = {torch.float32: 1e-4, torch.float64: 1e-9}  # of the largest hidden state; 0.05 of others


class Runner(Protocol):
    """A model that is read plainly, and then again with heads changed."""

    z: list[Tensor]  # of every layer in the last plain pass: (texts, heads, tokens, head size)
    layers_run: int  # tokens × layers, padding too, since it was made

    def plain(self, asked: Asked) -> Tensor:
        """Last hidden states (texts, tokens, size) of the model as it is."""
        ...

    def changed(self, layer: int, variants: Sequence[Put]) -> Tensor:
        """Those with heads of a layer changed: (variants, texts, tokens, size)."""
        ...


class WholePasses:
    """Every change is a whole pass."""

    def __init__(self, scope: ObservedModel):
        self.scope = scope
        self.z: list[Tensor] = []
        self.layers_run = 0

    def plain(self, asked: Asked) -> Tensor:
        """Last hidden states of the model as it is."""
        self.asked, self.z = asked, []

        def keep(outputs: HeadOutputs) -> None:
            if outputs.site.stack == self.scope.shape.stack:
                self.z.append(outputs.z)

        self.layers_run += asked.ids.numel() * self.scope.shape.layers
        with torch.no_grad(), capture(self.scope.model, keep):
            return run(self.scope, asked)

    def changed(self, layer: int, variants: Sequence[Put]) -> Tensor:
        """One pass for each variant."""
        self.layers_run += len(variants) * self.asked.ids.numel() * self.scope.shape.layers
        stack, own = self.scope.shape.stack, self.scope.shape.numbers[layer] - 1
        return torch.stack(
            [
                run(
                    self.scope,
                    self.asked,
                    put({(own, head): z for head, z in one.items()}, stack),
                )
                for one in variants
            ]
        )


def runner_for(scope: ObservedModel, asked: Asked) -> tuple[Runner, str]:
    """How heads of a model are changed, and in words: tried on a few texts, in every layer."""
    whole = WholePasses(scope)
    expected = whole.plain(asked)
    most = float(expected.abs().max()) * CLOSE.get(expected.dtype, 0.05)
    try:
        found = FromLayer(scope)
        apart = float((found.plain(asked) - expected).abs().max())
        for layer, z in enumerate(whole.z):
            silenced = [{head % z.shape[1]: z.new_zeros(())} for head in (layer, layer + 1)]
            again = found.changed(layer, silenced) - whole.changed(layer, silenced)
            apart = max(apart, float(again.abs().max()))
        why = f"it differs by {apart:.2g} from a whole pass" if not apart <= most else ""
    except Exception as error:  # whatever a family does that is not foreseen here
        why = f"{type(error).__name__}: {str(error)[:200]}"
    if why:
        return (
            whole,
            f"whole passes, since {scope.shape.family} cannot be run from a layer on: {why}",
        )
    return FromLayer(scope), "from the layer on"


@dataclass(slots=True, eq=False)
class _Layer:
    """What a layer gave in the plain pass."""

    gave: Any = None
    before: dict[nn.Module, list[Any]] = field(default_factory=dict)  # attention: by module
    attends: int | None = None  # which attention call it makes; None where it makes none


class FromLayer:
    """Changes run from the layer they are in."""

    def __init__(self, scope: ObservedModel):
        self.scope, self.stack = scope, scope.shape.stack
        twins = shadow(scope.model)
        self.model = cast(PreTrainedModel, twins[scope.model])
        self.backbone = twins[scope.loaded.backbone]
        self.z: list[Tensor] = []
        self.layers_run = 0
        self.kept: list[_Layer] = []
        self.mode: Literal["plain", "again"] = "plain"
        self.place = -1  # of the layer that runs
        self.attended = False  # whether the layer that runs has come to its attention
        for layer in layers_of(self.model, self.stack):
            layer.forward = partial(self._layer, layer.forward)
            for module in layer.modules():
                if not module._modules and list(module.parameters(recurse=False)):
                    module.forward = partial(self._leaf, module, module.forward)

    def plain(self, asked: Asked) -> Tensor:
        """Last hidden states of the model as it is; what every layer gave is kept."""
        self.asked, self.kept, self.z, self.mode = asked, [], [], "plain"
        return self._run(1)

    def changed(self, layer: int, variants: Sequence[Put]) -> Tensor:
        """All variants as one batch, from the output projection of the layer on."""
        self.mode, self.number = "again", len(variants)
        self.start = next(n for n, one in enumerate(self.kept) if one.attends == layer)
        texts, heads, tokens, size = self.z[layer].shape
        plain = self.z[layer].transpose(1, 2)  # (texts, tokens, heads, head size)
        changed = plain.expand(self.number, *plain.shape).contiguous()
        for one, given in zip(changed, variants, strict=True):
            for head, z in given.items():
                one[:, :, head] = z.to(one)
        self.instead = (layer, changed.view(-1, tokens, heads, size).transpose(1, 2))
        return self._run(self.number).unflatten(0, (self.number, texts))  # type: ignore[no-any-return]

    def _run(self, number: int) -> Tensor:
        """One pass over so many copies of the texts."""
        asked, device = self.asked, self.scope.model.device
        options: dict[str, Any] = {}
        if asked.mask is not None:
            options["attention_mask"] = asked.mask.repeat(number, 1).to(device)
        if self.stack == "decoder":
            options["use_cache"] = False
        self.place, self.attended = -1, False
        self.given: Counter[nn.Module] = Counter()  # what modules before attention gave again
        with (
            torch.no_grad(),
            capture(self.model, change=self.scope.silencing()) as silenced,
            capture(self.model, change=self._seen, instead=self._known) as own,
        ):
            self.captures: tuple[Capture, ...] = (silenced, own)
            output = self.backbone(
                input_ids=asked.ids.repeat(number, 1).to(device),
                **options,
            )
        hidden: Tensor = output.last_hidden_state
        return hidden

    def _layer(self, forward: Any, *args: Any, **kwargs: Any) -> Any:
        """A layer: it runs, or gives what it gave."""
        self.place += 1
        self.attended = False
        if self.mode == "plain":
            self.kept.append(_Layer())
            self.layers_run += self.asked.ids.numel()
            gave = self.kept[self.place].gave = forward(*args, **kwargs)
            return gave
        if self.place < self.start:
            gave = self.kept[self.place].gave
            last = self.place == self.start - 1
            return _repeated(gave, self.number, len(self.asked.units)) if last else gave
        self.layers_run += self.number * self.asked.ids.numel()
        if self.place == self.start:
            for one in self.captures:  # which count the calls that they see
                one.calls[self.stack] = self.instead[0]  # where calls are what is counted
        return forward(*args, **kwargs)

    def _leaf(self, module: nn.Module, forward: Any, *args: Any, **kwargs: Any) -> Any:
        """A module inside a layer: before attention it gives what it gave."""
        if self.attended or self.place < 0:
            return forward(*args, **kwargs)
        if self.mode == "plain":
            gave = forward(*args, **kwargs)
            self.kept[self.place].before.setdefault(module, []).append(gave)
            return gave
        if self.place > self.start:
            return forward(*args, **kwargs)
        gave = self.kept[self.place].before[module][self.given[module]]
        self.given[module] += 1
        return _repeated(gave, self.number, len(self.asked.units))

    def _seen(self, outputs: HeadOutputs) -> Tensor | None:
        """An attention call; where it could not be left out its z is replaced here."""
        if outputs.site.stack != self.stack:
            return None
        self.attended = True
        layer = self.kept[self.place]
        if self.mode == "plain":
            layer.attends = len(self.z)
            self.z.append(outputs.z)
            return None
        if self.place == self.start:
            return self.instead[1].to(outputs.z)
        return None

    def _known(self, place: Place) -> Tensor | None:
        """The z of the call in the layer that is changed, which then is not made."""
        here = self.mode == "again" and self.place == self.start and place.stack == self.stack
        return self.instead[1] if here else None


def layers_of(model: PreTrainedModel, stack: str) -> list[nn.Module]:
    """The modules that run one after the other, each around attention: outermost in a list."""
    attention = find_attention(model)
    found: dict[nn.Module, None] = {}
    for module in attention.of(stack):
        parts = attention.places[module].path.split(".")
        for end in range(1, len(parts)):
            if isinstance(model.get_submodule(".".join(parts[:end])), nn.ModuleList):
                found[model.get_submodule(".".join(parts[: end + 1]))] = None
                break
    return list(found)


def _repeated(gave: Any, number: int, texts: int) -> Any:
    """What a module gave for some texts, for so many copies of them."""
    if isinstance(gave, Tensor):
        whole = gave.ndim > 1 and gave.shape[0] == texts
        return gave.repeat(number, *[1] * (gave.ndim - 1)) if whole else gave
    if isinstance(gave, tuple | list):
        return type(gave)(_repeated(one, number, texts) for one in gave)
    return gave
