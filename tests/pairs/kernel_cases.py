"""The Triton kernels: on a GPU where there is one, otherwise through Triton's interpreter.

The interpreter takes seconds for what a GPU does in microseconds, so the cases are few and small;
`benchmarks/check_gpu.py` runs many more on a GPU. `test_pairs_kernels.py` runs this file in a
process of its own, for Triton has to know before torch is imported that it is to interpret.
"""

import os

if os.environ.get("TRITON_INTERPRET") == "1":
    import interpreter  # noqa: F401

import numpy as np
import pytest
import torch
from agreement import (
    assert_agree,
    assert_same_bits,
    assert_together_as_alone,
    some_tokens,
    typed,
)

from headscope.attention.statistics import attention_statistics
from headscope.compute.arrays import to_host
from headscope.errors import NotFiniteError
from headscope.pairs import TokenBatch, nearest, pair_statistics, peak, quantile, sigma
from headscope.pairs.chance import chance_pairs, text_chance
from headscope.pairs.cuda import backend as cuda
from headscope.pairs.cuda.eigenvalues import eigenvalues
from headscope.pairs.cuda.layer import TextTensors
from headscope.pairs.cuda.tokens import TokenTensors, count_all_pairs
from headscope.pairs.statistics import each_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The interpreter works out the branches that a mask throws away, too.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def whole_numbers(rng, shape):
    return torch.from_numpy(rng.integers(-4, 5, shape)).float().to(DEVICE)


def both(z, tokens, rules, **options):
    tokens = typed(tokens)
    want = pair_statistics(z, tokens, rules, backend="reference", **options)
    return want, pair_statistics(z, tokens, rules, backend="cuda", **options)


@pytest.mark.parametrize(
    ("lengths", "d", "rules", "special"),
    [
        ((1, 2, 3), 8, [quantile(0.01), peak(), sigma(2.0)], "kept"),
        ((70, 64), 16, [quantile(0.01), quantile(0.2)], "left_out"),
        ((130,), 80, [quantile(0.02), sigma(2.0)], "kept"),
        ((20,), 24, [nearest(2)], "left_out"),
        ((40,), 256, [quantile(0.02)], "kept"),
    ],
)
def test_kernels_agree_with_the_reference(lengths, d, rules, special):
    rng = np.random.default_rng(d)
    tokens = [some_tokens(rng, n) for n in lengths]
    z = whole_numbers(rng, (len(lengths), 1, max(lengths) + 3, d))
    assert_agree(*both(z, tokens, rules, special=special, top=5))


@pytest.mark.parametrize("reading", ["cosine", "centred"])
def test_kernels_agree_for_other_readings(reading):
    rng = np.random.default_rng(1)
    tokens = [some_tokens(rng, 50)]
    z = torch.from_numpy(rng.normal(size=(1, 1, 50, 16))).float().to(DEVICE)
    assert_agree(*both(z, tokens, [quantile(0.02)], reading=reading))


def test_the_cosine_of_a_vector_too_small_for_products_is_taken():
    rng = np.random.default_rng(9)
    z = torch.from_numpy(rng.normal(size=(1, 2, 40, 16))).float().to(DEVICE)
    z[:, 0, 3] *= 2.0**-70
    z[:, 1, 5] = 0
    assert_agree(*both(z, [some_tokens(rng, 40)], [quantile(0.02)], reading="cosine"))


@pytest.mark.parametrize("scale", [2.0**-66, 2.0**66])  # exact, so that ties stay ties
def test_kernels_take_vectors_of_any_size(scale):
    rng = np.random.default_rng(2)
    z = whole_numbers(rng, (1, 1, 40, 16)) * scale
    assert_agree(*both(z, [some_tokens(rng, 40)], [quantile(0.02), peak()]))


