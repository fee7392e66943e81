"""Entropy by layer, held against each layer's state put through the model's own parts by hand."""

import numpy as np
import pytest
import torch
import transformers as t

import headscope as hs
from effects.test_loss import HEADED
from effects.texts import units_for
from families import SIZE
from headscope.effects.answers import AnswerSums, answers
from headscope.effects.confusions import Confusions
from headscope.effects.lens import Lens, final_norm, read_states
from headscope.effects.loss import Loss
from headscope.effects.sums import ReplicateSums
from headscope.errors import CannotObserve
from headscope.study.bootstrap import document_weights
from headscope.words import WordClass
from tiny import byte_level, wordpiece


@pytest.fixture(scope="module")
def gpt2() -> hs.Scope:
    torch.manual_seed(0)
    tokenizer = byte_level()
    tokenizer.pad_token = "<s>"
    config = t.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=3, n_head=4, n_positions=64)
    model = t.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():  # far from zero, so that layers differ
        parameter.data.add_(torch.randn_like(parameter) * 0.2)
    return hs.load(model, tokenizer, device="cpu")


def bert_states(scope, ids):
    """What stands behind the embeddings and behind each layer, seen by hooks."""
    bert, seen = scope.loaded.backbone, []
    hooks = [
        part.register_forward_hook(lambda _, given, result: seen.append(result))
        for part in (bert.embeddings, *bert.encoder.layer)
    ]
    with torch.no_grad():
        bert(input_ids=ids)
    for hook in hooks:
        hook.remove()
    return [scope.model.cls(one[0]) for one in seen]


def gpt2_states(scope, ids):
    """The same of a decoder: every state through the last normalisation."""
    gpt, seen = scope.loaded.backbone, []
    hooks = [gpt.h[0].register_forward_pre_hook(lambda _, given: seen.append(given[0]))]
    hooks += [
        part.register_forward_hook(
            lambda _, given, result: seen.append(result if torch.is_tensor(result) else result[0])
        )
        for part in gpt.h
    ]
    with torch.no_grad():
        gpt(input_ids=ids)
    for hook in hooks:
        hook.remove()
    return [scope.model.lm_head(gpt.ln_f(one[0])) for one in seen]


def by_hand(scope, asked, states):
    """The five numbers of every layer and question, one at a time."""
    found = []
    for row, unit in enumerate(asked.units):
        logits = states(scope, asked.ids[row : row + 1, : len(unit)])
        for place, true in zip(
            asked.places[asked.texts == row].tolist(),
            asked.truth[asked.texts == row].tolist(),
            strict=True,
        ):
            layers = []
            for layer in logits:
                p = layer[place].detach().double().softmax(-1).numpy()
                likelier = sum(1 for one in p if one > p[true])
                layers.append(
                    (-(p * np.log(p)).sum(), -np.log(p[true]), np.log(1 + likelier), p.argmax())
                )
            found.append(layers)
    return np.array(found)  # (answers, layers + 1, 4)


@pytest.mark.parametrize("which", ["bert", "gpt2"])
def test_each_layer_answers_as_its_state_put_through_the_models_own_head(which, specimen, gpt2):
    scope, states = (specimen, bert_states) if which == "bert" else (gpt2, gpt2_states)
    loss = Loss(scope)
    asked = loss.ask(units_for(scope, 3, window=40))
    found = answers(loss, Lens(scope), asked)
    expected = by_hand(scope, asked, states)
    assert found.entropy == pytest.approx(expected[..., 0].T, rel=1e-4, abs=1e-4)
    assert found.loss == pytest.approx(expected[..., 1].T, rel=1e-4, abs=1e-4)
    same = found.given == expected[..., 3].T
    assert same.mean() > 0.999
    assert np.abs(found.log_rank - expected[..., 2].T).max() < 0.2  # ties within rounding
    assert np.array_equal(found.right, found.given == asked.truth.numpy())


def test_the_last_layer_loses_what_the_model_loses(specimen, gpt2):
    from headscope.effects.change import run

    for scope in (specimen, gpt2):
        loss = Loss(scope)
        asked = loss.ask(units_for(scope, 3, window=40))
        found = answers(loss, Lens(scope), asked)
        summed = [found.loss[-1][asked.texts.numpy() == row].sum() for row in range(3)]
        assert summed == pytest.approx(loss.sums(run(scope, asked), asked), rel=1e-5)


def counted(batches, vocabulary):
    return sum(np.bincount(asked.truth.numpy(), minlength=vocabulary) for asked in batches)


