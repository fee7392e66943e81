"""Muon for the matrices inside the layers, AdamW for everything else.

Muon (Jordan 2024) takes the momentum of a matrix's gradient and makes it orthogonal by a few
Newton-Schulz steps before adding it. All matrices of a kind are stacked, so each step is a handful
of batched products.
"""

import torch
from flat_bert import Weights
from torch import Tensor

MATRICES = ("square", "wide")
MOMENTUM, MATRIX_DECAY = 0.95, 0.05
ADAM_RATE_BESIDE_MUON = 1e-3


def orthogonal(matrices: Tensor) -> Tensor:
    """The nearest (semi-)orthogonal matrices, roughly: singular values end between 0.7 and 1.2."""
    x = matrices.bfloat16()  # n, rows, columns; rows <= columns
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


def muon_step(weight: Tensor, gradient: Tensor, momentum: Tensor, gain: Tensor, rate: Tensor):
    """In place; `rate` is a tensor, so that a compiled step is compiled once."""
    momentum.lerp_(gradient, 1 - MOMENTUM)
    ahead = gradient.lerp(momentum, MOMENTUM).flatten(0, 1)
    update = orthogonal(ahead).view_as(weight).float() * gain
    weight.mul_(1 - rate * MATRIX_DECAY).sub_(update * rate)


@torch.no_grad()
def tame(gradients: list[Tensor], usual: Tensor) -> tuple[Tensor, Tensor]:
    """Clip the gradients to norm 1 in place; make them zero if not finite or far above `usual`.

    Returns the norm and the new usual norm. Nothing here waits for the device.
    """
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    fine = norm.isfinite() & ((usual == 0) | (norm < 20 * usual))
    scale = torch.where(fine, (1 / norm).clamp(max=1.0), 0.0)
    for gradient in gradients:
        gradient.copy_(torch.where(fine, gradient * scale, 0.0))
    # A lasting rise becomes the usual within some hundred steps, so training cannot stop for good.
    smooth = torch.where(usual == 0, norm, 0.99 * usual + 0.01 * torch.minimum(norm, 20 * usual))
    return norm, torch.where(norm.isfinite(), smooth, usual)


class Optimiser:
    """One step of whichever of the two is asked for, over all weights."""

    def __init__(self, weights: Weights, kind: str, rate: float, compiled: bool):
        self.kind, self.rate, self.weights = kind, rate, weights
        matrices = MATRICES if kind == "muon" else ()
        device = weights["word"].device
        self.momentum = {name: torch.zeros_like(weights[name]) for name in matrices}
        # Up maps the width to the wider inner layer: its steps are larger by the root of the ratio.
        wide = weights["wide"].shape
        up = (wide[3] / wide[2]) ** 0.5
        self.gain = {
            "square": torch.ones((), device=device),
            "wide": torch.tensor([up, 1.0], device=device)[:, None, None],
        }
        self.muon = torch.compile(muon_step, dynamic=False) if compiled else muon_step
        rest = [name for name in weights if name not in matrices]
        decayed = [weights[n] for n in rest if n in (*MATRICES, "word", "position", "head")]
        plain = [w for w in (weights[n] for n in rest) if not any(w is d for d in decayed)]
        self.adam = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
            lr=0.0,
            betas=(0.9, 0.98),
            eps=1e-8,
            fused=device.type == "cuda",
        )
        self.usual = torch.zeros((), device=device)

    def step(self, share: float) -> Tensor:
        """`share` of the peak learning rate; returns the norm of the gradient."""
        norm, self.usual = tame([w.grad for w in self.weights.values()], self.usual)
        adam_rate = ADAM_RATE_BESIDE_MUON if self.kind == "muon" else self.rate
        for group in self.adam.param_groups:
            group["lr"] = adam_rate * share
        self.adam.step()
        with torch.no_grad():
            for name, momentum in self.momentum.items():
                weight = self.weights[name]
                rate = torch.full((), self.rate * share, device=weight.device)
                self.muon(weight.detach(), weight.grad, momentum, self.gain[name], rate)
        for weight in self.weights.values():
            weight.grad = None
        return norm
