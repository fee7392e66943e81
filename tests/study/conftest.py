"""A tiny model with far from uniform attention, and a few documents with all that measures see."""

import numpy as np
import pytest
import torch
import transformers
from texts import TEXTS

import headscope as hs
from headscope.corpus import Document
from headscope.specimen import FOLDER
from headscope.units import Unit, read_units


@pytest.fixture(scope="session")
def tiny() -> hs.Scope:
    """Three layers of four heads, random weights, read with the specimen's tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=160,
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).eval()
    for parameter in model.parameters():  # far from zero, so that attention is far from even
        parameter.data.add_(torch.randn_like(parameter) * 0.3)
    tokenizer.model_max_length = 160
    return hs.load(model, tokenizer)


@pytest.fixture(scope="session")
def units(tiny: hs.Scope) -> list[Unit]:
    return [
        unit
        for number, text in enumerate(TEXTS)
        for unit in read_units(number, Document(text, "texts"), tiny.tokenizer, 160, "en")
    ]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)