def test_sums_of_batches_are_the_means_over_their_documents(specimen):
    loss, lens = Loss(specimen), Lens(specimen)
    units = units_for(specimen, 5, window=60)
    batches = [loss.ask(units[:2]), loss.ask(units[2:])]
    vocabulary = len(specimen.tokenizer)
    sums = AnswerSums(counted(batches, vocabulary), 4, ReplicateSums(3, 20))
    asked_of, loss_of, right_of, given_of = [], [], [], []
    for asked in batches:
        found = answers(loss, lens, asked)
        sums.add(asked, found)
        for n, row in enumerate(asked.texts.tolist()):
            asked_of.append((asked.units[row].identity, int(asked.truth[n])))
            loss_of.append(found.loss[:, n])
            right_of.append(found.right[:, n])
            given_of.append(found.given[:, n])
    weight = np.stack([document_weights(one, 3, 20) for one, _ in asked_of], 1)
    numbers = sums.quantities()
    expected = weight @ np.array(loss_of) / weight.sum(1)[:, None]
    assert numbers["answer_loss"] == pytest.approx(expected)
    right = np.array(right_of).astype(float)  # (answers, layers + 1)
    assert numbers["accuracy"][0] == pytest.approx(right.mean(0))
    truths = np.array([true for _, true in asked_of])
    for place, one in enumerate(sums.types):
        own = truths == one
        assert sums.by_type()[0, :, place] == pytest.approx(right[own].mean(0))
    per_type = np.mean([right[truths == one].mean(0) for one in sums.types], axis=0)
    assert numbers["accuracy_per_type"][0] == pytest.approx(per_type)
    last = [int(given[-1]) for given in given_of]
    wrong = [(true, one) for (_, true), one in zip(asked_of, last, strict=True) if true != one]
    assert dict(sums.confused.counts) == {pair: wrong.count(pair) for pair in set(wrong)}
    assert sums.given[-1, last[0]] == last.count(last[0])
    classes = [
        unit.tokens.word_classes[place]
        for asked in batches
        for row, place in zip(asked.texts.tolist(), asked.places.tolist(), strict=True)
        for unit in [asked.units[row]]
    ]
    content = np.array(classes) == WordClass.CONTENT
    assert numbers["accuracy_content"][0] == pytest.approx(right[content].mean(0))


def test_chance_is_guessing_by_frequency():
    sums = AnswerSums(np.array([0, 1, 6, 3, 0]), 2, ReplicateSums(0))
    assert sums.types.tolist() == [2, 3]
    chance = sums.chance()
    p = np.array([0.6, 0.3, 0.1])
    assert (
        chance["answer_loss"] == chance["answer_entropy"] == pytest.approx(-(p * np.log(p)).sum())
    )
    assert chance["accuracy"] == 0.6
    assert chance["answer_rank"] == pytest.approx(2**0.3 * 3**0.1)
    assert chance["accuracy_per_type"] == 0.5


def test_confusions_stay_few_and_say_how_much_they_may_lack():
    random = np.random.default_rng(0)
    truth, given = (random.zipf(1.3, 20_000) % 300 for _ in range(2))
    held, exact = Confusions(kept=500), Confusions()
    for part in range(0, 20_000, 1000):
        held.add(truth[part : part + 1000], given[part : part + 1000])
        exact.add(truth[part : part + 1000], given[part : part + 1000])
        assert len(held.counts) <= 500
    assert exact.short == 0
    assert sum(exact.counts.values()) == 20_000
    assert 0 < held.short < 20_000 / 500
    for pair, count in exact.counts.items():
        assert count - held.short <= held.counts[pair] <= count
    assert held.of(1, 3)[0][0] == exact.of(1, 3)[0][0]


def test_a_model_without_a_language_head_says_so():
    torch.manual_seed(0)
    tokenizer = wordpiece()
    bare = t.BertModel(t.BertConfig(**SIZE | {"vocab_size": len(tokenizer)})).eval()
    scope = hs.load(bare, tokenizer, device="cpu")
    loss = Loss(scope, "embedding")
    with pytest.raises(CannotObserve, match="language head"):
        answers(loss, Lens(scope), loss.ask(units_for(scope, 2, window=30)))


@pytest.mark.parametrize("family", HEADED, ids=lambda family: family.name)
def test_the_last_normalisation_of_every_family_is_found(family):
    """What stands behind the last layer makes of its state the last hidden state; else nothing."""
    scope = hs.load(family.model(), wordpiece(), device="cpu")
    ids = family.inputs(batch=1)["input_ids"]
    norm, seen = final_norm(scope), []
    layers = [
        part
        for part in scope.loaded.backbone.modules()
        if isinstance(part, torch.nn.ModuleList) and len(part) == 3
    ]
    for part in layers:  # ALBERT has one layer, three times
        part[-1].register_forward_hook(lambda _, given, result: seen.append(result))
    last = read_states(scope, ids, None).last_hidden_state
    for raw in seen:
        state = raw if torch.is_tensor(raw) else raw[0]
        with torch.no_grad():
            assert torch.allclose(norm(state.reshape(last.shape)), last, atol=1e-6)
    assert seen or isinstance(norm, torch.nn.Identity)
