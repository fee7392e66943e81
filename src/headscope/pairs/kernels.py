"""The Triton kernels of the pair statistics. A tile of C lives in registers and nowhere else.

Every kernel runs once for all heads and texts of a layer; program axis 1 is the head of a text
(bh = b · H + h). A tile is T × T products of vectors of T tokens with vectors of T tokens.
`kept` is 1 for tokens that take part, 0 for tokens left out and -1 for padding, never read.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

TILE = 64
BINS = 32
BIG: tl.constexpr = tl.constexpr(3.0e38)


@triton.jit
def _vectors(V, bh, block, S, d, T: tl.constexpr, D: tl.constexpr):
    """The vectors of one block of tokens, (T, D); zero beyond the text and beyond d."""
    i = block * T + tl.arange(0, T)
    k = tl.arange(0, D)
    inside = (i[:, None] < S) & (k[None, :] < d)
    return tl.load(V + bh.to(tl.int64) * S * d + i[:, None] * d + k[None, :], mask=inside, other=0)


@triton.jit
def _products(a, b, PRECISION: tl.constexpr):
    """The tile of C for two blocks of vectors, accumulated in float32."""
    return tl.dot(a, tl.trans(b), input_precision=PRECISION, out_dtype=tl.float32)


@triton.jit
def _row(pointer, text, block, S, T: tl.constexpr):
    """One number for every token of a block, from an array (texts, S); 0 beyond the text."""
    i = block * T + tl.arange(0, T)
    return tl.load(pointer + text * S + i, mask=i < S, other=0)


@triton.jit
def _key(c):
    """Whole numbers in the order of the values."""
    bits = c.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _level(c, low, scale, BINS: tl.constexpr):
    """The level of a value, 1 to BINS - 1 from low on and 0 below; it never falls when c rises.

    Adding 2**23 leaves a whole number in the last bits: rounding without a conversion.
    """
    near = tl.fma(c - low, scale, 8388608.0)
    whole = tl.minimum(near.to(tl.int32, bitcast=True) - 0x4B000000, BINS - 2) + 1
    return tl.where(c >= low, whole, 0)


@triton.jit
def _pairs(kept_i, kept_j, first, second, T: tl.constexpr):
    """Which entries of a tile are pairs i < j of tokens that take part."""
    i = first * T + tl.arange(0, T)
    j = second * T + tl.arange(0, T)
    return (kept_i[:, None] > 0) & (kept_j[None, :] > 0) & (i[:, None] < j[None, :])


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
        real = (_row(kept, text, block, S, T) >= 0)[:, None] & (k[None, :] < d) & (i[:, None] < S)
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
        part = _row(kept, text, block, S, T)
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
            a = _vectors(V, bh, first, S, d, T, D)
            b = _vectors(V, bh, second, S, d, T, D)
            c = _products(a, b, PRECISION)  # (T, T)
            full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
            if (full == 0) | (delta == 0):
                kept_i, kept_j = _row(kept, text, first, S, T), _row(kept, text, second, S, T)
                pair = _pairs(kept_i, kept_j, first, second, T)
                x = tl.where(pair, c - shift, 0.0)
                least = tl.min(tl.where(pair, c, BIG), 1)
                most = tl.max(tl.where(pair, c, -BIG), 1)
            else:
                x = c - shift
                least, most = tl.min(c, 1), tl.max(c, 1)
            lowest, highest = tl.minimum(lowest, least), tl.maximum(highest, most)
            total += x
            square += x * x
            sentence_i = _row(sentence, text, first, S, T)[:, None]
            sentence_j = _row(sentence, text, second, S, T)[None, :]
            word_i = _row(word, text, first, S, T)[:, None]
            word_j = _row(word, text, second, S, T)[None, :]
            plain_i = _row(ordinary, text, first, S, T)[:, None]
            plain_j = _row(ordinary, text, second, S, T)[None, :]
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
    a = _vectors(V, bh, first, S, d, T, D)
    kept_i = _row(kept, text, first, S, T)
    for second in range(first, blocks):
        b = _vectors(V, bh, second, S, d, T, D)
        level = _level(_products(a, b, PRECISION), low, scale, BINS)  # (T, T)
        full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
        if (full == 0) | (first == second):
            kept_j = _row(kept, text, second, S, T)
            level = tl.where(_pairs(kept_i, kept_j, first, second, T), level, 0)
        held += tl.histogram(tl.reshape(level, (T * T,)), BINS)
    place = (bh * tl.num_programs(0) + first).to(tl.int64) * BINS
    tl.store(counts + place + tl.arange(0, BINS), held)


@triton.jit(do_not_specialize=["S", "blocks"])
def count_reaching(
    V,
    kept,
    trials,  # (BH,) int32, key
    counts,  # (BH, row blocks) int32 out
    texts,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Count the pairs whose key reaches a trial."""
    first, bh = tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + bh)
    trial = tl.load(trials + bh)
    a = _vectors(V, bh, first, S, d, T, D)
    kept_i = _row(kept, text, first, S, T)
    count = tl.zeros((T,), tl.int32)
    for second in range(first, blocks):
        b = _vectors(V, bh, second, S, d, T, D)
        key = _key(_products(a, b, PRECISION))  # (T, T)
        pair = _pairs(kept_i, _row(kept, text, second, S, T), first, second, T)
        count += tl.sum((pair & (key >= trial)).to(tl.int32), 1)
    tl.store(counts + bh * tl.num_programs(0) + first, tl.sum(count))


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
    a = _vectors(V, bh, first, S, d, T, D)
    kept_i = _row(kept, text, first, S, T)
    i = first * T + tl.arange(0, T)
    reach_i = tl.load(reach + bh * reach_head + i * reach_token, mask=i < S, other=BIG)
    base = bh.to(tl.int64) * capacity
    for second in range(first, blocks):
        b = _vectors(V, bh, second, S, d, T, D)
        c = _products(a, b, PRECISION)  # (T, T)
        j = second * T + tl.arange(0, T)
        reach_j = tl.load(reach + bh * reach_head + j * reach_token, mask=j < S, other=BIG)
        wanted = c >= tl.minimum(reach_i[:, None], reach_j[None, :])
        full = tl.load(whole + text * blocks + first) & tl.load(whole + text * blocks + second)
        if (full == 0) | (first == second):
            kept_j = _row(kept, text, second, S, T)
            wanted = wanted & _pairs(kept_i, kept_j, first, second, T)
        slot = tl.atomic_add(found + bh + tl.zeros((T, T), tl.int32), 1, mask=wanted, sem="relaxed")
        fits = wanted & (slot < capacity)
        tl.store(places + base + slot, i[:, None] * S + j[None, :], mask=fits)
        tl.store(values + base + slot, c, mask=fits)


