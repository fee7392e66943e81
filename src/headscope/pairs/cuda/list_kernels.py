"""The Triton kernels that say where the highest pairs begin, and list them."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import (
    BIG,
    append,
    head_start,
    level_begins,
    level_of,
    of_tokens,
    own_inverse,
    similarities,
    vectors,
)


@triton.jit(do_not_specialize=["S", "H", "texts"])
def sample(
    Z,
    heads,
    kept,
    lengths,  # (B,) int32
    shifts,
    scales,
    levels,  # (heads, LEVELS) int32 in and out: pairs of each level; level 0 counts all
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    COLUMNS: tl.constexpr,
    LEVELS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Count levels over a sample: every token with a few others, spread over the text.

    Other blocks of rows have other columns, so that each token is as often a column as a row.
    """
    block, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    text = bh // H
    size = tl.load(lengths + text)
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    i = block * T + tl.arange(0, T)
    blocks = tl.num_programs(0)
    j = (tl.arange(0, COLUMNS) * blocks + block) * size // (COLUMNS * blocks)
    a = vectors(Z, start, i, S, z_token, d, D)
    b = vectors(Z, start, j, S, z_token, d, D)
    c = similarities(a, b, inverse, i, j, S, COSINE, PRECISION)  # (T, COLUMNS)
    pair = (of_tokens(kept, text, i, S) > 0)[:, None] & (of_tokens(kept, text, j, S) > 0)[None, :]
    pair = pair & (i[:, None] != j[None, :])
    level = level_of(c, tl.load(shifts + bh), tl.load(scales + bh), LEVELS)
    out = levels + own * LEVELS
    tl.atomic_add(out + level, 1, mask=pair & (level > 0), sem="relaxed")
    tl.atomic_add(out, tl.sum(tl.sum(pair.to(tl.int32), 1)), sem="relaxed")


@triton.jit
def place_edges(
    levels,  # (heads, LEVELS) int32
    heads,
    ranks,  # (B,) int32, the largest number of pairs that any rule asks for
    pairs,  # (B,) float64
    most_pairs,  # (B,) float64, under any setting that shares the list
    shifts,
    scales,
    edges,  # (heads,) float32 out: the similarity from which on pairs are listed
    edge_levels,  # (heads,) int32 out
    capacity,
    H,
    LEVELS: tl.constexpr,
):
    """From where on to list pairs, so that the list holds a little more than the high ones."""
    own = tl.program_id(0)
    bh = tl.load(heads + own)
    text = bh // H
    n = tl.arange(0, LEVELS)
    counts = tl.load(levels + own * LEVELS + n)
    seen = tl.sum(tl.where(n == 0, counts, 0)).to(tl.float32)
    counts = tl.where(n == 0, 0, counts)
    upwards = tl.sum(counts) - tl.cumsum(counts, 0) + counts  # in this level and above
    rank = tl.load(ranks + text).to(tl.float32)
    all_pairs = tl.load(pairs + text).to(tl.float32)
    expected = rank / tl.maximum(all_pairs, 1.0) * seen
    wanted = 1.25 * expected + 3.0 * tl.sqrt(expected) + 4.0
    level = tl.max(tl.where((upwards.to(tl.float32) >= wanted) & (n > 0), n, 0))
    # A short text is listed whole: its lists are not all of one length, so they need room.
    level = tl.where(2.0 * tl.load(most_pairs + text) <= capacity, level * 0, level)
    value = level_begins(level, tl.load(shifts + bh), tl.load(scales + bh))
    tl.store(edges + own, tl.where(level > 0, value, -BIG))
    tl.store(edge_levels + own, level)


@triton.jit(
    do_not_specialize=["S", "texts", "room", "mask", "first_block", "reach_head", "reach_token"]
)
def collect(
    Z,
    heads,
    kept,
    whole,  # (B, blocks) int32, 1 where all tokens of a block take part
    plain,  # (B, 3, blocks) int32, first whether no special token of a block takes part
    ordinary,  # (B, S) int32
    reach,  # (BH, S) float32, from where on a token wants a pair; or (BH,) for all tokens
    reach_head,
    reach_token,
    found,  # (heads, mask + 1) int32 in and out: how many pairs each list has
    listed,  # (heads, mask + 1, room) int64 out: bits of the value, and the place i S + j
    first_block,
    room,
    mask,
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    ONE: tl.constexpr,
    SHARED: tl.constexpr,  # whether pairs with a special token are marked, for other heads
    PRECISION: tl.constexpr,
):
    """List the pairs that reach the threshold of either end, in no order.

    Each head has several lists, by (i + j) & mask, so that programs do not wait for one counter.
    """
    first, own = first_block + tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    i = first * T + tl.arange(0, T)
    a = vectors(Z, start, i, S, z_token, d, D)
    kept_i = of_tokens(kept, text, i, S) > 0
    limit = reach + bh * reach_head
    edge = -BIG
    if ONE:
        edge = tl.load(limit)
    reach_i = tl.load(limit + i * reach_token, mask=i < S, other=BIG)
    counters = found + own * (mask + 1)
    lists = listed + own.to(tl.int64) * (mask + 1) * room
    blocks = tl.cdiv(S, T)
    full_i = tl.load(whole + text * blocks + first)
    plain += text * 3 * blocks
    plain_i, ordinary_i = tl.load(plain + first), of_tokens(ordinary, text, i, S)
    for second in range(first, blocks):
        j = second * T + tl.arange(0, T)
        b = vectors(Z, start, j, S, z_token, d, D)
        c = similarities(a, b, inverse, i, j, S, COSINE, PRECISION)  # (T, T)
        if not ONE:
            reach_j = tl.load(limit + j * reach_token, mask=j < S, other=BIG)
            wanted = c >= tl.minimum(reach_i[:, None], reach_j[None, :])
            c = tl.where(wanted, c, float("-inf"))
        full = full_i & tl.load(whole + text * blocks + second)
        if (full == 0) | (first == second):
            kept_j = of_tokens(kept, text, j, S) > 0
            pair = kept_i[:, None] & kept_j[None, :] & (i[:, None] < j[None, :])
            c = tl.where(pair, c, float("-inf"))
        which = (i[:, None] + j[None, :]) & mask
        place = i[:, None] * S + j[None, :]
        if SHARED:  # noqa: SIM102 - known before it is compiled
            if (plain_i & tl.load(plain + second)) == 0:
                ordinary_j = of_tokens(ordinary, text, j, S)
                special = (ordinary_i[:, None] & ordinary_j[None, :]) == 0
                place = place | (special.to(tl.int32) << 31)
        append(counters, lists, room, c, edge, which, place, T >= 64)
