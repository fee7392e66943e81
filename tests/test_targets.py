"""Decoders: what they read beside a source, how that meets it, and what they write themselves."""

import numpy as np
import pytest
import torch
import transformers as t
from torch import nn

import headscope as hs
from families import ALL
from headscope.capture import HeadOutputs, capture
from headscope.errors import CannotObserve, NoSuchHead, NotPossible
from tiny import byte_level, wordpiece

pytestmark = pytest.mark.filterwarnings("ignore")
SOURCE = "The keeper lit the lamp, and the lamp burned."
TARGET = "A lamp was lit."


def scope_of(name: str) -> hs.Scope:
    tokenizer = wordpiece() if name != "llama" else byte_level()
    model = next(one for one in ALL if one.name == name).model()
    model.resize_token_embeddings(len(tokenizer))
    return hs.load(model, tokenizer, device="cpu")


@pytest.fixture(scope="module", params=["t5", "bart"])
def scope(request: pytest.FixtureRequest) -> hs.Scope:
    return scope_of(request.param)


def by_hand(scope: hs.Scope, stack: str, reading: hs.Reading) -> list[HeadOutputs]:
    """What one pass of the whole model over the same tokens shows of a stack."""
    seen: list[HeadOutputs] = []
    ids = torch.as_tensor(reading.source.ids)[None]
    with torch.no_grad(), capture(scope.model, seen.append):
        scope.model(input_ids=ids, decoder_input_ids=torch.as_tensor(reading.tokens.ids)[None])
    return [one for one in seen if one.site.stack == stack]


@pytest.mark.parametrize("stack", ["decoder", "cross"])
def test_a_target_is_read_beside_its_source(scope: hs.Scope, stack: str) -> None:
    reading = scope.stack(stack).read(TARGET, source=SOURCE)
    assert reading.tokens.ids[0] == scope.model.config.decoder_start_token_id
    assert (reading.tokens.text, reading.source.text) == (TARGET, SOURCE)
    expected = by_hand(scope, stack, reading)
    for layer, seen in zip(reading.layers, expected, strict=True):
        assert torch.equal(layer, seen.z[0])
    weights = reading.attention(2, 3)
    assert weights.shape == (len(reading), len(reading.source if stack == "cross" else reading))
    assert np.allclose(weights.sum(1), 1, atol=1e-5)
    assert scope.stack(stack).shape.causal is (stack == "decoder")
    assert reading.high_pairs(1, 1)


def test_the_encoder_does_not_see_the_target(scope: hs.Scope) -> None:
    plain = scope.read(SOURCE)
    again = scope.stack("decoder").stack("encoder").read(SOURCE)
    assert all(map(torch.equal, plain.layers, again.layers))


def test_the_decoder_depends_on_the_source(scope: hs.Scope) -> None:
    one, other = (
        scope.stack("decoder").read(TARGET, source=s) for s in (SOURCE, "The sea keeps no lamp.")
    )
    assert torch.equal(one.layers[0], other.layers[0])  # before the first cross attention
    assert not torch.equal(one.layers[1], other.layers[1])


@pytest.mark.parametrize("kind", ["raw", "cosine", "centred"])
def test_cross_similarity_holds_targets_against_what_sources_give(
    scope: hs.Scope, kind: str
) -> None:
    reading = scope.stack("cross").read(TARGET, source=SOURCE)
    found = reading.cross_similarity(2, 3, kind)
    seen = by_hand(scope, "cross", reading)[1]
    assert seen.v is not None
    z, v = seen.z[0, 2].double(), seen.v[0, 2].double()
    if kind == "centred":
        z, v = z - z.mean(0), v - v.mean(0)
    expected = z @ v.T if kind == "raw" else nn.functional.cosine_similarity(z[:, None], v, dim=-1)
    assert np.allclose(found, expected, atol=1e-6)
    if kind == "raw":  # z mixes the values: A V Vᵀ
        assert np.allclose(reading.attention(2, 3) @ (v @ v.T).numpy(), found, atol=1e-4)
    with pytest.raises(NotPossible, match=r"stack\('cross'\)"):
        scope.read(SOURCE).cross_similarity(1, 1)