@triton.jit(do_not_specialize=["capacity"])
def select(
    values,  # (BH, capacity) float32
    found,  # (BH,) int32
    levels,  # (BH, 2) float32, as for count_levels
    chosen,  # (BH,) int32, the level of the wanted value
    ranks,  # (BH,) int32, which of the values of that level, from above, starting at 1
    reach,  # (BH,) float32 out
    capacity,
    BINS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find the wanted value of a level, by splitting the range of its keys again and again."""
    bh = tl.program_id(0)
    size = tl.minimum(tl.load(found + bh), capacity)
    begin, scale = tl.load(levels + bh * 2), tl.load(levels + bh * 2 + 1)
    level, rank = tl.load(chosen + bh), tl.load(ranks + bh)
    base = bh.to(tl.int64) * capacity
    bins = tl.arange(0, BINS)
    least = tl.full((BLOCK,), 2147483647, tl.int32)
    most = tl.full((BLOCK,), -2147483648, tl.int32)
    for start in range(0, size, BLOCK):
        n = start + tl.arange(0, BLOCK)
        c = tl.load(values + base + n, mask=n < size, other=0.0)
        inside = (n < size) & (_level(c, begin, scale, BINS) == level)
        least = tl.where(inside, tl.minimum(least, _key(c)), least)
        most = tl.where(inside, tl.maximum(most, _key(c)), most)
    low = tl.min(least)
    width = (tl.max(most) - low).to(tl.int64) & 0xFFFFFFFF
    last = tl.max(most)
    shift = 0
    while (width >> shift) > 0:
        shift += 5
    while shift > 0:
        shift -= 5
        held = tl.zeros((BINS,), tl.int32)
        for start in range(0, size, BLOCK):
            n = start + tl.arange(0, BLOCK)
            c = tl.load(values + base + n, mask=n < size, other=0.0)
            key = _key(c)
            above = ((key - low).to(tl.int64) & 0xFFFFFFFF) >> shift
            inside = (n < size) & (key >= low) & (key <= last) & (above < BINS)
            # Bins for other values: none. They are counted in bin 0 and taken off again.
            held += tl.histogram(tl.where(inside, above, 0).to(tl.int32), BINS)
            held -= tl.where(bins == 0, tl.sum((inside == 0).to(tl.int32)), 0)
        upwards = tl.sum(held) - tl.cumsum(held, 0) + held  # values in this bin and above
        bin_ = tl.max(tl.where(upwards >= rank, bins, 0))
        rank -= tl.sum(tl.where(bins > bin_, held, 0))
        low += bin_ << shift
    bits = low ^ ((low >> 31) & 0x7FFFFFFF)
    tl.store(reach + bh, bits.to(tl.float32, bitcast=True))


@triton.jit(do_not_specialize=["S", "capacity", "reach_head", "reach_token"])
def count_high(
    places,  # (BH, capacity) int32
    values,  # (BH, capacity) float32
    found,  # (BH,) int32
    reach,  # (BH, S) float32
    reach_head,
    reach_token,
    sentence,  # (B, S) int32
    token,
    word,
    ordinary,
    counters,  # (BH, 8) int64 in and out
    by_distance,  # (BH, S) int32 in and out
    taking_part,  # (BH, S) int32 in and out
    sums,  # (BH, 2) int64 in and out: of related and unrelated C, in units of 1 / unit
    units,  # (BH,) float32
    capacity,
    texts,
    S,
    BLOCK: tl.constexpr,
):
    """Count the listed pairs that are high. All sums are of whole numbers: any order will do."""
    chunk, bh = tl.program_id(0), tl.program_id(1)
    size = tl.minimum(tl.load(found + bh), capacity)
    unit = tl.load(units + bh)
    at, own = tl.load(texts + bh) * S, bh * S
    base = bh.to(tl.int64) * capacity
    for start in range(chunk * BLOCK, size, BLOCK * tl.num_programs(0)):
        n = start + tl.arange(0, BLOCK)
        listed = n < size
        place = tl.load(places + base + n, mask=listed, other=0)
        c = tl.load(values + base + n, mask=listed, other=0.0)
        i, j = place // S, place % S
        limit = reach + bh * reach_head
        least = tl.minimum(tl.load(limit + i * reach_token), tl.load(limit + j * reach_token))
        high = listed & (c >= least)
        same_sentence = tl.load(sentence + at + i) == tl.load(sentence + at + j)
        same_token = tl.load(token + at + i) == tl.load(token + at + j)
        same_word = tl.load(word + at + i) == tl.load(word + at + j)
        plain = (tl.load(ordinary + at + i) & tl.load(ordinary + at + j)) != 0
        unrelated = high & plain & (j - i > 32) & (same_sentence == 0) & (same_word == 0)
        tl.atomic_add(by_distance + own + j - i, 1, mask=high, sem="relaxed")
        tl.atomic_add(taking_part + own + i, 1, mask=high, sem="relaxed")
        tl.atomic_add(taking_part + own + j, 1, mask=high, sem="relaxed")
        out = counters + bh * 8
        tl.atomic_add(out, tl.sum(high.to(tl.int64)), sem="relaxed")
        tl.atomic_add(out + 1, tl.sum((high & same_sentence).to(tl.int64)), sem="relaxed")
        tl.atomic_add(out + 2, tl.sum((high & same_token).to(tl.int64)), sem="relaxed")
        tl.atomic_add(out + 3, tl.sum((high & same_word).to(tl.int64)), sem="relaxed")
        tl.atomic_add(out + 4, tl.sum((high & (plain == 0)).to(tl.int64)), sem="relaxed")
        tl.atomic_add(out + 5, tl.sum(unrelated.to(tl.int64)), sem="relaxed")
        whole = (c.to(tl.float64) * unit.to(tl.float64)).to(tl.int64)
        far = tl.sum(tl.where(unrelated, whole, 0))
        tl.atomic_add(sums + bh * 2, tl.sum(tl.where(high, whole, 0)) - far, sem="relaxed")
        tl.atomic_add(sums + bh * 2 + 1, far, sem="relaxed")


@triton.jit
def _reaching(
    V,
    kept,
    bh,
    text,
    first,
    trial,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """How many partners of each token of a block have a key that reaches its trial, (T,)."""
    a = _vectors(V, bh, first, S, d, T, D)
    i = first * T + tl.arange(0, T)
    count = tl.zeros((T,), tl.int32)
    for second in range(blocks):
        b = _vectors(V, bh, second, S, d, T, D)
        key = _key(_products(a, b, PRECISION))  # (T, T)
        j = second * T + tl.arange(0, T)
        partner = (_row(kept, text, second, S, T)[None, :] > 0) & (i[:, None] != j[None, :])
        count += tl.sum((partner & (key >= trial[:, None])).to(tl.int32), 1)
    return count


@triton.jit(do_not_specialize=["S", "blocks", "k"])
def nearest_reach(
    V,
    kept,
    reach,  # (BH, S) float32 out
    k,
    texts,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The k-th largest similarity of every token, bit by bit: the largest key that k pairs reach.

    A token with fewer partners reaches all of them.
    """
    first, bh = tl.program_id(0), tl.program_id(1)
    text = tl.load(texts + bh)
    none = tl.full((T,), -2147483648, tl.int32)
    trial = tl.zeros((T,), tl.int32)  # the sign first: 0 is the smallest key that is not negative
    count = _reaching(V, kept, bh, text, first, trial, S, d, blocks, T, D, PRECISION)
    least = tl.where(count >= k, trial, none)
    for bit in range(31):
        trial = least + (1073741824 >> bit)
        count = _reaching(V, kept, bh, text, first, trial, S, d, blocks, T, D, PRECISION)
        least = tl.where(count >= k, trial, least)
    bits = least ^ ((least >> 31) & 0x7FFFFFFF)
    value = tl.where(least == none, -BIG, bits.to(tl.float32, bitcast=True))
    i = first * T + tl.arange(0, T)
    tl.store(reach + bh * S + i, value, mask=i < S)
