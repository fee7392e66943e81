"""A series of studies: one for each checkpoint, and what becomes of heads over training."""

import csv
import io
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

import headscope as hs
from headscope.errors import CannotLoad, CannotStudy
from headscope.over_training import FIGURES
from headscope.study.series import in_order, step_of
from hostile.commands import command, refused
from tiny import tiny_bert, wordpiece

TEXTS = [
    "The keeper lit the lamp at dusk. The lamp burned all night, and the keeper slept. In the "
    "morning a ship passed the rocks, and nobody on the ship saw the lamp. The rocks were wet.",
    "A ship passed the rocks. The keeper lit the lamp.",
]
OPTIONS = {"nulls": (), "readings": ("raw",), "special": ("left_out",), "texts": 2}
NAMES = ["step2", "step10", "final"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints of a tiny model, each with its tokenizer, and what else lies about."""
    folder = tmp_path_factory.mktemp("trained")
    tokenizer = wordpiece()
    for seed, name in enumerate(NAMES):
        model = tiny_bert(len(tokenizer))
        torch.manual_seed(seed)
        for parameter in model.parameters():
            parameter.data.add_(torch.randn_like(parameter) * 0.1 * seed)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    (folder / "logs").mkdir()
    (folder / "log.txt").write_text("loss 2.1")
    return folder


@pytest.fixture(scope="module")
def series(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> hs.Series:
    out = tmp_path_factory.mktemp("made") / "series"
    return hs.checkpoints(trained, device="cpu").study(TEXTS, out, **OPTIONS)


def tables(study: hs.Study) -> dict[str, bytes]:
    return {name: (study.path / "tables" / f"{name}.parquet").read_bytes() for name in study.tables}


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("step003000", 3000),
        ("checkpoint-500", 500),
        ("multiberts-seed_0-step_20k", 20_000),
        ("stage1-step7000-tokens30B", 7000),
        ("2M", 2_000_000),
        ("final", None),
    ],
)
def test_the_step_of_a_checkpoint_is_in_its_name(name: str, step: int | None) -> None:
    assert step_of(name) == step


def test_checkpoints_stand_in_the_order_of_their_steps(trained: Path, series: hs.Series) -> None:
    assert in_order(("final", "step10", "step2")) == NAMES
    assert [one.name for one in hs.checkpoints(trained)] == NAMES
    assert list(series.studies) == NAMES
    assert series.steps == (2, 10, None)
    assert list(dict.fromkeys(series.measures["checkpoint"].to_pylist())) == NAMES


def test_revisions_and_models_are_checkpoints_too() -> None:
    found = list(hs.checkpoints("a/pythia@step1000,step0,main"))
    assert [(one.name, one.source, one.revision) for one in found] == [
        ("step0", "a/pythia", "step0"),
        ("step1000", "a/pythia", "step1000"),
        ("main", "a/pythia", "main"),
    ]
    found = list(hs.checkpoints("g/bert-step_20k,g/bert-step_0k"))
    assert [(one.name, one.source) for one in found] == [
        ("bert-step_0k", "g/bert-step_0k"),
        ("bert-step_20k", "g/bert-step_20k"),
    ]


def test_a_series_is_the_studies_that_one_makes_one_by_one(
    trained: Path, series: hs.Series, tmp_path: Path
) -> None:
    for name in NAMES:
        alone = hs.load(trained / name, device="cpu").study(TEXTS, tmp_path / name, **OPTIONS)
        assert tables(series.studies[name]) == tables(alone)


def test_its_tables_hold_what_the_studies_say(series: hs.Series) -> None:
    rows = [row for row in series.measures.to_pylist() if row["checkpoint"] == "step10"]
    study = series.studies["step10"]
    expected = [row for row in study.range.to_pylist() if row["mode"] == "real"]
    found = [row for row in rows if row["measure"] == "range"]
    assert expected
    for name in ("level", "layer", "head", "quantity", "value", "low", "high", "chance", "lift"):
        assert [row[name] for row in found] == [row[name] for row in expected]
    labels = [row for row in series.labels.to_pylist() if row["checkpoint"] == "step10"]
    assert [row["label"] for row in labels] == [
        label for row in study.heads.to_pylist() for label in row["labels"]
    ]
    assert series.findings.num_rows == 3 * study.findings.num_rows


def test_its_tables_are_written_as_parquet_and_csv(series: hs.Series) -> None:
    for name in series.tables:
        table = getattr(series, name).arrow
        assert pq.read_table(series.path / f"{name}.parquet").equals(table)
        with (series.path / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        assert len(rows) == len(table)
        assert list(rows[0]) == table.column_names


def test_what_is_finished_is_handed_back(trained: Path, series: hs.Series) -> None:
    before = {path: path.read_bytes() for path in series.path.rglob("*") if path.is_file()}
    again = hs.checkpoints(trained, device="cpu").study(TEXTS, series.path, **OPTIONS)
    assert again.measures.arrow.equals(series.measures.arrow)
    assert {path: path.read_bytes() for path in before} == before


def test_a_series_that_was_stopped_goes_on(
    trained: Path, series: hs.Series, tmp_path: Path
) -> None:
    def stop(one: object) -> None:
        if getattr(one, "name", "") == "step10":
            raise KeyboardInterrupt

    out, found = tmp_path / "series", hs.checkpoints(trained, device="cpu")
    with pytest.raises(KeyboardInterrupt):
        found.study(TEXTS, out, begin=stop, **OPTIONS)
    assert list(hs.open_series(out).studies) == ["step2"]
    manifest = (out / "step2" / "manifest.json").read_bytes()
    whole = found.study(TEXTS, out, **OPTIONS)
    assert (out / "step2" / "manifest.json").read_bytes() == manifest
    assert whole.measures.arrow.equals(series.measures.arrow)


def test_steps_lie_on_a_logarithmic_scale_and_names_side_by_side(
    trained: Path, series: hs.Series, tmp_path: Path
) -> None:
    drawn = FIGURES["range"](series).to_dict()
    assert {layer["encoding"]["x"]["field"] for layer in drawn["layer"]} == {"at"}
    assert drawn["layer"][0]["encoding"]["x"]["sort"] == ["2", "10", "final"]
    stepped = hs.checkpoints([trained / "step2", trained / "step10"], device="cpu")
    drawn = FIGURES["range"](stepped.study(TEXTS, tmp_path / "series", **OPTIONS)).to_dict()
    x = drawn["layer"][0]["encoding"]["x"]
    assert (x["field"], x["scale"]["type"], x["scale"]["domain"]) == ("step", "symlog", [2, 10])


def test_every_label_of_every_checkpoint_is_counted(series: hs.Series) -> None:
    (drawn,) = FIGURES["heads"](series).to_dict()["datasets"].values()
    shown = {(row["label"], row["at"]): row["heads"] for row in drawn}
    for name, at in zip(NAMES, ("2", "10", "final"), strict=True):
        found = [
            label.split(":")[0]
            for row in series.studies[name].heads.to_pylist()
            for label in row["labels"]
        ]
        assert {label: n for (label, when), n in shown.items() if when == at} == Counter(found)


def test_a_folder_of_no_models_is_explained(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(CannotLoad, match="There is no folder"):
        hs.checkpoints(tmp_path / "nowhere")
    with pytest.raises(CannotLoad, match="holds no folders of models"):
        hs.checkpoints(tmp_path)
    with pytest.raises(CannotLoad, match="is a model itself"):
        hs.checkpoints(trained / "final")
    with pytest.raises(CannotLoad, match="have the same name"):
        hs.checkpoints([trained / "final", tmp_path / "final"])


def test_what_cannot_be_a_series_is_refused(
    trained: Path, series: hs.Series, tmp_path: Path
) -> None:
    found = hs.checkpoints(trained, device="cpu")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CannotStudy, match="holds no series"):
        found.study(TEXTS, tmp_path, **OPTIONS)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(CannotStudy, match="reads the corpus anew"):
        found.study(iter(TEXTS), tmp_path / "out", **OPTIONS)
    with pytest.raises(CannotStudy, match="holds a series of studies"):
        hs.open(series.path)
    with pytest.raises(CannotStudy, match="no series of studies"):
        hs.open_series(tmp_path)


def test_studies_of_two_corpora_are_no_series(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "series"
    hs.checkpoints([trained / "step2"], device="cpu").study(TEXTS, out, **OPTIONS)
    with pytest.raises(CannotStudy, match="not the same corpus"):
        hs.checkpoints([trained / "step10"], device="cpu").study(TEXTS[:1], out, **OPTIONS)


def test_the_command_studies_reports_and_draws(trained: Path, tmp_path: Path) -> None:
    corpus, out = tmp_path / "corpus.txt", tmp_path / "series"
    corpus.write_text("\n".join(TEXTS))
    options = ("--document", "line", "--null", "none", "--reading", "raw", "--special", "left_out")
    words = ("study", corpus, "--checkpoints", trained, "--out", out, *options)
    done = command(*words)
    assert done.status == 0, done.err
    assert "checkpoint 2 of 3: step10" in done.err
    assert "3 checkpoints, step2 to final" in done.out
    assert "attention centralises" in done.out
    rows = list(csv.DictReader(io.StringIO(command(*words, "--csv", "--quiet").out)))
    assert list(dict.fromkeys(row["checkpoint"] for row in rows)) == NAMES
    assert command("report", out, "--out", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<figure>") == len(FIGURES)
    assert "step10" in page
    assert command("figure", out, "list").out.strip() == ", ".join(FIGURES)
    drawn = command("figure", out, "range", "--out", tmp_path / "range.svg")
    assert drawn.status == 0, drawn.err
    figure = (tmp_path / "range.svg").read_text(encoding="utf-8")
    assert "over training" in figure
    assert "3 checkpoints, step2 to final" in figure
    refused("figure", out, "anchor", says="Of a series there are these figures")
    refused(*words, "--model", trained / "final", says="leave --model out")
    refused("study", corpus, "--checkpoints", corpus, "--out", out, says="There is no folder")
