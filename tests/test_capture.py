"""The seam holds under stress: exceptions, nesting, threads, and every trap met before."""

import threading

import pytest
import torch
import transformers as t
from torch import Tensor
from transformers import AttentionInterface

from families import ALL, HEADS, INTERFACE, LAYERS, Family
from headscope.capture import (
    HeadOutputs,
    capture,
    find_attention,
    silence,
)
from headscope.errors import CannotObserve

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def family(name: str) -> Family:
    return next(f for f in ALL if f.name == name)


def logits(model: t.PreTrainedModel, inputs: dict[str, Tensor]) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**inputs)[0]
    return found


def test_nothing_of_the_model_is_changed_while_it_is_observed() -> None:
    bert = family("bert")
    model = bert.model()
    config, hooks = model.config.to_dict(), len(model._forward_pre_hooks)
    with capture(model, lambda seen: None):
        assert model.config._attn_implementation == "sdpa"
        assert model.config.to_dict() == config
    assert len(model._forward_pre_hooks) == hooks


def test_an_exception_inside_leaves_no_trace() -> None:
    bert = family("deberta-v2")
    model = bert.model()
    before = logits(model, bert.inputs())
    change = silence([(0, 0)])
    with pytest.raises(RuntimeError, match="on purpose"), capture(model, change=change):
        raise RuntimeError("on purpose")
    calls = []

    def fail_in_the_second_layer(seen: HeadOutputs) -> None:
        calls.append(1 // (1 - seen.site.layer))

    with pytest.raises(ZeroDivisionError), capture(model, fail_in_the_second_layer, change=change):
        logits(model, bert.inputs())
    assert calls == [1]
    assert torch.equal(logits(model, bert.inputs()), before)
    assert all(not m._forward_pre_hooks for m in model.modules())


def test_a_capture_sees_what_the_captures_opened_before_it_made_of_z() -> None:
    bert = family("bert")
    model = bert.model()
    outer: list[Tensor] = []
    inner: list[Tensor] = []
    with (
        torch.no_grad(),
        capture(model, lambda seen: outer.append(seen.z.clone()), change=silence([(0, 1)])),
    ):
        with capture(model, lambda seen: inner.append(seen.z.clone())):
            model(**bert.inputs())
        model(**bert.inputs())
    assert len(outer) == 2 * LAYERS
    assert len(inner) == LAYERS
    assert outer[0][:, 1].abs().max() > 0
    assert inner[0][:, 1].abs().max() == 0
    assert torch.equal(inner[0][:, 0], outer[0][:, 0])


def test_threads_do_not_see_each_other() -> None:
    bert = family("bert")
    model, inputs = bert.model(), bert.inputs()
    plain = logits(model, inputs)
    with capture(model, change=silence([(1, 2)])):
        changed = logits(model, inputs)
    assert not torch.equal(plain, changed)
    barrier, wrong = threading.Barrier(4), []

    def run(number: int) -> None:
        barrier.wait()
        for _ in range(15):
            if number % 2:
                seen: list[HeadOutputs] = []
                with capture(model, seen.append, change=silence([(1, 2)])):
                    found = logits(model, inputs)
                right = torch.equal(found, changed) and len(seen) == LAYERS
            else:
                right = torch.equal(logits(model, inputs), plain)
            if not right:
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_another_model_is_not_observed() -> None:
    bert = family("bert")
    one, two = bert.model(), bert.model()
    seen: list[HeadOutputs] = []
    with capture(one, seen.append):
        logits(two, bert.inputs())
    assert not seen


# The traps, one by one.


def test_the_implementation_keeps_its_name_so_that_masks_are_made_as_before() -> None:
    """A padded batch under another name would be read without its mask: an error of 0.02."""
    bert = family("bert")
    model = bert.model()
    inputs = bert.inputs() | {"attention_mask": torch.tensor([[1] * 6 + [0] * 5, [1] * 11])}
    masks = []
    before = logits(model, inputs)
    with capture(model, lambda seen: masks.append(seen.mask)):
        observed = logits(model, inputs)
    assert torch.equal(before, observed)
    assert all(mask is not None and not mask[0, 0, 0, 6:].any() for mask in masks)


def test_families_that_ask_for_their_implementation_by_name_still_find_it() -> None:
    """GPT-2 may compute attention in a way of its own, if its implementation is named "eager".

    That way goes past the interface: the output must not change, and no head may seem observed.
    """
    torch.manual_seed(0)
    size = {"vocab_size": 97, "n_embd": 32, "n_layer": 3, "n_head": 4}
    model = t.GPT2LMHeadModel(t.GPT2Config(**size, reorder_and_upcast_attn=True)).eval()
    model.set_attn_implementation("eager")
    inputs = family("gpt2").inputs()
    before = logits(model, inputs)
    with (
        pytest.raises(CannotObserve, match="ran, but none of its 3 attention modules was seen"),
        capture(model, lambda seen: None),
    ):
        assert torch.equal(before, logits(model, inputs))


@pytest.mark.parametrize("name", ["distilbert", "albert", "esm", "vit", "clip_vision"])
def test_layers_are_numbered_where_modules_have_no_number(name: str) -> None:
    chosen = family(name)
    model = chosen.model()
    sites = []
    with capture(model, lambda seen: sites.append(seen.site)):
        logits(model, chosen.inputs())
        logits(model, chosen.inputs())  # counted anew in a second pass
    assert [site.layer for site in sites] == [0, 1, 2, 0, 1, 2]
    assert len({site.path for site in sites}) == (1 if name == "albert" else LAYERS)


@pytest.mark.parametrize(
    "build",
    [
        lambda: t.MambaForCausalLM(
            t.MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2)
        ),
        lambda: t.XLNetLMHeadModel(t.XLNetConfig(vocab_size=97, d_model=32, n_layer=2, n_head=4)),
    ],
    ids=["mamba", "xlnet"],
)
def test_a_family_that_cannot_be_observed_is_refused_by_name(build: object) -> None:
    model = build()  # type: ignore[operator]
    expected = rf"'{model.config.model_type}'.*models --check"
    with pytest.raises(CannotObserve, match=expected), capture(model, lambda seen: None):
        pass


