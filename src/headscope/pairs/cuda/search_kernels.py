"""The Triton kernels that find thresholds: in the lists of pairs, or bit by bit."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import (
    BIG,
    head_start,
    key_of,
    level_of,
    listed_value,
    of_tokens,
    own_inverse,
    shown,
    similarities,
    value_of,
    vectors,
)


@triton.jit
def _steps(c, bh, shifts, scales, edge_levels, LEVELS: tl.constexpr, STEPS: tl.constexpr):
    """How many levels above the edge a value lies, and where in its level, both below STEPS.

    Neither falls when c rises, the second among values of one level. What lies beyond the steps
    is put into the last one, and not told apart further; what lies below the edge is negative.
    """
    shift, scale = tl.load(shifts + bh), tl.load(scales + bh)
    level = level_of(c, shift, scale, LEVELS)
    rise = level - tl.load(edge_levels + bh)
    bits = ((c - shift) * scale).to(tl.int32, bitcast=True)  # a level is 2**17 of them
    inside = (bits & 0x1FFFF) // (0x20000 // STEPS)
    known = (level > 0) & (level < LEVELS - 1) & (rise < STEPS - 1)
    return tl.minimum(rise, STEPS - 1), tl.where(known, inside, 0)


@triton.jit
def _wanted(counts, place, rank, STEPS: tl.constexpr):
    """The step that holds the value of a rank, and its rank there."""
    step = tl.arange(0, STEPS)
    held = tl.load(counts + place * STEPS + step)
    upwards = tl.sum(held) - tl.cumsum(held, 0) + held
    wanted = tl.max(tl.where(upwards >= rank, step, 0))
    return wanted, rank - tl.sum(tl.where(step > wanted, held, 0))


@triton.jit(do_not_specialize=["room", "lists"])
def count_steps(
    listed,  # (heads, lists, room) int64
    found,  # (heads, lists) int32
    heads,
    shifts,
    scales,
    edge_levels,
    ranks,  # (B,) int32
    counts,  # (heads, STEPS) int32 in and out: pairs of each level above the edge
    finer,  # (heads, STEPS) int32 in and out: pairs of each part of the wanted level
    room,
    lists,
    H,
    FINER: tl.constexpr,
    HIDE: tl.constexpr,
    LEVELS: tl.constexpr,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count the listed pairs of each level above the edge, or of each part of the wanted level."""
    program, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    step = tl.arange(0, STEPS)
    level = 0
    if FINER:
        level, _ = _wanted(counts, own, tl.load(ranks + bh // H), STEPS)
    held = tl.zeros((STEPS,), tl.int32)
    for n in range(program, lists, tl.num_programs(0)):
        size = tl.minimum(tl.load(found + own * lists + n), room)
        base = listed + (own.to(tl.int64) * lists + n) * room
        for start in range(0, size, BLOCK):
            m = start + tl.arange(0, BLOCK)
            entry = tl.load(base + m, mask=m < size, other=0)
            c = listed_value(entry)
            rise, part = _steps(c, bh, shifts, scales, edge_levels, LEVELS, STEPS)
            there = (m < size) & shown(entry, HIDE) & (rise >= 0)
            if FINER:
                there = there & (rise == level)
                rise = part
            # What is not there is counted in step 0 and taken off again.
            held += tl.histogram(tl.where(there, rise, 0), STEPS)
            held -= tl.where(step == 0, BLOCK - tl.sum(there.to(tl.int32)), 0)
    out = finer if FINER else counts
    tl.atomic_add(out + own * STEPS + step, held, sem="relaxed")


@triton.jit(do_not_specialize=["room", "lists"])
def gather(
    listed,
    found,
    heads,
    shifts,
    scales,
    edge_levels,
    ranks,
    counts,
    finer,
    near,  # (heads, NEAR) int32 out: the keys of the values in the wanted part
    near_found,  # (heads,) int32 in and out
    failed,  # (BH,) float32 out: 1 where a list did not have room
    room,
    lists,
    H,
    NEAR: tl.constexpr,
    HIDE: tl.constexpr,
    LEVELS: tl.constexpr,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write down the values that share a part of a level with the one of the wanted rank."""
    program, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    level, left = _wanted(counts, own, tl.load(ranks + bh // H), STEPS)
    wanted, _ = _wanted(finer, own, left, STEPS)
    for n in range(program, lists, tl.num_programs(0)):
        all_found = tl.load(found + own * lists + n)
        if all_found > room:
            tl.store(failed + bh, 1.0)
        size = tl.minimum(all_found, room)
        base = listed + (own.to(tl.int64) * lists + n) * room
        for start in range(0, size, BLOCK):
            m = start + tl.arange(0, BLOCK)
            entry = tl.load(base + m, mask=m < size, other=0)
            c = listed_value(entry)
            rise, part = _steps(c, bh, shifts, scales, edge_levels, LEVELS, STEPS)
            inside = (m < size) & shown(entry, HIDE) & (rise == level) & (part == wanted)
            one = near_found + own + tl.zeros((BLOCK,), tl.int32)
            slot = tl.atomic_add(one, 1, mask=inside, sem="relaxed")
            tl.store(near + own * NEAR + slot, key_of(c), mask=inside & (slot < NEAR))


@triton.jit
def pick(
    near,  # (heads, NEAR) int32
    near_found,
    heads,
    ranks,
    counts,
    finer,
    reach,  # (BH,) float32 out
    failed,  # (BH,) float32 in and out: 1 where the list is too short, or the part has no room
    H,
    NEAR: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Find the value of a rank among the values near it, by halving the range of keys."""
    own = tl.program_id(0)
    bh = tl.load(heads + own)
    rank = tl.load(ranks + bh // H)
    _, left = _wanted(counts, own, rank, STEPS)
    _, left = _wanted(finer, own, left, STEPS)
    n = tl.arange(0, NEAR)
    size = tl.load(near_found + own)
    there = n < size
    key = tl.load(near + own * NEAR + n, mask=there, other=-2147483648)
    low = tl.min(tl.where(there, key, 2147483647)).to(tl.int64)
    high = tl.max(key).to(tl.int64)
    while low < high:
        middle = (low + high + 1) >> 1
        if tl.sum((there & (key >= middle)).to(tl.int32)) >= left:
            low = middle
        else:
            high = middle - 1
    tl.store(reach + bh, value_of(low.to(tl.int32)))
    total = tl.sum(tl.load(counts + own * STEPS + tl.arange(0, STEPS)))
    if (total < rank) | (size > NEAR):
        tl.store(failed + bh, 1.0)


@triton.jit(do_not_specialize=["S", "H", "texts", "number"])
def count_reaching(
    Z,
    heads,
    kept,
    ranks,  # (heads,) int32
    counts,  # (rounds, heads, 3) int32 in and out: pairs that reach the trials of each round
    number,  # of this round
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Count the pairs whose key reaches one of three trials, which parts the range into four.

    The range is what the rounds before have left of it.
    """
    first, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    rank, least = tl.load(ranks + own), tl.program_id(0).to(tl.int64) * 0 - 2147483648
    step = least * 0 + 1073741824
    for before in range(number):
        at = counts + (before * tl.num_programs(1) + own) * 3
        for part in tl.static_range(3):
            least += tl.where(tl.load(at + part) >= rank, step, 0)
        step = step // 4
    i = first * T + tl.arange(0, T)
    a = vectors(Z, start, i, S, z_token, d, D)
    kept_i = of_tokens(kept, text, i, S) > 0
    count_1 = tl.zeros((T,), tl.int32)
    count_2 = tl.zeros((T,), tl.int32)
    count_3 = tl.zeros((T,), tl.int32)
    for second in range(first, blocks):
        j = second * T + tl.arange(0, T)
        b = vectors(Z, start, j, S, z_token, d, D)
        key = key_of(similarities(a, b, inverse, i, j, S, COSINE, PRECISION))  # (T, T)
        pair = kept_i[:, None] & (of_tokens(kept, text, j, S) > 0)[None, :]
        pair = pair & (i[:, None] < j[None, :])
        count_1 += tl.sum((pair & (key >= (least + step).to(tl.int32))).to(tl.int32), 1)
        count_2 += tl.sum((pair & (key >= (least + 2 * step).to(tl.int32))).to(tl.int32), 1)
        count_3 += tl.sum((pair & (key >= (least + 3 * step).to(tl.int32))).to(tl.int32), 1)
    out = counts + (number * tl.num_programs(1) + own) * 3
    tl.atomic_add(out, tl.sum(count_1), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(count_2), sem="relaxed")
    tl.atomic_add(out + 2, tl.sum(count_3), sem="relaxed")


@triton.jit
def _reaching(
    Z,
    start,
    kept,
    text,
    first,
    trial,
    z_token,
    S,
    d,
    inverse,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """How many partners of each token of a block have a key that reaches its trial, (T,)."""
    i = first * T + tl.arange(0, T)
    a = vectors(Z, start, i, S, z_token, d, D)
    count = tl.zeros((T,), tl.int32)
    for second in range(blocks):
        j = second * T + tl.arange(0, T)
        b = vectors(Z, start, j, S, z_token, d, D)
        key = key_of(similarities(a, b, inverse, i, j, S, COSINE, PRECISION))  # (T, T)
        partner = (of_tokens(kept, text, j, S) > 0)[None, :] & (i[:, None] != j[None, :])
        count += tl.sum((partner & (key >= trial[:, None])).to(tl.int32), 1)
    return count


@triton.jit(do_not_specialize=["S", "H", "texts", "k"])
def nearest_reach(
    Z,
    heads,
    kept,
    reach,  # (BH, S) float32 out
    k,
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The k-th largest similarity of every token, bit by bit: the largest key that k pairs reach.

    A token with fewer partners reaches all of them.
    """
    first, bh = tl.program_id(0), tl.load(heads + tl.program_id(1))
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    none = tl.full((T,), -2147483648, tl.int32)
    trial = tl.zeros((T,), tl.int32)  # the sign first: 0 is the smallest key that is not negative
    count = _reaching(
        Z,
        start,
        kept,
        text,
        first,
        trial,
        z_token,
        S,
        d,
        inverse,
        blocks,
        T,
        D,
        COSINE,
        PRECISION,
    )
    least = tl.where(count >= k, trial, none)
    for bit in range(31):
        trial = least + (1073741824 >> bit)
        count = _reaching(
            Z,
            start,
            kept,
            text,
            first,
            trial,
            z_token,
            S,
            d,
            inverse,
            blocks,
            T,
            D,
            COSINE,
            PRECISION,
        )
        least = tl.where(count >= k, trial, least)
    value = tl.where(least == none, -BIG, value_of(least))
    i = first * T + tl.arange(0, T)
    tl.store(reach + bh * S + i, value, mask=i < S)


@triton.jit(do_not_specialize=["S", "H"])
def large_reach(
    lengths,  # (BH, S) float32, falling
    ranks,  # (B,) int32
    reach,  # (BH,) float32 out: the largest product of two lengths that so many pairs reach
    H,
    S,
    BITS: tl.constexpr,  # S is below 2**BITS
    BLOCK: tl.constexpr,
):
    """Halve the range of a product of two lengths, by how many pairs reach it.

    Where a length at place R has a partner behind it, so have all before it one another, and those
    are R (R + 1) / 2 pairs: beyond the root of twice the rank nothing has to be looked at.
    """
    bh = tl.program_id(0)
    own = lengths + bh.to(tl.int64) * S
    rank = tl.load(ranks + bh // H).to(tl.int64)
    rows = tl.minimum(S, tl.sqrt(2.0 * rank.to(tl.float32)).to(tl.int32) + 2)
    low = tl.program_id(0) * 0
    high = low + 0x7F800000
    for _ in range(31):
        middle = low + (high - low) // 2
        bound = middle.to(tl.float32, bitcast=True)
        reached = tl.zeros((BLOCK,), tl.int64)
        for start in range(0, rows, BLOCK):
            i = start + tl.arange(0, BLOCK)
            a = tl.load(own + i, mask=i < S, other=0.0)
            last = i  # the last place whose product with place i reaches the bound
            for bit in tl.static_range(BITS):
                place = last + (1 << (BITS - 1 - bit))
                b = tl.load(own + place, mask=(i < S) & (place < S), other=0.0)
                last = tl.where((place < S) & (i < S) & (a * b >= bound), place, last)
            reached += (last - i).to(tl.int64)
        enough = tl.sum(reached) >= rank
        low = tl.where(enough & (high - low > 1), middle, low)
        high = tl.where(enough, high, middle)
    tl.store(reach + bh, low.to(tl.float32, bitcast=True))
