"""What the Triton kernels have in common: a tile of C, its entries and their levels.

A tile holds the products of the vectors of some tokens with those of others; it lives in registers
and nowhere else. Program axis 1 is a place in `heads`, the heads that a launch is for; a head of a
text has the number bh = b · H + h, under which everything about it is kept. `kept` is 1 for tokens
that take part, 0 for tokens left out and -1 for padding, which is never read.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl
from triton import knobs

from headscope.pairs.tokens import UNRELATED_DISTANCE

INTERPRETED: tl.constexpr = tl.constexpr(knobs.runtime.interpret)

BIG: tl.constexpr = tl.constexpr(3.0e38)
FAR: tl.constexpr = tl.constexpr(UNRELATED_DISTANCE)  # pairs no further apart are related
SMALLEST: tl.constexpr = tl.constexpr(2.0**-40)  # entry of a vector whose cosine is a product
LEVELS = 1024
LOWEST: tl.constexpr = tl.constexpr(0.000244140625)  # 2**-12, where level 1 begins
LOWEST_BITS: tl.constexpr = tl.constexpr(0x39800000)


@triton.jit
def vectors(Z, start, i, size, stride, d, D: tl.constexpr):
    """The vectors (tokens, D) of tokens i of a head; zero outside the text and beyond d."""
    k = tl.arange(0, D)
    inside = (i[:, None] >= 0) & (i[:, None] < size) & (k[None, :] < d)
    return tl.load(Z + start + i[:, None] * stride + k[None, :], mask=inside, other=0)


@triton.jit
def head_start(bh, H, texts, z_text, z_head):
    """Where the vectors of a head begin; settings may share those of so many texts."""
    return (bh // H % texts).to(tl.int64) * z_text + (bh % H) * z_head


@triton.jit
def own_inverse(inverse, bh, H, texts, S):
    """Where one over the lengths of the vectors of a head begins."""
    return inverse + (bh % (texts * H)).to(tl.int64) * S


@triton.jit
def similarities(a, b, inverse, i, j, size, COSINE: tl.constexpr, PRECISION: tl.constexpr):
    """The tile of C for two blocks of vectors, of tokens i and j, accumulated in float32.

    Vectors are read as they are; for the cosine, the lengths of both are taken off their product.
    """
    c = tl.dot(a, tl.trans(b), input_precision=PRECISION, out_dtype=tl.float32)
    if COSINE:
        one = tl.load(inverse + i, mask=(i >= 0) & (i < size), other=0.0)
        other = tl.load(inverse + j, mask=(j >= 0) & (j < size), other=0.0)
        c = c * (one[:, None] * other[None, :])
    return c


@triton.jit
def of_tokens(pointer, text, i, S):
    """One number for every token i, from an array (texts, S); 0 beyond the text."""
    return tl.load(pointer + text * S + i, mask=i < S, other=0)


@triton.jit
def key_of(c):
    """A whole number that is ordered like the value."""
    bits = c.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def value_of(key):
    """The value that has a key."""
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def level_of(c, shift, scale, LEVELS: tl.constexpr):
    """The level of a value: 64 an octave of (c - shift) scale from 2**-12 on, 0 below.

    It never falls when c rises.
    """
    u = (c - shift) * scale
    level = ((u.to(tl.int32, bitcast=True) - LOWEST_BITS) >> 17) + 1
    return tl.where(u >= LOWEST, tl.minimum(level, LEVELS - 1), 0)


@triton.jit
def level_begins(level, shift, scale):
    """A value just below the first of a level."""
    u = (((level - 1) << 17) + LOWEST_BITS).to(tl.float32, bitcast=True)
    value = shift + u / scale
    return value - 1e-5 * (tl.abs(value) + tl.abs(shift))


@triton.jit
def exp2(x):
    """2**x in one instruction: results below 2**-126 become 0."""
    if INTERPRETED:
        y = tl.exp2(x)
    else:
        y = tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return y


@triton.jit
def append(found, listed, room, c, edge, which, place, ASSEMBLY: tl.constexpr):
    """Add the entries of a tile that reach the edge to lists.

    `which` of the lists (lists, room), `found` in each so far; an entry is the place, in the lower
    half of 64 bits, and the bits of the value; the sign of the place is set for a pair that is
    hidden from heads under `left_out`. In assembly each thread keeps the entries that it
    has; Triton's own atomics and stores would first move all of them to other threads. But for
    small tiles several threads have the same entry, and only Triton knows which.
    """
    if INTERPRETED or not ASSEMBLY:
        wanted = c >= edge
        slot = tl.atomic_add(found + which, 1, mask=wanted, sem="relaxed")
        entry = (c.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (
            place.to(tl.int64) & 0xFFFFFFFF
        )
        tl.store(listed + which * room + slot, entry, mask=wanted & (slot < room))
    else:
        slot = tl.inline_asm_elementwise(
            """
            {
            .reg .pred p;
            .reg .b64 at;
            setp.ge.f32 p, $1, $2;
            mad.wide.u32 at, $3, 4, $4;
            mov.b32 $0, -1;
            @p atom.global.relaxed.gpu.add.u32 $0, [at], 1;
            }
            """,
            "=r,f,f,r,l",
            [c, edge, which, found.to(tl.int64)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
        tl.inline_asm_elementwise(
            """
            {
            .reg .pred p;
            .reg .b64 at;
            .reg .b32 n;
            setp.lt.u32 p, $1, $2;
            mad.lo.u32 n, $3, $2, $1;
            mad.wide.u32 at, n, 8, $4;
            @p st.global.v2.b32 [at], {$5, $6};
            mov.b32 $0, 0;
            }
            """,
            "=r,r,r,r,l,r,f",
            [slot, room, which, listed.to(tl.int64), place, c],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )


@triton.jit
def listed_value(entry):
    """The similarity of a listed pair."""
    return (entry >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def listed_place(entry):
    """The place i S + j of a listed pair."""
    return (entry & 0x7FFFFFFF).to(tl.int32)


@triton.jit
def shown(entry, HIDE: tl.constexpr):
    """Whether a listed pair is one for the heads that look."""
    return ((entry >> 31) & 1) == 0 if HIDE else entry == entry
