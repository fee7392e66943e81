"""Heads of two models that cut words into other tokens, held against each other word by word."""

import numpy as np
import pytest
import torch
import transformers as t

import headscope as hs
from headscope.corpus import Corpus, Document
from headscope.effects.across import _of_words, blocks
from headscope.effects.alike import hsic
from headscope.units import read_units
from tiny import byte_level


@pytest.fixture(scope="module")
def other():
    """Two layers of four heads that read bytes, a few tokens at once."""
    tokenizer = byte_level()
    tokenizer.pad_token = "<s>"
    torch.manual_seed(3)
    config = t.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=32,
        n_layer=2,
        n_head=4,
        n_positions=48,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = t.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    return hs.load(model, tokenizer, device="cpu")


def windows(scope, corpus):
    for n, document in enumerate(Corpus(corpus, "paragraph")):
        yield from read_units(n, document, scope.tokenizer, scope.shape.window, "en")


def by_word(tokens, z):
    """The mean vector of each word, by where the word is in the whole text, one at a time."""
    found = {}
    for word in sorted({int(one) for one in tokens.words if one >= 0}):
        start, end = tokens.word_spans[word].tolist()
        places = [at for at, own in enumerate(tokens.words) if own == word]
        found[start, end] = np.mean([z[:, at].double().numpy() for at in places], axis=0)
    return found


def test_both_models_see_the_same_words_in_the_same_order(tiny, other, corpus):
    unit = max(windows(tiny, corpus), key=len)
    first = int(unit.tokens.starts[~unit.tokens.special].min())
    own = by_word(unit.tokens, tiny.head_vectors(unit.tokens)[1])
    seen = list(blocks(tiny, unit, other, "en"))
    assert len(seen) > 1  # the other's windows are short
    parts = read_units(0, Document(unit.text, unit.source), other.tokenizer, 48, "en")
    words = 0
    for part, (one, two) in zip(parts, seen, strict=False):
        theirs = by_word(part.tokens, other.head_vectors(part.tokens)[0])
        shared = [at for at in own if (at[0] - first, at[1] - first) in theirs]
        words += len(shared)
        for place, at in enumerate(shared):
            assert one[1][:, place].numpy() == pytest.approx(own[at], abs=1e-5)
            moved = theirs[at[0] - first, at[1] - first]
            assert two[0][:, place].numpy() == pytest.approx(moved, abs=1e-5)
    assert words > 20


def test_the_vector_of_a_word_is_the_mean_of_its_tokens():
    z = torch.randn(2, 5, 3)
    found = _of_words(z, [[0], [1, 3]])
    assert torch.allclose(found[:, 0], z[:, 0])
    assert torch.allclose(found[:, 1], (z[:, 1] + z[:, 3]) / 2)


def test_a_study_beside_another_model_says_how_much_each_two_heads_agree(
    tiny, other, study, corpus
):
    made = tiny.agreement(corpus, study.path, limit=3, beside=other)
    how = made.manifest.added["agreement"].parameters
    assert how["beside"] == other.shape.name
    rows = made.heads_across.to_pylist()
    assert len(rows) == 12 * 8
    best = {}
    for row in rows:
        at = row["layer"], row["head"]
        best[at] = max(best.get(at, -2), row["agreement"])
        assert row["agreement_low"] <= row["agreement"] <= row["agreement_high"]
    told = [
        row for row in made.agreement.to_pylist() if row["quantity"] == "agreement_with_other_model"
    ]
    assert {(row["layer"], row["head"]): row["value"] for row in told} == pytest.approx(best)
    again = tiny.agreement(corpus, study.path, limit=3)
    assert "heads_across" not in again.tables


def test_a_model_beside_itself_agrees_with_itself_wholly(tiny, study, corpus):
    made = tiny.agreement(corpus, study.path, limit=0, windows=0, beside=tiny)
    together = np.zeros((12, 12))
    for unit in windows(tiny, corpus):
        for one, two in blocks(tiny, unit, tiny, "en"):
            together += one[0].shape[1] * hsic(one, two)
    scale = np.sqrt(np.diag(together))
    expected = together / np.outer(scale, scale)
    for row in made.heads_across.to_pylist():
        one = (row["layer"] - 1) * 4 + row["head"] - 1
        two = (row["other_layer"] - 1) * 4 + row["other_head"] - 1
        assert row["agreement"] == pytest.approx(expected[one, two], abs=1e-5)
        if one == two:
            assert row["agreement"] == pytest.approx(1, abs=1e-5)
