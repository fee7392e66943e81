"""The Triton kernels that find thresholds and count the pairs that reach them."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.tiles import BIG, are_pairs, block_vectors, key_of, level_of, products, row


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
        inside = (n < size) & (level_of(c, begin, scale, BINS) == level)
        least = tl.where(inside, tl.minimum(least, key_of(c)), least)
        most = tl.where(inside, tl.maximum(most, key_of(c)), most)
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
            key = key_of(c)
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
    a = block_vectors(V, bh, first, S, d, T, D)
    kept_i = row(kept, text, first, S, T)
    count = tl.zeros((T,), tl.int32)
    for second in range(first, blocks):
        b = block_vectors(V, bh, second, S, d, T, D)
        key = key_of(products(a, b, PRECISION))  # (T, T)
        pair = are_pairs(kept_i, row(kept, text, second, S, T), first, second, T)
        count += tl.sum((pair & (key >= trial)).to(tl.int32), 1)
    tl.store(counts + bh * tl.num_programs(0) + first, tl.sum(count))


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
    a = block_vectors(V, bh, first, S, d, T, D)
    i = first * T + tl.arange(0, T)
    count = tl.zeros((T,), tl.int32)
    for second in range(blocks):
        b = block_vectors(V, bh, second, S, d, T, D)
        key = key_of(products(a, b, PRECISION))  # (T, T)
        j = second * T + tl.arange(0, T)
        partner = (row(kept, text, second, S, T)[None, :] > 0) & (i[:, None] != j[None, :])
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
