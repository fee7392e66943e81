"""Loading: from a folder, an object and the package, safely, and with errors that help."""

import json
import shutil
import time
from pathlib import Path

import psutil
import pytest
import torch
import transformers as t

import headscope as hs
from headscope import devices
from headscope.errors import CannotLoad, CannotObserve, HeadscopeError
from headscope.study.run import weight_hash
from tiny import tiny_bert, wordpiece


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may break."""
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def test_a_folder_is_loaded_as_the_class_it_was_saved_from(tiny_folder: Path) -> None:
    scope = hs.load(tiny_folder)
    assert isinstance(scope.model, t.BertForMaskedLM)
    assert not scope.model.training
    shape = scope.shape
    assert (shape.layers, shape.heads, shape.head_size, shape.window) == (3, 4, 8, 64)
    assert (shape.family, shape.stack, shape.seam) == ("bert", "encoder", "interface")


def test_weights_that_are_not_there_are_the_same_every_time(tmp_path: Path) -> None:
    """Sentence models come without a pooler: still the same model, whose studies can go on."""
    tokenizer = wordpiece()
    tokenizer.save_pretrained(tmp_path)
    bert = t.BertModel(tiny_bert(len(tokenizer)).config, add_pooling_layer=False)
    bert.save_pretrained(tmp_path)
    before = torch.random.get_rng_state()
    first, second = (hs.load(tmp_path, device="cpu").model for _ in range(2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert "pooler.dense.weight" in first.state_dict()
    assert weight_hash(first) == weight_hash(second)


def test_an_object_is_loaded_with_its_tokenizer_and_not_without() -> None:
    tokenizer = wordpiece()
    model = tiny_bert(len(tokenizer))
    assert hs.load(model, tokenizer).model is model
    with pytest.raises(CannotLoad, match=r"needs its tokenizer: hs.load\(model, tokenizer\)"):
        hs.load(model)


def test_an_unknown_name_without_network_says_so_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.invalid")
    began = time.monotonic()
    with pytest.raises(CannotLoad, match=r"no folder 'no/such-model'.*no network.*hs\.load\(\)"):
        hs.load("no/such-model")
    assert time.monotonic() - began < 10


def test_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotLoad, match=r"holds no config\.json"):
        hs.load(tmp_path)


def test_a_folder_without_a_tokenizer_says_so(folder: Path) -> None:
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(CannotLoad, match=r"no tokenizer.*tokenizer\.save_pretrained"):
        hs.load(folder)
    assert hs.load(folder, wordpiece()).shape.layers == 3  # the remedy it names


def test_pickled_weights_are_refused_unless_allowed(folder: Path) -> None:
    model = t.BertForMaskedLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(CannotLoad, match=r"pickle.*allow_pickle=True"):
        hs.load(folder)
    loaded = hs.load(folder, allow_pickle=True).model
    assert torch.equal(next(loaded.parameters()), next(model.parameters()))


def test_code_that_comes_with_a_model_is_not_run(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "code.Mine"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text("raise SystemExit('this code was run')")
    with pytest.raises(CannotLoad, match=r"its own code.*trust_remote_code=True"):
        hs.load(folder)


def test_an_architecture_transformers_does_not_know_is_named(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {"model_type": "from-the-future"}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CannotLoad, match="does not know the architecture"):
        hs.load(folder)


def test_broken_weights_are_reported(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0garbage")
    with pytest.raises(CannotLoad, match="cannot be read"):
        hs.load(folder)


def test_a_family_that_cannot_be_observed_is_refused_at_loading(tmp_path: Path) -> None:
    config = t.MambaConfig(vocab_size=600, hidden_size=32, num_hidden_layers=2, state_size=4)
    t.MambaForCausalLM(config).save_pretrained(tmp_path)
    wordpiece().save_pretrained(tmp_path)
    with pytest.raises(CannotObserve, match=r"family 'mamba'.*models --check"):
        hs.load(tmp_path)


def test_too_little_memory_is_said_before_loading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = psutil.virtual_memory()._replace(available=100_000)
    monkeypatch.setattr(devices.psutil, "virtual_memory", lambda: memory)
    with pytest.raises(CannotLoad, match=r"need .* GiB as torch.float32.*dtype='bfloat16'"):
        hs.load(folder, device="cpu")
    needed = devices._weight_bytes(folder / "model.safetensors", torch.float32)
    held = sum(p.numel() * 4 for p in t.BertForMaskedLM.from_pretrained(folder).parameters())
    assert needed == held


def test_the_dtype_is_float32_on_a_cpu_unless_given(tiny_folder: Path) -> None:
    assert hs.load(tiny_folder, device="cpu").model.dtype == torch.float32
    assert hs.load(tiny_folder, device="cpu", dtype="bfloat16").model.dtype == torch.bfloat16
    with pytest.raises(CannotLoad, match="no dtype 'float99'"):
        hs.load(tiny_folder, dtype="float99")


def test_a_tokenizer_without_offsets_is_refused(tiny_folder: Path) -> None:
    with pytest.raises(CannotLoad, match="fast tokenizer"):
        hs.load(tiny_folder, t.ByT5Tokenizer())


def test_random_weights_do_not_pass_silently(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["bert.encoder.layer.1.attention.self.query.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.warns(UserWarning, match=r"1 weights .* are random: bert\.encoder\.layer\.1"):
        hs.load(folder)


def test_positions_that_start_after_padding_shorten_the_window() -> None:
    tokenizer = wordpiece()
    tokenizer.model_max_length = 10**30
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
    config = t.RobertaConfig(
        vocab_size=len(tokenizer), **size, max_position_embeddings=66, pad_token_id=1
    )
    scope = hs.load(t.RobertaModel(config), tokenizer)
    assert scope.shape.window == 64
    assert len(scope.read(hs.sample_text()).windows) > 5  # reads to its last position


def test_all_errors_can_be_caught_as_one() -> None:
    assert issubclass(CannotLoad, HeadscopeError)
    assert issubclass(CannotObserve, HeadscopeError)