def test_equal_similarities_without_end_are_still_counted_exactly(monkeypatch):
    rng = np.random.default_rng(3)
    tokens = [some_tokens(rng, 150)]
    z = torch.full((1, 1, 150, 8), 0.5, device=DEVICE)
    assert_agree(
        *both(z, tokens, [quantile(0.01), sigma(1.0)], top=3)
    )  # 11,175 pairs, room for 4,500
    monkeypatch.setattr(cuda, "LISTS", 0)  # and a row of blocks at a time
    assert_agree(*both(z, tokens, [quantile(0.01)]))


@pytest.mark.parametrize(
    ("reading", "lengths", "scale"),
    [
        ("raw", (30, 18), 2.0**60),  # done again on the host
        ("raw", (110, 18), 1.0),  # with a list that does not hold all pairs
        ("centred", (30, 18), 1.0),
        ("cosine", (70, 18), 1.0),
        ("raw", (20,), 1.0),
        ("more than a launch has room for", (20,), 1.0),
    ],
)
def test_layers_and_settings_together_are_as_one_by_one(reading, lengths, scale, monkeypatch):
    if reading.startswith("more"):
        reading = "raw"
        monkeypatch.setattr(cuda, "MOST_HEADS", 3)
    rng = np.random.default_rng(7)
    tokens = [some_tokens(rng, n) for n in lengths]
    z = whole_numbers(rng, (2 * len(lengths), 1, lengths[0], 8)) * scale
    assert_together_as_alone(z, tokens, [quantile(0.05)], reading)


@pytest.mark.parametrize("lengths", [(1, 2), (70, 64), (150, 20)])
def test_a_device_counts_all_pairs_of_a_text(lengths):
    rng = np.random.default_rng(sum(lengths))
    texts = [some_tokens(rng, n, types=9) for n in lengths]
    batch = TokenBatch(texts, [rng.integers(-3, 3, (2, len(text))) for text in texts])
    there = TokenTensors(batch, torch.device(DEVICE))
    kept = torch.stack([there.there, there.there & (there.on_device["ordinary"] > 0)])
    got = count_all_pairs(there, kept)
    for number, special in enumerate(("kept", "left_out")):
        own = slice(2 * number, 2 * number + 2)
        one_by_one = [text_chance(text, special) for text in texts]
        same = each_of(got.chance, lambda found, own=own: to_host(found[own]))
        assert_same_bits(chance_pairs(one_by_one), same)
        for row, text in zip(to_host(got.inside_share[own]), one_by_one, strict=True):
            assert np.array_equal(row[: len(text.inside_share)], text.inside_share)
    for types, own in zip(to_host(there.types), batch.types, strict=True):
        assert np.array_equal(types[:, : own.shape[1]], own)
        assert (types[:, own.shape[1] :] == -1).all()


