"""Every family: the model is untouched, and what is seen of its heads is what it computes."""

import pytest
import torch
from torch import Tensor, nn

from families import ALL, BY_PROJECTION, HEADS, INTERFACE, LAYERS, Family
from headscope.capture import HeadOutputs, capture, find_attention, silence

every_family = pytest.mark.parametrize("family", ALL, ids=lambda f: f.name)
every_interface_family = pytest.mark.parametrize("family", INTERFACE, ids=lambda f: f.name)
# DeBERTa's own file still uses torch.jit.script.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def tensors(output: object) -> list[Tensor]:
    values = output.to_tuple() if hasattr(output, "to_tuple") else output
    return [v for v in values if isinstance(v, Tensor)]


def seen_in(family: Family, model: nn.Module, **inputs: Tensor) -> list[HeadOutputs]:
    seen: list[HeadOutputs] = []
    with torch.no_grad(), capture(model, seen.append):
        model(**(inputs or family.inputs()))
    return seen


def plain_attention(seen: HeadOutputs, family: Family, model: nn.Module) -> Tensor:
    """softmax(q kᵀ) in float64, written apart from the product: (batch, heads, tokens, keys)."""
    assert seen.q is not None
    assert seen.k is not None
    module = model.get_submodule(seen.site.path)
    q, k = seen.q.double(), seen.k.double()
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    scaling = seen.scaling if seen.scaling is not None else q.shape[-1] ** -0.5
    scores = q @ k.transpose(-1, -2) * scaling
    if family.name == "gemma2":
        scores = torch.tanh(scores / 50.0) * 50.0
    if family.name == "t5" and seen.site.stack != "cross":
        first = seen.site.path.replace(f"block.{seen.site.layer}", "block.0")
        bias = model.get_submodule(first).compute_bias(*scores.shape[-2:]).detach()
        scores = scores + bias.double()
    if seen.mask is not None and seen.mask.dtype == torch.bool:
        scores = scores.masked_fill(~seen.mask, float("-inf"))
    elif seen.mask is not None:
        scores = scores + seen.mask.double()
    if seen.mask is None and seen.site.stack == "decoder":
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~allowed, float("-inf"))
    if family.name == "gpt_oss":
        sinks = module.sinks.detach().double().reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return torch.cat([scores, sinks], dim=-1).softmax(-1)[..., :-1]
    return scores.softmax(-1)


