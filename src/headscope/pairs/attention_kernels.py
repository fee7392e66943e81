"""The Triton kernels of the attention statistics: two passes over tiles of scores in registers.

The first goes along rows and finds each row's normaliser, entropy and maximum; the second goes
along columns and adds up normalised weights by the class of the row. Scores are in units of log 2.
Program axis 1 is the head of a text (bh = b · H + h).
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

TILE = 64
LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
MASKED: tl.constexpr = tl.constexpr(-1.0e30)


@triton.jit
def _load(X, start, i, size, stride, d, D: tl.constexpr):
    """The vectors of tokens i, (T, D), of a head that starts at `start`; zero outside the text."""
    k = tl.arange(0, D)
    inside = (i[:, None] >= 0) & (i[:, None] < size) & (k[None, :] < d)
    return tl.load(X + start + i[:, None] * stride + k[None, :], mask=inside, other=0)


@triton.jit
def _shape(
    s,
    i,
    j,
    size,
    M,
    mask_row,
    softcap,
    window,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    CAP: tl.constexpr,
):
    """From scalar products (already scaled) of tokens i and j to scores in units of log 2."""
    if CAP:
        # tanh by one exponential: tanh(x) = 1 - 2 / (1 + exp(2 x))
        s = softcap * (1.0 - 2.0 / (1.0 + tl.exp2(s * (2.0 * LOG2E / softcap))))
    allowed = (j >= 0) & (j < size)
    if WINDOW:
        allowed = allowed & (tl.abs(j - i) < window)
    if MASK:
        s += tl.load(M + i * mask_row + j, mask=allowed & (i < size), other=0.0)
        s = tl.maximum(s, MASKED)
    if CAUSAL:
        allowed = allowed & (j <= i)
    return tl.where(allowed, s * LOG2E, MASKED * LOG2E)


@triton.jit(do_not_specialize=["S", "window", "H", "shared", "m_text", "m_head", "m_row"])
def rows(
    Q,
    K,
    M,  # additive mask, or nothing
    sinks,  # (H,) float32, or nothing
    lengths,  # (B,) int32
    normaliser,  # (BH, S) float32 out: log2 of the sum of the row
    by_row,  # (BH, 5, S) float32 out: entropy, maximum, own, previous, next
    q_text,
    q_head,
    q_token,
    k_text,
    k_head,
    k_token,
    m_text,
    m_head,
    m_row,
    scaling,
    softcap,
    window,
    H,
    shared,  # query heads for one key head
    S,
    d,
    T: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    CAP: tl.constexpr,
    SINK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One block of rows against all keys that they may attend to."""
    block, bh = tl.program_id(0), tl.program_id(1)
    text, head = bh // H, bh % H
    size = tl.load(lengths + text)
    q_start = text.to(tl.int64) * q_text + head * q_head
    k_start = text.to(tl.int64) * k_text + (head // shared) * k_head
    mask = M + text.to(tl.int64) * m_text + head * m_head
    i = block * T + tl.arange(0, T)
    q = _load(Q, q_start, i, size, q_token, d, D)
    highest = tl.full((T,), MASKED * LOG2E, tl.float32)
    total = tl.zeros((T,), tl.float32)
    moment = tl.zeros((T,), tl.float32)
    first = tl.maximum(block * T - window + 1, 0) // T
    end = tl.minimum((block + 1) * T + window, size)
    if CAUSAL:
        end = tl.minimum((block + 1) * T, size)
    for other in range(first, tl.cdiv(end, T)):
        j = other * T + tl.arange(0, T)
        k = _load(K, k_start, j, size, k_token, d, D)
        s = scaling * tl.dot(q, tl.trans(k), input_precision=PRECISION, out_dtype=tl.float32)
        s = _shape(
            s, i[:, None], j[None, :], size, mask, m_row, softcap, window, CAUSAL, WINDOW, MASK, CAP
        )
        risen = tl.maximum(highest, tl.max(s, 1))
        below = s - risen[:, None]  # (T, T)
        weight = tl.exp2(below)
        less = tl.exp2(highest - risen)
        moment = less * (moment + total * (highest - risen)) + tl.sum(weight * below, 1)
        total = less * total + tl.sum(weight, 1)
        highest = risen
    everything = total
    if SINK:
        everything += tl.exp2(tl.load(sinks + head) * LOG2E - highest)
    level = highest + tl.log2(everything)  # (T,)
    share = total / everything
    entropy = ((level - highest) * share - moment / everything) / LOG2E
    here = i < size
    out = by_row + bh.to(tl.int64) * 5 * S + i
    tl.store(normaliser + bh * S + i, level, mask=here)
    tl.store(out, entropy, mask=here)
    tl.store(out + S, tl.exp2(highest - level), mask=here)
    for place in tl.static_range(3):
        j = i if place == 0 else i - 1 if place == 1 else i + 1
        k = _load(K, k_start, j, size, k_token, d, D)
        s = scaling * tl.sum(q.to(tl.float32) * k.to(tl.float32), 1)
        s = _shape(s, i, j, size, mask, m_row, softcap, window, CAUSAL, WINDOW, MASK, CAP)
        weight = tl.where(s > MASKED * LOG2E, tl.exp2(s - level), 0.0)
        tl.store(out + (2 + place) * S, weight, mask=here)


@triton.jit
def _by_class(kinds, weight):
    """Sum weights (T, T) over the rows of each class, kinds (C, T).

    In two parts of 11 bits each, on tensor cores; times 4096, so that small weights keep theirs.
    """
    large = weight * 4096.0
    coarse = large.to(tl.float16)
    fine = (large - coarse.to(tl.float32)).to(tl.float16)
    return (tl.dot(kinds, coarse) + tl.dot(kinds, fine)) * (1.0 / 4096.0)  # (C, T)


@triton.jit(do_not_specialize=["S", "window", "H", "shared", "m_text", "m_head", "m_row", "blocks"])
def columns(
    Q,
    K,
    M,
    lengths,
    normaliser,  # (BH, S) float32
    classes,  # (B, S) int32
    sentence,  # (B, S) int32
    near,  # (B, blocks, blocks) int32, 1 where two blocks may share a sentence
    received,  # (BH, 2, C, S) float32 out: from rows of each class; from the same sentence only
    q_text,
    q_head,
    q_token,
    k_text,
    k_head,
    k_token,
    m_text,
    m_head,
    m_row,
    scaling,
    softcap,
    window,
    H,
    shared,
    S,
    d,
    blocks,
    T: tl.constexpr,
    D: tl.constexpr,
    C: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    CAP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """One block of columns against all rows that may attend to them."""
    block, bh = tl.program_id(0), tl.program_id(1)
    text, head = bh // H, bh % H
    size = tl.load(lengths + text)
    q_start = text.to(tl.int64) * q_text + head * q_head
    k_start = text.to(tl.int64) * k_text + (head // shared) * k_head
    mask = M + text.to(tl.int64) * m_text + head * m_head
    j = block * T + tl.arange(0, T)
    k = _load(K, k_start, j, size, k_token, d, D)
    sentence_j = tl.load(sentence + text * S + j, mask=j < S, other=-1)
    everywhere = tl.zeros((C, T), tl.float32)
    inside = tl.zeros((C, T), tl.float32)
    first = tl.maximum(block * T - window + 1, 0) // T
    if CAUSAL:
        first = block
    end = tl.minimum((block + 1) * T + window, size)
    for other in range(first, tl.cdiv(end, T)):
        i = other * T + tl.arange(0, T)
        q = _load(Q, q_start, i, size, q_token, d, D)
        s = scaling * tl.dot(q, tl.trans(k), input_precision=PRECISION, out_dtype=tl.float32)
        s = _shape(
            s, i[:, None], j[None, :], size, mask, m_row, softcap, window, CAUSAL, WINDOW, MASK, CAP
        )
        level = tl.load(normaliser + bh * S + i, mask=i < size, other=1.0e30)
        weight = tl.exp2(s - level[:, None])  # (T, T)
        kind = tl.load(classes + text * S + i, mask=i < size, other=-1)
        kinds = (tl.arange(0, C)[:, None] == kind[None, :]).to(tl.float16)  # (C, T)
        everywhere += _by_class(kinds, weight)
        if tl.load(near + (text * blocks + other) * blocks + block) != 0:
            sentence_i = tl.load(sentence + text * S + i, mask=i < S, other=-2)
            same = sentence_i[:, None] == sentence_j[None, :]
            inside += _by_class(kinds, tl.where(same, weight, 0.0))
    out = received + (bh.to(tl.int64) * 2 * C + tl.arange(0, C)[:, None]) * S + j[None, :]
    there = (tl.arange(0, C)[:, None] >= 0) & (j[None, :] < size)
    tl.store(out, everywhere, mask=there)
    tl.store(out + C * S, inside, mask=there)
