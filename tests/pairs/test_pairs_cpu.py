import subprocess
import sys

import numpy as np
import pytest
import torch
from agreement import assert_agree, assert_same_bits, fields_of, some_tokens, typed, undecided
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.compute.threads import in_parallel
from headscope.errors import NotFiniteError
from headscope.pairs import (
    TokenBatch,
    chance,
    nearest,
    pair_statistics,
    peak,
    plain_tokens,
    quantile,
    reference,
    sigma,
    start_for_settings,
)
from headscope.pairs.cpu import panels
from headscope.pairs.vectors import read_vectors

RULES = [quantile(0.01), quantile(0.1), peak(0.3), sigma(2.0), nearest(2)]
READINGS = st.sampled_from(["raw", "cosine", "centred"])
SPECIAL = st.sampled_from(["kept", "left_out"])
SIZES = st.one_of(st.integers(1, 5), st.integers(6, 150))
DIMENSIONS = st.sampled_from([8, 16, 32, 64, 80, 128, 256])


@st.composite
def vectors(draw):
    """Vectors of one head, ordinary and adversarial, and tokens for them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, d = draw(SIZES), draw(DIMENSIONS)
    kind = draw(
        st.sampled_from(["normal", "common", "ties", "equal", "zeros", "sizes", "one long"])
    )
    z = rng.normal(size=(size, d))
    if kind == "common":  # every vector nearly the same, as where one separator takes all attention
        z = rng.normal(size=d) + 1e-3 * z
    elif kind == "ties":
        z = rng.integers(-1, 2, (size, d)).astype(float)
    elif kind == "equal":
        z = np.broadcast_to(rng.normal(size=d), (size, d))
    elif kind == "zeros":
        z = z * (rng.random((size, 1)) < 0.3)
    elif kind == "sizes":
        z = z * 10.0 ** rng.uniform(-3, 3, (size, 1))
    elif kind == "one long":
        z[rng.integers(size)] *= 100
    tokens = some_tokens(rng, size, types=draw(st.sampled_from([1, 5, 50])))
    return np.ascontiguousarray(z, np.float32), tokens


def products(z, reading, kept):
    """The very products that the backend compares, as a whole matrix."""
    read = read_vectors(torch.from_numpy(z)[None], reading, torch.from_numpy(kept))
    C = np.zeros((len(z), len(z)))

    def multiply():
        # What lies below the diagonal is whatever was in memory.
        with np.errstate(invalid="ignore"):
            for panel, i0 in panels.Panels(read.vectors[0], np.empty(0, np.int64)):
                C[i0 : i0 + len(panel)] = panel[: len(z) - i0]

    in_parallel(multiply, [()])  # where the backend multiplies: on two threads, bits may differ
    C = np.triu(C, 1) * 4.0 ** int(read.exponent)
    return C + C.T


@given(vectors(), READINGS, SPECIAL)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_reference_for_the_same_products(case, reading, special):
    z, tokens = case
    options = {"reading": reading, "special": special, "top": 5}
    C, batch = products(z, reading, tokens.kept(special)), typed([tokens])
    lengths, rounding = reference.sizes_of(torch.from_numpy(z)[None], reading, tokens.kept(special))
    sizes = (lengths[0], rounding[0])
    want = reference.head_statistics(C, tokens, RULES, types=batch.types[0], sizes=sizes, **options)
    got = pair_statistics(torch.from_numpy(z)[None, None], batch, RULES, **options)
    assert_agree(want, got, digits=1e-9)


@given(vectors(), READINGS, SPECIAL)
@settings(max_examples=40, deadline=None)
def test_the_reference_from_float64_agrees_wherever_rounding_does_not_decide(
    case, reading, special
):
    z, tokens = case
    C = reference.similarity(z, reading, tokens.kept(special))
    unclear = [n for n, r in enumerate(RULES) if undecided(C, r, tokens.kept(special), 1e-5)]
    options = {"reading": reading, "special": special}
    sizes = (np.linalg.norm(z, axis=1), np.zeros(len(z)))
    want = reference.head_statistics(C, tokens, RULES, sizes=sizes, **options)
    got = pair_statistics(torch.from_numpy(z)[None, None], [tokens], RULES, **options)
    # Centring takes away up to all but a millionth of a vector, and as many digits with it.
    digits = 1e-5 if reading != "centred" else 0.1
    skip = [f"high[{n}]" for n in unclear] if reading != "centred" else ["high"]
    largest = np.abs(C[reference.all_pairs(tokens.kept(special))]).max(initial=0)
    assert_agree(want, got, digits=digits, skip=skip, largest=largest)


@pytest.mark.parametrize("d", [8, 16, 32, 64, 80, 128, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_whole_numbers_agree_exactly_in_every_format(d, dtype):
    rng = np.random.default_rng(d)
    tokens = typed(some_tokens(rng, n) for n in (1, 2, 3, 127, 128, 129))
    z = torch.from_numpy(rng.integers(-4, 5, (6, 3, 140, d))).to(dtype)
    for rules, top in ((RULES, 4), (RULES[:2], 4), (RULES[:2], 0)):  # quantiles have a faster way
        options = {"special": "left_out", "top": top}
        want = pair_statistics(z, tokens, rules, backend="reference", **options)
        assert_agree(want, pair_statistics(z, tokens, rules, **options), digits=1e-12)


@pytest.mark.parametrize("scale", [1e-20, 1e-10, 1e10, 1e20])
@pytest.mark.parametrize("reading", ["raw", "cosine"])
def test_the_size_of_vectors_does_not_matter_however_extreme(scale, reading):
    rng = np.random.default_rng(0)
    tokens = [some_tokens(rng, 100)]
    z = torch.from_numpy(rng.integers(-9, 10, (1, 2, 100, 16))).float()
    factor = torch.exp2(torch.log2(torch.tensor(scale)).round())  # a power of two: exact
    usual = pair_statistics(z, tokens, RULES, reading=reading)
    scaled = pair_statistics(z * factor, tokens, RULES, reading=reading)
    power = float(factor) ** 2 if reading == "raw" else 1
    assert np.array_equal(scaled.mean, usual.mean * power)
    assert np.array_equal(scaled.high[0].threshold, usual.high[0].threshold * power)
    for one, other in zip(usual.high, scaled.high, strict=True):
        assert np.array_equal(one.by_distance, other.by_distance)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_refused_by_layer_head_and_text(bad):
    rng = np.random.default_rng(0)
    tokens = [some_tokens(rng, 20), some_tokens(rng, 15)]
    z = torch.randn(2, 6, 20, 8)
    z[1, 4, 3, 7] = bad
    with pytest.raises(NotFiniteError, match="layer 7, head 5, text 2 of the batch hold NaN"):
        pair_statistics(z, tokens, RULES, layer="7")
    z[0, 0, 0, 0] = bad
    with pytest.raises(NotFiniteError, match=r"head 1, text 1 .* \(and 1 more"):
        pair_statistics(z, tokens, RULES, backend="reference")


def test_an_overflow_in_float16_is_refused_with_advice():
    z = (torch.randn(1, 1, 20, 8) * 1e6).to(torch.float16)
    with pytest.raises(NotFiniteError, match="run it in bfloat16 or float32"):
        pair_statistics(z, [plain_tokens(np.arange(20))], RULES)


def test_padding_does_not_change_a_statistic():
    rng = np.random.default_rng(1)
    tokens = [some_tokens(rng, 60), some_tokens(rng, 33)]
    z = torch.randn(2, 5, 60, 32)
    padded = torch.full((2, 5, 90, 32), torch.nan)
    padded[0, :, :60], padded[1, :, :33] = z[0], z[1, :, :33]
    plain = pair_statistics(z, tokens, RULES, reading="centred", top=3)
    assert_same_bits(plain, pair_statistics(padded, tokens, RULES, reading="centred", top=3))


def test_what_else_is_in_the_batch_does_not_change_a_statistic():
    rng = np.random.default_rng(2)
    tokens = [some_tokens(rng, n) for n in (70, 70, 41)]
    z = torch.randn(3, 6, 70, 16)
    together = dict(fields_of(pair_statistics(z, tokens, RULES, reading="cosine")))
    alone = dict(fields_of(pair_statistics(z[1:2], tokens[1:2], RULES, reading="cosine")))
    for name, value in alone.items():
        assert np.array_equal(value, together[name][1:2], equal_nan=True), name


def test_a_second_run_gives_the_same_bits():
    rng = np.random.default_rng(3)
    batch = TokenBatch([some_tokens(rng, 200)])
    z = torch.randn(1, 12, 200, 64)
    assert_same_bits(pair_statistics(z, batch, RULES), pair_statistics(z, batch, RULES))


def test_vectors_may_come_in_any_memory_order():
    rng = np.random.default_rng(4)
    tokens = [some_tokens(rng, 50)]
    z = torch.randn(1, 50, 4, 16).transpose(1, 2)  # as attention gives it
    assert_same_bits(
        pair_statistics(z, tokens, RULES), pair_statistics(z.contiguous(), tokens, RULES)
    )


@pytest.mark.parametrize("kind", ["whole numbers", "one value", "a few values"])
def test_a_matrix_in_many_panels_counts_as_one_in_a_single_panel(monkeypatch, kind):
    rng = np.random.default_rng(5)
    tokens = typed([some_tokens(rng, 150)])
    z = torch.from_numpy(rng.integers(-4, 5, (1, 2, 150, 8))).float()
    if kind != "whole numbers":
        z = z.clamp(1, 1 if kind == "one value" else 2)
    whole = pair_statistics(z, tokens, RULES, top=20, special="left_out")
    monkeypatch.setattr(panels, "PANEL", 3000)
    monkeypatch.setattr(panels, "COLLECTED", 4)  # and levels are split again and again
    parts = pair_statistics(z, tokens, RULES, top=20, special="left_out")
    assert_agree(whole, parts, digits=1e-12)


def test_long_texts_agree_with_the_reference():
    rng = np.random.default_rng(6)
    tokens = typed([some_tokens(rng, 1300, types=300)])
    z = torch.from_numpy(rng.integers(-4, 5, (1, 1, 1300, 16))).float()
    want = pair_statistics(z, tokens, RULES, backend="reference", top=9)
    assert_agree(want, pair_statistics(z, tokens, RULES, top=9), digits=1e-12)


@given(st.integers(0, 2**32 - 1), SIZES, st.sampled_from([1, 3, 40]), st.booleans(), SPECIAL)
@settings(max_examples=60, deadline=None)
def test_chance_is_counted_by_groups_as_by_pairs(seed, size, types, one_sentence, special):
    rng = np.random.default_rng(seed)
    tokens = some_tokens(rng, size, types=types, one_sentence=one_sentence)
    want = reference.chance_pairs(tokens, special)
    got = chance.chance_pairs([chance.text_chance(tokens, special)])
    for (name, left), (_, right) in zip(fields_of(want), fields_of(got), strict=True):
        assert np.array_equal(left, right), name


def test_a_shape_that_does_not_fit_is_refused():
    tokens = [plain_tokens(np.arange(5))]
    with pytest.raises(ValueError, match="does not fit 1 texts of up to 5 tokens"):
        pair_statistics(torch.zeros(1, 2, 4, 8), tokens, RULES)
    with pytest.raises(ValueError, match="a reading is one of raw, cosine, centred"):
        pair_statistics(torch.zeros(1, 2, 5, 8), tokens, RULES, reading="loud")
    with pytest.raises(ValueError, match="special is one of kept, left_out"):
        pair_statistics(torch.zeros(1, 2, 5, 8), tokens, RULES, special="maybe")
    with pytest.raises(ValueError, match="a backend is one of"):
        pair_statistics(torch.zeros(1, 2, 5, 8), tokens, RULES, backend="abacus")


def test_vectors_may_come_with_or_without_gradients_and_from_inference_mode():
    tokens, z = [plain_tokens(np.arange(30))], torch.randn(1, 2, 30, 8)
    usual = pair_statistics(z, tokens, RULES)
    assert_same_bits(usual, pair_statistics(z.clone().requires_grad_(), tokens, RULES))
    with torch.inference_mode():
        assert_same_bits(usual, pair_statistics(z * 1, tokens, RULES))
    assert_same_bits(usual, pair_statistics(z, tokens, RULES))


def test_counting_leaves_the_threads_of_torch_alone():
    before = torch.get_num_threads()
    pair_statistics(torch.randn(1, 2, 9, 8), [plain_tokens(np.arange(9))], RULES)
    assert torch.get_num_threads() == before


def test_importing_pairs_imports_nothing_heavy():
    heavy = "{'torch', 'numba', 'triton', 'transformers'}"
    check = f"import sys, headscope.pairs; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_anchors_are_found_where_all_pairs_are_equal():
    tokens = typed([some_tokens(np.random.default_rng(7), 60)])
    z = torch.ones(1, 2, 60, 8)
    want = pair_statistics(z, tokens, quantile(), backend="reference")
    got = pair_statistics(z, tokens, quantile())
    assert int(got.high[0].count[0, 0]) == 60 * 59 // 2  # many more than 1 %
    assert_agree(want, got, digits=1e-12)


@pytest.mark.parametrize("reading", ["raw", "cosine", "centred"])
@pytest.mark.parametrize("rules", [RULES[:1], RULES])
def test_settings_taken_together_have_the_bits_of_each_alone(reading, rules):
    rng = np.random.default_rng(8)
    batch = typed(some_tokens(rng, n) for n in (70, 90))
    z = torch.from_numpy(rng.normal(size=(2, 6, 90, 16))).float()
    z[1, 1] = 1.0  # too many equal values for the fast way
    settings = ["left_out", "kept"]
    together = start_for_settings(z, batch, rules, settings, reading=reading, top=3)
    for special, result in zip(settings, together, strict=True):
        alone = pair_statistics(z, batch, rules, reading=reading, special=special, top=3)
        assert_same_bits(alone, result())
