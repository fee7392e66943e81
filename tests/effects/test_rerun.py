"""Heads changed from their layer on: what a whole pass gives, for every family that allows it."""

import pytest
import torch

import headscope as hs
from effects.texts import units_for
from families import ALL
from headscope.capture import silence
from headscope.effects.change import run
from headscope.effects.loss import Asked, Loss
from headscope.effects.rerun import FromLayer, WholePasses, runner_for
from headscope.observed import ObservedModel
from tiny import wordpiece

TEXT = [family for family in ALL if family.kind == "text"]
WHOLE = {"longformer", "xlm", "flaubert"}


def asked_of(family, tokens=11):
    """Three texts, the last one padded at the end."""
    ids = family.inputs(batch=3, tokens=tokens)["input_ids"]
    mask = torch.ones_like(ids)
    mask[2, -4:] = 0
    nothing = torch.zeros(0, dtype=torch.long)
    return Asked(range(3), ids, mask, nothing, nothing, nothing)


@pytest.mark.parametrize("family", TEXT, ids=lambda family: family.name)
def test_heads_changed_from_their_layer_on_are_those_of_a_whole_pass(family):
    scope = hs.load(family.model(), wordpiece(), device="cpu")
    asked = asked_of(family)
    found, how = runner_for(scope, asked)
    assert isinstance(found, WholePasses) == (family.name in WHOLE), how
    before = {name: tensor.clone() for name, tensor in scope.model.state_dict().items()}
    plain = found.plain(asked)
    there = asked.mask.bool()
    assert torch.allclose(plain[there], run(scope, asked)[there], atol=1e-5)
    for layer in range(scope.shape.layers):
        heads = [0, 3, 1]
        hidden = found.changed(layer, [{head: torch.zeros(())} for head in heads])
        for head, one in zip(heads, hidden, strict=True):
            expected = run(scope, asked, silence([(layer, head)], scope.shape.stack))
            assert torch.allclose(one[there], expected[there], atol=1e-5)
            assert not torch.allclose(one[there], plain[there], atol=1e-4)
    assert all(torch.equal(before[name], one) for name, one in scope.model.state_dict().items())


def test_on_one_thread_the_bits_are_those_of_ablation_one_by_one(specimen):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        asked = Loss(specimen).ask(units_for(specimen, 3, window=60), 64)
        found = FromLayer(specimen)
        found.plain(asked)
        for layer in (0, 5, 11):
            hidden = found.changed(layer, [{head: torch.zeros(())} for head in range(12)])
            for head in range(12):
                alone = run(specimen, asked, silence([(layer, head)]))
                assert torch.equal(hidden[head], alone)
    finally:
        torch.set_num_threads(threads)


def test_layers_below_are_not_run_and_attention_is_not_asked_again(specimen):
    asked = Loss(specimen).ask(units_for(specimen, 2, window=30), 32)
    found = FromLayer(specimen)
    found.plain(asked)
    tokens = asked.ids.numel()
    assert found.layers_run == 12 * tokens
    for layer in range(12):
        before = found.layers_run
        found.changed(layer, [{head: torch.zeros(())} for head in range(5)])
        assert found.layers_run - before == 5 * (12 - layer) * tokens


def test_several_heads_are_put_to_any_tensor_in_one_variant(tiny):
    asked = Loss(tiny).ask(units_for(tiny, 3, window=30))
    found = FromLayer(tiny)
    found.plain(asked)
    z = torch.randn(asked.ids.shape[1], 8)
    other = found.z[1][:, 2].clone()
    (hidden,) = found.changed(1, [{0: z, 1: other}])
    from headscope.effects.change import put

    expected = run(tiny, asked, put({(1, 0): z, (1, 1): other}))
    assert torch.allclose(hidden, expected, atol=1e-6)


def test_heads_that_are_silenced_stay_so(tiny):
    silent = tiny.ablate([(2, 3), (3, 1)])
    asked = Loss(silent).ask(units_for(silent, 3, window=30))
    found = FromLayer(silent)
    assert torch.equal(found.plain(asked), run(silent, asked))
    (hidden,) = found.changed(0, [{2: torch.zeros(())}])
    both = tiny.ablate([(2, 3), (3, 1), (1, 3)])
    assert torch.allclose(hidden, run(both, asked), atol=1e-6)


def test_a_family_that_keeps_something_between_layers_is_read_in_whole_passes():
    family = next(one for one in TEXT if one.name == "bert")
    model = family.model()

    class Remembers(type(model.bert.encoder.layer[1])):
        """A layer whose output hangs on what another layer has seen in this pass."""

        def forward(self, hidden, *args, **kwargs):
            out = super().forward(hidden, *args, **kwargs)
            return out + model.bert.encoder.layer[0].seen

    class Notes(type(model.bert.encoder.layer[0])):
        def forward(self, hidden, *args, **kwargs):
            out = super().forward(hidden, *args, **kwargs)
            object.__setattr__(model.bert.encoder.layer[0], "seen", out.mean())
            return out

    model.bert.encoder.layer[0].__class__ = Notes
    model.bert.encoder.layer[1].__class__ = Remembers
    scope: ObservedModel = hs.load(model, wordpiece(), device="cpu")
    asked = asked_of(family)
    found, how = runner_for(scope, asked)
    assert isinstance(found, WholePasses)
    assert how.startswith("whole passes, since bert")