@every_family
def test_the_output_is_the_same_to_the_bit_with_and_without_observation(family: Family) -> None:
    model = family.model()
    with torch.no_grad():
        plain = tensors(model(**family.inputs()))
        with capture(model, lambda seen: None) as opened:
            observed = tensors(model(**family.inputs()))
        after = tensors(model(**family.inputs()))
    assert opened.saw
    assert plain
    assert all(torch.equal(a, b) for a, b in zip(plain, observed, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(plain, after, strict=True))


@every_family
def test_every_layer_of_every_stack_is_seen_once_in_order(family: Family) -> None:
    seen = seen_in(family, family.model())
    stacks = {s.site.stack for s in seen}
    if family.kind in ("seq2seq", "audio"):
        assert stacks == {"encoder", "decoder", "cross"}
    else:
        assert len(stacks) == 1
    for stack in stacks:
        assert [s.site.layer for s in seen if s.site.stack == stack] == list(range(LAYERS))
    assert all(s.z.shape[1] == HEADS for s in seen)


@every_interface_family
def test_z_is_softmax_of_q_times_k_times_v(family: Family) -> None:
    model = family.model()
    for seen in seen_in(family, model):
        assert seen.v is not None
        A = plain_attention(seen, family, model)
        v = seen.v.double().repeat_interleave(A.shape[1] // seen.v.shape[1], dim=1)
        torch.testing.assert_close(seen.z.double(), A @ v, atol=2e-6, rtol=1e-5)


@every_interface_family
def test_weighing_indicator_columns_gives_the_attention_mass_of_a_class(family: Family) -> None:
    model = family.model()
    checked = 0

    def check(seen: HeadOutputs) -> None:
        nonlocal checked
        assert seen.k is not None
        A = plain_attention(seen, family, model)
        keys = seen.k.shape[2]
        columns = torch.eye(3)[torch.arange(keys) % 3]  # three classes
        torch.testing.assert_close(
            seen.weigh(columns).double(), A @ columns.double(), atol=1e-6, rtol=1e-5
        )
        torch.testing.assert_close(seen.weigh(torch.eye(keys)).double(), A, atol=1e-6, rtol=1e-5)
        if seen.site.stack != "cross":
            near = torch.zeros(*A.shape[:3], 3, dtype=torch.float64)
            near[:, :, 1:, 0] = A.diagonal(-1, -2, -1)
            near[..., 1] = A.diagonal(0, -2, -1)
            near[:, :, :-1, 2] = A.diagonal(1, -2, -1)
            torch.testing.assert_close(seen.near().double(), near, atol=1e-6, rtol=1e-5)
        checked += 1

    with torch.no_grad(), capture(model, check):
        model(**family.inputs())
    assert checked >= LAYERS


@pytest.mark.parametrize(
    "name", ["bert", "roberta", "distilbert", "gpt2", "llama", "mistral", "t5"]
)
def test_weighing_agrees_with_the_attentions_transformers_returns(name: str) -> None:
    family = next(f for f in INTERFACE if f.name == name)
    model = family.model("eager")
    with torch.no_grad():
        output = model(**family.inputs(), output_attentions=True)
    weights = getattr(output, "attentions", None) or output.encoder_attentions
    found = []

    def weigh(seen: HeadOutputs) -> None:
        assert seen.k is not None
        if seen.site.stack in ("encoder", "decoder") and len(found) < LAYERS:
            found.append(seen.weigh(torch.eye(seen.k.shape[2])))

    with torch.no_grad(), capture(model, weigh):
        model(**family.inputs())
    for expected, weighed in zip(weights, found, strict=True):
        torch.testing.assert_close(weighed, expected, atol=2e-7, rtol=1e-5)


def output_projections(family: Family, model: nn.Module) -> dict[str, nn.Module]:
    """W_O of each attention module: by the rule for families outside the interface."""
    attention = find_attention(model)
    if family in BY_PROJECTION:
        return {
            attention.places[module].path: site.projection
            for module, site in attention.joined.items()
        }
    found = {}
    for path in (attention.places[module].path for module in attention.interface):
        block = path.rsplit(".", 1)[0]
        inside = [(f"{path}.{n}", m) for n, m in model.get_submodule(path).named_children()]
        beside = [(f"{block}.{n}", m) for n, m in model.get_submodule(block).named_modules()]
        names = ("out_proj", "o_proj", "c_proj", "out_lin", "Wo", "o", "dense", "output.dense")
        for name, module in inside + beside:
            short = name.removeprefix(f"{path}.").removeprefix(f"{block}.")
            if short in names:
                found[path] = module
                break
    return found


@every_family
def test_the_heads_summed_through_the_output_projection_are_the_attention_block(
    family: Family,
) -> None:
    model = family.model()
    projections = output_projections(family, model)
    outputs: dict[nn.Module, list[Tensor]] = {}
    hooks = [
        module.register_forward_hook(
            lambda m, args, out: outputs.setdefault(m, []).append(out.detach())
        )
        for module in set(projections.values())
    ]
    seen = seen_in(family, model)
    for hook in hooks:
        hook.remove()
    assert seen
    for s in seen:
        module = projections[s.site.path]
        # GPT-2's Conv1D holds its weight the other way round.
        weight = module.weight.T if type(module).__name__ == "Conv1D" else module.weight
        bias = getattr(module, "bias", None)
        heads = weight.double().unflatten(1, (HEADS, -1))  # (width, heads, head size)
        total = sum(s.z[:, h].double() @ heads[:, h].T for h in range(HEADS))
        total = total + (bias.double() if bias is not None else 0)
        expected = outputs[module].pop(0).double()
        torch.testing.assert_close(total, expected, atol=1e-5, rtol=1e-4)


@every_family
def test_silencing_a_head_equals_zeroing_its_columns_of_the_output_projection(
    family: Family,
) -> None:
    model = family.model()
    layer, head = 1, 2
    site = next(
        s.site for s in seen_in(family, model) if s.site.layer == layer and s.site.stack != "cross"
    )
    with torch.no_grad():
        whole = tensors(model(**family.inputs()))
        with capture(model, change=silence([(layer, head)], site.stack)):
            silenced = tensors(model(**family.inputs()))
        if family.name == "albert":  # one projection serves every layer, so all are silenced
            with capture(model, change=silence([(n, head) for n in range(LAYERS)])):
                silenced = tensors(model(**family.inputs()))
        module = output_projections(family, model)[site.path]
        weight = module.weight.T if type(module).__name__ == "Conv1D" else module.weight
        size = weight.shape[1] // HEADS
        weight[:, head * size : (head + 1) * size] = 0
        zeroed = tensors(model(**family.inputs()))
    assert not torch.equal(whole[0], silenced[0])
    for a, b in zip(silenced, zeroed, strict=True):
        torch.testing.assert_close(a, b, atol=2e-6, rtol=1e-5)


TEXT = [f for f in ALL if f.kind == "text"]


@pytest.mark.parametrize("family", TEXT, ids=lambda f: f.name)
def test_padding_does_not_change_z(family: Family) -> None:
    model = family.model()
    short = family.inputs(batch=1, tokens=8)["input_ids"]
    long = family.inputs(batch=1, tokens=12)["input_ids"]
    pad = model.config.pad_token_id or 0
    padded = torch.cat([short, torch.full((1, 4), pad)], dim=1)
    mask = torch.tensor([[1] * 8 + [0] * 4, [1] * 12])
    alone = seen_in(family, model, input_ids=short, attention_mask=torch.ones(1, 8).long())
    together = seen_in(family, model, input_ids=torch.cat([padded, long]), attention_mask=mask)
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a.z[0, :, :8], b.z[0, :, :8], atol=2e-5, rtol=1e-4)
