"""The Triton kernels that go over all tiles of C for every statistic: sums, levels and lists.

Every kernel runs once for all heads and texts of a layer; program axis 1 is the head of a text
(bh = b · H + h). `kept` is 1 for tokens that take part, 0 for tokens left out and -1 for padding,
which is never read.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.tiles import BIG, are_pairs, block_vectors, level_of, products, row


@triton.jit(do_not_specialize=["S", "blocks", "H"])
def prepare(
    Z,  # (B, H, S, d) of any strides
    kept,  # (B, S) int32
    pairs,  # (B,) float32, how many pairs there are
    V,  # (BH, S, d) out: scaled
    exponents,  # (BH,) int32 out
    shifts,  # (BH,) float32 out: about the mean of C
    finite,  # (BH,) int32 out
    stride_b,
    stride_h,
    stride_s,
    stride_d,
    H,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    SCALE: tl.constexpr,
):
    """Copy the vectors, scaled by a power of two so that the largest entry is below 1."""
    bh = tl.program_id(0)
    text, head = bh // H, bh % H
    z = Z + text.to(tl.int64) * stride_b + head * stride_h
    k = tl.arange(0, D)
    largest = tl.zeros((T, D), tl.float32)
    bad = tl.zeros((T, D), tl.int32)
    for block in range(blocks):
        i = block * T + tl.arange(0, T)
        real = (row(kept, text, block, S, T) >= 0)[:, None] & (k[None, :] < d) & (i[:, None] < S)
        value = tl.load(z + i[:, None] * stride_s + k[None, :] * stride_d, mask=real, other=0).to(
            tl.float32
        )
        size = tl.abs(value)
        bad = bad | (size < BIG * 1.2).to(tl.int32) ^ 1  # false for NaN and infinity
        largest = tl.maximum(largest, tl.where(size < BIG * 1.2, size, 0.0))
    top = tl.max(largest)
    fine = 1 - tl.max(bad)
    exponent = ((top.to(tl.int32, bitcast=True) >> 23) & 255) - 126
    exponent = tl.where((top > 0) & (fine == 1), exponent, 0)
    if not SCALE:
        exponent = exponent * 0
    half = exponent >> 1
    down = ((127 - half) << 23).to(tl.float32, bitcast=True)
    rest = ((127 - (exponent - half)) << 23).to(tl.float32, bitcast=True)
    total = tl.zeros((D,), tl.float32)
    square = tl.zeros((T,), tl.float32)
    for block in range(blocks):
        i = block * T + tl.arange(0, T)
        part = row(kept, text, block, S, T)
        here = (k[None, :] < d) & (i[:, None] < S)
        real = (part >= 0)[:, None] & here
        raw = tl.load(z + i[:, None] * stride_s + k[None, :] * stride_d, mask=real, other=0)
        value = raw.to(tl.float32) * down * rest
        value = tl.where(fine == 1, value, 0.0)
        place = V + bh.to(tl.int64) * S * d + i[:, None] * d + k[None, :]
        tl.store(place, value.to(V.dtype.element_ty), mask=here)
        value = tl.where((part > 0)[:, None], value, 0.0)
        total += tl.sum(value, 0)
        square += tl.sum(value * value, 1)
    count = tl.maximum(tl.load(pairs + text), 1.0)
    tl.store(shifts + bh, (tl.sum(total * total) - tl.sum(square)) / (2.0 * count))
    tl.store(exponents + bh, exponent)
    tl.store(finite + bh, fine)


@triton.jit(do_not_specialize=["S", "blocks"])
def add_up(
    V,  # (BH, S, d) read vectors
    kept,  # (B, S) int32
    sentence,  # (B, S) int32
    word,  # (B, S) int32
    ordinary,  # (B, S) int32
    whole,  # (B, blocks) int32, 1 where all tokens of a block take part
    shifts,  # (BH,) float32
    by_distance,  # (BH, blocks, 2, 2, T) float32 out: sums and squares, at and below delta T + n
    unrelated,  # (BH, programs, 2) float32 out
    extremes,  # (BH, programs, 2) float32 out
    texts,  # (BH,) int32, the text of a head
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Sums by distance, sums over unrelated pairs, minimum and maximum.

    A program takes the tiles of two block diagonals, delta and blocks - delta, which together are
    as many for every program. Along a block diagonal an entry of the tile keeps its distance, so
    the sums by distance are sums of tiles, and only their total is taken apart by distance.
    """
    program, bh = tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + bh)
    shift = tl.load(shifts + bh)
    i = tl.arange(0, T)[:, None]
    j = tl.arange(0, T)[None, :]
    far = tl.zeros((T,), tl.float32)
    far_square = tl.zeros((T,), tl.float32)
    lowest = tl.full((T,), BIG, tl.float32)
    highest = tl.full((T,), -BIG, tl.float32)
    for side in range(2):
        delta = tl.where(side == 0, program, blocks - program)
        # The second diagonal of the first program does not exist; half way both are the same.
        some = (side == 0) | ((program > 0) & (delta != program))
        tiles = tl.where(some, blocks - delta, 0)
        total = tl.zeros((T, T), tl.float32)
        square = tl.zeros((T, T), tl.float32)
        for first in range(tiles):
            second = first + delta
            a = block_vectors(V, bh, first, S, d, T, D)
            b = block_vectors(V, bh, second, S, d, T, D)
            c = products(a, b, PRECISION)  # (T, T)
            full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
            if (full == 0) | (delta == 0):
                kept_i, kept_j = row(kept, text, first, S, T), row(kept, text, second, S, T)
                pair = are_pairs(kept_i, kept_j, first, second, T)
                x = tl.where(pair, c - shift, 0.0)
                least = tl.min(tl.where(pair, c, BIG), 1)
                most = tl.max(tl.where(pair, c, -BIG), 1)
            else:
                x = c - shift
                least, most = tl.min(c, 1), tl.max(c, 1)
            lowest, highest = tl.minimum(lowest, least), tl.maximum(highest, most)
            total += x
            square += x * x
            sentence_i = row(sentence, text, first, S, T)[:, None]
            sentence_j = row(sentence, text, second, S, T)[None, :]
            word_i = row(word, text, first, S, T)[:, None]
            word_j = row(word, text, second, S, T)[None, :]
            plain_i = row(ordinary, text, first, S, T)[:, None]
            plain_j = row(ordinary, text, second, S, T)[None, :]
            apart = (sentence_i != sentence_j) & (word_i != word_j) & ((plain_i & plain_j) != 0)
            y = tl.where(apart, x, 0.0)
            if delta <= 1:
                y = tl.where(delta * T + j - i > 32, y, 0.0)
            far += tl.sum(y, 1)
            far_square += tl.sum(y * y, 1)
        if some:
            # Entry (i, i + n mod T) into column n: its distance is delta T + n, less T if wrapped.
            turned = tl.broadcast_to((i + j) % T, (T, T))
            total = tl.gather(total, turned, 1)
            square = tl.gather(square, turned, 1)
            wrapped = i + j >= T
            out = by_distance + (bh.to(tl.int64) * blocks + delta) * 4 * T + tl.arange(0, T)
            tl.store(out, tl.sum(tl.where(wrapped, 0.0, total), 0))
            tl.store(out + T, tl.sum(tl.where(wrapped, total, 0.0), 0))
            tl.store(out + 2 * T, tl.sum(tl.where(wrapped, 0.0, square), 0))
            tl.store(out + 3 * T, tl.sum(tl.where(wrapped, square, 0.0), 0))
    place = (bh * tl.num_programs(0) + program) * 2
    tl.store(unrelated + place, tl.sum(far))
    tl.store(unrelated + place + 1, tl.sum(far_square))
    tl.store(extremes + place, tl.min(lowest))
    tl.store(extremes + place + 1, tl.max(highest))


