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


@triton.jit(do_not_specialize=["begin"])
def tridiagonal(
    matrices,  # (n, d, d) float32
    diagonal,  # (n, ALL) float32 out, in units of the trace; from place `begin` on
    beside,  # (n, ALL) float32 out
    rest,  # (n, D / 2, D / 2) float32 out: what is left, if HALF
    d,
    ALL,
    begin,
    D: tl.constexpr,
    UNITS: tl.constexpr,  # whether the trace is still to be divided by
    HALF: tl.constexpr,  # whether to stop when half of D is left
):
    """Reflect a matrix, a column at a time, until only three diagonals are left (Householder)."""
    own = tl.program_id(0).to(tl.int64)
    n = tl.arange(0, D)
    row, column = n[:, None], n[None, :]
    there = (row < d) & (column < d)
    a = tl.load(matrices + own * d * d + row * d + column, mask=there, other=0.0)
    if UNITS:
        trace = tl.sum(tl.sum(tl.where(row == column, a, 0.0), 1))
        a = a / tl.where(trace > 0, trace, 1.0)
    steps = d - D // 2 if HALF else d - 2
    diagonal += own * ALL + begin
    beside += own * ALL + begin
    for k in range(steps):
        x = tl.where(n > k, tl.sum(tl.where(column == k, a, 0.0), 1), 0.0)  # below the diagonal
        head = tl.sum(tl.where(n == k + 1, x, 0.0))
        tail = tl.sum(tl.where(n > k + 1, x * x, 0.0))
        some = tail > 1e-30  # or nothing is left to take away
        length = tl.sqrt(head * head + tail)
        kept = tl.where(some, tl.where(head > 0, -length, length), head)
        tl.store(beside + k, kept)
        # v = x - (kept, 0, …), a := (1 - b v vᵀ) a (1 - b v vᵀ)
        v = tl.where(some, x - tl.where(n == k + 1, kept, 0.0), 0.0)
        b = 2.0 / tl.where(some, tl.sum(v * v), 1.0)
        p = b * tl.sum(a * v[None, :], 1)
        w = p - 0.5 * b * tl.sum(p * v) * v
        a = a - v[:, None] * w[None, :] - w[:, None] * v[None, :]
    done = steps if HALF else d
    tl.store(diagonal + n, tl.sum(tl.where(row == column, a, 0.0), 1), mask=n < done)
    if HALF:
        # The lower right corner, for a smaller program.
        at = rest + own * (D // 2) * (D // 2) + (row - done) * (D // 2) + (column - done)
        tl.store(at, a, mask=there & (row >= done) & (column >= done))
    elif d > 1:
        last = tl.sum(tl.sum(tl.where((row == d - 1) & (column == d - 2), a, 0.0), 1))
        tl.store(beside + d - 2, last)


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
    left = matrices.float().reshape(-1, d, d).contiguous()
    number, begin, device = len(left), 0, left.device
    diagonal, beside, values = torch.zeros(3, number, d, device=device)
    while True:
        # A program works on the whole of what it holds, so half of it goes to a smaller one.
        size = left.shape[1]
        D = max(16, 1 << (size - 1).bit_length())
        half = D > 32
        rest = torch.empty(number, D // 2, D // 2, device=device) if half else left
        options = {"D": D, "UNITS": begin == 0, "HALF": half, "num_warps": 8 if D > 64 else 1}
        tridiagonal[(number,)](left, diagonal, beside, rest, size, d, begin, **options)
        if not half:
            break
        left, begin = rest, begin + size - D // 2
    D = max(16, 1 << (d - 1).bit_length())
    bisect[(number,)](diagonal, beside, values, d, D=D, STEPS=STEPS, num_warps=max(1, D // 32))
    return values.view(matrices.shape[:-1])
