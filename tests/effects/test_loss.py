"""The model's own loss: what transformers computes, asked the same in any batch."""

import numpy as np
import pytest
import torch
import transformers as t

import headscope as hs
from effects.texts import units_for
from families import INTERFACE, SIZE
from headscope.capture import silence
from headscope.effects.change import put, run
from headscope.effects.loss import Asked, Loss, language_head, replicated
from headscope.errors import CannotObserve
from headscope.study.bootstrap import document_weights
from tiny import byte_level, wordpiece


@pytest.fixture(scope="module")
def gpt2() -> hs.Scope:
    torch.manual_seed(0)
    tokenizer = byte_level()
    tokenizer.pad_token = "<s>"
    config = t.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=3, n_head=4, n_positions=64)
    return hs.load(t.GPT2LMHeadModel(config).eval(), tokenizer, device="cpu")


def own_loss(scope: hs.Scope, asked: Asked, row: int) -> float:
    """What transformers says of one text, from logits of its whole output."""
    length = len(asked.units[row])
    logits = scope.forward(input_ids=asked.ids[row : row + 1, :length]).logits[0].double()
    own = asked.texts == row
    chosen = logits[asked.places[own]].log_softmax(-1)
    return float(-chosen[torch.arange(len(chosen)), asked.truth[own]].sum())


@pytest.mark.parametrize("padded", [0, 64])
def test_the_loss_of_each_text_is_that_of_the_model_alone(specimen, gpt2, padded):
    for scope in (specimen, gpt2):
        loss = Loss(scope)
        asked = loss.ask(units_for(scope, window=48), padded)
        sums = loss.sums(run(scope, asked), asked)
        expected = [own_loss(scope, asked, row) for row in range(len(asked.units))]
        assert sums == pytest.approx(expected, rel=1e-5)


def test_a_seventh_of_the_words_is_masked_whatever_is_read_along(specimen):
    loss = Loss(specimen, seed=3)
    units = units_for(specimen)
    together = loss.ask(units)
    mask = specimen.tokenizer.mask_token_id
    for row, unit in enumerate(units):
        alone = loss.ask([unit])
        own = together.texts == row
        assert torch.equal(together.places[own], alone.places)
        assert torch.equal(together.truth[own], alone.truth)
        asked = np.zeros(len(unit), bool)
        asked[alone.places] = True
        assert (alone.ids[0].numpy()[asked] == mask).all()
        assert (alone.ids[0].numpy()[~asked] == unit.tokens.ids[~asked]).all()
        assert alone.truth.tolist() == unit.tokens.ids[asked].tolist()
        assert not (asked & unit.tokens.special).any()
        assert asked.sum() == round(0.15 * (~unit.tokens.special).sum())
    assert not torch.equal(Loss(specimen, seed=4).ask(units).places, together.places)


def test_a_causal_model_is_asked_for_every_next_token(gpt2):
    (unit,) = units_for(gpt2, 1, window=20)
    asked = Loss(gpt2).ask([unit])
    assert torch.equal(asked.ids[0], torch.from_numpy(unit.tokens.ids.astype(np.int64)))
    assert torch.equal(asked.truth, asked.ids[0, 1:])
    labels = asked.ids.clone()
    with torch.no_grad():
        expected = gpt2.model(input_ids=asked.ids, labels=labels).loss
    found = Loss(gpt2).sums(run(gpt2, asked), asked) / asked.counts
    assert found == pytest.approx([float(expected)], rel=1e-5)


def test_what_is_no_special_token_is_padding_and_changes_nothing(specimen):
    units = units_for(specimen, 3)
    loss = Loss(specimen)
    alone = [loss.sums(run(specimen, a), a)[0] for a in (loss.ask([unit]) for unit in units)]
    asked = loss.ask(units, 200)
    assert loss.sums(run(specimen, asked), asked) == pytest.approx(alone, rel=1e-5)


HEADED = [
    family
    for family in INTERFACE
    if hasattr(type(family.model()), "get_output_embeddings")
    and family.kind == "text"
    and family.model().get_output_embeddings() is not None
]


@pytest.mark.parametrize("family", HEADED, ids=lambda family: family.name)
def test_the_language_head_is_the_models_own(family):
    model = family.model()
    tokenizer = wordpiece()
    scope = hs.load(model, tokenizer, device="cpu")
    given = family.inputs(batch=1)
    with torch.no_grad():
        hidden = scope.loaded.backbone(**given).last_hidden_state[0]
        before = {name: id(one) for name, one in model.named_modules()}
        logits = language_head(scope)(hidden)
        assert {name: id(one) for name, one in model.named_modules()} == before
        assert torch.allclose(logits, model(**given).logits[0], atol=1e-5)


def test_a_model_without_a_language_head_says_so_and_takes_a_metric():
    torch.manual_seed(0)
    tokenizer = wordpiece()
    bare = t.BertModel(t.BertConfig(**SIZE | {"vocab_size": len(tokenizer)})).eval()
    scope = hs.load(bare, tokenizer, device="cpu")
    with pytest.raises(CannotObserve, match=r"no language head.* loss='embedding', or a function"):
        Loss(scope)
    loss = Loss(scope, "embedding")
    asked = loss.ask(units_for(scope, 3, window=30))
    plain = run(scope, asked)
    assert loss.sums(plain, asked) == pytest.approx(0, abs=1e-12)
    changed = run(scope, asked, silence([(1, 2)]))
    found = loss.sums(changed, asked, plain)
    for row, unit in enumerate(asked.units):
        one, other = (hidden[row, : len(unit)].mean(0).double() for hidden in (changed, plain))
        expected = 1 - float(one @ other / one.norm() / other.norm())
        assert found[row] == pytest.approx(expected, abs=1e-6)
    mine = Loss(scope, lambda hidden, plain, there: (hidden - plain).abs().sum((1, 2)))
    assert (mine.sums(changed, asked, plain) > 0).all()


def test_an_encoder_decoder_says_that_its_loss_is_its_decoders():
    model = next(family for family in INTERFACE if family.kind == "seq2seq").model()
    with pytest.raises(CannotObserve, match="decoder"):
        Loss(hs.load(model, wordpiece(), device="cpu"))


def test_a_head_put_to_a_tensor_is_the_model_with_that_tensor(specimen):
    asked = Loss(specimen).ask(units_for(specimen, 2))
    zero = torch.zeros(16)
    assert torch.equal(
        run(specimen, asked, put({(3, 5): zero})), run(specimen, asked, silence([(3, 5)]))
    )
    seen = {}

    def keep(outputs):
        seen[outputs.site.layer] = outputs.z.clone()

    own = specimen.loaded.backbone
    specimen.observe_batch(asked.ids, asked.mask, keep)
    same = {(4, head): seen[4][:, head] for head in range(12)}
    with torch.no_grad():
        plain = own(input_ids=asked.ids, attention_mask=asked.mask).last_hidden_state
    assert torch.equal(run(specimen, asked, put(same)), plain)
    other = {(4, 2): seen[4][:, 3]}
    assert not torch.allclose(run(specimen, asked, put(other)), plain)


def test_replicates_count_documents_as_a_study_does(specimen):
    units = units_for(specimen, 4)
    values = np.arange(8.0).reshape(4, 2)
    found = replicated(units, values, seed=7, replicates=20)
    by_hand = sum(
        np.outer(document_weights(unit.identity, 7, 20), one)
        for unit, one in zip(units, values, strict=True)
    )
    assert found == pytest.approx(by_hand)
