"""A folder of pictures or of sounds is studied like one of texts, without what only texts have."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers as t
from PIL import Image
from typer.testing import CliRunner

import headscope as hs
from headscope import figures
from headscope.cli import app
from headscope.errors import (
    CannotDraw,
    CannotObserve,
    CannotRead,
    CannotStudy,
    NoCorpus,
    NotPossible,
    OtherStudy,
)
from headscope.study.placed import run
from headscope.study.progress import Quiet
from senses import SETTINGS, checkerboard, two_tones, vit, wav2vec2, whisper, write_wave

FAST: dict[str, Any] = {"nulls": (), "replicates": 20, "rule": hs.quantile(0.1)}
UNSET = "ignore:There is no preprocessor configuration:UserWarning"


def noisy(number: int) -> np.ndarray[Any, Any]:
    """A checkerboard with noise of its own."""
    board = checkerboard(square=(8, 16, 32)[number % 3])
    grain = np.random.default_rng(number).normal(0, 25, board.shape)
    return np.clip(board + grain, 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ViT with its preprocessor configuration, and a folder of pictures."""
    where = tmp_path_factory.mktemp("pictures")
    vit().save_pretrained(where / "vit")
    t.ViTImageProcessorPil(**SETTINGS).save_pretrained(where / "vit")
    (where / "photos" / "inner").mkdir(parents=True)
    for number in range(5):
        Image.fromarray(noisy(number)).save(where / "photos" / "inner" / f"{number}.png")
    (where / "photos" / "broken.jpg").write_bytes(b"no picture")
    return where


@pytest.fixture(scope="module")
def scope(here: Path) -> "hs.Scope":
    return hs.load(here / "vit", device="cpu")


@pytest.fixture(scope="module")
def studied(here: Path, scope: "hs.Scope") -> "hs.Study":
    return scope.study(here / "photos", here / "study", **FAST | {"nulls": ("random",)})


def of_heads(study: "hs.Study", table: str, quantity: str, column: str = "value") -> Any:
    """A quantity of every head in the view that leaves special positions out: (layers, heads)."""
    rows = [
        row[column]
        for row in study.table(table).to_pylist()
        if (row["level"], row["mode"], row["quantity"]) == ("head", "real", quantity)
        and row["reading"] in (None, "raw")
        and row["special"] in (None, "left_out")
    ]
    return np.array(rows).reshape(study.manifest.model.layers, -1)


def test_a_study_adds_up_what_readings_of_its_pictures_say(
    studied: "hs.Study", scope: "hs.Scope"
) -> None:
    readings = [scope.read(noisy(number)) for number in range(5)]
    heads = [(layer, head) for layer in (1, 2) for head in (1, 2, 3, 4)]
    ranges = [[one.range(*head, hs.quantile(0.1)) for head in heads] for one in readings]
    found = of_heads(studied, "range", "patches_apart").ravel()
    # Every picture has as many high pairs, so that each weighs alike.
    assert found == pytest.approx(np.mean([[r.distance for r in one] for one in ranges], 0))
    assert of_heads(studied, "range", "patches_apart", "chance") == pytest.approx(
        ranges[0][0].chance
    )
    targets = readings[0].focus().targets
    for place, name in enumerate(targets):
        mass = np.mean([one.focus().mass[..., place] for one in readings], axis=0)
        own = of_heads(studied, "focus", name.replace(" ", "_"))
        assert own == pytest.approx(mass, abs=1e-5)
    A = np.mean([one.attention(2, 3).max(axis=1).mean() for one in readings])
    assert of_heads(studied, "focus", "confidence")[1, 2] == pytest.approx(A, abs=1e-5)
    lengths = [np.linalg.norm(one.head_vectors(1, 2)[1:], axis=1).mean() for one in readings]
    assert of_heads(studied, "size", "norm")[0, 1] == pytest.approx(np.mean(lengths), rel=1e-5)


def test_what_only_a_text_has_is_absent_and_not_zero(studied: "hs.Study") -> None:
    assert studied.manifest.corpus.kind == "image"
    assert not {"sentence", "repetition", "anchor", "noise", "anchors"} & set(studied.tables)
    quantities = set(studied.focus["quantity"].to_pylist())
    assert {"own_patch", "touching_patches", "special_positions", "entropy"} <= quantities
    assert not {"separator", "comma", "next_frame", "silence_added"} & quantities
    assert set(studied.findings["claim"].to_pylist()) == {"centralisation", "range"}
    assert "seconds_apart" not in set(studied.range["quantity"].to_pylist())
    assert repr(studied).startswith(f"<Study of {studied.manifest.model.name} on photos: 5 pictu")


