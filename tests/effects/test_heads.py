"""What silencing each head costs, against a plain loop over heads and texts."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as t

import headscope as hs
from effects.texts import PARAGRAPHS
from headscope.capture import HeadOutputs, capture
from headscope.corpus import Corpus
from headscope.effects.change import put, run
from headscope.effects.loss import Loss
from headscope.effects.ranks import rank_correlation, within_layers
from headscope.errors import NotPossible
from headscope.study.bootstrap import interval, weights
from headscope.units import read_units
from tiny import byte_level

SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture(scope="module")
def gpt2() -> hs.Scope:
    torch.manual_seed(0)
    tokenizer = byte_level()
    tokenizer.pad_token = "<s>"
    config = t.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=3, n_head=4, n_positions=64)
    config.initializer_range = 0.2
    return hs.load(t.GPT2LMHeadModel(config).eval(), tokenizer, device="cpu")


def windows(scope, corpus):
    return [
        unit
        for number, document in enumerate(Corpus(corpus, "paragraph"))
        for unit in read_units(number, document, scope.tokenizer, scope.shape.window, "en")
    ]


def by_hand(model, units, loss):
    """The loss of each window alone, as transformers computes it, and how many answers it has."""
    found, answers = [], []
    for unit in units:
        asked = loss.ask([unit])
        labels = torch.full_like(asked.ids, -100)
        ahead = 1 if loss.kind == "causal" else 0
        labels[0, asked.places + ahead] = asked.truth
        with torch.no_grad():
            mean = model(input_ids=asked.ids, labels=labels).loss
        found.append(float(mean) * len(asked.truth))
        answers.append(len(asked.truth))
    return np.array(found), np.array(answers, float)


def rows(study, quantity):
    return [row for row in study.table("effects").to_pylist() if row["quantity"] == quantity]


@pytest.mark.parametrize("which", ["tiny", "gpt2"])
def test_the_effect_is_the_loss_without_the_columns_of_the_output_projection(
    which, request, corpus, tmp_path
):
    scope = request.getfixturevalue(which)
    options = {"nulls": (), "readings": ("raw",), "special": ("kept",)}
    scope.study(corpus, tmp_path / "study", document="paragraph", **options)
    made = scope.effects(corpus, tmp_path / "study", limit=0, windows=0)
    assert made.manifest.added["effects"].parameters["run"] == "from the layer on"
    units, loss = windows(scope, corpus), Loss(scope)
    plain, answers = by_hand(scope.model, units, loss)
    (own,) = rows(made, "loss")
    assert own["value"] == pytest.approx(plain.sum() / answers.sum(), rel=1e-5)
    by_document = weights([unit.identity for unit in units], made.manifest.parameters.seed)
    for row in rows(made, "zero_effect"):
        model = copy.deepcopy(scope.model)
        place, own = row["layer"] - 1, slice(8 * row["head"] - 8, 8 * row["head"])
        with torch.no_grad():
            if which == "tiny":
                model.bert.encoder.layer[place].attention.output.dense.weight[:, own] = 0
            else:
                model.transformer.h[place].attn.c_proj.weight[own] = 0
        change = by_hand(model, units, loss)[0] - plain
        replicates = (by_document.T @ change) / (by_document.T @ answers)
        assert row["value"] == pytest.approx(replicates[0], abs=2e-6)
        low, high = interval(replicates)
        assert (row["low"], row["high"]) == pytest.approx((low, high), abs=2e-6)
        assert row["chance"] is None


def z_of(scope, asked):
    found = []

    def keep(outputs: HeadOutputs) -> None:
        found.append(outputs.z[0])

    with torch.no_grad(), capture(scope.loaded.backbone, keep):
        run(scope, asked)
    return torch.stack(found)  # (layers, heads, tokens, d)


def test_means_and_positions_and_other_texts_are_what_they_say(tiny, study, corpus):
    made = tiny.effects(
        corpus, study.path, limit=0, windows=0, seed=5, to=("mean", "position", "resample")
    )
    units, loss = windows(tiny, corpus), Loss(tiny, seed=5)
    asked = [loss.ask([unit]) for unit in units]
    z = [z_of(tiny, one) for one in asked]
    mean = torch.cat(z, 2).double().mean(2)  # (layers, heads, d)
    longest = max(one.shape[2] for one in z)
    at = [
        torch.stack([one[:, :, place] for one in z if one.shape[2] > place]).double().mean(0)
        for place in range(longest)
    ]
    plain = [loss.sums(run(tiny, one), one)[0] for one in asked]
    answers = sum(one.counts[0] for one in asked)
    for layer, head in ((0, 1), (1, 2), (2, 3)):
        changes = {"mean": 0.0, "position": 0.0}
        for one, own in zip(asked, plain, strict=True):
            by_place = torch.stack(at[: one.ids.shape[1]])[:, layer, head]
            for name, value in (("mean", mean[layer, head]), ("position", by_place)):
                hidden = run(tiny, one, put({(layer, head): value.float()}))
                changes[name] += loss.sums(hidden, one)[0] - own
        for name, change in changes.items():
            (row,) = (
                row
                for row in rows(made, f"{name}_effect")
                if (row["layer"], row["head"]) == (layer + 1, head + 1)
            )
            assert row["value"] == pytest.approx(change / answers, abs=2e-6)
    again = tiny.effects(
        corpus, study.path, limit=0, windows=0, seed=5, to=("mean", "position", "resample")
    )
    assert again.effects.to_pylist() == made.effects.to_pylist()


def test_the_z_of_another_text_is_that_of_another_document(tiny, corpus):
    from headscope.effects.replacing import Replacing
    from headscope.effects.rerun import FromLayer

    units, loss = windows(tiny, corpus), Loss(tiny)
    runner, replacing = FromLayer(tiny), Replacing(("resample",), 0)
    for unit in units:
        asked = loss.ask([unit])
        runner.plain(asked)
        replacing.see(runner, asked)
    replacing.read_donors(runner, loss)
    assert len(replacing.donors) == min(8, len(units))
    lent = [(unit.identity, z_of(tiny, loss.ask([unit]))) for unit in replacing.donors]
    for unit in units:
        asked = loss.ask([unit])
        runner.plain(asked)
        given = replacing.values("resample", runner, asked, 1)[:, 0]
        fits = [
            identity
            for identity, z in lent
            if torch.allclose(z[1][:, torch.arange(len(unit)) % z.shape[2]], given, atol=1e-6)
        ]
        assert fits
        assert unit.identity not in fits


def test_one_document_lends_nothing(tiny, tmp_path):
    with pytest.raises(NotPossible, match="two documents"):
        tiny.effects([PARAGRAPHS[0]], tmp_path / "study", to=("resample",))
    with pytest.raises(NotPossible, match="zero, mean, position, resample"):
        tiny.effects([PARAGRAPHS[0]], tmp_path / "study", to=("one",))


def test_a_number_of_ones_own_is_asked_of_the_hidden_states(tiny, study, corpus):
    def moved(changed, unchanged, there):
        return ((changed - unchanged).norm(dim=-1) * there).sum(1)

    made = tiny.effects(corpus, study.path, loss=moved, limit=3)
    assert made.manifest.added["effects"].parameters["loss"] == "moved"
    assert rows(made, "loss")[0]["value"] == pytest.approx(0, abs=1e-4)
    assert all(row["value"] > 0.01 for row in rows(made, "zero_effect"))
    assert not rows(made, "gradient")


@pytest.mark.shared
@pytest.mark.slow
def test_a_sentence_model_says_how_far_its_embedding_moves(tmp_path):
    scope = hs.load(SHARED / "models" / "gte-small", device="cpu")
    corpus = PARAGRAPHS[:4]
    scope.study(corpus, tmp_path / "study", nulls=(), readings=("raw",), special=("kept",))
    made = scope.effects(corpus, tmp_path / "study", loss="embedding")
    found = {(row["layer"], row["head"]): row["value"] for row in rows(made, "zero_effect")}
    assert len(found) == 144
    assert all(-1e-6 < value < 1 for value in found.values())

    def embedding_of(model, text):
        tokens = model.tokenizer(text, return_tensors="pt")
        hidden = model.forward(**tokens).last_hidden_state[0].double().mean(0)
        return hidden / hidden.norm()

    for head in ((1, 1), (6, 5), (12, 12)):
        apart = [
            1 - float(embedding_of(scope, text) @ embedding_of(scope.ablate([head]), text))
            for text in corpus
        ]
        assert found[head] == pytest.approx(np.mean(apart), abs=1e-5)


def test_rank_correlations_are_those_of_scipy():
    from scipy.stats import spearmanr

    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, 3, 4, 5)).round(1)
    for first, second, found in zip(
        one, other, rank_correlation(one.reshape(3, 20), other.reshape(3, 20)), strict=True
    ):
        assert found == pytest.approx(spearmanr(first.ravel(), second.ravel())[0])
    # What a layer has in common takes no part within layers.
    deep = one + 100 * np.arange(4)[:, None]
    assert rank_correlation(deep.reshape(3, 20), deep.reshape(3, 20)) == pytest.approx(1)
    assert within_layers(deep, -deep) == pytest.approx(-1)
    layer = np.repeat(np.arange(4.0), 5).reshape(1, 4, 5)
    assert within_layers(layer + 0 * one, one) == pytest.approx(np.nan, nan_ok=True)
