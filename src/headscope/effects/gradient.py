"""What the loss says of a head to first order: |z · ∂loss/∂z| (Michel et al., 2019).

A factor of 1 before all of z of a head in a text has that derivative, Σ_i z_i · ∂loss/∂z_i, so one
pass forward and one back through the model give it for every head and text at once.
"""

import torch
from torch import Tensor

from headscope.capture import HeadOutputs, capture
from headscope.effects.loss import Asked, Loss, answering
from headscope.measures.base import Values


def derivatives(loss: Loss, asked: Asked) -> Values:
    """Σ_i z_i · ∂loss/∂z_i of each text, the loss summed over its answers: (texts, layers, heads).

    Silencing the head would change the loss by minus this if the loss were a straight line.
    """
    scope = loss.scope
    shape, backbone = scope.shape, scope.loaded.backbone
    ones: list[Tensor] = []

    def factor(outputs: HeadOutputs) -> Tensor | None:
        if outputs.site.stack != shape.stack:
            return None
        texts, heads = outputs.z.shape[:2]
        ones.append(outputs.z.new_ones(texts, heads, 1, 1).requires_grad_())
        return outputs.z * ones[-1]

    device = scope.model.device
    options = {} if asked.mask is None else {"attention_mask": asked.mask.to(device)}
    with (
        torch.enable_grad(),
        capture(scope.model, change=scope.silencing()),
        capture(scope.model, change=factor),
    ):
        hidden = backbone(input_ids=asked.ids.to(device), **options).last_hidden_state
        summed = loss.losses(answering(hidden, asked), asked.truth).sum()
        found = torch.autograd.grad(summed, ones)
    by_layer = torch.stack([one[..., 0, 0] for one in found], 1)  # (texts, layers, heads)
    values: Values = by_layer.double().cpu().numpy()
    return values