def test_attention_of_nulls_is_beside_that_of_the_model(studied: "hs.Study") -> None:
    nulls = studied.nulls.to_pylist()
    assert {row["mode"] for row in nulls} == {"random", "random-2", "random-3"}
    assert studied.manifest.nulls.windows == 5
    model = [r for r in nulls if r["quantity"] == "entropy" and r["level"] == "model"]
    # Random weights of transformers are small, so that attention is even: ln 17.
    assert all(abs(row["null"] - np.log(17)) < 0.01 < abs(row["difference"]) for row in model)


def test_what_is_no_picture_is_skipped_and_named_without_its_folder(
    studied: "hs.Study", here: Path, scope: "hs.Scope"
) -> None:
    (row,) = studied.skipped.to_pylist()
    assert row["source"] == "broken.jpg"
    assert str(here) not in row["reason"]
    with pytest.raises(CannotRead, match=r"broken\.jpg"):
        scope.study(here / "photos", here / "strict", strict=True, **FAST)
    with pytest.raises(NoCorpus, match="holds no picture"):
        scope.study(here / "vit", here / "none", **FAST)


class StopsAfter(Quiet):
    """Falls over after some pictures."""

    def __init__(self, pictures: int):
        self.left = pictures

    def advance(self, units: Any) -> None:
        self.left -= 1
        if not self.left:
            raise RuntimeError("stopped")


