"""The Triton kernels that go through the listed pairs and count those that reach a threshold."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import FAR, listed_place, listed_value, shown


@triton.jit(do_not_specialize=["S", "room", "lists", "reach_head", "reach_token"])
def count_high(
    listed,
    found,
    heads,
    reach,  # (BH, S) float32, or (BH,) for all tokens
    reach_head,
    reach_token,
    sentence,  # (B, S) int32
    token,
    word,
    occurrence,
    word_class,
    ordinary,
    bins,  # (S,) int32
    inside_share,  # (B, S) int64, the chance of one sentence at each distance, times 2**40
    lengths,  # (BH, S) float32
    rounding,  # (BH, S) float32
    large,  # (BH,) float32
    counters,  # (BH, COUNTERS) int64 in and out
    expected,  # (BH,) int64 in and out
    by_bin,  # (BH, BINS) int32 in and out
    taking_part,  # (BH, S) int32 in and out
    room,
    lists,
    H,
    S,
    HIDE: tl.constexpr,
    BINS: tl.constexpr,
    CLASSES: tl.constexpr,
    COUNTERS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count the listed pairs that are high. All sums are of whole numbers: any order will do."""
    program, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    text = bh // H
    limit = reach + bh * reach_head
    at = text * S
    highs = tl.zeros((BLOCK,), tl.int32)
    sentences = tl.zeros((BLOCK,), tl.int32)
    tokens = tl.zeros((BLOCK,), tl.int32)
    words = tl.zeros((BLOCK,), tl.int32)
    specials = tl.zeros((BLOCK,), tl.int32)
    strangers = tl.zeros((BLOCK,), tl.int32)
    unresolved = tl.zeros((BLOCK,), tl.int32)
    larges = tl.zeros((BLOCK,), tl.int32)
    large_from = tl.load(large + bh)
    own_lengths, own_rounding = lengths + bh * S, rounding + bh * S
    chance = tl.zeros((BLOCK,), tl.int64)
    held = tl.zeros((BINS,), tl.int32)
    classes = tl.zeros((CLASSES,), tl.int32)
    for n in range(program, lists, tl.num_programs(0)):
        size = tl.minimum(tl.load(found + own * lists + n), room)
        base = listed + (own.to(tl.int64) * lists + n) * room
        for start in range(0, size, BLOCK):
            m = start + tl.arange(0, BLOCK)
            entry = tl.load(base + m, mask=m < size, other=0)
            place, c = listed_place(entry), listed_value(entry)
            i, j = place // S, place % S
            least = tl.minimum(tl.load(limit + i * reach_token), tl.load(limit + j * reach_token))
            high = (m < size) & shown(entry, HIDE) & (c >= least)
            one = high.to(tl.int32)
            same_sentence = _same(sentence, at, i, j, high)
            one_word = _same(word, at, i, j, high)
            same_word = one_word & (1 - _same(occurrence, at, i, j, high))
            class_i = tl.load(word_class + at + i, mask=high, other=0)
            class_ = tl.maximum(class_i, tl.load(word_class + at + j, mask=high, other=0))
            plain_i = tl.load(ordinary + at + i, mask=high, other=0)
            plain = plain_i & tl.load(ordinary + at + j, mask=high, other=0)
            apart = (j - i > FAR) & (same_sentence == 0) & (one_word == 0)
            stranger = tl.where(apart, plain, 0)
            rounded = tl.load(own_rounding + i, mask=high, other=0.0)
            rounded = rounded * tl.load(own_rounding + j, mask=high, other=0.0)
            length = tl.load(own_lengths + i, mask=high, other=0.0)
            length = length * tl.load(own_lengths + j, mask=high, other=0.0)
            unresolved += (high & (c - least <= rounded)).to(tl.int32)
            larges += (high & (length >= large_from)).to(tl.int32)
            highs += one
            sentences += same_sentence
            tokens += _same(token, at, i, j, high)
            words += same_word
            classes += tl.histogram(class_, CLASSES, mask=same_word != 0)
            specials += one - plain
            strangers += stranger
            chance += tl.load(inside_share + at + j - i, mask=high, other=0)
            bin_ = tl.load(bins + j - i, mask=high, other=BINS - 1)
            held += tl.histogram(bin_, BINS)
            tl.atomic_add(taking_part + bh * S + i, 1, mask=high, sem="relaxed")
            tl.atomic_add(taking_part + bh * S + j, 1, mask=high, sem="relaxed")
    out = counters + bh * COUNTERS
    tl.atomic_add(out, tl.sum(highs).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 1, tl.sum(sentences).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 2, tl.sum(tokens).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 3, tl.sum(words).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 4, tl.sum(specials).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 5, tl.sum(strangers).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 6 + tl.arange(0, CLASSES), classes.to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 6 + CLASSES, tl.sum(unresolved).to(tl.int64), sem="relaxed")
    tl.atomic_add(out + 7 + CLASSES, tl.sum(larges).to(tl.int64), sem="relaxed")
    tl.atomic_add(expected + bh, tl.sum(chance), sem="relaxed")
    tl.atomic_add(by_bin + bh * BINS + tl.arange(0, BINS), held, sem="relaxed")