@triton.jit(do_not_specialize=["S", "blocks"])
def count_levels(
    V,
    kept,
    whole,
    levels,  # (BH, 2) float32, where the levels begin, and levels for a unit of C
    counts,  # (BH, row blocks, BINS) int32 out; level 0 is what lies below
    texts,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    BINS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Count the pairs of every level."""
    first, bh = tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + bh)
    low, scale = tl.load(levels + bh * 2), tl.load(levels + bh * 2 + 1)
    held = tl.zeros((BINS,), tl.int32)
    a = block_vectors(V, bh, first, S, d, T, D)
    kept_i = row(kept, text, first, S, T)
    for second in range(first, blocks):
        b = block_vectors(V, bh, second, S, d, T, D)
        level = level_of(products(a, b, PRECISION), low, scale, BINS)  # (T, T)
        full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
        if (full == 0) | (first == second):
            kept_j = row(kept, text, second, S, T)
            level = tl.where(are_pairs(kept_i, kept_j, first, second, T), level, 0)
        held += tl.histogram(tl.reshape(level, (T * T,)), BINS)
    place = (bh * tl.num_programs(0) + first).to(tl.int64) * BINS
    tl.store(counts + place + tl.arange(0, BINS), held)


@triton.jit(
    do_not_specialize=["S", "blocks", "capacity", "first_block", "reach_head", "reach_token"]
)
def collect(
    V,
    kept,
    whole,
    reach,  # (BH, S) float32, from where on a token wants a pair
    reach_head,  # its strides: 1 and 0 where all tokens of a head want the same
    reach_token,
    found,  # (BH,) int32 in and out: how many pairs there are
    places,  # (BH, capacity) int32 out: i S + j
    values,  # (BH, capacity) float32 out
    first_block,
    capacity,
    texts,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """List the pairs that reach the threshold of either end, in no order."""
    first, bh = first_block + tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + bh)
    a = block_vectors(V, bh, first, S, d, T, D)
    kept_i = row(kept, text, first, S, T)
    i = first * T + tl.arange(0, T)
    reach_i = tl.load(reach + bh * reach_head + i * reach_token, mask=i < S, other=BIG)
    base = bh.to(tl.int64) * capacity
    for second in range(first, blocks):
        b = block_vectors(V, bh, second, S, d, T, D)
        c = products(a, b, PRECISION)  # (T, T)
        j = second * T + tl.arange(0, T)
        reach_j = tl.load(reach + bh * reach_head + j * reach_token, mask=j < S, other=BIG)
        wanted = c >= tl.minimum(reach_i[:, None], reach_j[None, :])
        full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
        if (full == 0) | (first == second):
            kept_j = row(kept, text, second, S, T)
            wanted = wanted & are_pairs(kept_i, kept_j, first, second, T)
        slot = tl.atomic_add(found + bh + tl.zeros((T, T), tl.int32), 1, mask=wanted, sem="relaxed")
        fits = wanted & (slot < capacity)
        tl.store(places + base + slot, i[:, None] * S + j[None, :], mask=fits)
        tl.store(values + base + slot, c, mask=fits)
