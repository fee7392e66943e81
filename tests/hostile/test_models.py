"""Models that are half there, broken, or not what they say: a sentence each, never a traceback."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import headscope as hs
from hostile.commands import command, refused

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
Attack = Callable[[Path], None]


def without(name: str) -> Attack:
    return lambda folder: (folder / name).unlink()


def replaced(name: str, data: bytes) -> Attack:
    return lambda folder: (folder / name).write_bytes(data) and None


def cut(name: str, share: float) -> Attack:
    def attack(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(share * len(data))])

    return attack


def changed(name: str, **values: Any) -> Attack:
    def attack(folder: Path) -> None:
        found = json.loads((folder / name).read_text())
        for key, value in values.items():
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        (folder / name).write_text(json.dumps(found))

    return attack


def weights(change: Callable[[dict[str, torch.Tensor]], None]) -> Attack:
    def attack(folder: Path) -> None:
        tensors = load_file(folder / WEIGHTS)
        change(tensors)
        save_file(tensors, folder / WEIGHTS, {"format": "pt"})

    return attack


def filled(name: str, value: float) -> Attack:
    def fill(tensors: dict[str, torch.Tensor]) -> None:
        for key in tensors:
            if name in key:
                tensors[key] = torch.full_like(tensors[key], value)

    return weights(fill)


def renamed(tensors: dict[str, torch.Tensor]) -> None:
    for key in list(tensors):
        tensors[f"other.{key}"] = tensors.pop(key)


def narrowed(tensors: dict[str, torch.Tensor]) -> None:
    for key in tensors:
        if "query" in key or "key" in key:
            tensors[key] = tensors[key][:8].contiguous()


def stranger(folder: Path) -> None:
    """A vocabulary of 40 beside a tokenizer that knows hundreds."""
    found = json.loads((folder / CONFIG).read_text())
    found["vocab_size"] = 40
    (folder / CONFIG).write_text(json.dumps(found))
    tensors = load_file(folder / WEIGHTS)
    for key, tensor in tensors.items():
        if tensor.shape[0] > 200:
            tensors[key] = tensor[:40].contiguous()
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})


def header(text: bytes) -> Attack:
    return replaced(WEIGHTS, len(text).to_bytes(8, "little") + text)


BROKEN = [
    ("no configuration", without(CONFIG), "config.json"),
    ("an empty configuration", replaced(CONFIG, b""), "config.json"),
    ("half a configuration", cut(CONFIG, 0.5), "config.json"),
    ("a configuration that is a list", replaced(CONFIG, b"[]"), "config.json"),
    ("a configuration that is a number", replaced(CONFIG, b"7"), "config.json"),
    ("a configuration that is nothing", replaced(CONFIG, b"null"), "config.json"),
    ("a configuration of nothing", replaced(CONFIG, b"{}"), "architecture"),
    ("a configuration in bytes", replaced(CONFIG, b"\xff\xfe\x00"), "config.json"),
    ("a pointer instead of a file", replaced(CONFIG, b"version https://git-lfs"), "config.json"),
    ("an unknown family", changed(CONFIG, model_type="nonesuch"), "does not know"),
    ("no family", changed(CONFIG, model_type=None), ""),
    ("a family that is a number", changed(CONFIG, model_type=7), "does not know"),
    ("no heads", changed(CONFIG, num_attention_heads=0), "config.json"),
    ("minus four heads", changed(CONFIG, num_attention_heads=-4), "config.json"),
    ("heads that do not divide", changed(CONFIG, num_attention_heads=5), "config.json"),
    ("heads in words", changed(CONFIG, num_attention_heads="four"), "config.json"),
    ("a width in words", changed(CONFIG, hidden_size="wide"), "config.json"),
    ("no width", changed(CONFIG, hidden_size=0), ""),
    ("no layers", changed(CONFIG, num_hidden_layers=0), "layer"),
    ("minus one layer", changed(CONFIG, num_hidden_layers=-1), "layer"),
    ("another width", changed(CONFIG, hidden_size=64), ""),
    ("another vocabulary", changed(CONFIG, vocab_size=7), ""),
    ("an unknown activation", changed(CONFIG, hidden_act="magic"), ""),
    (
        "code of its own",
        changed(CONFIG, auto_map={"AutoConfig": "evil.Config"}, model_type="evil"),
        "own code",
    ),
    ("no weights", without(WEIGHTS), "model.safetensors"),
    ("empty weights", replaced(WEIGHTS, b""), "Copy or download it again"),
    ("half the weights", cut(WEIGHTS, 0.5), "Copy or download it again"),
    ("nearly all weights", cut(WEIGHTS, 0.999), "Copy or download it again"),
    ("eight bytes of weights", replaced(WEIGHTS, b"\0" * 8), "Copy or download it again"),
    (
        "weights with an endless header",
        replaced(WEIGHTS, b"\xff" * 64),
        "Copy or download it again",
    ),
    (
        "weights that are text",
        replaced(WEIGHTS, b"version https://git-lfs.github.com/spec/v1"),
        "Copy or download it again",
    ),
    ("a header that is a list", header(b"[]"), "Copy or download it again"),
    ("a header of numbers", header(b'{"a": 7}'), "Copy or download it again"),
    ("a header without shapes", header(b'{"a": {"dtype": "F32"}}'), "Copy or download it again"),
    (
        "a header with a wrong shape",
        header(b'{"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}'),
        "Copy or download it again",
    ),
    (
        "a header that claims gigabytes",
        header(b'{"a": {"dtype": "F32", "shape": [1000000000], "data_offsets": [0, 4000000000]}}'),
        "",
    ),
    (
        "a pickle instead of weights",
        lambda f: (f / WEIGHTS).rename(f / "pytorch_model.bin") and None,
        "pickle",
    ),
    ("narrower weights", weights(narrowed), ""),
    ("no tokenizer", without(TOKENIZER), "tokenizer"),
    ("an empty tokenizer", replaced(TOKENIZER, b""), "tokenizer"),
    ("half a tokenizer", cut(TOKENIZER, 0.5), "tokenizer"),
    ("a tokenizer of nothing", replaced(TOKENIZER, b"{}"), "tokenizer"),
    ("a tokenizer that is a list", replaced(TOKENIZER, b"[]"), "tokenizer"),
    ("a tokenizer in bytes", replaced(TOKENIZER, b"\xff\xfe"), "tokenizer"),
    (
        "a tokenizer without a vocabulary",
        changed(TOKENIZER, model={"type": "WordPiece", "vocab": {}}),
        "tokenizer",
    ),
    ("no types of tokens", changed(CONFIG, type_vocab_size=0), "do not fit"),
    ("a tokenizer of another model", stranger, "token number"),
    ("a window of nothing", changed("tokenizer_config.json", model_max_length=0), "window"),
    ("a window of two", changed("tokenizer_config.json", model_max_length=2), "window"),
    ("a window in words", changed("tokenizer_config.json", model_max_length="long"), "tokenizer"),
    ("NaN in the values", filled("value.weight", float("nan")), "NaN or infinity"),
    ("infinity in the values", filled("value.weight", float("inf")), "NaN or infinity"),
    ("NaN everywhere", filled("", float("nan")), "NaN or infinity"),
    ("NaN in the embeddings", filled("word_embeddings", float("nan")), "NaN or infinity"),
    ("NaN in the queries", filled("query", float("nan")), "NaN or infinity"),
    ("huge values", filled("value.weight", 3e38), "NaN or infinity"),
]
ACCEPTED = [
    ("zeros everywhere", filled("", 0.0), ""),
    ("tiny values", filled("value.weight", 1e-38), ""),
    ("a stranger's key", changed(CONFIG, colour="red"), ""),
    ("weights under other names", weights(renamed), "are random"),
]


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_folder, tmp_path / "model")


@pytest.mark.parametrize(("what", "attack", "says"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_model_is_refused_in_a_sentence(
    folder: Path, what: str, attack: Attack, says: str
) -> None:
    attack(folder)
    refused("read", "The sea and the fog.", "-m", folder, says=says)


@pytest.mark.parametrize(("what", "attack", "says"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_a_strange_model_is_read(folder: Path, what: str, attack: Attack, says: str) -> None:
    attack(folder)
    answer = command("read", "The sea and the fog.", "-m", folder)
    assert answer.status == 0, answer.err
    assert says in answer.error
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    "device", ["cuda", "cuda:7", "mps", "foo", "", "meta", "cpu:x", "xla", "\x1b[31m"]
)
def test_a_device_that_is_not_there_is_named(tiny_folder: Path, device: str) -> None:
    if device in ("cuda", "mps") and getattr(torch, device).is_available():
        pytest.skip("there is one")
    refused("read", "sea", "-m", tiny_folder, "--device", device, says="--device")


def test_python_is_told_of_arguments_and_a_terminal_of_options(tmp_path: Path) -> None:
    with pytest.raises(hs.HeadscopeError, match=r"hs\.load\(\)"):
        hs.load(tmp_path / "nowhere")
    refused("models", "-m", tmp_path / "nowhere", says="Leave --model out")
    assert "hs." not in command("models", "-m", tmp_path / "nowhere").err
