"""The gradient estimate: the derivative of the loss by a factor before z, found by a difference."""

import numpy as np
import pytest
import torch

import headscope as hs
from effects.texts import units_for
from headscope.capture import capture
from headscope.effects.change import run
from headscope.effects.gradient import derivatives
from headscope.effects.loss import Loss


@pytest.fixture(scope="module")
def double(tiny_folder):
    return hs.load(tiny_folder, device="cpu", dtype="float64")


def test_it_is_the_derivative_of_the_loss_of_each_text_by_a_factor_before_z(double):
    loss = Loss(double)
    asked = loss.ask(units_for(double, 3, window=30), 40)
    found = derivatives(loss, asked)
    assert found.shape == (3, 3, 4)

    def scaled(layer, head, factor):
        def change(outputs):
            if outputs.site.layer != layer:
                return None
            z = outputs.z.clone()
            z[:, head] *= factor
            return z

        return loss.sums(run(double, asked, change), asked)

    step = 1e-4
    for layer, head in ((0, 0), (1, 3), (2, 2)):
        slope = (scaled(layer, head, 1 + step) - scaled(layer, head, 1 - step)) / (2 * step)
        assert found[:, layer, head] == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_the_model_is_left_as_it_was(tiny):
    loss = Loss(tiny)
    asked = loss.ask(units_for(tiny, 2, window=30))
    before = run(tiny, asked)
    derivatives(loss, asked)
    assert torch.equal(run(tiny, asked), before)
    assert all(parameter.grad is None for parameter in tiny.model.parameters())
    with torch.no_grad(), capture(tiny.loaded.backbone):
        own = tiny.loaded.backbone(input_ids=asked.ids, attention_mask=asked.mask)
    assert torch.equal(own.last_hidden_state, before)


def test_it_is_taken_of_the_model_with_the_heads_that_are_silenced(tiny):
    silent = tiny.ablate([(2, 3)])
    asked = Loss(silent).ask(units_for(silent, 2, window=30))
    assert (derivatives(Loss(silent), asked)[:, 1, 2] == 0).all()


def test_the_table_has_the_mean_of_its_size_over_texts(tiny, study, corpus):
    made = tiny.effects(corpus, study.path, limit=0, windows=0)
    loss = Loss(tiny)
    summed, answers = np.zeros((3, 4)), 0.0
    from headscope.corpus import Corpus, Document
    from headscope.units import read_units

    for number, document in enumerate(Corpus(corpus, "paragraph")):
        assert isinstance(document, Document)
        for unit in read_units(number, document, tiny.tokenizer, 64, "en"):
            asked = loss.ask([unit])
            summed += np.abs(derivatives(loss, asked)[0])
            answers += asked.counts[0]
    rows = [row for row in made.effects.to_pylist() if row["quantity"] == "gradient"]
    assert [row["value"] for row in rows] == pytest.approx(summed.ravel() / answers, rel=1e-4)
    assert all(row["low"] < row["value"] < row["high"] for row in rows)
