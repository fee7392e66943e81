"""The Triton kernels that go over the tiles of C and add up over all pairs."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import (
    BIG,
    FAR,
    SMALLEST,
    head_start,
    of_tokens,
    own_inverse,
    similarities,
    vectors,
)


@triton.jit(do_not_specialize=["S", "H", "texts"])
def measure(
    Z,  # (B, H, S, d)
    heads,  # the heads of this launch
    kept,  # (B, S) int32
    pairs,  # (B,) float64, how many pairs there are
    largest,  # (heads,) float32 out: the largest |z|; NaN where something is not finite, and
    # 2**-60 where the cosine cannot be taken from a product, for a vector is too small
    shifts,  # (heads,) float32 out: about the mean of C
    scales,  # (heads,) float32 out: one over how far they are spread, at most
    lengths,  # (heads, S) float32 out: of all vectors
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
):
    """How large the vectors of a head are, and about where its similarities lie."""
    own = tl.program_id(0)
    bh = tl.load(heads + own)
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    most = tl.zeros((T, D), tl.float32)
    bad = tl.zeros((T, D), tl.int32)
    total = tl.zeros((T, D), tl.float32)
    square = tl.zeros((T, D), tl.float32)
    members = tl.zeros((T,), tl.int32)
    small = tl.zeros((T,), tl.int32)
    for block in range(tl.cdiv(S, T)):
        i = block * T + tl.arange(0, T)
        part = tl.load(kept + text * S + i, mask=i < S, other=-1)
        real = tl.where(part >= 0, i, -1)
        z = vectors(Z, start, real, S, z_token, d, D).to(tl.float32)
        size = tl.abs(z)
        bad |= (size < BIG * 1.2).to(tl.int32) ^ 1  # 1 for NaN and infinity
        most = tl.maximum(most, size)
        squared = z * z
        long = tl.sqrt_rn(tl.sum(squared, 1))
        tl.store(lengths + own * S + i, long, mask=i < S)
        if COSINE:
            entry = tl.max(size, 1)
            small |= ((entry > 0) & (entry < SMALLEST)).to(tl.int32)
            z = z * tl.where(long > 0, 1.0 / long, 0.0)[:, None]
            squared = z * z
        total += tl.where((part > 0)[:, None], z, 0.0)
        square += tl.where((part > 0)[:, None], squared, 0.0)
        members += (part > 0).to(tl.int32)
    added = tl.sum(total, 0)  # (D,)
    squares = tl.sum(tl.sum(square, 1))
    count = tl.maximum(tl.load(pairs + text).to(tl.float32), 1.0)
    shift = (tl.sum(added * added) - squares) / (2.0 * count)
    # C_ij = (m + a_i)·(m + a_j) about a mean m: its variance is 2 var(m·z), and that of a_i·a_j,
    # which is at most the square of the mean of |a|².
    number = tl.maximum(tl.sum(members), 1).to(tl.float32)
    mean = added / number
    length = tl.sum(mean * mean)
    off = tl.zeros((T,), tl.float32)
    for block in range(tl.cdiv(S, T)):
        i = block * T + tl.arange(0, T)
        part = tl.load(kept + text * S + i, mask=i < S, other=-1)
        z = vectors(Z, start, tl.where(part > 0, i, -1), S, z_token, d, D).to(tl.float32)
        along = tl.sum(z * mean[None, :], 1)
        if COSINE:
            long = tl.sqrt_rn(tl.sum(z * z, 1))
            along = tl.where(long > 0, along / long, 0.0)
        along -= length
        off += tl.where(part > 0, along * along, 0.0)
    rest = tl.maximum(squares / number - length, 1e-6 * squares / number)
    spread = tl.sqrt(2.0 * tl.sum(off) / number + rest * rest)
    fine = tl.max(tl.max(bad, 1)) == 0
    usual = fine & (tl.abs(shift) < BIG) & (spread < BIG)
    size = tl.where(tl.max(small) > 0, 8.67e-19, tl.max(tl.max(most, 1)))
    tl.store(largest + own, tl.where(fine, size, float("nan")))
    tl.store(shifts + own, tl.where(usual, shift, 0.0))
    tl.store(scales + own, tl.where(usual, 1.0 / tl.maximum(spread, 1e-30), 1.0))


@triton.jit(do_not_specialize=["S", "H", "texts", "behind", "parts"])
def add_up(
    Z,
    heads,  # the heads of this launch
    kept,
    whole,  # (B, 2) int32, from where to where all tokens of the blocks take part
    shifts,
    by_distance,  # (BH, 2, blocks T) float32 out: sums at and below delta T + n
    squares,  # (BH, parts) float32 out: sums of squares
    extremes,  # (BH, parts, 2) float32 out
    behind,  # how far behind a head it comes again with its special tokens
    parts,
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
    SHARED: tl.constexpr,  # whether heads come again, and are given the same to begin with
    MINIMUM: tl.constexpr,  # whether a rule asks for it
    PRECISION: tl.constexpr,
):
    """Sums by distance, squares, minimum and maximum, over the tiles of one block diagonal.

    Along it an entry of the tile keeps its distance, so the sums by distance are sums of tiles,
    and only their total is taken apart by distance.
    """
    delta, bh = tl.program_id(0), tl.load(heads + tl.program_id(1))
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    shift = tl.load(shifts + bh)
    i = tl.arange(0, T)
    whole_from, whole_to = tl.load(whole + text * 2), tl.load(whole + text * 2 + 1)
    lowest = tl.full((T,), BIG, tl.float32)
    highest = tl.full((T,), -BIG, tl.float32)
    total = tl.zeros((T, T), tl.float32)
    square = tl.zeros((T, T), tl.float32)
    # Tiles all of whose entries are pairs, and then the others.
    begin = tl.where(delta == 0, blocks, whole_from)
    end = tl.maximum(whole_to - delta, begin)
    for first in range(begin, end):
        a = vectors(Z, start, first * T + i, S, z_token, d, D)
        b = vectors(Z, start, (first + delta) * T + i, S, z_token, d, D)
        first_i, first_j = first * T + i, (first + delta) * T + i
        c = similarities(a, b, inverse, first_i, first_j, S, COSINE, PRECISION)  # (T, T)
        if MINIMUM:
            lowest = tl.minimum(lowest, tl.min(c, 1))
        highest = tl.maximum(highest, tl.max(c, 1))
        x = c - shift
        total += x
        square += x * x
    for first in tl.range(0, blocks - delta, num_stages=1):
        if (first < begin) | (first >= end):
            a = vectors(Z, start, first * T + i, S, z_token, d, D)
            b = vectors(Z, start, (first + delta) * T + i, S, z_token, d, D)
            first_i, first_j = first * T + i, (first + delta) * T + i
            c = similarities(a, b, inverse, first_i, first_j, S, COSINE, PRECISION)  # (T, T)
            kept_i = of_tokens(kept, text, first * T + i, S) > 0
            kept_j = of_tokens(kept, text, (first + delta) * T + i, S) > 0
            later = delta * T + i[None, :] > i[:, None]
            pair = kept_i[:, None] & kept_j[None, :] & later
            if MINIMUM:
                lowest = tl.minimum(lowest, tl.min(tl.where(pair, c, BIG), 1))
            highest = tl.maximum(highest, tl.max(tl.where(pair, c, -BIG), 1))
            x = tl.where(pair, c - shift, 0.0)
            total += x
            square += x * x
    # Entry (i, i + n mod T) into column n: its distance is delta T + n, less T if wrapped.
    turned = i[:, None] + i[None, :]
    total = tl.gather(total, turned % T, 1)
    at = tl.sum(tl.where(turned >= T, 0.0, total), 0)
    below = tl.sum(tl.where(turned >= T, total, 0.0), 0)
    all_squares, low, high = tl.sum(square), tl.min(lowest), tl.max(highest)
    for again in tl.static_range(2 if SHARED else 1):
        one = bh + again * behind
        out = by_distance + one.to(tl.int64) * 2 * blocks * T + delta * T + i
        tl.store(out, at)
        tl.store(out + blocks * T, below)
        place = one * parts + delta
        tl.store(squares + place, all_squares)
        tl.store(extremes + place * 2, low)
        tl.store(extremes + place * 2 + 1, high)


@triton.jit(do_not_specialize=["S", "H", "texts", "behind", "parts", "M"])
def add_special(
    Z,
    heads,
    kept,
    special,  # (B, M) int32, where special tokens are; -1 behind the last of them
    shifts,
    by_distance,  # (BH, 2, blocks T) float32 in and out
    squares,  # (BH, parts) float32, the last out
    extremes,  # (BH, parts, 2) float32, the last out
    behind,
    parts,
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    blocks,
    M,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
):
    """Add the pairs of special tokens, one after the other, to sums over all other pairs."""
    bh = tl.load(heads + tl.program_id(0))
    other = bh + behind
    without, text = bh // H, other // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    shift = tl.load(shifts + bh)
    out = by_distance + other.to(tl.int64) * 2 * blocks * T
    lowest = tl.full((T,), BIG, tl.float32)
    highest = tl.full((T,), -BIG, tl.float32)
    square = tl.zeros((T,), tl.float32)
    for number in range(M):
        place = tl.load(special + text * M + number)
        if place >= 0:
            k = tl.arange(0, D)
            own = tl.load(Z + start + place * z_token + k, mask=k < d, other=0).to(tl.float32)
            for block in range(blocks):
                j = block * T + tl.arange(0, T)
                b = vectors(Z, start, j, S, z_token, d, D).to(tl.float32)
                c = tl.sum(b * own[None, :], 1)
                if COSINE:
                    other_inverse = tl.load(inverse + j, mask=j < S, other=0.0)
                    c = c * (tl.load(inverse + place) * other_inverse)
                there = of_tokens(kept, text, j, S) > 0
                # Two special tokens are a pair once.
                pair = there & ((of_tokens(kept, without, j, S) > 0) | (j > place))
                pair = pair & (j != place)
                lowest = tl.minimum(lowest, tl.where(pair, c, BIG))
                highest = tl.maximum(highest, tl.where(pair, c, -BIG))
                x = tl.where(pair, c - shift, 0.0)
                square += x * x
                for side in tl.static_range(2):  # of which no two have one distance
                    distance = place - j if side == 0 else j - place
                    here = pair & (distance > 0)
                    before = tl.load(out + distance, mask=here, other=0.0)
                    tl.store(out + distance, before + x, mask=here)
                    tl.debug_barrier()
    for again in tl.static_range(2):
        last = (bh + again * behind) * parts + parts - 1
        tl.store(squares + last, tl.sum(square) * again)
        tl.store(extremes + last * 2, tl.where(again == 1, tl.min(lowest), BIG))
        tl.store(extremes + last * 2 + 1, tl.where(again == 1, tl.max(highest), -BIG))


@triton.jit(do_not_specialize=["S", "H", "texts"])
def relate(
    Z,
    heads,
    kept,
    sentence,  # (B, S) int32
    ordinary,  # (B, S) int32
    blocks_of,  # (B, 3, blocks) int32: whether no special token takes part, sentence range
    shifts,
    related,  # (BH, blocks, 2) float32 out
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
    """Sums of C - shift and its square over pairs that share a sentence, are near, or special.

    Most tiles far from the diagonal have none: they are known by their blocks, and left out.
    """
    first, bh = tl.program_id(0), tl.load(heads + tl.program_id(1))
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    shift = tl.load(shifts + bh)
    about = blocks_of + text * 3 * blocks
    i = first * T + tl.arange(0, T)
    a = vectors(Z, start, i, S, z_token, d, D)
    kept_i = of_tokens(kept, text, i, S) > 0
    sentence_i = of_tokens(sentence, text, i, S)
    plain_i = of_tokens(ordinary, text, i, S) != 0
    total = tl.zeros((T,), tl.float32)
    square = tl.zeros((T,), tl.float32)
    for second in range(first, blocks):
        plain = tl.load(about + first) & tl.load(about + second)
        # Blocks of rising sentence numbers share none if one ends before the other begins.
        after = tl.load(about + blocks + second) > tl.load(about + 2 * blocks + first)
        if (second <= first + 1) | (plain == 0) | (after == 0):
            j = second * T + tl.arange(0, T)
            b = vectors(Z, start, j, S, z_token, d, D)
            x = similarities(a, b, inverse, i, j, S, COSINE, PRECISION) - shift  # (T, T)
            kept_j = of_tokens(kept, text, j, S) > 0
            plain_j = of_tokens(ordinary, text, j, S) != 0
            near = sentence_i[:, None] == of_tokens(sentence, text, j, S)[None, :]
            near = near | (j[None, :] - i[:, None] <= FAR)
            near = near | ((plain_i[:, None] & plain_j[None, :]) == 0)
            pair = kept_i[:, None] & kept_j[None, :] & (i[:, None] < j[None, :])
            x = tl.where(near & pair, x, 0.0)
            total += tl.sum(x, 1)
            square += tl.sum(x * x, 1)
    place = (bh * tl.num_programs(0) + first) * 2
    tl.store(related + place, tl.sum(total))
    tl.store(related + place + 1, tl.sum(square))


@triton.jit(do_not_specialize=["S", "H", "texts", "R"])
def repeat(
    Z,
    heads,
    order,  # (B, R) int32: ordinary tokens whose word occurs again, by word; -1 behind the last
    word,  # (B, S) int32
    sentence,
    shifts,
    related,  # (BH, programs, 2) float32 out
    texts,
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    inverse,  # (heads with vectors, S) float32, one over their lengths; of use for the cosine
    R,
    T: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Sums over the pairs that are related by nothing but their word.

    Tokens of one word stand side by side in `order`, so only tiles at its diagonal hold any.
    """
    program, bh = tl.program_id(0), tl.load(heads + tl.program_id(1))
    text = bh // H
    start = head_start(bh, H, texts, z_text, z_head)
    inverse = own_inverse(inverse, bh, H, texts, S)
    shift = tl.load(shifts + bh)
    n = program * T + tl.arange(0, T)
    i = tl.load(order + text * R + n, mask=n < R, other=-1)
    there = i >= 0
    word_i = tl.load(word + text * S + i, mask=there, other=-1)
    sentence_i = tl.load(sentence + text * S + i, mask=there, other=-1)
    a = vectors(Z, start, i, S, z_token, d, D)
    last = tl.max(word_i)
    total = tl.zeros((T,), tl.float32)
    square = tl.zeros((T,), tl.float32)
    block = program
    more = last >= 0
    while more:
        n = block * T + tl.arange(0, T)
        j = tl.load(order + text * R + n, mask=n < R, other=-1)
        word_j = tl.load(word + text * S + j, mask=j >= 0, other=-2)
        sentence_j = tl.load(sentence + text * S + j, mask=j >= 0, other=-2)
        b = vectors(Z, start, j, S, z_token, d, D)
        x = similarities(a, b, inverse, i, j, S, COSINE, PRECISION) - shift
        same = (word_i[:, None] == word_j[None, :]) & (sentence_i[:, None] != sentence_j[None, :])
        x = tl.where(same & (j[None, :] - i[:, None] > FAR), x, 0.0)
        total += tl.sum(x, 1)
        square += tl.sum(x * x, 1)
        block += 1
        j = tl.load(order + text * R + block * T, mask=block * T < R, other=-1)
        more = tl.load(word + text * S + j, mask=j >= 0, other=-1) == last  # the word goes on
    place = (bh * tl.num_programs(0) + program) * 2
    tl.store(related + place, tl.sum(total))
    tl.store(related + place + 1, tl.sum(square))


