"""What a head writes: z W_O against the model's own vocabulary, whatever the family."""

import json

import numpy as np
import pytest
import torch
import transformers as t
from typer.testing import CliRunner

import headscope as hs
from families import ALL, HEADS, Family
from headscope.capture import find_attention
from headscope.cli import app
from headscope.errors import CannotObserve, NotPossible
from headscope.writing import output_projections, output_weights
from test_families import output_projections as by_table
from test_reading import scope_of

TEXT = "The keeper lit the lamp, and the lamp burned. The fog came in the night."
FOUND = ("bert", "distilbert", "gpt2", "llama", "mistral", "modernbert", "mpnet", "bloom")


@pytest.mark.filterwarnings("ignore:.*resizing embeddings")
@pytest.mark.parametrize("family", [f for f in ALL if f.name in FOUND], ids=lambda f: f.name)
def test_the_output_projection_is_found_by_what_it_is_given(family: Family) -> None:
    scope = scope_of(family)
    expected = list(by_table(family, scope.loaded.backbone).values())
    attention = find_attention(scope.model)
    assert len(attention.of(scope.shape.stack)) == scope.shape.layers
    assert all(a is b for a, b in zip(output_projections(scope), expected, strict=True))


def test_the_words_are_those_of_z_and_the_embedding(specimen: hs.Scope) -> None:
    reading = specimen.read(TEXT)
    found = reading.writes(6, 3, position=4, top=5)
    block = specimen.model.bert.encoder.layer[5].attention.output.dense
    W = block.weight.detach().double().numpy()[:, 2 * 16 : 3 * 16]
    E = specimen.model.get_output_embeddings().weight.detach().double().numpy()
    raised = E @ (W @ reading.head_vectors(6, 3)[4].astype(float))
    scores = (raised - raised.mean()) / raised.std(ddof=1)
    order = np.argsort(-scores)
    assert [much for _, much in found.raised] == pytest.approx(scores[order[:5]], abs=1e-4)
    assert [much for _, much in found.lowered] == pytest.approx(scores[order[:-6:-1]], abs=1e-4)
    words = [specimen.tokenizer.convert_ids_to_tokens(int(n)) for n in order[:5]]
    assert [word for word, _ in found.raised] == words


def test_what_the_heads_write_adds_up_to_the_attention_block(specimen: hs.Scope) -> None:
    reading = specimen.read(TEXT)
    together = sum(
        output_weights(specimen, 3, head + 1).numpy() @ reading.head_vectors(3, head + 1).T
        for head in range(12)
    )
    dense = specimen.model.bert.encoder.layer[2].attention.output.dense
    blocks: list[torch.Tensor] = []
    hook = dense.register_forward_hook(lambda *seen: blocks.append(seen[2][0]))
    specimen.head_vectors(reading.tokens)
    hook.remove()
    expected = (blocks[0] - dense.bias).detach().numpy().T
    np.testing.assert_allclose(together, expected, atol=1e-5)


def test_without_a_position_it_is_the_mean_over_the_words(tiny: hs.Scope) -> None:
    reading = tiny.read(TEXT)
    words = reading.writes(2, 1).raised
    reading.layers[1][0] = reading.layers[1][0][~reading.tokens.special].mean(0)
    assert reading.writes(2, 1, position=3).raised == words
    with pytest.raises(NotPossible, match="no position 99"):
        reading.writes(2, 1, position=99)


def test_embeddings_of_another_size_are_told(any_tokenizer: t.PreTrainedTokenizerFast) -> None:
    config = t.AlbertConfig(
        vocab_size=len(any_tokenizer),
        embedding_size=8,
        hidden_size=HEADS * 8,
        num_attention_heads=HEADS,
        num_hidden_layers=2,
        intermediate_size=32,
    )
    scope = hs.load(t.AlbertModel(config), any_tokenizer)
    with pytest.raises(CannotObserve, match="8 dimensions and its layers 32"):
        scope.read(TEXT).writes(1, 1)


def test_the_command_says_what_a_head_writes() -> None:
    words = ("read", TEXT, "--layer", "6", "--head", "3", "--writes")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "raises" in done.stdout
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["writes"]
    assert len(said["raised"]) == len(said["lowered"]) == 10
    assert said["raised"][0][0] in done.stdout