@pytest.mark.parametrize("special", ["kept", "left_out"])
def test_the_text_tensors_say_where_tokens_of_a_kind_are(special):
    rng = np.random.default_rng(8)
    texts = [some_tokens(rng, n, types=30) for n in (150, 90, 3)]
    batch = TokenBatch(texts)
    seen = TextTensors(TokenTensors(batch, torch.device(DEVICE)), [special], 16)
    for row, text in enumerate(texts):
        members, plain = text.kept(special), ~text.special
        kept = seen.kept[row].tolist()
        assert kept == [*members.astype(int), *[-1] * (150 - len(text))]
        whole = [
            int(at + 16 <= len(text) and members[at : at + 16].all()) for at in range(0, 150, 16)
        ]
        assert seen.whole[row].tolist() == whole
        begin, end = seen.whole_run[row].tolist()
        longest = max((len(run) for run in "".join(map(str, whole)).split("0")), default=0)
        assert end - begin == longest
        assert all(whole[begin:end])
        for block, at in enumerate(range(0, 150, 16)):
            own = slice(at, min(at + 16, len(text)))
            assert seen.blocks_of[row, 0, block] == (plain[own] | ~members[own]).all()
            told = text.sentences[own][plain[own] & (text.sentences[own] >= 0)]
            first, last = seen.blocks_of[row, 1:, block].tolist()
            assert (first, last) == ((told.min(), told.max()) if len(told) else (2**31 - 1, -1))
        words = [
            int(word) if own and word >= 0 else None
            for word, own in zip(text.words, plain, strict=True)
        ]
        again = [i for i, word in enumerate(words) if word is not None and words.count(word) > 1]
        want = sorted(again, key=lambda i: (words[i], i))
        assert seen.order[row].tolist() == want + [-1] * (150 - len(want))
    counts = [int(text.kept(special).sum()) for text in texts]
    assert seen.counts.tolist() == [[n * (n - 1) // 2 for n in counts]]


def test_short_texts_need_nothing_done_again(monkeypatch):
    rng = np.random.default_rng(6)
    tokens = [some_tokens(rng, n) for n in (20, 60, 80, 90)]
    z = torch.from_numpy(rng.normal(size=(4, 1, 90, 16))).float().to(DEVICE)
    again = []
    monkeypatch.setattr(cuda, "_redo", lambda *_: again.append(1))
    pair_statistics(z, tokens, quantile(0.01), backend="cuda")
    assert not again


def test_kernels_refuse_what_is_not_finite_and_do_not_look_at_padding():
    rng = np.random.default_rng(4)
    tokens = [some_tokens(rng, 30), some_tokens(rng, 20)]
    z = whole_numbers(rng, (2, 2, 30, 8))
    usual = pair_statistics(z, tokens, quantile(), backend="cuda")
    z[1, :, 20:] = torch.nan
    assert_same_bits(usual, pair_statistics(z, tokens, quantile(), backend="cuda"))
    z[1, 1, 3, 3] = torch.inf
    with pytest.raises(NotFiniteError, match="layer 4, head 2, text 2"):
        pair_statistics(z, tokens, quantile(), backend="cuda", layer="4")


@pytest.mark.parametrize(
    "options", [{}, {"causal": True, "window": 20}, {"softcap": 4.0, "sinks": torch.randn(2)}]
)
def test_attention_kernels_agree_with_the_dense_softmax(options):
    rng = np.random.default_rng(5)
    tokens = [some_tokens(rng, 70), some_tokens(rng, 1)]
    classes = [rng.integers(0, 3, len(text)).astype(np.int32) for text in tokens]
    query, key = torch.randn(2, 2, 70, 16, device=DEVICE), torch.randn(2, 1, 70, 16, device=DEVICE)
    options = {k: v.to(DEVICE) if k == "sinks" else v for k, v in options.items()}
    arguments, options = (query, key, tokens, classes), {**options, "number_of_classes": 4}
    want = attention_statistics(*arguments, backend="reference", **options)
    got = attention_statistics(*arguments, backend="cuda", **options)
    for name in (
        "mass",
        "entropy",
        "maximum",
        "own",
        "previous",
        "next",
        "own_sentence",
        "columns",
    ):
        assert np.allclose(getattr(want, name), getattr(got, name), atol=2e-4), name


def test_texts_too_long_for_the_kernels_are_refused():
    tokens = [some_tokens(np.random.default_rng(0), 50_000)]
    with pytest.raises(ValueError, match="up to 46340 tokens, not 50000"):
        pair_statistics(torch.zeros(1, 1, 50_000, 1), tokens, quantile(), backend="cuda")


@pytest.mark.parametrize("d", [1, 2, 16, 24, 40, 100])
def test_eigenvalues_are_those_of_lapack(d):
    rng = np.random.default_rng(d)
    vectors = torch.from_numpy(rng.normal(size=(3, 2, 12, d))).float() * 10.0 ** -torch.arange(d)
    vectors[0, 0] = 0  # no direction at all
    matrices = vectors.mT @ vectors
    found = eigenvalues(matrices.to(DEVICE)).cpu()
    trace = matrices.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    want = torch.linalg.eigvalsh((matrices / trace.clamp(min=1e-30)).double())
    assert float((found - want).abs().max()) < 1e-6