def test_any_stack_can_be_silenced(scope: hs.Scope) -> None:
    silent = scope.ablate([(1, 2)], stack="cross")
    assert not silent.silenced
    assert all(map(torch.equal, silent.read(SOURCE).layers, scope.read(SOURCE).layers))
    plain, changed = (
        one.stack("decoder").read(TARGET, source=SOURCE).layers for one in (scope, silent)
    )
    assert torch.equal(plain[0], changed[0])
    assert not torch.equal(plain[1], changed[1])
    assert silent.stack("cross").silenced == {(1, 2)}
    back = silent.stack("cross").stack("encoder")
    assert (back.silenced, back.elsewhere) == (silent.silenced, silent.elsewhere)
    with pytest.raises(NoSuchHead, match="heads are 1 to 4"):
        scope.ablate([(1, 9)], stack="decoder")


def test_what_cannot_be_read_is_told(scope: hs.Scope, tmp_path) -> None:
    decoder = scope.stack("decoder")
    with pytest.raises(NotPossible, match=r"beside a source: scope\.stack\('decoder'\)\.read"):
        decoder.read(TARGET)
    with pytest.raises(NotPossible, match="reads one text"):
        scope.read(TARGET, source=SOURCE)
    with pytest.raises(NotPossible, match=r"no stack 'vision'.*encoder, decoder, cross"):
        scope.stack("vision")
    with pytest.raises(NotPossible, match="a corpus holds texts alone"):
        decoder.study([TARGET], tmp_path / "study")
    with pytest.raises(NotPossible, match=r"another stack are silenced \(cross\)"):
        scope.ablate([(1, 1)], stack="cross").study([TARGET], tmp_path / "study")
    with pytest.raises(NotPossible, match="cannot be cut into windows"):
        decoder.read(TARGET, source=SOURCE * 40)
    with pytest.raises(CannotObserve, match="falls on the source"):
        scope.stack("cross").read(TARGET, source=SOURCE).focus()


@pytest.mark.parametrize("stack", ["decoder", "cross"])
def test_a_target_has_its_page(scope: hs.Scope, stack: str, tmp_path) -> None:
    reading = scope.stack(stack).read(TARGET, source=SOURCE)
    assert reading.save(tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_decoder_reads_what_it_writes(name: str) -> None:
    scope = scope_of(name)
    drawn = torch.get_rng_state()
    reading = scope.generate(SOURCE, 8)
    assert torch.equal(drawn, torch.get_rng_state())
    assert reading.tokens.text.startswith(SOURCE)
    marks = [one for one in reading.marks["written by"] if one]
    assert marks == sorted(marks, reverse=True)
    assert set(marks) == {"person", "model"}
    silent = scope.ablate([(n, h) for n in (1, 2, 3) for h in (1, 2, 3, 4)]).generate(SOURCE, 8)
    assert silent.tokens.text != reading.tokens.text


def test_an_encoder_decoder_reads_the_target_that_it_writes() -> None:
    reading = scope_of("bart").generate(SOURCE, 6)
    assert reading.scope.shape.stack == "decoder"
    assert reading.source.text == SOURCE


def test_a_model_that_cannot_write_says_so() -> None:
    scope = hs.load(
        t.BertModel(
            t.BertConfig(
                vocab_size=600,
                hidden_size=32,
                num_hidden_layers=1,
                num_attention_heads=4,
                intermediate_size=48,
            )
        ),
        wordpiece(),
        device="cpu",
    )
    with pytest.raises(CannotObserve, match="no language head for the next token"):
        scope.generate(SOURCE)
    with pytest.raises(NotPossible, match="at least one token"):
        scope_of("gpt2").generate(SOURCE, 0)
