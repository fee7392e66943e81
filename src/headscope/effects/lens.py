"""The hidden state of every layer, as the model's own language head takes it.

Where a model normalises once more behind its last layer, as decoders do, the states of the layers
before go through that very module (the logit lens of nostalgebraist 2020); where a layer ends with
its own normalisation, as BERT's do, they go to the head as they are. Nothing is trained.
"""

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn

from headscope.effects.loss import Asked, answering
from headscope.errors import CannotObserve
from headscope.observed import ObservedModel


class Lens:
    """What each layer of a model would answer, if it were the last."""

    def __init__(self, scope: ObservedModel) -> None:
        self.scope = scope
        self.norm = final_norm(scope)

    def answering(self, asked: Asked) -> list[Tensor]:
        """The states that answer, of the embeddings and each layer: (answers, size), ready for
        the language head."""
        output = self._read(asked.ids, asked.mask)
        *below, last = (answering(state, asked) for state in output.hidden_states)
        with torch.no_grad():
            return [*(self.norm(state) for state in below), last]

    def _read(self, ids: Tensor, mask: Tensor | None) -> "_Output":
        return read_states(self.scope, ids, mask)


class _Output:
    """What a pass with hidden states gives."""

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...]  # of the embeddings and each layer, the last one normalised


def read_states(scope: ObservedModel, ids: Tensor, mask: Tensor | None) -> _Output:
    """The hidden states of a batch (texts, tokens), behind the embeddings and behind each layer."""
    output: _Output = scope.observe_batch(ids, mask, lambda _: None, output_hidden_states=True)
    states = output.hidden_states or ()
    if len(states) != scope.shape.layers + 1 or not torch.equal(
        states[-1], output.last_hidden_state
    ):
        raise CannotObserve(
            f"{scope.shape.family} does not show the hidden state of every layer: it gave "
            f"{len(states)} for {scope.shape.layers} layers, so there is no entropy by layer."
        )
    return output


def final_norm(scope: ObservedModel) -> Callable[[Tensor], Tensor]:
    """What a model does to its last layer's state before the language head; else nothing.

    It is the module outside all layers whose result is the last hidden state.
    """
    backbone = scope.loaded.backbone
    made: list[tuple[nn.Module, Tensor]] = []

    def keep(module: nn.Module, _: object, result: object) -> None:
        if isinstance(result, Tensor):
            made.append((module, result))

    hooks = [
        module.register_forward_hook(keep)
        for path, module in backbone.named_modules()
        # Layers stand in lists, and so have a number in their path.
        if not list(module.children()) and not re.search(r"(^|\.)\d+(\.|$)", path)
    ]
    try:
        ids = torch.arange(1, 4)[None] % scope.model.config.get_text_config().vocab_size
        last = read_states(scope, ids, None).last_hidden_state
    finally:
        for hook in hooks:
            hook.remove()
    same = (one for one, result in made if result.shape == last.shape and torch.equal(result, last))
    return next(same, nn.Identity())
