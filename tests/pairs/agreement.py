"""When two backends agree: used by the tests and by benchmarks/check_gpu.py, so without pytest."""

import dataclasses

import numpy as np

from headscope.compute.arrays import to_host
from headscope.pairs import (
    Anchors,
    ChancePairs,
    Nearest,
    PairTokens,
    Quantile,
    TokenBatch,
    TopPairs,
    pair_statistics,
    reference,
)
from headscope.pairs.statistics import each_of, joined


def some_tokens(rng, size, *, one_sentence=False, types=12):
    """Tokens like those of a text: special at both ends, sentences in order, words that repeat."""
    special = np.zeros(size, bool)
    special[:1] = special[-1:] = size > 2
    sentence = np.cumsum(rng.random(size) < (0 if one_sentence else 0.06))
    ids = rng.integers(0, types, size)
    words = np.where(rng.random(size) < 0.1, -1, ids % 7)
    words = np.where(special, -1, words)
    for place in np.flatnonzero(rng.random(size) < 0.2):  # a piece that continues a word
        if place > 0 and not special[place] and not special[place - 1]:
            words[place] = words[place - 1]
    begins = np.append(True, words[1:] != words[:-1]) | (rng.random(size) < 0.5)
    occurrences = np.cumsum(begins)
    classes = rng.integers(0, 4, size)
    sentence = np.where(special, -1, sentence)
    return PairTokens(sentence, ids, words, occurrences, classes, special)


def typed(tokens):
    """The same tokens, with their ids and pairs of neighbouring ids as types."""
    tokens = list(tokens)
    return TokenBatch(tokens, [np.stack([text.ids, text.ids // 2]) for text in tokens])


def fields_of(statistics, name=""):
    """Every array of a result, with its name."""
    for field in dataclasses.fields(statistics):
        value = getattr(statistics, field.name)
        if isinstance(value, np.ndarray):
            yield f"{name}{field.name}", value
        elif isinstance(value, tuple):
            for n, each in enumerate(value):
                yield from fields_of(each, f"{name}{field.name}[{n}].")
        elif isinstance(value, ChancePairs | TopPairs | Anchors):
            yield from fields_of(value, f"{name}{field.name}.")


def assert_same_bits(one, other):
    """Two runs gave the same bits."""
    for (name, left), (_, right) in zip(fields_of(one), fields_of(other), strict=True):
        assert np.array_equal(left, right, equal_nan=True), f"{name} differs"


def assert_agree(want, got, *, digits=1e-5, skip=(), largest=None):
    """Counts are equal and sums agree to some digits of the largest they could be.

    largest: of |C| over the pairs, where it is known; else about as much.
    """
    sizes = [np.abs(want.maximum), np.sqrt(want.mean**2 + want.variance)]
    about = np.nan_to_num(sizes).max(axis=0)  # (B, H)
    largest = about if largest is None else np.full_like(about, largest)
    count = want.chance.count[:, None] + 1  # (B, 1)
    for (name, left), (_, right) in zip(fields_of(want), fields_of(got), strict=True):
        if any(name.startswith(part) for part in skip):
            continue
        assert left.shape == right.shape, f"{name}: {left.shape} is not {right.shape}"
        if left.dtype.kind == "i":
            assert np.array_equal(left, right), f"{name}: {left} is not {right}"
            continue
        if "expected" in name:
            bound = digits * (1 + np.abs(left))
        elif "sum" in name or "square" in name:
            bound = digits * largest * count * (largest if "square" in name else 1)
        else:
            bound = digits * largest * (largest if name == "variance" else 1)
        bound = bound.reshape(bound.shape + (1,) * (left.ndim - bound.ndim))
        ok = (np.abs(left - right) <= bound) | (np.isnan(left) & np.isnan(right)) | (left == right)
        assert ok.all(), f"{name}: {left[~ok][:3]} is not {right[~ok][:3]}"


def undecided(C, rule, kept, slack):
    """Whether rounding by `slack` of the largest similarity could change which pairs are high."""
    pairs = reference.all_pairs(kept)
    if not pairs.any():
        return False
    reach, room = reference.thresholds(C, rule, kept), slack * np.abs(C[pairs]).max()
    if isinstance(rule, Nearest):
        partners = pairs | pairs.T
        close = partners & (np.abs(C - reach[:, None]) <= room)
        return bool((close.sum(1) > 1).any())
    close = np.abs(C[pairs] - reach[0]) <= room
    return bool(close.sum() > (1 if isinstance(rule, Quantile) else 0))


def assert_together_as_alone(z, tokens, rules, reading, digits=1e-6):
    """Layers and settings in one launch on a device show what each of them shows alone.

    z: (layers · texts, heads, tokens, d)
    """
    from headscope.pairs.cuda.backend import start_layers

    batch, settings, number = typed(tokens), ("kept", "left_out"), len(tokens)
    layers = z.split(number)
    options = {"reading": reading, "layers": [str(n) for n in range(len(layers))]}
    together = start_layers(z, batch, rules, settings=settings, **options)()
    for n, own in enumerate(layers):
        for m, special in enumerate(settings):
            texts = slice(number * m, number * (m + 1))
            options = {"reading": reading, "special": special}
            alone = pair_statistics(own, batch, rules, backend="cuda", **options)
            one = joined([together], lambda found, t=texts, n=n: to_host(found[0][t, n]))
            there = each_of(together.chance, lambda found, t=texts: to_host(found[t]))
            one = dataclasses.replace(one, chance=there, special=special)
            assert_agree(alone, one, digits=digits)