def test_a_stopped_study_goes_on_and_ends_with_the_same_tables(
    studied: "hs.Study", here: Path, scope: "hs.Scope", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SAVE_EVERY", 0.0)
    asked = FAST | {"nulls": ("random",)}
    with pytest.raises(RuntimeError):
        scope.study(here / "photos", here / "again", progress=StopsAfter(3), **asked)
    with pytest.raises(OtherStudy, match="seed"):
        scope.study(here / "photos", here / "again", **asked, seed=1)
    left = StopsAfter(99)
    again = scope.study(here / "photos", here / "again", progress=left, **asked)
    assert 99 - left.left == 3  # of five, two were in what was saved
    assert again.manifest.tables == studied.manifest.tables
    found = scope.study(here / "photos", here / "again", progress=StopsAfter(1), **asked)
    assert found.manifest == again.manifest  # handed back, and nothing read


def test_a_corpus_that_has_changed_since_is_not_gone_on_with(
    here: Path, scope: "hs.Scope", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SAVE_EVERY", 0.0)
    pictures, out = [noisy(number) for number in range(4)], here / "changed"
    with pytest.raises(RuntimeError):
        scope.study(pictures, out, progress=StopsAfter(3), **FAST)
    for other in ([noisy(9), *pictures[1:]], pictures[:1]):
        with pytest.raises(OtherStudy, match="corpus has changed"):
            scope.study(other, out, **FAST)
    assert scope.study(pictures, out, **FAST).manifest.corpus.documents == 4


def test_pictures_in_memory_are_studied_as_those_of_files(
    studied: "hs.Study", here: Path, scope: "hs.Scope"
) -> None:
    pictures = [noisy(0), Image.fromarray(noisy(1)), here / "photos" / "inner" / "2.png"]
    study = scope.study(pictures, here / "memory", **FAST)
    assert study.manifest.corpus.documents == 3
    first = scope.study([noisy(0)], here / "first", **FAST)
    own = scope.read(noisy(0)).range(2, 1, hs.quantile(0.1)).distance
    assert of_heads(first, "range", "patches_apart")[1, 0] == pytest.approx(own)
    assert set(first.findings["verdict"].to_pylist()) <= {"undecided", "does not hold"}


@pytest.mark.filterwarnings(UNSET)
def test_a_model_runs_in_one_thread_at_a_time(tmp_path: Path) -> None:
    scope, threads = hs.load(wav2vec2()), set[int]()
    scope.model.register_forward_pre_hook(lambda *_: threads.add(threading.get_ident()))
    sounds = [(two_tones(seconds=0.3 + number / 10), 16_000) for number in range(3)]
    scope.study(sounds, tmp_path / "study", **FAST)
    assert threads == {threading.get_ident()}


@pytest.mark.filterwarnings(UNSET)
def test_sounds_are_studied_in_seconds(tmp_path: Path) -> None:
    folder = tmp_path / "sounds"
    folder.mkdir()
    for number, seconds in enumerate((0.5, 0.8, 1.0)):
        write_wave(folder / f"{number}.wav", two_tones(seconds=seconds))
    frames = hs.load(wav2vec2())
    study = frames.study(folder, tmp_path / "frames", **FAST)
    readings = [frames.read(folder / f"{number}.wav") for number in range(3)]
    assert study.manifest.corpus.tokens == sum(map(len, readings))
    pairs = [one.high_pairs(1, 1, hs.quantile(0.1)) for one in readings]
    apart = np.concatenate([one.columns["distance"] for one in pairs]).mean()
    assert of_heads(study, "range", "seconds_apart")[0, 0] == pytest.approx(apart, rel=1e-6)
    quantities = set(study.focus["quantity"].to_pylist())
    assert {"previous_frame", "own_frame", "next_frame"} <= quantities
    assert not {"own_patch", "silence_added", "special_positions"} & quantities
    padded = hs.load(whisper()).study(folder, tmp_path / "padded", **FAST)
    assert "silence_added" in padded.focus["quantity"].to_pylist()


def test_what_means_nothing_there_is_refused(here: Path, scope: "hs.Scope") -> None:
    photos, out = here / "photos", here / "refused"
    for asked, said in (
        ({"rule": hs.peak(0.5)}, r"not of peak\(0\.5\)"),
        ({"nulls": ("shuffle",)}, "shuffle needs a text"),
        ({"window": 64}, "read whole"),
        ({"group": "file"}, "over documents"),
    ):
        with pytest.raises(CannotStudy, match=said):
            scope.study(photos, out, **asked)
    for asked in ({"workers": 2}, {"readers": 2}, {"device_memory": 2.0}):
        with pytest.raises(NotPossible, match="in this process"):
            scope.study(photos, out, **asked)
    assert not out.exists()
    (here / "both").mkdir()
    for name in ("one.png", "one.wav"):
        (here / "both" / name).touch()
    specimen = hs.load()
    with pytest.raises(NoCorpus, match="studied apart"):
        specimen.study(here / "both", out)
    with pytest.raises(CannotObserve, match=r"reads no pictures.* Load one that sees"):
        specimen.study(photos, out)


def test_verbs_that_add_to_a_study_need_texts(
    studied: "hs.Study", here: Path, scope: "hs.Scope"
) -> None:
    with pytest.raises(NotPossible, match="loaded to read pictures"):
        scope.agreement(here / "photos", studied.path)
    with pytest.raises(CannotStudy, match="is of images"):
        hs.load().agreement(["A text."], studied.path)
    with pytest.raises(CannotStudy, match="is of images"):
        hs.load().structure(here, studied.path)


def test_the_report_and_the_figures_leave_out_what_is_absent(
    studied: "hs.Study", here: Path, scope: "hs.Scope"
) -> None:
    page = studied.report(here / "report.html").read_text(encoding="utf-8")
    assert "mean distance (patches)" in page
    assert "the up to eight patches that touch it" in page
    assert "5 pictures, 85 positions" in page
    assert not any(f"<h2>{title}" in page for title in ("Sentences", "Repetition", "Anchors"))
    assert "Words at the ends" not in page
    for name in ("focus", "centralisation", "range", "selection", "findings"):
        assert figures.as_svg(figures.FIGURES[name](studied)).startswith("<svg")
    for name in ("sentence", "repetition", "anchor", "uniqueness", "noise"):
        with pytest.raises(CannotDraw, match="pictures or sounds"):
            figures.FIGURES[name](studied)
    saved = studied.save(here / "both.html", scope.read(noisy(0)))
    alone = studied.save(here / "alone.html")
    assert saved.stat().st_size > alone.stat().st_size > 100_000


def test_a_folder_of_pictures_is_studied_on_the_command_line(here: Path) -> None:
    asked = ["study", str(here / "photos"), "--model", str(here / "vit"), "--device", "cpu"]
    told = [*asked, "--out", str(here / "told"), "--null", "none", "--quiet"]
    shown = CliRunner().invoke(app, told)
    assert shown.exit_code == 0, shown.output
    assert "5 pictures, 85 positions" in " ".join(shown.stdout.split())
    assert json.loads((here / "told" / "manifest.json").read_text())["corpus"]["kind"] == "image"
    assert os.listdir(here / "told" / "tables")