@triton.jit
def _same(pointer, at, i, j, high):
    """1 where two tokens have the same number."""
    one = tl.load(pointer + at + i, mask=high, other=0)
    return (one == tl.load(pointer + at + j, mask=high, other=1)).to(tl.int32)


@triton.jit(do_not_specialize=["S"])
def add_ends(
    heads,
    types,  # (rows, KINDS, S) int32, where the type of each token first occurs
    taking_part,  # (BH, S) int32
    ends,  # (heads, KINDS, S) int32 in and out: ends of high pairs, at the first place of each type
    H,
    S,
    KINDS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count the ends of high pairs by type."""
    own = tl.program_id(1)
    bh = tl.load(heads + own)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(taking_part + bh * S + i, mask=i < S, other=0)
    for kind in tl.static_range(KINDS):
        type_ = tl.load(types + (bh // H * KINDS + kind) * S + i, mask=part > 0, other=0)
        at = ends + (own.to(tl.int64) * KINDS + kind) * S
        tl.atomic_add(at + type_, part, mask=part > 0, sem="relaxed")


@triton.jit(do_not_specialize=["S"])
def find_leaders(
    heads,
    types,
    ends,
    anchors,  # (BH, KINDS) int64 out: the ends of the leading type, and 65,535 less its first place
    marks,  # (BH, S) int32 out: a bit for each kind whose leading type is near a token
    H,
    S,
    KINDS: tl.constexpr,
    AROUND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find the type of each kind with most ends, of equals the first, and mark what is near it."""
    own = tl.program_id(0)
    bh = tl.load(heads + own)
    for kind in tl.static_range(KINDS):
        best = tl.zeros((BLOCK,), tl.int64)
        for start in range(0, S, BLOCK):
            i = start + tl.arange(0, BLOCK)
            count = tl.load(ends + (own.to(tl.int64) * KINDS + kind) * S + i, mask=i < S, other=0)
            best = tl.maximum(best, (count.to(tl.int64) << 16) + (65535 - i))
        leading = tl.max(best)
        tl.store(anchors + bh * KINDS + kind, leading)
        leader = (65535 - (leading & 0xFFFF)).to(tl.int32)
        row = types + (bh // H * KINDS + kind) * S
        for start in range(0, S, BLOCK):
            i = start + tl.arange(0, BLOCK)
            near = i < 0
            for step in tl.static_range(2 * AROUND + 1):
                j = i + step - AROUND
                near = near | (tl.load(row + j, mask=(j >= 0) & (j < S), other=-1) == leader)
            out = marks + bh * S + i
            before = tl.load(out, mask=i < S, other=0)
            tl.store(out, before | (near.to(tl.int32) << kind), mask=i < S)


@triton.jit(do_not_specialize=["S", "room", "lists", "reach_head", "reach_token"])
def count_around(
    listed,
    found,
    heads,
    reach,
    reach_head,
    reach_token,
    marks,  # (BH, S) int32
    around,  # (BH, KINDS) int32 in and out
    room,
    lists,
    S,
    HIDE: tl.constexpr,
    KINDS: tl.constexpr,
    WIDTH: tl.constexpr,  # at least KINDS, a power of two
    BLOCK: tl.constexpr,
):
    """Count the listed pairs that are high and have an end near the leading type of each kind."""
    program, own = tl.program_id(0), tl.program_id(1)
    bh = tl.load(heads + own)
    limit, near = reach + bh * reach_head, marks + bh * S
    kind = tl.arange(0, WIDTH)
    count = tl.zeros((WIDTH,), tl.int32)
    for n in range(program, lists, tl.num_programs(0)):
        size = tl.minimum(tl.load(found + own * lists + n), room)
        base = listed + (own.to(tl.int64) * lists + n) * room
        for start in range(0, size, BLOCK):
            m = start + tl.arange(0, BLOCK)
            entry = tl.load(base + m, mask=m < size, other=0)
            place, c = listed_place(entry), listed_value(entry)
            i, j = place // S, place % S
            least = tl.minimum(tl.load(limit + i * reach_token), tl.load(limit + j * reach_token))
            high = (m < size) & shown(entry, HIDE) & (c >= least)
            bits = tl.load(near + i, mask=high, other=0) | tl.load(near + j, mask=high, other=0)
            count += tl.sum((bits[:, None] >> kind[None, :]) & 1, 0)
    tl.atomic_add(around + bh * KINDS + kind, count, mask=kind < KINDS, sem="relaxed")
