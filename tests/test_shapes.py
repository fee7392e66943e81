"""The shape of a model is what one run has shown: layers, heads, causality, and what is unseen."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import _get_current_dispatch_mode

import headscope as hs
from headscope.capture import HeadOutputs, capture, find_attention
from headscope.capture.places import places_of
from headscope.cli import _said
from headscope.errors import CannotObserve, NoSuchHead
from headscope.families.tiny import tiny_model
from headscope.shapes import no_trace
from headscope.viewer.packed import packed
from tiny import wordpiece

pytestmark = pytest.mark.filterwarnings("ignore")
TEXT = "The keeper lit the lamp, and the lamp burned. The fog came in the night, and the sea."


def scope_of(family: str) -> hs.Scope:
    tokenizer = wordpiece()
    return hs.load(tiny_model(family, len(tokenizer)), tokenizer, device="cpu")


def study_of(scope: hs.Scope, folder: object) -> object:
    few = {"replicates": 2, "texts": 0, "nulls": ()}
    return scope.study([TEXT, TEXT[:45]], folder / "study", **few)  # type: ignore[operator]


def test_layers_of_a_hybrid_keep_their_own_numbers(tmp_path) -> None:
    scope = scope_of("jamba")
    assert scope.shape.numbers == (2,)
    assert scope.shape.own.depth == 2
    assert "1 of 2 layers with heads (2)" in repr(scope)
    reading = scope.read(TEXT)
    assert reading.similarity(2, 1).shape == (len(reading), len(reading))
    assert reading.focus().of(2, 1)
    with pytest.raises(NoSuchHead, match=r"layer 1 has no heads: 1 of 2 layers"):
        reading.high_pairs(1, 1)
    with pytest.raises(NoSuchHead, match="layers are 1 to 2"):
        scope.ablate([(3, 1)])
    said = _said(scope.shape, "a text")
    assert said["layers"] == "1 of 2 layers with heads (2)"
    assert said["attention"] == "each token sees those before it"
    study = study_of(scope, tmp_path)
    assert set(study.table("heads")["layer"].to_pylist()) == {2}
    assert hs.open(tmp_path / "study").manifest.model.layer_numbers == (2,)
    assert b'"numbers": [2]' in packed(reading)


@pytest.mark.parametrize(
    ("family", "causal"),
    [("bert", False), ("gpt2", True), ("bloom", True), ("clip_text_model", True), ("xlm", False)],
)
def test_causality_is_what_a_changed_token_changes(family: str, causal: bool) -> None:
    assert scope_of(family).shape.causal is causal


@pytest.mark.parametrize("family", ["llava", "clip", "gemma3", "audioflamingo3"])
def test_the_text_stack_of_a_model_of_several_kinds_of_input_is_found(family, tmp_path) -> None:
    scope = scope_of(family)
    assert not scope.shape.stack.startswith(("vision", "audio", "cross"))
    assert scope.shape.asleep  # told, since a text does not run it
    plain = scope.read(TEXT).layers[-1]
    assert not torch.equal(plain, scope.ablate([(1, 1)]).read(TEXT).layers[-1])
    assert len(study_of(scope, tmp_path).table("heads")) == scope.shape.layers * scope.shape.heads


def test_a_module_that_several_layers_share_has_the_numbers_of_all() -> None:
    shared, own = nn.Linear(2, 2), nn.Linear(2, 2)
    layers = [nn.ModuleDict({"attn": m} if m else {}) for m in (None, shared, own, None, shared)]
    model = nn.ModuleDict({"layers": nn.ModuleList(layers)})
    places = places_of(model, [shared, own])
    assert (places[shared].layers, places[own].layers) == ((1, 4), (2,))
    assert {one.depth for one in places.values()} == {5}
    assert {one.stack for one in places.values()} == {"encoder"}


def test_padding_that_a_family_adds_is_no_part_of_a_text(tmp_path) -> None:
    scope = scope_of("longformer")
    reading = scope.read(TEXT)
    assert all(layer.shape[1] == len(reading) for layer in reading.layers)
    assert len(study_of(scope, tmp_path).table("heads")) == scope.shape.layers * scope.shape.heads


@pytest.mark.parametrize(("family", "size"), [("deepseek_v3", 8), ("mobilebert", 16)])
def test_the_head_size_is_that_of_z(family: str, size: int) -> None:
    scope = scope_of(family)
    assert scope.shape.head_size == size == scope.read(TEXT).layers[0].shape[-1]


def test_two_calls_of_one_layer_are_kept_apart_by_name() -> None:
    scope = scope_of("diffllama")
    assert [one.name for one in scope.shape.stacks] == ["decoder", "decoder, call 2"]
    assert scope.shape.own.takes == "changed z"
    assert len(scope.read(TEXT).layers) == scope.shape.layers


def test_one_model_may_have_both_seams() -> None:
    shape = scope_of("pegasus_x").shape
    assert {one.name: one.seam for one in shape.stacks} == {
        "encoder": "projection",
        "decoder": "interface",
        "cross": "interface",
    }


def test_what_ran_out_of_sight_is_named_with_its_path() -> None:
    model = tiny_model("longt5", 600)
    inputs = {"input_ids": torch.arange(5, 25)[None], "decoder_input_ids": torch.arange(5, 9)[None]}
    attention = find_attention(model)
    hidden = [m for m in attention.joined if "encoder" in attention.places[m].path]
    for module in hidden:  # as if it did more to its heads than join them
        module.o.register_forward_pre_hook(lambda m, args: (args[0] * 2,), prepend=True)
    with torch.no_grad(), capture(model) as opened:
        model(**inputs)
    assert set(opened.unseen) == {attention.places[m].path for m in hidden}
    assert all("not seen to come from its heads" in why for why in opened.unseen.values())


def test_heads_that_cannot_be_proven_are_refused_and_the_output_stays() -> None:
    model = tiny_model("bloom", 600)
    for block in model.h:
        block.self_attention.dense.register_forward_pre_hook(lambda m, args: (args[0].flip(-1),))
    ids = {"input_ids": torch.arange(5, 17)[None]}
    with torch.no_grad():
        plain = model(**ids)[0]
        with (
            pytest.raises(CannotObserve, match=r"self_attention: what its output projection"),
            capture(model, lambda seen: None),
        ):
            observed = model(**ids)[0]
    assert torch.equal(plain, observed)


@pytest.mark.parametrize("family", ["bert", "big_bird", "reformer", "deberta-v2"])
def test_a_dry_run_leaves_no_trace(family: str) -> None:
    tokenizer = wordpiece()
    model = tiny_model(family, len(tokenizer))
    parts, state = list(model.modules()), {k: v.clone() for k, v in model.state_dict().items()}
    told = [sorted(vars(module)) for module in parts]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in parts]
    drawn = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    hs.load(model, tokenizer, device="cpu")
    assert all(a is b for a, b in zip(parts, model.modules(), strict=True))
    assert [sorted(vars(module)) for module in parts] == told
    assert [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in parts] == hooks
    assert all(torch.equal(state[k], v) for k, v in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == drawn[1:]
    assert _get_current_dispatch_mode() is None


def test_a_model_that_chooses_its_attention_by_length_is_put_back() -> None:
    model = tiny_model("big_bird", 600)
    model.set_attention_type("block_sparse")
    inner = [type(layer.attention.self).__name__ for layer in model.encoder.layer]
    with no_trace(model), torch.no_grad():
        model(input_ids=torch.arange(5, 17)[None])
        assert model.attention_type == "original_full"
    assert model.attention_type == "block_sparse"
    assert [type(layer.attention.self).__name__ for layer in model.encoder.layer] == inner


def test_captured_modes_end_when_a_pass_fails() -> None:
    model = tiny_model("bloom", 600)

    def fail(seen: HeadOutputs) -> None:
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"), capture(model, fail):
        model(input_ids=torch.arange(5, 17)[None])
    assert _get_current_dispatch_mode() is None