def test_each_family_is_seen_by_the_interface_or_by_its_structure() -> None:
    for chosen in ALL:
        attention = find_attention(chosen.model())
        assert not attention.others
        assert bool(attention.interface) == (chosen in INTERFACE)
        assert bool(attention.joined) == (chosen not in INTERFACE)


@pytest.mark.parametrize("name", ["t5", "bart", "whisper"])
def test_encoder_decoder_and_cross_attention_are_told_apart(name: str) -> None:
    chosen = family(name)
    model = chosen.model()
    shapes: dict[str, set[tuple[int, int]]] = {}

    def observe(seen: HeadOutputs) -> None:
        assert seen.k is not None
        shapes.setdefault(seen.site.stack, set()).add((seen.z.shape[2], seen.k.shape[2]))

    with capture(model, observe):
        logits(model, chosen.inputs())
    source = 20 if name == "whisper" else 11
    assert shapes == {
        "encoder": {(source, source)},
        "decoder": {(7, 7)},
        "cross": {(7, source)},
    }


def test_attention_sinks_are_part_of_what_is_seen() -> None:
    """gpt-oss gives part of each row to a sink that only its own attention knows."""
    chosen = family("gpt_oss")
    model = chosen.model()
    totals = []

    def observe(seen: HeadOutputs) -> None:
        assert seen.k is not None
        totals.append(seen.weigh(torch.ones(seen.k.shape[2], 1)))

    with capture(model, observe):
        logits(model, chosen.inputs())
    assert all((total < 1).all() for total in totals)


def test_grouped_heads_give_z_for_every_query_head() -> None:
    chosen = family("llama")
    seen: list[HeadOutputs] = []
    with capture(chosen.model(), seen.append) as opened:
        logits(opened.model, chosen.inputs())
    assert seen[0].k is not None
    assert (seen[0].z.shape[1], seen[0].k.shape[1]) == (HEADS, HEADS // 2)


def test_generation_is_observed_step_by_step() -> None:
    chosen = family("llama")
    model = chosen.model()
    layers = []
    with capture(model, lambda seen: layers.append(seen.site.layer)):
        model.generate(**chosen.inputs(batch=1), max_new_tokens=3, do_sample=False, pad_token_id=0)
    assert layers == list(range(LAYERS)) * 3


def test_a_text_of_full_length_has_no_mask() -> None:
    """So that the flash kernel can be used and nothing S×S is made."""
    chosen = family("bert")
    masks = []
    with capture(chosen.model(), lambda seen: masks.append(seen.mask)) as opened:
        logits(opened.model, chosen.inputs())
    assert masks == [None] * LAYERS


def test_outside_of_captures_the_lookup_returns_transformers_own_function() -> None:
    chosen = family("bert")
    with capture(chosen.model(), lambda seen: None):
        pass
    interface = AttentionInterface()
    assert interface.get_interface("sdpa", print) is interface["sdpa"]
    assert interface.get_interface("eager", print) is print


@pytest.mark.parametrize("name", ["bert", "gpt2", "gemma2", "gpt_oss"])
def test_some_rows_of_attention_are_those_of_the_whole(name: str) -> None:
    """With a step between them, whatever masks, caps and sinks a family has."""
    of = family(name)
    model = of.model()
    seen: list[HeadOutputs] = []
    with torch.no_grad(), capture(model, seen.append):
        model(**of.inputs())
    for layer in seen:
        whole = layer.weigh(torch.eye(layer.z.shape[2]))  # (batch, heads, tokens, keys)
        for rows in (slice(2, None, 3), slice(0, 1), slice(None)):
            assert torch.allclose(layer.weights(rows), whole[:, :, rows], atol=1e-6)


def test_heads_whose_output_projection_is_not_run_are_named_beside_those_that_are_seen() -> None:
    """WavLM hands the weights of its projection on to torch, so that its module never runs."""
    small = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
    layers = {"conv_dim": (16,), "conv_kernel": (10,), "conv_stride": (10,)}
    speech = t.WavLMConfig(
        **small,
        **layers,
        num_hidden_layers=2,
        num_feat_extract_layers=1,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
    )
    text = t.BertConfig(
        **small, num_hidden_layers=2, vocab_size=50, is_decoder=True, add_cross_attention=True
    )
    both = t.SpeechEncoderDecoderModel(
        encoder=t.WavLMModel(speech), decoder=t.BertLMHeadModel(text)
    ).eval()
    given = {"input_values": torch.randn(1, 2000), "decoder_input_ids": torch.arange(5)[None]}
    with torch.no_grad(), capture(both) as opened:
        both(**given)
    assert set(opened.unseen) == {f"encoder.encoder.layers.{n}.attention" for n in (0, 1)}
    assert (
        "WavLMAttention does not run the output projection"
        in opened.unseen["encoder.encoder.layers.0.attention"]
    )
    named = pytest.raises(CannotObserve, match=r"layers\.0\.attention: WavLMAttention")
    with torch.no_grad(), named, capture(both.encoder):
        both.encoder(given["input_values"])
