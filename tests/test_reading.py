"""A reading says of a text what the model computed, and C is the matrix of the paper."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import headscope as hs
from families import ALL, Family
from headscope.errors import CannotObserve
from headscope.pair_table import PairTable
from headscope.pairs import parse_rule
from headscope.pairs.reference import similarity
from headscope.text import TokenClass
from tiny import byte_level, metaspace, wordpiece

TEXT = "The lamp is gone, and the keeper is gone. The sea is not! Ada tells them about the fog."
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


@pytest.fixture(scope="module")
def reading(tiny: hs.Scope) -> hs.Reading:
    return tiny.read(TEXT)


def test_head_vectors_are_those_of_transformers_own_attention(tiny: hs.Scope) -> None:
    # In float64, where two attention kernels that round in another order still agree.
    scope = hs.load(copy.deepcopy(tiny.model).double(), tiny.tokenizer)
    reading, eager = scope.read(TEXT), scope.model
    eager.set_attn_implementation("eager")
    ids = torch.tensor(reading.tokens.ids)[None]
    with torch.no_grad():
        output = eager.bert(input_ids=ids, output_attentions=True, output_hidden_states=True)
        layer = eager.bert.encoder.layer[1].attention.self
        v = layer.value(output.hidden_states[1])[0].unflatten(-1, (4, 8)).transpose(0, 1)
        z = output.attentions[1][0] @ v  # (heads, tokens, head size)
    eager.set_attn_implementation("sdpa")  # which the reading asks for its attention
    for head in range(1, 5):
        np.testing.assert_allclose(reading.head_vectors(2, head), z[head - 1], atol=1e-6)
        np.testing.assert_allclose(
            reading.attention(2, head), output.attentions[1][0, head - 1], atol=1e-6
        )


def test_layers_and_heads_are_counted_from_one(reading: hs.Reading) -> None:
    assert np.array_equal(reading.head_vectors(1, 1), reading.layers[0][0].numpy())
    assert np.array_equal(reading.head_vectors(3, 4), reading.layers[2][3].numpy())
    for layer, head in ((0, 1), (4, 1), (1, 0), (1, 5)):
        with pytest.raises(
            IndexError, match=r"does not exist: (layers are 1 to 3|heads are 1 to 4)"
        ):
            reading.similarity(layer, head)


def test_c_is_a_times_v_vt_times_at(tiny: hs.Scope, reading: hs.Reading) -> None:
    values: list[torch.Tensor] = []

    def keep(seen: object) -> None:
        values.append(seen.v[0].double())  # type: ignore[attr-defined]

    tiny.observe(reading.tokens, keep)
    for layer in (1, 2, 3):
        for head in (1, 4):
            A, v = reading.attention(layer, head), values[layer - 1][head - 1].numpy()
            C = reading.similarity(layer, head)
            np.testing.assert_allclose(C, A @ (v @ v.T) @ A.T, rtol=1e-4, atol=1e-5)


def test_a_row_of_attention_adds_up_to_one(reading: hs.Reading) -> None:
    np.testing.assert_allclose(reading.attention(3, 2).sum(axis=1), 1, atol=1e-6)


vectors = st.integers(1, 12).flatmap(
    lambda size: st.lists(
        st.lists(st.floats(-1e3, 1e3, width=32), min_size=size, max_size=size),
        min_size=1,
        max_size=16,
    )
)


@settings(max_examples=150, deadline=None)
@given(z=vectors)
def test_c_is_symmetric_positive_semidefinite_and_bounded_by_the_norms(
    z: list[list[float]],
) -> None:
    Z: NDArray[np.float64] = np.array(z)
    C = similarity(Z)
    norms = np.linalg.norm(Z, axis=1)
    scale = max(norms.max() ** 2, 1e-30)
    assert np.array_equal(C, C.T)
    assert np.linalg.eigvalsh(C).min() >= -1e-9 * scale
    assert (np.abs(C) <= np.outer(norms, norms) + 1e-9 * scale).all()
    assert np.linalg.matrix_rank(C) <= Z.shape[1]
    for kind in ("cosine", "centred"):
        assert np.abs(similarity(Z, kind)).max() <= 1 + 1e-9


def test_the_three_readings_are_what_the_method_says(reading: hs.Reading) -> None:
    z = reading.head_vectors(2, 3).astype(float)
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    bare = z - z.mean(axis=0)
    bare /= np.linalg.norm(bare, axis=1, keepdims=True)
    np.testing.assert_allclose(reading.similarity(2, 3), z @ z.T, rtol=1e-10)
    np.testing.assert_allclose(reading.similarity(2, 3, "cosine"), unit @ unit.T, atol=1e-12)
    np.testing.assert_allclose(reading.similarity(2, 3, "centred"), bare @ bare.T, atol=1e-12)


def test_focus_is_the_mass_of_attention_by_class(reading: hs.Reading) -> None:
    focus, tokens = reading.focus(), reading.tokens
    size = len(tokens)
    for layer, head in ((1, 1), (2, 3), (3, 4)):
        A = reading.attention(layer, head)
        expected = {kind.label: A[:, tokens.classes == kind].sum() / size for kind in TokenClass}
        expected["previous token"] = sum(A[i, i - 1] for i in range(1, size)) / size
        expected["own token"] = np.trace(A) / size
        expected["next token"] = sum(A[i, i + 1] for i in range(size - 1)) / size
        same = (tokens.sentences[:, None] == tokens.sentences) & (tokens.sentences >= 0)
        expected["own sentence"] = (A * same).sum() / size
        found = focus.of(layer, head)
        assert found.keys() == expected.keys()
        for target, mass in expected.items():
            assert found[target] == pytest.approx(mass, abs=1e-6), target


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral"])
def test_the_chance_of_focus_is_what_even_attention_gives(name: str) -> None:
    """With W_Q = 0 every visible token is attended alike, so focus must equal its chance level."""
    family = next(f for f in ALL if f.name == name)
    scope = scope_of(family)
    if name == "mistral":
        scope.model.config.sliding_window = None
    for path, parameter in scope.model.named_parameters():
        if any(part in path for part in ("query", "q_proj", "c_attn")):
            parameter.data.zero_()
    focus = scope.read(TEXT).focus()
    np.testing.assert_allclose(focus.mass[0, 0], focus.chance, atol=1e-6)


def test_high_pairs_are_the_most_similar_pairs(reading: hs.Reading) -> None:
    C = reading.similarity(3, 2)
    pairs = reading.high_pairs(3, 2, hs.quantile(0.05))
    every = sorted(
        ((C[i, j], i, j) for i in range(len(C)) for j in range(i + 1, len(C))), reverse=True
    )
    count = -(-len(every) * 5 // 100)
    assert [(p.similarity, p.first, p.second) for p in pairs] == every[:count]
    tokens = reading.tokens
    for pair in pairs:
        assert pair.distance == pair.second - pair.first > 0
        assert pair.first_word == tokens.word_texts[pair.first]
        inside = tokens.sentences[[pair.first, pair.second]]
        assert pair.same_sentence == (inside[0] == inside[1] != -1)
        assert pair.special == bool(tokens.special[[pair.first, pair.second]].any())


def test_a_repeated_word_is_the_same_word_and_its_own_pieces_are_not(tiny: hs.Scope) -> None:
    reading = tiny.read("Astronomers and astronomers")
    pairs = reading.high_pairs(1, 1, "quantile(1.0)")
    words = reading.tokens.words
    assert len(set(words)) < len(words)  # the word is in pieces
    same = [(p.first, p.second) for p in pairs if p.same_word]
    assert len(same) == sum(words == words[1]) * sum(words == words[-2]) > 1
    assert all(words[i] != words[j] for i, j in same)


def test_special_tokens_can_be_left_out(reading: hs.Reading) -> None:
    assert any(p.special for p in reading.high_pairs(1, 1, "quantile(1.0)"))
    left = reading.high_pairs(1, 1, "quantile(1.0)", special="left_out")
    assert left
    assert not any(p.special for p in left)


def test_pairs_become_an_arrow_table(reading: hs.Reading) -> None:
    pairs = reading.high_pairs(1, 1)
    table = pairs.to_arrow()
    assert table.num_rows == len(pairs) > 0
    assert table["first_word"][0].as_py() == pairs[0].first_word


def test_a_long_text_is_read_in_windows_and_comes_back_whole(tiny: hs.Scope) -> None:
    long = tiny.read(hs.sample_text())
    assert len(long.windows) > 5
    assert len(long) == len(long.tokens) == long.layers[0].shape[1]
    middle = long.windows[3]
    alone = tiny.head_vectors(middle.tokens)
    own = torch.from_numpy(middle.own)
    for layer in range(3):
        place = torch.from_numpy(middle.positions)[own]
        assert torch.equal(long.layers[layer][:, place], alone[layer][:, own])
    with pytest.raises(ValueError, match=r"pass window=0 …"):
        long.attention(1, 1)
    assert long.attention(1, 1, window=3).shape == (64, 64)
    assert long.focus().mass[..., :6].sum(axis=-1) == pytest.approx(1, abs=1e-5)


def test_reading_twice_gives_the_same_bits(tiny: hs.Scope) -> None:
    once, again = tiny.read(TEXT), tiny.read(TEXT)
    assert all(torch.equal(a, b) for a, b in zip(once.layers, again.layers, strict=True))


def test_one_token_can_be_read(tiny: hs.Scope) -> None:
    reading = tiny.read("sea")
    assert reading.similarity(1, 1).shape == (len(reading), len(reading))
    scope = scope_of(next(f for f in ALL if f.name == "gpt2"))
    single = scope.read("a")
    assert len(single) == 1
    assert len(single.high_pairs(1, 1)) == 0
    assert single.focus().of(1, 1)["own token"] == pytest.approx(1)


def test_a_text_model_refuses_an_image(tiny: hs.Scope) -> None:
    with pytest.raises(CannotObserve, match=r"reads no pictures.*Load one that sees"):
        tiny.read(torch.zeros(16, 16, 3))


def test_windows_that_cannot_be_are_refused(tiny: hs.Scope) -> None:
    with pytest.raises(ValueError, match="more than the model's 64 tokens"):
        tiny.read(TEXT, window=65)
    with pytest.raises(ValueError, match="leave room in a window of 16"):
        tiny.read(TEXT, window=16, overlap=14)


def test_ablation_silences_a_head_and_only_in_its_scope(tiny: hs.Scope) -> None:
    quiet = tiny.ablate([(2, 3)])
    assert np.abs(quiet.read(TEXT).similarity(1, 3)).max() > 0
    ids = {"input_ids": torch.tensor(tiny.read(TEXT).tokens.ids)[None]}
    before = tiny.model(**ids).logits
    assert not torch.equal(quiet.forward(**ids).logits, before)
    assert torch.equal(tiny.forward(**ids).logits, before)
    assert quiet.ablate([(1, 1)]).silenced == {(2, 3), (1, 1)}
    with pytest.raises(IndexError, match="heads are 1 to 4"):
        tiny.ablate([(1, 5)])


def scope_of(family: Family) -> hs.Scope:
    """A tiny model of a family with a tokenizer that fits it."""
    kinds = {"gpt2": byte_level, "llama": metaspace, "mistral": metaspace, "t5": metaspace}
    tokenizer = kinds.get(family.name, wordpiece)()
    model = family.model()
    model.resize_token_embeddings(len(tokenizer))
    return hs.load(model, tokenizer)


READ = [f for f in ALL if f.kind in ("text", "seq2seq")]


@pytest.mark.filterwarnings("ignore:.*resizing embeddings")
@pytest.mark.parametrize("family", READ, ids=lambda f: f.name)
def test_every_text_family_can_be_read(family: Family) -> None:
    scope = scope_of(family)
    reading = scope.read(TEXT)
    shape = scope.shape
    assert (shape.layers, shape.heads, shape.head_size) == (3, 4, 8)
    assert len(reading.layers) == 3
    assert reading.layers[0].shape == (4, len(reading), 8)
    assert reading.similarity(3, 4).shape == (len(reading), len(reading))
    if family.name == "longformer":
        with pytest.raises(CannotObserve, match="does not show its attention weights"):
            reading.focus()
        return
    focus = reading.focus()
    totals = focus.mass[..., :6].sum(axis=-1)
    if family.name == "gpt_oss":
        assert (totals < 1).all()
    else:
        np.testing.assert_allclose(totals, 1, atol=1e-5)
    assert reading.attention(2, 2).shape == (len(reading), len(reading))


def test_a_reading_shows_itself(reading: hs.Reading) -> None:
    assert "3 layers × 4 heads" in repr(reading)
    assert "own sentence" in reading._repr_html_()
    assert "similarity" in repr(reading.high_pairs(1, 1))


def test_focus_taken_in_the_same_pass_is_the_same(tiny: hs.Scope, capsys) -> None:
    text = TEXT * 6
    apart = tiny.read(text, window=64)
    together = tiny.read(text, window=64, focus=True, progress=True)
    assert np.array_equal(together.focus().mass, apart.focus().mass)
    assert np.array_equal(together.focus().chance, apart.focus().chance)
    for one, other in zip(apart.layers, together.layers, strict=True):
        assert torch.equal(one, other)
    windows = len(apart.windows)
    assert capsys.readouterr().err.rstrip().endswith(f"reading: {windows} of {windows}")


def test_pairs_across_windows_are_left_out_unless_asked_for(tiny: hs.Scope) -> None:
    reading = tiny.read(hs.sample_text()[:1500], window=40)
    windows = reading.token_windows
    assert [int((windows == n).sum()) for n in range(len(reading.windows))] == [
        int(window.own.sum()) for window in reading.windows
    ]
    for rule in ("quantile(0.02)", "peak(0.5)", "sigma(2)", "nearest(2)"):
        C = reading.similarity(2, 3)
        chosen = parse_rule(rule)
        within = reading.high_pairs(2, 3, rule)
        across = reading.high_pairs(2, 3, rule, across_windows=True)
        assert all(windows[pair.first] == windows[pair.second] for pair in within)
        assert "windows left out" in within.caption
        assert "windows taken in" in across.caption
        # The rule asks the same of fewer pairs.
        i, j = np.triu_indices(len(C), 1)
        here = windows[i] == windows[j]
        assert f"of {here.sum():,} " in within.caption
        assert f"of {len(i):,} " in across.caption
        if rule.startswith("quantile"):
            highest = np.sort(C[i, j][here])[-chosen.number(int(here.sum())) :]
            assert [pair.similarity for pair in within] == pytest.approx(highest[::-1])
    alone = tiny.read(TEXT)
    assert "window" not in alone.high_pairs(2, 3).caption
    assert alone.high_pairs(2, 3).rows() == alone.high_pairs(2, 3, across_windows=True).rows()


def test_a_text_that_the_model_does_not_know_is_said_to_be_unknown(tiny: hs.Scope) -> None:
    reading = tiny.read("The lamp 灯 灯 灯 is lit.")
    tokens = reading.tokens
    assert [tokens.pieces[i] for i in np.flatnonzero(tokens.unknown)] == ["灯"] * 3
    assert {tokens.symbols[i] for i in np.flatnonzero(tokens.unknown)} == {"[UNK]"}
    assert tokens.unknown_share == 3 / (~tokens.special).sum() > 0.05
    assert "which read [UNK] instead" in reading.unknown_note
    assert "Read it with a model of its language" in reading.unknown_note
    assert "3 unknown" in repr(reading)
    assert "unknown to the model" in reading._repr_html_()
    pairs = reading.high_pairs(1, 1, "quantile(1.0)")
    unknown = [pair for pair in pairs if pair.first_unknown and pair.second_unknown]
    assert len(unknown) == 3
    assert "灯 (unknown)" in repr(PairTable(unknown, "pairs"))
    assert "灯<small> unknown</small>" in PairTable(unknown, "pairs")._repr_html_()
    rare = tiny.read("The lamp is lit, and the keeper slept in the fog all night. " * 4 + "灯")
    assert 0 < rare.tokens.unknown_share <= 0.05
    assert rare.unknown_note.endswith("instead.")
    assert tiny.read("The lamp is lit.").unknown_note == ""


def test_a_piece_stands_inside_its_word(tiny: hs.Scope) -> None:
    reading = tiny.read("The zygomorphic gammarus, the lamp.")
    tokens, pairs = reading.tokens, reading.high_pairs(1, 1, "quantile(1.0)")
    parts = {i for i in range(len(tokens)) if tokens.pieces[i] != tokens.word_texts[i]}
    assert len(parts) > 4
    for pair in pairs:
        for position, end in zip((pair.first, pair.second), pair.ends, strict=True):
            before, piece, after = end.parts
            assert before + piece + after == tokens.word_texts[position]
            assert piece == tokens.pieces[position]
            assert (before != "" or after != "") == (position in parts)
    first = next(pair for pair in pairs if pair.first == min(parts))
    assert f"‹{first.first_piece}›{first.first_word[len(first.first_piece) :]}" in repr(
        PairTable([first], "pairs")
    )
    assert f"<b>{first.first_piece}</b>" in PairTable([first], "pairs")._repr_html_()


def test_communities_are_of_one_window_and_leave_special_tokens_out(tiny: hs.Scope) -> None:
    text = "The keeper lit the lamp. " * 8
    reading = tiny.read(text, window=32, overlap=0)
    found = reading.communities(2, 3)
    assert (found.of[reading.tokens.special] == -1).all()
    assert found.sizes == sorted(found.sizes, reverse=True)
    assert sum(found.sizes) == (~reading.tokens.special).sum()
    windows = reading.token_windows
    assert len(set(windows)) > 1
    for positions in found:
        assert len(set(windows[positions])) == 1
    assert found.energy < 0
    assert "layer 2, head 3" in repr(found)
    marked = reading.mark("communities", found.labels).marks["communities"]
    assert marked[0] is None
    assert {label for label in marked if label} == {str(n + 1) for n in range(len(found))}
    finer = reading.communities(2, 3, gamma=3.0)
    assert len(finer) >= len(found)
