"""Two studies held against each other: verdicts, labels and numbers, in a table and on a page."""

import json

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import CannotStudy

TEXTS = [paragraph for paragraph in hs.sample_text().split("\n") if len(paragraph) > 60]


@pytest.fixture(scope="module")
def sample(specimen, tmp_path_factory):
    return specimen.study(TEXTS, tmp_path_factory.mktemp("sample"), replicates=50)


@pytest.fixture(scope="module")
def silenced(specimen, tmp_path_factory):
    """The same texts with the heads of the first layer silenced."""
    scope = specimen.ablate([(1, head) for head in range(1, 13)])
    return scope.study(TEXTS, tmp_path_factory.mktemp("silenced"), replicates=50)


def test_a_study_does_not_differ_from_itself(sample):
    found = hs.compare(sample, sample)
    assert len(found.numbers) > 144 * 30
    assert found.differing == len(found.verdicts) == len(found.labels) == 0
    assert set(found.numbers.column("difference").to_pylist()) == {0.0}


def test_a_silenced_head_is_found_by_comparing(sample, silenced):
    rows = hs.compare(sample, silenced).numbers.slice(0, 200).to_pylist()
    assert all(row["differs"] for row in rows)
    assert all(row["low"] <= row["difference"] <= row["high"] for row in rows)
    assert {row["layer"] for row in rows} - {1}, "later layers read what the first no longer writes"


def test_changed_labels_are_those_of_the_tables(sample, silenced):
    mine, theirs = (
        {(row["layer"], row["head"]): set(row["labels"]) for row in study.heads.to_pylist()}
        for study in (sample, silenced)
    )
    rows = hs.compare(sample, silenced).labels.to_pylist()
    places = [(row["layer"], row["head"]) for row in rows]
    assert places == [place for place in mine if mine[place] != theirs[place]]
    for place, row in zip(places, rows, strict=True):
        assert set(row["both"]) | set(row["only_first"]) == mine[place]
        assert set(row["both"]) | set(row["only_second"]) == theirs[place]


def test_documents_that_both_studies_read_are_compared_with_themselves(sample, tmp_path):
    scope = hs.load(device="cpu").ablate([(6, head) for head in range(1, 13)])
    other = scope.study(TEXTS, tmp_path, replicates=50)
    rows = hs.compare(sample, other).numbers.to_pylist()
    # Of uniqueness the texts weigh by the high pairs of all heads, the silenced ones too.
    before = [r for r in rows if r["layer"] < 6 and "uniqueness" not in r["quantity"]]
    assert before
    assert all(row["low"] == row["high"] == 0 for row in before), "nothing changed there"
    assert any(row["differs"] for row in rows if row["layer"] > 6)


def test_models_of_other_shapes_are_not_compared_head_by_head(sample, tiny, tmp_path):
    other = tiny.study(TEXTS[:2], tmp_path, replicates=3)
    with pytest.raises(CannotStudy, match="12 × 12 and 3 × 4"):
        hs.compare(sample, other)


def test_the_command_prints_and_writes_everything(sample, silenced, tmp_path):
    def run(*words: object) -> str:
        done = CliRunner().invoke(app, ["compare", *map(str, words)])
        assert done.exit_code == 0, done.output
        return done.stdout

    found = hs.compare(sample, silenced)
    page = tmp_path / "compare.html"
    said = run(sample.path, silenced.path, "--rows", 5, "--out", page)
    assert f"heads whose labels differ: {len(found.labels)}" in said
    assert f"numbers that differ: {found.differing:,} of {len(found.numbers):,}" in said
    whole = json.loads(run(sample.path, silenced.path, "--json"))
    assert len(whole["numbers"]) == len(found.numbers)
    assert whole["labels"] == found.labels.to_pylist()
    written = page.read_text(encoding="utf-8")
    assert "What differs between two studies" in written
    assert written.count("<svg") == 6
    assert "of those that are said to differ, 5 % may do so by chance" in written
