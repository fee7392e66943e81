"""Eigenvalues of many small symmetric matrices: on every thread of the host, or on the device."""

from collections.abc import Callable

import torch
from torch import Tensor

from headscope.pairs.later import done
from headscope.pairs.workers import start_in_parallel

LARGEST = 128  # rows of a matrix that a program of a device can hold


def start_eigenvalues(matrices: Tensor) -> Callable[[], Tensor]:
    """Start to find the eigenvalues of positive matrices (texts, heads, d, d), in any unit."""
    if matrices.is_cuda and matrices.shape[-1] <= LARGEST:
        from headscope.measures.spectrum_kernels import eigenvalues

        return done(eigenvalues(matrices))
    here = matrices.cpu()
    found = here.new_empty(here.shape[:-1])

    def solve(text: int) -> None:
        found[text] = torch.linalg.eigvalsh(here[text])

    wait = start_in_parallel(solve, ((text,) for text in range(len(here))))

    def result() -> Tensor:
        wait()
        return found.to(matrices.device)

    return result


def effective_rank(eigenvalues: Tensor) -> Tensor:
    """The exponential of the entropy of their shares (…, d): how many directions there are."""
    energy = eigenvalues.double().clamp(min=0)
    tiny = torch.finfo(torch.float64).tiny
    shares = energy / energy.sum(-1, keepdim=True).clamp(min=tiny)
    return torch.exp(-torch.special.xlogy(shares, shares).sum(-1))
