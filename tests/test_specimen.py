"""The bundled model is a standard BERT that can read, and its heads do what heads do elsewhere."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForMaskedLM, AutoTokenizer

from headscope.specimen import FOLDER

CLOZE = Path(__file__).parents[1] / "training" / "cloze.json"

# Written for this test, so that no corpus holds it.
TEXT = (
    "The old ferry stopped running in the spring, so the two sisters had to walk around the lake "
    "to reach the market. On the way they talked about the harvest and about their brother, who "
    "had gone to the city to look for work. He had written only one letter since the winter, and "
    "their mother kept it in a box under her bed. When they arrived, most of the people had "
    "already left, and the last baker was putting his bread back into the cart."
)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model():
    return AutoModelForMaskedLM.from_pretrained(FOLDER).eval()


@pytest.fixture(scope="module")
def attention(model, tokenizer):
    """The two halves of the text read as a pair: attention (layers, heads, from, to), and ids."""
    middle = TEXT.index(" He had written")
    pair = tokenizer(TEXT[:middle], TEXT[middle:], return_tensors="pt")
    model.set_attn_implementation("eager")
    with torch.no_grad():
        found = model(**pair, output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return torch.cat(found), pair["input_ids"][0]


def test_it_is_small_enough_to_ship():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.*")) <= 16 * 2**20


def test_it_is_twelve_layers_of_twelve_heads(model):
    config = model.config
    assert type(model).__name__ == "BertForMaskedLM"
    assert (config.num_hidden_layers, config.num_attention_heads) == (12, 12)
    assert (config.hidden_size, config.max_position_embeddings) == (192, 512)
    assert (config.vocab_size, config.type_vocab_size) == (8192, 2)


def test_weights_are_float16_on_disk_and_float32_when_loaded(model):
    with safe_open(FOLDER / "model.safetensors", "pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert all(weight.isfinite().all() for weight in model.parameters())


def test_a_sentence_survives_the_tokenizer(tokenizer):
    assert tokenizer.is_fast
    assert len(tokenizer) == 8192
    ids = tokenizer("The People of the city.")["input_ids"]
    assert tokenizer.decode(ids) == "[CLS] the people of the city. [SEP]"
    assert tokenizer.unk_token_id not in tokenizer(TEXT)["input_ids"]


def test_a_pair_has_two_kinds_of_tokens(tokenizer):
    pair = tokenizer("the people", "the city")
    assert tokenizer.decode(pair["input_ids"]) == "[CLS] the people [SEP] the city [SEP]"
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.skipif(not CLOZE.exists(), reason="the cloze sentences lie in the repository only")
def test_it_fills_most_blanks_within_five_guesses(model, tokenizer):
    sentences = [pair for kind in json.loads(CLOZE.read_text()).values() for pair in kind]
    assert len(sentences) == 40
    batch = tokenizer([sentence for sentence, _ in sentences], return_tensors="pt", padding=True)
    with torch.no_grad():
        logits = model(**batch).logits
    top = logits[batch["input_ids"] == tokenizer.mask_token_id].topk(5).indices
    words = tokenizer.convert_tokens_to_ids([word for _, word in sentences])
    right = sum(word in row for word, row in zip(words, top.tolist(), strict=True))
    assert right >= 24


def test_it_predicts_words_of_a_text_it_has_not_seen(model, tokenizer):
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    # Seven copies, each with every seventh token masked, so that every token is asked for once.
    place = torch.arange(ids.shape[1])
    masked = (place % 7 == torch.arange(7)[:, None]) & (place > 0) & (place < ids.shape[1] - 1)
    labels = ids.where(masked, -100)
    with torch.no_grad():
        loss = model(input_ids=ids.masked_fill(masked, tokenizer.mask_token_id), labels=labels).loss
    assert loss < 2.9


def test_padding_does_not_change_what_it_predicts(model, tokenizer):
    texts = ["The capital of France is [MASK].", TEXT]
    padded = tokenizer(texts, return_tensors="pt", padding=True)
    alone = tokenizer(texts[0], return_tensors="pt")
    with torch.no_grad():
        together, single = model(**padded).logits[0], model(**alone).logits[0]
    torch.testing.assert_close(together[: len(single)], single, rtol=1e-3, atol=1e-3)


def test_it_reads_512_tokens(model):
    ids = torch.arange(5, 5 + 512)[None]
    with torch.no_grad():
        assert model(input_ids=ids).logits.isfinite().all()


def test_some_head_looks_at_the_previous_token_and_some_at_the_next(attention):
    weights, _ = attention
    assert weights.diagonal(-1, -2, -1).mean(-1).max() > 0.5
    assert weights.diagonal(1, -2, -1).mean(-1).max() > 0.5


def test_late_layers_look_at_separators(attention, tokenizer):
    weights, ids = attention
    separators = ids == tokenizer.sep_token_id
    focus = weights[..., separators].sum(-1).mean((1, 2))  # by layer
    assert focus[6:].max() > 3 * separators.float().mean()


def test_heads_differ_in_how_widely_they_look(attention):
    weights, _ = attention
    entropy = -(weights * weights.clamp(min=1e-12).log()).sum(-1).mean(-1)
    assert entropy.std() > 0.5
    assert entropy.mean(1).std() > 0.2  # between layers
