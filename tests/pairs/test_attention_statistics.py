import dataclasses

import numpy as np
import pytest
import torch
from agreement import some_tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.attention.statistics import attention_statistics
from headscope.errors import NotFiniteError

EYE = torch.eye(150, dtype=torch.bool)
SETTINGS = {
    "plain": {},
    "causal": {"causal": True},
    "a causal window": {"causal": True, "window": 17},
    "a window": {"window": 9},
    "another scale": {"scaling": 1.0},
    "a soft cap": {"softcap": 3.0},
    "sinks": {"sinks": torch.tensor([0.5, -1.0, 30.0, 0.0])},
    "a boolean mask": {"mask": (torch.rand(1, 1, 150, 150) < 0.5) | EYE},
    "an added mask": {"mask": torch.randn(3, 4, 150, 150)},
    "a mask of huge numbers": {
        "mask": torch.where((torch.rand(3, 1, 150, 150) < 0.5) | EYE, 0, torch.finfo().min)
    },
}


def example(lengths=(150, 1, 129), seed=0, dtype=torch.float32):
    rng, make = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    tokens = [some_tokens(rng, n) for n in lengths]
    classes = [rng.integers(0, 5, n).astype(np.int32) for n in lengths]
    query = (2 * torch.randn(len(lengths), 4, max(lengths), 16, generator=make)).to(dtype)
    key = torch.randn(len(lengths), 2, max(lengths), 16, generator=make).to(dtype)
    return query, key, tokens, classes


def both(example, **options):
    want = attention_statistics(*example, number_of_classes=6, backend="reference", **options)
    return want, attention_statistics(*example, number_of_classes=6, **options)


def assert_close(want, got, digits=3e-6):
    for field in dataclasses.fields(want):
        left, right = getattr(want, field.name), getattr(got, field.name)
        assert left.shape == right.shape
        assert np.abs(left - right).max() <= digits * max(1, np.abs(left).max()), field.name


@pytest.mark.parametrize("name", SETTINGS)
def test_sums_are_those_of_the_dense_softmax(name):
    assert_close(*both(example(), **SETTINGS[name]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_queries_and_keys_are_read_as_they_are(dtype):
    assert_close(*both(example(dtype=dtype)))


@given(st.integers(1, 6), st.integers(0, 999), st.booleans())
@settings(max_examples=20, deadline=None)
def test_short_texts_agree_too(size, seed, causal):
    assert_close(*both(example((size, 2), seed), causal=causal))


def test_every_row_sums_to_one_and_every_class_gets_its_share():
    query, key, tokens, classes = example()
    got = attention_statistics(query, key, tokens, classes, number_of_classes=6)
    assert np.allclose(got.mass.sum(-1), got.rows[:, None], atol=1e-4)
    assert np.allclose(got.columns.sum(-1), got.rows.sum(-1)[:, None], atol=1e-3)


def test_equal_keys_spread_attention_evenly():
    query, key, tokens, classes = example((40,))
    got = attention_statistics(query, key * 0, tokens, classes, number_of_classes=6)
    assert np.allclose(got.entropy.sum(-1) / 40, np.log(40), atol=1e-6)
    assert np.allclose(got.columns, 1, atol=1e-6)


def test_padding_does_not_change_attention_statistics():
    query, key, tokens, classes = example((60, 33))
    padded = [torch.nn.functional.pad(x, (0, 0, 0, 30), value=torch.nan) for x in (query, key)]
    padded[0][1, :, 33:] = padded[1][1, :, 33:] = torch.nan
    one = attention_statistics(query, key, tokens, classes, number_of_classes=6)
    other = attention_statistics(*padded, tokens, classes, number_of_classes=6)
    assert_close(one, other, digits=0)


def test_scores_far_below_the_largest_count_for_nothing_and_break_nothing():
    query, key, tokens, classes = example((50,))
    want, got = both((query * 100, key, tokens, classes))
    assert_close(want, got, digits=1e-4)


def test_what_is_not_finite_is_refused_by_layer_head_and_text():
    query, key, tokens, classes = example()
    query[2, 1, 5, 0] = torch.nan
    with pytest.raises(NotFiniteError, match="queries or keys of layer 3, head 2, text 3"):
        attention_statistics(query, key, tokens, classes, number_of_classes=6, layer="3")


def test_what_is_not_supported_is_refused():
    query, key, tokens, classes = example()
    with pytest.raises(ValueError, match="not for cross attention or with a cache"):
        attention_statistics(query, key[:, :, :99], tokens, classes, number_of_classes=6)
    with pytest.raises(ValueError, match="4 query heads cannot share 3 key heads"):
        attention_statistics(query, query[:, :3], tokens, classes, number_of_classes=6)
    with pytest.raises(ValueError, match="text 1 of the batch needs a class from 0 to 1"):
        attention_statistics(query, key, tokens, classes, number_of_classes=2)
