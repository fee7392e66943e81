"""What a study sees where everything stays on the device, against what it sees on the host.

On a GPU where there is one, otherwise through Triton's interpreter, as `kernel_cases.py`.
"""

import os

if os.environ.get("TRITON_INTERPRET") == "1":
    import interpreter  # noqa: F401

import numpy as np
import pytest
import torch
import transformers

import headscope as hs
from headscope.compute.arrays import to_host
from headscope.corpus import Document
from headscope.pairs import peak, quantile
from headscope.study import on_device
from headscope.study.modes import SimilarityKind
from headscope.study.observe import Observer
from headscope.study.sums import Chunked, Totals
from headscope.units import read_units
from tiny import wordpiece

TEXTS = (
    "The ship came home. A ship was old, and it came home.",
    "Rain, rain and wind; nobody went.",
)
KINDS = [SimilarityKind("raw"), SimilarityKind("cosine", "left_out")]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(scope="module")
def scope():
    device, tokenizer = "cuda" if torch.cuda.is_available() else "cpu", wordpiece()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        initializer_range=0.2,
    )
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    return hs.load(model.to(device), tokenizer)


def chunk_of(scope, units, rules, there):
    seen_by, vocabulary = Observer(scope, KINDS, rules, 0), len(scope.tokenizer)
    seen_by.on_device = there
    chunk = Chunked(len(units))
    totals = Totals(5, 0)
    with seen_by.behind() as behind:
        behind(chunk.take, vocabulary, "real", range(len(units)), seen_by.start(units, "real"))
        behind(totals.close, units, chunk, vocabulary)
        behind.wait()
    totals.settle()
    return totals


def test_a_device_adds_up_what_the_host_does(scope, monkeypatch):
    monkeypatch.setattr(on_device, "MOST_HEADS", 16)  # two layers at once, and then the third
    rules = [quantile(0.05), peak(0.5)]
    units = [
        unit
        for number, text in enumerate(TEXTS)
        for unit in read_units(number, Document(text, "t"), scope.tokenizer, 64, "en")
    ]
    host, there = (chunk_of(scope, units, rules, where) for where in (False, True))
    assert host.sums.keys() == there.sums.keys()
    for part in ("sums", "profiles"):
        for key, arrays in getattr(host, part).items():
            for name, value in arrays.items():
                own = getattr(there, part)[key][name]
                assert isinstance(own, np.ndarray)
                np.testing.assert_allclose(
                    own, value, rtol=2e-4, atol=2e-4, err_msg=f"{key} {name}"
                )
    assert host.types.keys() == there.types.keys()
    for key, counts in host.types.items():
        np.testing.assert_array_equal(to_host(there.types[key].ends), counts.ends)
        np.testing.assert_array_equal(there.types[key].occurrences, counts.occurrences)
