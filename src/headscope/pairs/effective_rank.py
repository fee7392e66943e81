"""How many directions vectors use: the eigenvalues of many small matrices, and their entropy."""

import torch
from torch import Tensor

LARGEST = 128  # rows of a matrix that a program of a device can hold


def effective_rank(matrices: Tensor) -> Tensor:
    """The exponential of the entropy of the eigenvalues' shares, of matrices (…, d, d)."""
    energy = _eigenvalues(matrices).double().clamp(min=0)  # (…, d)
    tiny = torch.finfo(torch.float64).tiny
    shares = energy / energy.sum(-1, keepdim=True).clamp(min=tiny)
    return torch.exp(-torch.special.xlogy(shares, shares).sum(-1))


def _eigenvalues(matrices: Tensor) -> Tensor:
    """In any unit. A device takes one matrix after the other, unless a kernel of ours does it."""
    if matrices.is_cuda and matrices.shape[-1] <= LARGEST:
        from headscope.pairs.cuda.eigenvalues import eigenvalues

        return eigenvalues(matrices)
    found: Tensor = torch.linalg.eigvalsh(matrices.cpu())
    return found.to(matrices.device)