@triton.jit(do_not_specialize=["blocks", "parts", "repeats"])
def finish(
    binned,  # (BH, BINS) float64, sums of C - shift by distance bin
    squares,  # (BH, parts) float32, of its square
    related,  # (BH, blocks, 2) float32
    repeated,  # (BH, repeats, 2) float32
    extremes,  # (BH, parts, 2) float32
    shifts,
    pairs,  # (B,) float64
    ends,  # (BH, 7) float64 out: sums over related pairs, all squares, maximum; then what
    # rules ask for: minimum, mean, variance
    H,
    blocks,
    parts,
    repeats,
    BINS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Bring together what several programs have found for one head."""
    bh = tl.program_id(0)
    near = tl.zeros((BLOCK,), tl.float64)
    near_square = tl.zeros((BLOCK,), tl.float64)
    square = tl.zeros((BLOCK,), tl.float64)
    lowest = tl.full((BLOCK,), BIG, tl.float32)
    highest = tl.full((BLOCK,), -BIG, tl.float32)
    for first in range(0, tl.maximum(parts, repeats), BLOCK):
        n = first + tl.arange(0, BLOCK)
        square += tl.load(squares + bh * parts + n, mask=n < parts, other=0.0).to(tl.float64)
        at = (bh * parts + n) * 2
        lowest = tl.minimum(lowest, tl.load(extremes + at, mask=n < parts, other=BIG))
        highest = tl.maximum(highest, tl.load(extremes + at + 1, mask=n < parts, other=-BIG))
        at = (bh * blocks + n) * 2
        near += tl.load(related + at, mask=n < blocks, other=0.0).to(tl.float64)
        near_square += tl.load(related + at + 1, mask=n < blocks, other=0.0).to(tl.float64)
        at = (bh * repeats + n) * 2
        near += tl.load(repeated + at, mask=n < repeats, other=0.0).to(tl.float64)
        near_square += tl.load(repeated + at + 1, mask=n < repeats, other=0.0).to(tl.float64)
    shift = tl.load(shifts + bh).to(tl.float64)
    low, high = tl.min(lowest).to(tl.float64), tl.max(highest).to(tl.float64)
    count = tl.maximum(tl.load(pairs + bh // H), 1.0)
    bin_ = tl.arange(0, BINS)
    off = tl.sum(tl.load(binned + bh * BINS + bin_)) / count
    all_squares = tl.sum(square)
    spread = all_squares / count - off * off
    out = ends + bh * 7
    tl.store(out, tl.sum(near))
    tl.store(out + 1, tl.sum(near_square))
    tl.store(out + 2, all_squares)
    tl.store(out + 3, high)
    tl.store(out + 4, low)
    tl.store(out + 5, tl.where(low == high, low, shift + off))
    tl.store(out + 6, tl.where(low == high, low * 0, tl.maximum(spread, 0.0)))
