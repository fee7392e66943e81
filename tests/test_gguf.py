"""Models in a GGUF file are read as any other, and what is needed for that is said."""

import json
from importlib import util
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import headscope as hs
from headscope.errors import CannotLoad
from tiny import byte_level

SIZE, LAYERS, HEADS, KEYS, INNER = 32, 2, 4, 2, 48


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of 2 layers × 4 heads × 8 with random weights, as llama.cpp keeps it."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    tokenizer = byte_level()
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    merges = [" ".join(pair) for pair in _merges(tokenizer)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(SIZE)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEYS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(vocabulary))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([1] * len(vocabulary))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    random = np.random.default_rng(0)

    def add(name: str, *shape: int) -> None:
        weights = random.normal(0, 0.2, shape).astype(np.float32)
        writer.add_tensor(f"{name}.weight", weights)

    add("token_embd", len(vocabulary), SIZE)
    add("output_norm", SIZE)
    for layer in range(LAYERS):
        at = f"blk.{layer}"
        add(f"{at}.attn_q", SIZE, SIZE)
        add(f"{at}.attn_k", SIZE // HEADS * KEYS, SIZE)
        add(f"{at}.attn_v", SIZE // HEADS * KEYS, SIZE)
        add(f"{at}.attn_output", SIZE, SIZE)
        add(f"{at}.attn_norm", SIZE)
        add(f"{at}.ffn_norm", SIZE)
        add(f"{at}.ffn_gate", INNER, SIZE)
        add(f"{at}.ffn_up", INNER, SIZE)
        add(f"{at}.ffn_down", SIZE, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _merges(tokenizer: Any) -> list[list[str]]:
    return json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]


def test_a_model_in_a_gguf_file_is_read(file):
    scope = hs.load(file, device="cpu")
    shape = scope.shape
    assert (shape.layers, shape.heads, shape.head_size) == (LAYERS, HEADS, SIZE // HEADS)
    assert (shape.family, shape.stack, shape.seam) == ("llama", "decoder", "interface")
    reading = scope.read("The lamp is gone, and the keeper is gone.")
    z = reading.head_vectors(2, 3)
    assert reading.similarity(2, 3) == pytest.approx(z @ z.T, rel=1e-5)
    assert reading.writes(2, 3).raised, "it is loaded with its language head"


def test_a_gguf_file_that_is_none_or_cut_short_is_told(file, tmp_path):
    other = tmp_path / "other.gguf"
    other.write_text("no model")
    with pytest.raises(CannotLoad, match="is no GGUF file"):
        hs.load(other)
    half = tmp_path / "half.gguf"
    half.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(CannotLoad, match=r"half\.gguf"):
        hs.load(half)


def test_what_reading_one_needs_is_told(file, monkeypatch):
    there = util.find_spec
    monkeypatch.setattr(
        "headscope.gguf.find_spec", lambda name: None if name == "gguf" else there(name)
    )
    with pytest.raises(CannotLoad, match=r"needs gguf: pip install 'headscope\[gguf\]'"):
        hs.load(file)
