"""Heads changed in a forward pass: their z put to any tensor, as `capture.silence` puts it to 0.

A change is given to `run`, which reads a batch of windows with the part of the model that reads.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from headscope.capture import Change, HeadOutputs, capture
from headscope.effects.loss import Asked
from headscope.observed import ObservedModel


def put(z: Mapping[tuple[int, int], Tensor], stack: str | None = None) -> Change:
    """Put z of the given (layer, head), 0-based, to tensors that broadcast to (batch, tokens, d).

    Only calls of `stack` are changed when it is given.
    """
    by_layer: dict[int, list[tuple[int, Tensor]]] = {}
    for (layer, head), value in z.items():
        by_layer.setdefault(layer, []).append((head, value))

    def change(outputs: HeadOutputs) -> Tensor | None:
        given = by_layer.get(outputs.site.layer)
        if given is None or stack not in (None, outputs.site.stack):
            return None
        changed = outputs.z.clone()  # (batch, heads, tokens, d)
        for head, value in given:
            changed[:, head] = value.to(changed)
        return changed

    return change


def run(scope: ObservedModel, asked: Asked, change: Change | None = None) -> Tensor:
    """The last hidden state (texts, tokens, size) of the model that reads, its heads changed."""
    with torch.no_grad(), capture(scope.model, change=change):
        output = scope.observe_batch(asked.ids, asked.mask, lambda _: None)
    hidden: Tensor = output.last_hidden_state
    return hidden
