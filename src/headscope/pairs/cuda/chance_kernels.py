"""The Triton kernel that counts over all pairs of a text: what no head changes."""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import triton
import triton.language as tl

from headscope.pairs.cuda.tiles import FAR, of_tokens


@triton.jit
def _equal(numbers, text, i, j, S):
    """Where two tokens have the same number, (T, T)."""
    return of_tokens(numbers, text, i, S)[:, None] == of_tokens(numbers, text, j, S)[None, :]


@triton.jit
def _both(marks, row, i, j, S):
    """Where two tokens are marked, (T, T)."""
    one, other = of_tokens(marks, row, i, S) != 0, of_tokens(marks, row, j, S) != 0
    return one[:, None] & other[None, :]


@triton.jit(do_not_specialize=["S", "texts"])
def count_pairs(
    kept,  # (rows, S) bool, which tokens take part; a row is a text under a setting
    sentence,  # (B, S) int32
    token,
    word,
    occurrence,
    word_class,
    ordinary,
    by_distance,  # (rows, 2, 2, blocks T) int32 out: pairs, and inside a sentence; as `add_up`'s
    more,  # (rows, blocks, 3 + CLASSES) int32 out: same token, special, unrelated, repeated words
    texts,
    S,
    blocks,
    T: tl.constexpr,
    CLASSES: tl.constexpr,
):
    """Count the pairs of the tiles of one block diagonal."""
    delta, row = tl.program_id(0), tl.program_id(1)
    text = row % texts
    n = tl.arange(0, T)
    pairs = tl.zeros((T, T), tl.int32)
    inside = tl.zeros((T, T), tl.int32)
    tokens = tl.zeros((T,), tl.int32)
    specials = tl.zeros((T,), tl.int32)
    strangers = tl.zeros((T,), tl.int32)
    class_ = tl.arange(0, CLASSES)
    classes = tl.zeros((CLASSES,), tl.int32)
    for first in range(blocks - delta):
        i, j = first * T + n, (first + delta) * T + n
        pair = (of_tokens(kept, row, i, S) != 0)[:, None] & (of_tokens(kept, row, j, S) != 0)[
            None, :
        ]
        pair = pair & (i[:, None] < j[None, :])
        plain = (
            of_tokens(ordinary, text, i, S)[:, None] & of_tokens(ordinary, text, j, S)[None, :]
        ) != 0
        same_sentence = _equal(sentence, text, i, j, S) & pair
        same_word = _equal(word, text, i, j, S) & pair
        pairs += pair.to(tl.int32)
        inside += same_sentence.to(tl.int32)
        tokens += tl.sum((_equal(token, text, i, j, S) & pair).to(tl.int32), 1)
        specials += tl.sum((pair & (plain == 0)).to(tl.int32), 1)
        apart = pair & plain & (same_sentence == 0) & (same_word == 0)
        strangers += tl.sum((apart & (j[None, :] - i[:, None] > FAR)).to(tl.int32), 1)
        again = same_word & (_equal(occurrence, text, i, j, S) == 0)
        own = of_tokens(word_class, text, i, S)[:, None]
        own = tl.maximum(own, of_tokens(word_class, text, j, S)[None, :])
        for one in tl.static_range(CLASSES):
            found = tl.sum(tl.sum((again & (own == one)).to(tl.int32), 1))
            classes += tl.where(class_ == one, found, 0)
    # Entry (i, i + n mod T) into column n: its distance is delta T + n, less T if wrapped.
    turned = n[:, None] + n[None, :]
    out = by_distance + row.to(tl.int64) * 4 * blocks * T + delta * T + n
    pairs = tl.gather(pairs, turned % T, 1)
    tl.store(out, tl.sum(tl.where(turned >= T, 0, pairs), 0))
    tl.store(out + blocks * T, tl.sum(tl.where(turned >= T, pairs, 0), 0))
    inside = tl.gather(inside, turned % T, 1)
    tl.store(out + 2 * blocks * T, tl.sum(tl.where(turned >= T, 0, inside), 0))
    tl.store(out + 3 * blocks * T, tl.sum(tl.where(turned >= T, inside, 0), 0))
    out = more + (row * tl.num_programs(0) + delta) * (3 + CLASSES)
    tl.store(out, tl.sum(tokens))
    tl.store(out + 1, tl.sum(specials))
    tl.store(out + 2, tl.sum(strangers))
    tl.store(out + 3 + class_, classes)
