"""Heads taken away: in the order that was asked for, and a folder that plain transformers loads."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers as t

import headscope as hs
from effects.texts import units_for
from families import INTERFACE, ROTARY
from headscope.corpus import Corpus
from headscope.effects.change import run
from headscope.effects.loss import Loss
from headscope.effects.orders import heads_of, order_of
from headscope.effects.pruned_model import NOTE, SMALLER, ZEROED, write_pruned
from headscope.errors import CannotObserve, CannotWrite, NotPossible
from headscope.units import read_units
from tiny import wordpiece

ALONE = """
import sys
sys.modules["headscope"] = None
import torch, transformers as t
from safetensors.torch import load_file, save_file
model = getattr(t, sys.argv[3]).from_pretrained(sys.argv[1])
ids = load_file(sys.argv[2])["ids"]
with torch.no_grad():
    save_file({"logits": model.eval()(input_ids=ids).logits.contiguous()}, sys.argv[2])
print(sum(p.numel() for p in model.parameters()))
"""


def loaded_alone(folder, kind, ids, tmp_path):
    """Logits, and the number of parameters, of a folder in a process that has no headscope."""
    from safetensors.torch import load_file, save_file

    file = tmp_path / "given.safetensors"
    save_file({"ids": ids}, file)
    command = [sys.executable, "-c", ALONE, str(folder), str(file), kind]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return load_file(file)["logits"], int(done.stdout)


def test_writing_a_pruned_folder_draws_no_bar_of_its_own(tiny, tmp_path, capfd):
    write_pruned(tiny, [(1, 2)], tmp_path / "pruned", units_for(tiny, 1, window=30))
    said = capfd.readouterr()
    assert said.out + said.err == ""


def test_a_pruned_folder_gives_the_logits_of_the_silenced_model_without_headscope(tiny, tmp_path):
    heads = [(1, 2), (2, 1), (2, 4), (3, 3)]
    units = units_for(tiny, 2, window=30)
    done = write_pruned(tiny, heads, tmp_path / "pruned", units)
    assert done.how == ZEROED
    ids = torch.from_numpy(units[1].tokens.ids.astype(np.int64))[None]
    logits, parameters = loaded_alone(tmp_path / "pruned", "BertForMaskedLM", ids, tmp_path)
    assert torch.allclose(logits, tiny.ablate(heads).forward(input_ids=ids).logits, atol=1e-5)
    assert parameters == done.parameters == done.parameters_before
    note = json.loads((tmp_path / "pruned" / NOTE).read_text())
    assert note["heads"] == [list(head) for head in heads]
    again = hs.load(tmp_path / "pruned", device="cpu")
    assert torch.allclose(again.forward(input_ids=ids).logits, logits, atol=1e-6)


@pytest.mark.parametrize("groups", [4, 2])
def test_matrices_get_smaller_where_the_config_can_say_so(groups, tmp_path):
    torch.manual_seed(0)
    tokenizer = wordpiece()
    sizes = ROTARY | {"vocab_size": len(tokenizer), "num_key_value_heads": groups}
    model = t.LlamaForCausalLM(t.LlamaConfig(**sizes)).eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.15)
    scope = hs.load(model, tokenizer, device="cpu")
    units = units_for(scope, 1, window=30)
    even = [(1, 1), (1, 4), (2, 2), (2, 3), (3, 1), (3, 2)]
    done = write_pruned(scope, even, tmp_path / "even", units)
    ids = torch.from_numpy(units[0].tokens.ids.astype(np.int64))[None]
    expected = scope.ablate(even).forward(input_ids=ids).logits
    logits, parameters = loaded_alone(tmp_path / "even", "LlamaForCausalLM", ids, tmp_path)
    assert torch.allclose(logits, expected, atol=1e-4)
    assert done.how == SMALLER
    assert parameters == done.parameters < done.parameters_before
    uneven = write_pruned(scope, even[:5], tmp_path / "uneven", units)
    assert uneven.how == ZEROED


def test_a_family_whose_layers_share_their_weights_says_so(tmp_path):
    family = next(one for one in INTERFACE if one.name == "albert")
    scope = hs.load(family.model(), wordpiece(), device="cpu")
    unit = units_for(hs.load(device="cpu"), 1, window=12)
    unit[0].tokens.ids[:] = unit[0].tokens.ids % 90
    with pytest.raises(CannotObserve, match="serves other layers too"):
        write_pruned(scope, [(1, 1)], tmp_path / "pruned", unit)


def test_the_curve_is_the_loss_of_the_model_with_these_heads_silenced(tiny, study, corpus):
    tiny.effects(corpus, study.path, limit=0, windows=0)
    made = tiny.prune(corpus, study.path, by="effect", keep=0.75, limit=0, windows=0)
    rows = made.pruning.to_pylist()
    assert {row["order"] for row in rows} == {
        "noise",
        "snr",
        "effect",
        "gradient",
        "depth",
        "random",
    }
    loss = Loss(tiny)
    units = [
        unit
        for n, document in enumerate(Corpus(corpus, "paragraph"))
        for unit in read_units(n, document, tiny.tokenizer, 64, "en")
    ]
    asked = [loss.ask([unit]) for unit in units]
    answers = sum(one.counts[0] for one in asked)
    effects = {
        (row["layer"], row["head"]): row["value"]
        for row in made.effects.to_pylist()
        if row["quantity"] == "zero_effect"
    }
    least = sorted(effects, key=lambda head: effects[head])
    for row in rows:
        if row["order"] == "effect":
            silent = tiny.ablate(least[: row["heads"]])
            expected = sum(loss.sums(run(silent, one), one)[0] for one in asked) / answers
            assert row["loss"] == pytest.approx(expected, rel=1e-5)
            assert row["heads"] == round(12 * row["removed"])
            assert row["low"] < row["loss"] < row["high"]
    (told,) = (row for row in made.prune.to_pylist() if row["quantity"] == "pruned_loss")
    (same,) = (r for r in rows if (r["order"], r["removed"]) == ("effect", 0.25))
    assert told["value"] == pytest.approx(same["loss"])


def test_orders_are_what_they_are_called(study):
    norms = {
        (row["layer"], row["head"]): row["value"]
        for row in study.size.to_pylist()
        if row["quantity"] == "norm" and row["level"] == "head"
    }
    smallest = sorted(norms, key=lambda head: norms[head])
    for name, expected in (("norm", smallest[:3]), ("-norm", smallest[::-1][:3])):
        found = heads_of(order_of(study, name), 0.25, (3, 4), even=False)
        assert {(layer + 1, head + 1) for layer, head in found} == set(expected)
    even = heads_of(order_of(study, "norm"), 0.5, (3, 4), even=True)
    assert [sum(layer == own for layer, _ in even) for own in range(3)] == [2, 2, 2]
    deep = heads_of(order_of(study, "depth"), 0.5, (3, 4), even=False)
    assert {layer for layer, _ in deep} == {1, 2}
    with pytest.raises(NotPossible, match=r"scope\.effects"):
        order_of(study, "effect")
    with pytest.raises(NotPossible, match="noise, snr, effect"):
        order_of(study, "beauty")


def test_wrong_settings_are_refused_before_anything_is_done(tiny, study, corpus, tmp_path):
    for keep in (0, 1, 1.5):
        with pytest.raises(NotPossible, match="between 0 and 1"):
            tiny.prune(corpus, study.path, keep=keep)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(CannotWrite, match="not empty"):
        tiny.prune(corpus, study.path, save=tmp_path / "full")
    assert not hs.open(study.path).manifest.added


def test_a_pruned_folder_is_written_by_the_verb(tiny, study, corpus, tmp_path):
    made = tiny.prune(corpus, study.path, by="random", save=tmp_path / "pruned", limit=3)
    said = made.manifest.added["prune"].parameters
    assert said["how"] == ZEROED
    assert (tmp_path / "pruned" / "model.safetensors").exists()
    assert float(said["apart"]) < 1e-4
