"""Eigenvalues on a CUDA device: a program reduces a matrix to three diagonals, another bisects.

Libraries take one small matrix after the other; here thousands are under way at once. Rounding is
that of float32 in units of the trace, as that of LAPACK in float32.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import torch
import triton
import triton.language as tl
from torch import Tensor

STEPS = 26  # halvings: 1.5e-8 of the trace


@triton.jit
def tridiagonal(
    matrices,  # (n, d, d) float32
    diagonal,  # (n, d) float32 out, in units of the trace
    beside,  # (n, d) float32 out
    d,
    D: tl.constexpr,
):
    """Reflect a matrix, a column at a time, until only three diagonals are left (Householder)."""
    own = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, D)
    row, column = n[:, None], n[None, :]
    there = (row < d) & (column < d)
    a = tl.load(matrices + own * d * d + row * d + column, mask=there, other=0.0)
    trace = tl.sum(tl.sum(tl.where(row == column, a, 0.0), 1))
    a = a / tl.where(trace > 0, trace, 1.0)
    for k in range(d - 2):
        x = tl.where(n > k, tl.sum(tl.where(column == k, a, 0.0), 1), 0.0)  # below the diagonal
        head = tl.sum(tl.where(n == k + 1, x, 0.0))
        tail = tl.sum(tl.where(n > k + 1, x * x, 0.0))
        some = tail > 1e-30  # or nothing is left to take away
        length = tl.sqrt(head * head + tail)
        kept = tl.where(some, tl.where(head > 0, -length, length), head)
        tl.store(beside + own * d + k, kept)
        # v = x - (kept, 0, …), a := (1 - b v vᵀ) a (1 - b v vᵀ)
        v = tl.where(some, x - tl.where(n == k + 1, kept, 0.0), 0.0)
        b = 2.0 / tl.where(some, tl.sum(v * v), 1.0)
        p = b * tl.sum(a * v[None, :], 1)
        w = p - 0.5 * b * tl.sum(p * v) * v
        a = a - v[:, None] * w[None, :] - w[:, None] * v[None, :]
    tl.store(diagonal + own * d + n, tl.sum(tl.where(row == column, a, 0.0), 1), mask=n < d)
    last = tl.sum(tl.sum(tl.where((row == d - 1) & (column == d - 2), a, 0.0), 1))
    if d > 1:
        tl.store(beside + own * d + d - 2, last)


@triton.jit
def bisect(
    diagonal,
    beside,
    values,  # (n, d) float32 out, rising
    d,
    D: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Halve the range of every eigenvalue, by how many of them lie below (Sturm)."""
    own = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, D)
    low = tl.full((D,), -1e-5, tl.float32)
    high = tl.full((D,), 1.0 + 1e-5, tl.float32)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        q = tl.load(diagonal + own * d) - middle
        below = (q < 0).to(tl.int32)
        for k in range(1, d):
            e = tl.load(beside + own * d + k - 1)
            q = tl.where(tl.abs(q) < 1e-20, -1e-20, q)
            q = tl.load(diagonal + own * d + k) - middle - e * e / q
            below += (q < 0).to(tl.int32)
        low = tl.where(below <= n, middle, low)
        high = tl.where(below <= n, high, middle)
    tl.store(values + own * d + n, 0.5 * (low + high), mask=n < d)


def eigenvalues(matrices: Tensor) -> Tensor:
    """Of positive matrices (…, d, d), in units of their traces, rising; 0 for a matrix of zeros."""
    d = matrices.shape[-1]
    flat = matrices.float().reshape(-1, d, d).contiguous()
    D = max(16, 1 << (d - 1).bit_length())
    diagonal, beside, values = torch.zeros(3, len(flat), d, device=flat.device)
    warps = 1 if D <= 64 else 8
    tridiagonal[(len(flat),)](flat, diagonal, beside, d, D=D, num_warps=warps)
    bisect[(len(flat),)](diagonal, beside, values, d, D=D, STEPS=STEPS, num_warps=max(1, D // 32))
    return values.view(matrices.shape[:-1])
