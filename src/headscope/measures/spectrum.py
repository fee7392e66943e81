"""Eigenvalues of many small symmetric matrices: on every thread of the host, or on the device."""

import torch
from torch import Tensor

from headscope.pairs.workers import in_parallel

LARGEST = 128  # rows of a matrix that a program of a device can hold


def eigenvalue_shares(matrices: Tensor) -> Tensor:
    """Eigenvalues of positive matrices (texts, heads, d, d), divided by their sum; 0 for zeros."""
    if matrices.is_cuda and matrices.shape[-1] <= LARGEST:
        from headscope.measures.spectrum_kernels import eigenvalues
    else:
        eigenvalues = _on_host
    found = eigenvalues(matrices).double().clamp(min=0)  # (texts, heads, d)
    return found / found.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)


def _on_host(matrices: Tensor) -> Tensor:
    """A text at a time on every thread."""
    here = matrices.cpu()
    found = here.new_empty(here.shape[:-1])

    def solve(text: int) -> None:
        found[text] = torch.linalg.eigvalsh(here[text])

    in_parallel(solve, ((text,) for text in range(len(here))))
    return found.to(matrices.device)
