"""What the Triton kernels of the pair statistics have in common: a tile of C and its entries.

A tile is T × T products of the vectors of T tokens with those of T tokens; it lives in registers
and nowhere else.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

TILE = 64
BINS = 32
BIG: tl.constexpr = tl.constexpr(3.0e38)


@triton.jit
def block_vectors(V, bh, block, S, d, T: tl.constexpr, D: tl.constexpr):
    """The vectors of one block of tokens, (T, D); zero beyond the text and beyond d."""
    i = block * T + tl.arange(0, T)
    k = tl.arange(0, D)
    inside = (i[:, None] < S) & (k[None, :] < d)
    return tl.load(V + bh.to(tl.int64) * S * d + i[:, None] * d + k[None, :], mask=inside, other=0)


@triton.jit
def products(a, b, PRECISION: tl.constexpr):
    """The tile of C for two blocks of vectors, accumulated in float32."""
    return tl.dot(a, tl.trans(b), input_precision=PRECISION, out_dtype=tl.float32)


@triton.jit
def row(pointer, text, block, S, T: tl.constexpr):
    """One number for every token of a block, from an array (texts, S); 0 beyond the text."""
    i = block * T + tl.arange(0, T)
    return tl.load(pointer + text * S + i, mask=i < S, other=0)


@triton.jit
def key_of(c):
    """Whole numbers in the order of the values."""
    bits = c.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def level_of(c, low, scale, BINS: tl.constexpr):
    """The level of a value, 1 to BINS - 1 from low on and 0 below; it never falls when c rises.

    Adding 2**23 leaves a whole number in the last bits: rounding without a conversion.
    """
    near = tl.fma(c - low, scale, 8388608.0)
    whole = tl.minimum(near.to(tl.int32, bitcast=True) - 0x4B000000, BINS - 2) + 1
    return tl.where(c >= low, whole, 0)


@triton.jit
def are_pairs(kept_i, kept_j, first, second, T: tl.constexpr):
    """Which entries of a tile are pairs i < j of tokens that take part."""
    i = first * T + tl.arange(0, T)
    j = second * T + tl.arange(0, T)
    return (kept_i[:, None] > 0) & (kept_j[None, :] > 0) & (i[:, None] < j[None, :])
