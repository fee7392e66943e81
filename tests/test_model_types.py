"""The promise of families: forty types through every step, and, slowly, every type there is."""

import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import transformers

import headscope as hs
from headscope.families.check import Checked, check
from headscope.families.run import check_all, families
from headscope.families.table import as_markdown, counts, from_markdown, rows
from hostile.commands import command, refused

pytestmark = pytest.mark.filterwarnings("ignore")
PAGE = Path(__file__).parent.parent / "docs" / "models.md"
# Encoders, decoders, encoder-decoders, mixtures of experts, hybrids, models that also take images
# or sound; on the interface and off it.
FORTY = (
    "albert",
    "bart",
    "bert",
    "big_bird",
    "bloom",
    "clip",
    "codegen",
    "deberta",
    "deberta-v2",
    "deepseek_v3",
    "diffllama",
    "distilbert",
    "electra",
    "esm",
    "falcon",
    "gemma",
    "gemma3",
    "gpt2",
    "gpt_neox",
    "gpt_oss",
    "gptj",
    "granite",
    "jamba",
    "llama",
    "llava",
    "longformer",
    "mistral",
    "mixtral",
    "modernbert",
    "mpnet",
    "mpt",
    "opt",
    "pegasus",
    "phi3",
    "qwen2",
    "qwen3",
    "qwen3_next",
    "roberta",
    "t5",
    "xlm",
)


@pytest.mark.parametrize("family", FORTY)
def test_every_step_works_with_a_text(specimen: hs.Scope, family: str) -> None:
    found = check(family, specimen.tokenizer)
    assert found.identical is True
    assert not found.unseen
    assert {step: why for step, why in found.steps.items() if why} == lacks(found)
    assert found.steps


def lacks(found: Checked) -> dict[str, str]:
    """Steps that a family is known not to have: what weighs its values is out of sight."""
    return {step: found.steps[step] for step in WITHOUT.get(found.family, ())}


WITHOUT: dict[str, tuple[str, ...]] = {"longformer": ("attention", "focus")}


def test_the_command_prints_a_row_for_a_type() -> None:
    said = command("models", "--check", "--type", "bert").out.splitlines()
    assert said[1].split("\t")[:4] == ["bert", "BertModel", "text", "interface"]
    (row,) = csv.DictReader(command("models", "--type", "mamba", "--csv").out.splitlines())
    assert (row["type"], row["heads seen by"]) == ("mamba", "no heads")
    refused("models", "--check", "--type", "brt", says="Near it: bert")


def test_a_type_that_ends_its_process_is_told_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("headscope.families.run.BEGINNING", 0.01)
    found = list(check_all(["bert", "gpt2"]))
    assert [(one.family, one.observed) for one in found] == [
        ("bert", "crashed"),
        ("gpt2", "crashed"),
    ]


def test_the_page_lists_every_type() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if f"transformers {transformers.__version__}," not in page:
        pytest.skip("the page is of another version of transformers")
    assert list(from_markdown(page)) == families()


@pytest.mark.slow
def test_every_model_type_of_transformers() -> None:
    wanted = families()
    with ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(lambda some: list(check_all(some)), (wanted[::2], wanted[1::2])))
    found = [one for half in halves for one in half]
    told = counts(found)
    assert told["with other outputs"] == 0
    assert told["with bit-identical outputs under observation"] >= 500
    assert told["that every step of the product works with, from a text"] >= 300
    page = PAGE.read_text(encoding="utf-8")
    if f"transformers {transformers.__version__}," in page:
        known = from_markdown(page)
        now = from_markdown(as_markdown(found))
        # What of a type works; a reason may name a number, and a package may be there or not.
        ran = {name for name, row in now.items() if row[1] != "–" and known[name][1] != "–"}
        assert len(ran) >= 500
        assert {name: now[name][:5] for name in ran} == {name: known[name][:5] for name in ran}
    assert len(rows(found)) == len(wanted)
