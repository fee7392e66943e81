"""The Triton kernels of the attention statistics: one pass over tiles of scores in registers.

With the normaliser of every row at hand (the model's own attention call can give it, and
`normalise` finds it otherwise), each weight is made once and used for everything. Scores are in
units of log 2. Program axis 1 is the head of a text (bh = b · H + h).
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import exp2, vectors

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)
MASKED: tl.constexpr = tl.constexpr(-1.0e30)


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
        s = softcap * (1.0 - 2.0 / (1.0 + exp2(s * (2.0 * LOG2E / softcap))))
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
def normalise(
    Q,
    K,
    M,  # additive mask, or nothing
    sinks,  # (H,) float32, or nothing
    lengths,  # (B,) int32
    normaliser,  # (BH, S) float32 out: log2 of the sum of the row
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
    ROWS: tl.constexpr,
    T: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    CAP: tl.constexpr,
    SINK: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """The normaliser of a block of rows."""
    block, bh = tl.program_id(0), tl.program_id(1)
    text, head = bh // H, bh % H
    size = tl.load(lengths + text)
    q_start = text.to(tl.int64) * q_text + head * q_head
    k_start = text.to(tl.int64) * k_text + (head // shared) * k_head
    mask = M + text.to(tl.int64) * m_text + head * m_head
    i = block * ROWS + tl.arange(0, ROWS)
    q = vectors(Q, q_start, i, size, q_token, d, D)
    highest = tl.full((ROWS,), MASKED * LOG2E, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    first = tl.maximum(block * ROWS - window + 1, 0) // T
    end = tl.minimum((block + 1) * ROWS + window, size)
    if CAUSAL:
        end = tl.minimum((block + 1) * ROWS, size)
    for other in range(first, tl.cdiv(end, T)):
        j = other * T + tl.arange(0, T)
        k = vectors(K, k_start, j, size, k_token, d, D)
        s = scaling * tl.dot(q, tl.trans(k), input_precision=PRECISION, out_dtype=tl.float32)
        s = _shape(
            s, i[:, None], j[None, :], size, mask, m_row, softcap, window, CAUSAL, WINDOW, MASK, CAP
        )
        risen = tl.maximum(highest, tl.max(s, 1))
        total = exp2(highest - risen) * total + tl.sum(exp2(s - risen[:, None]), 1)
        highest = risen
    if SINK:
        total += exp2(tl.load(sinks + head) * LOG2E - highest)
    tl.store(normaliser + bh * S + i, highest + tl.log2(total), mask=i < size)


@triton.jit(do_not_specialize=["S", "window", "H", "shared", "m_text", "m_head", "m_row", "blocks"])
def add_weights(
    Q,
    K,
    M,
    lengths,
    normaliser,  # (BH, S) float32, in units of 1 / level_unit
    classes,  # (B, S) int32
    members,  # (B, S, C) float16, 1 for the class of a token
    sentence,  # (B, S) int32
    low,  # (B, blocks of T) int32, the smallest sentence number of a block of keys
    high,  # (B, blocks of T) int32, the largest
    sums,  # (BH, row blocks, C, 2 C) float32 out: by class of the row: mass by class, six sums
    columns,  # (BH, S) int64 in and out: times 2**32
    level_unit,
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
    ROWS: tl.constexpr,
    T: tl.constexpr,
    D: tl.constexpr,
    C: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
    CAP: tl.constexpr,
    FINE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """All sums over a block of rows, and what the rows add to the columns."""
    block, bh = tl.program_id(0), tl.program_id(1)
    text, head = bh // H, bh % H
    size = tl.load(lengths + text)
    q_start = text.to(tl.int64) * q_text + head * q_head
    k_start = text.to(tl.int64) * k_text + (head // shared) * k_head
    mask = M + text.to(tl.int64) * m_text + head * m_head
    i = block * ROWS + tl.arange(0, ROWS)
    here = i < size
    q = vectors(Q, q_start, i, size, q_token, d, D)
    # Rows beyond the text get weights of 0.
    level = tl.load(normaliser + bh * S + i, mask=here, other=1.0e30) * level_unit
    sentence_i = tl.load(sentence + text * S + i, mask=here, other=-2)
    lowest = tl.min(tl.where(here, sentence_i, 2147483647))
    highest = tl.max(sentence_i)
    kind = tl.arange(0, C)
    ones = tl.full((16, ROWS), 1.0, tl.float16)
    mass = tl.zeros((ROWS, C), tl.float32)
    entropy = tl.zeros((ROWS,), tl.float32)
    most = tl.full((ROWS,), MASKED, tl.float32)
    inside = tl.zeros((ROWS,), tl.float32)
    first = tl.maximum(block * ROWS - window + 1, 0) // T
    end = tl.minimum((block + 1) * ROWS + window, size)
    if CAUSAL:
        end = tl.minimum((block + 1) * ROWS, size)
    for other in range(first, tl.cdiv(end, T)):
        j = other * T + tl.arange(0, T)
        k = vectors(K, k_start, j, size, k_token, d, D)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION, out_dtype=tl.float32)
        if CAUSAL or WINDOW or MASK or CAP:
            s = _shape(
                scaling * s,
                i[:, None],
                j[None, :],
                size,
                mask,
                m_row,
                softcap,
                window,
                CAUSAL,
                WINDOW,
                MASK,
                CAP,
            )
            t = s - level[:, None]
        else:
            t = s * (scaling * LOG2E) - level[:, None]
            if (other + 1) * T > size:
                t = tl.where((j < size)[None, :], t, MASKED)
        weight = exp2(t)  # (ROWS, T)
        entropy += tl.sum(weight * t, 1)
        most = tl.maximum(most, tl.max(t, 1))
        kinds = tl.load(
            members + (text * S + j[:, None]) * C + kind[None, :],
            mask=(j[:, None] < size) & (kind[None, :] >= 0),
            other=0.0,
        )  # (T, C)
        # On tensor cores, rounded to 11 bits: four times finer than a bfloat16 model rounds its own
        # weights; for float32 second products add 11 more. Times 4096, for the small ones.
        large = weight * 4096.0
        coarse = large.to(tl.float16)
        mass += tl.dot(coarse, kinds)
        received = tl.dot(ones, coarse)  # (16, T) all rows equal
        if FINE:
            fine = (large - coarse.to(tl.float32)).to(tl.float16)
            mass += tl.dot(fine, kinds)
            received += tl.dot(ones, fine)
        place = text * blocks + other
        if (tl.load(low + place) <= highest) & (tl.load(high + place) >= lowest):
            sentence_j = tl.load(sentence + text * S + j, mask=j < S, other=-1)
            same = sentence_i[:, None] == sentence_j[None, :]
            inside += tl.sum(tl.where(same, weight, 0.0), 1)
        whole = (tl.max(received, 0) * 1048576.0).to(tl.int64)  # in all times 2**32
        tl.atomic_add(columns + bh * S + j, whole, mask=j < size, sem="relaxed")
    out = sums + ((bh * tl.num_programs(0) + block) * C).to(tl.int64) * 2 * C
    own = tl.load(classes + text * S + i, mask=here, other=-1)
    rows = (kind[:, None] == own[None, :]).to(tl.float32)  # (C, ROWS)
    by_row = tl.zeros((ROWS, C), tl.float32)
    by_row = tl.where(kind[None, :] == 0, -entropy[:, None] / LOG2E, by_row)
    by_row = tl.where(kind[None, :] == 1, exp2(most)[:, None], by_row)
    for place in tl.static_range(3):
        j = i if place == 0 else i - 1 if place == 1 else i + 1
        k = vectors(K, k_start, j, size, k_token, d, D)
        s = scaling * tl.sum(q.to(tl.float32) * k.to(tl.float32), 1)
        s = _shape(s, i, j, size, mask, m_row, softcap, window, CAUSAL, WINDOW, MASK, CAP)
        weight = tl.where(s > MASKED * LOG2E, exp2(s - level), 0.0)
        by_row = tl.where(kind[None, :] == 2 + place, weight[:, None], by_row)
    by_row = tl.where(kind[None, :] == 5, inside[:, None], by_row)
    by_row = tl.where(here[:, None], by_row, 0.0)
    mass = tl.where(here[:, None], mass * (1.0 / 4096.0), 0.0)
    place = out + kind[:, None] * 2 * C + kind[None, :]
    tl.store(place, tl.dot(rows, mass, input_precision="tf32x3"))
    tl.store(place + C, tl.dot(rows, by_row, input_precision="tf32x3"))
