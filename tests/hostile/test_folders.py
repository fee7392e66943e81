"""A study is written where nobody else's files are, and touches nothing but its own."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import headscope as hs
from headscope.errors import CannotStudy, OtherStudy
from headscope.study.parameters import Parameters
from headscope.study.writer import StudyFolder

from .measured import largest_file
from .surroundings import OPTIONS, TEXTS, snapshot

Attack = Callable[[Path, Path], None]  # of the study's folder, and the folder around it


def puts(name: str, text: str = "mine") -> Attack:
    def attack(study: Path, _: Path) -> None:
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).write_text(text)

    return attack


def makes(name: str = ".") -> Attack:
    return lambda study, _: (study / name).mkdir(parents=True)


def links(name: str, to: str) -> Attack:
    def attack(study: Path, around: Path) -> None:
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        (study / name).symlink_to(around / to)

    return attack


def pipes(name: str) -> Attack:
    def attack(study: Path, _: Path) -> None:
        (study / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(study / name)

    return attack


def saves_a_model(study: Path, _: Path) -> None:
    (study / "resume").mkdir(parents=True)
    save_file({"weight": np.zeros(4)}, study / "resume" / "state.safetensors")


@dataclass(frozen=True)
class Trial:
    what: str
    attack: Attack
    answer: str | None = "is not empty, and holds no study"  # None: the study is made


TRIALS = [
    Trial("a file in resume/", puts("resume/cv.txt")),
    Trial("a file in a folder in resume/", puts("resume/old/cv.txt")),
    Trial("a table of somebody else", puts("tables/heads.parquet")),
    Trial("a file in tables/", puts("tables/notes.txt")),
    Trial("a file in tables.part/", puts("tables.part/notes.txt")),
    Trial("a file", puts("notes.txt")),
    Trial("a hidden file", puts(".gitignore")),
    Trial("a file of a strange name", puts("a\nb\x1b[31m")),
    Trial("a corpus", puts("corpus/a.txt")),
    Trial("a folder", makes("photographs")),
    Trial("half a manifest", puts("manifest.json.part")),
    Trial("resume is a link to a folder", links("resume", "letters")),
    Trial("tables is a link to a folder", links("tables", "letters")),
    Trial("resume is a link to nothing", links("resume", "gone")),
    Trial("resume is a file", puts("resume")),
    Trial("tables is a file", puts("tables")),
    Trial("the lock is a link to a file", links("resume/lock", "thesis.txt")),
    Trial("the lock is a link to nothing", links("resume/lock", "new.txt")),
    Trial("the lock is a folder", makes("resume/lock")),
    Trial("the lock is a pipe", pipes("resume/lock")),
    Trial("the state is a link to a file", links("resume/state.safetensors", "thesis.txt")),
    Trial("the state is a folder", makes("resume/state.safetensors")),
    Trial("the state is a pipe", pipes("resume/state.safetensors")),
    Trial("the state is a text", puts("resume/state.safetensors"), "is damaged"),
    Trial("the state is empty", puts("resume/state.safetensors", ""), "is damaged"),
    Trial("the state is a model", saves_a_model, "is no state of a study"),
    Trial("a manifest of another program", puts("manifest.json", '{"name": "app"}'), "has format"),
    Trial("a manifest of ours by its looks", puts("manifest.json", '{"format": 2}'), "checksum"),
    Trial("a manifest that is no JSON", puts("manifest.json", "{"), "no manifest of headscope"),
    Trial("an empty manifest", puts("manifest.json", ""), "no manifest of headscope"),
    Trial("the manifest is a folder", makes("manifest.json"), "no manifest of headscope"),
    Trial("the manifest is a pipe", pipes("manifest.json"), "no manifest of headscope"),
    Trial("the manifest is a link", links("manifest.json", "thesis.txt"), "no manifest of"),
    Trial("the manifest is a link to nothing", links("manifest.json", "gone"), "no manifest of"),
    Trial("the folder is a file", lambda study, _: study.write_text("mine") and None, "is a file"),
    Trial("the folder is a link to nothing", links(".", "gone"), "is a file"),
    Trial("the folder is a pipe", lambda study, _: os.mkfifo(study), "is a file"),
    Trial("an empty folder", makes(), None),
    Trial("an empty resume/", makes("resume"), None),
    Trial("a lock of a run that was killed", puts("resume/lock", ""), None),
    Trial("half a state", puts("resume/state.safetensors.part", "half"), None),
    Trial("half a state is a link", links("resume/state.safetensors.part", "thesis.txt"), None),
    Trial("no parent folder", lambda study, _: None, None),
]
QUICK = {"an empty folder", "half a state is a link"}


def trials() -> list[object]:
    """Those in which a study is made take a second each, and most of them are for later."""
    return [
        pytest.param(
            trial,
            id=trial.what,
            marks=[pytest.mark.slow] if trial.answer is None and trial.what not in QUICK else [],
        )
        for trial in TRIALS
    ]


def files(study: Path) -> dict[str, object]:
    """All in a folder that is no folder."""
    found = snapshot(study, Path("/"))
    return {name: what for name, what in found.items() if not Path(name).is_dir()}


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are of POSIX")
@pytest.mark.parametrize("trial", trials())
def test_a_folder_that_is_no_study_is_left_as_it_was(trial, tiny, outside):
    study = outside / "study"
    if trial.what != "the folder is a link to nothing":
        trial.attack(study, outside)
    else:
        study.symlink_to(outside / "gone")
    before, inside = snapshot(outside, study), files(study)
    if trial.answer is None:
        made = tiny.study(TEXTS[:2], study, **OPTIONS)
        assert made.manifest.corpus.documents == 2
        assert {path.name for path in study.iterdir()} == {"manifest.json", "tables"}
    else:
        for force in (False, True):
            if force and trial.answer == "is damaged":
                continue  # what is left of a study is replaced
            with pytest.raises(CannotStudy, match=trial.answer) as caught:
                tiny.study(TEXTS, study, force=force, **OPTIONS)
            assert str(study) in str(caught.value)
        assert files(study) == {**files(study), **inside}
    assert snapshot(outside, study) == before


def test_a_damaged_state_is_begun_anew_with_force(tiny, made, outside):
    study = outside / "study"
    puts("resume/state.safetensors")(study, outside)
    again = tiny.study(TEXTS, study, force=True, **OPTIONS)
    assert again.manifest.tables == made.manifest.tables
    assert not (study / "resume").exists()


def same_files(study: hs.Study) -> dict[str, object]:
    return snapshot(study.path, Path("/"))


CORPORA = {
    "another list": [*TEXTS[:3], "Something else."],
    "a longer list": [*TEXTS, "One more."],
    "a shorter list": TEXTS[:3],
    "one character more": [*TEXTS[:3], TEXTS[3] + "!"],
    "one of them twice": [*TEXTS, TEXTS[0]],
    "an empty list": [],
    "one of them unreadable": [*TEXTS[:3], None],
}


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_a_finished_study_is_not_handed_back_for_another_corpus(corpus, tiny, made):
    before = same_files(made)
    with pytest.raises(OtherStudy, match=r"study of another corpus.*force=True"):
        tiny.study(corpus, made.path, **OPTIONS)
    assert same_files(made) == before


def test_a_finished_study_is_handed_back_for_the_same_documents_in_any_order(tiny, made):
    before = same_files(made)
    for corpus in (TEXTS, TEXTS[::-1], [{"text": text} for text in TEXTS]):
        assert tiny.study(corpus, made.path, **OPTIONS).manifest == made.manifest
    assert same_files(made) == before


def test_a_file_that_changed_since_is_another_corpus(tiny, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    options = {"document": "line", **OPTIONS}
    first = tiny.study(tmp_path / "a.txt", tmp_path / "study", **options)
    (tmp_path / "a.txt").write_text("\n".join([*TEXTS, "A line more."]))
    with pytest.raises(OtherStudy, match="another corpus"):
        tiny.study(tmp_path / "a.txt", tmp_path / "study", **options)
    second = tiny.study(tmp_path / "a.txt", tmp_path / "study", force=True, **options)
    assert second.manifest.corpus.documents == first.manifest.corpus.documents + 1


CHANGED = [
    {"seed": 1},
    {"window": 30},
    {"replicates": 5},
    {"special": ("kept",)},
    {"readings": ("cosine",)},
    {"language": "de"},
    {"padding": 0.5},
    {"batch_tokens": 99},
    {"texts": 1},
    {"column": "body"},
    {"document": "line"},
]


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_finished_study_is_not_handed_back_for_another_question(changed, tiny, made):
    before = same_files(made)
    with pytest.raises(OtherStudy, match="holds another study"):
        tiny.study(TEXTS, made.path, **OPTIONS | changed)
    with pytest.raises(OtherStudy, match="silenced heads"):
        tiny.ablate([(1, 1)]).study(TEXTS, made.path, **OPTIONS)
    assert same_files(made) == before


def test_force_replaces_the_study_and_leaves_what_a_person_put_beside_it(tiny, copy, outside):
    mine = ["report.html", "tables/mine.parquet", "tables/notes.txt", "resume/cv.txt", "a/b"]
    for name in mine:
        puts(name, name)(copy, outside)
    before = snapshot(outside, copy)
    made = tiny.study(TEXTS[:2], copy, force=True, **OPTIONS | {"seed": 9})
    assert made.manifest.parameters.seed == 9
    assert [(copy / name).read_text() for name in mine] == mine
    assert snapshot(outside, copy) == before


def test_force_follows_no_link_among_the_tables(tiny, copy, outside):
    (copy / "tables" / "heads.parquet").unlink()
    (copy / "tables" / "heads.parquet").symlink_to(outside / "thesis.txt")
    before = snapshot(outside, copy)
    tiny.study(TEXTS, copy, force=True, **OPTIONS | {"seed": 9})
    assert snapshot(outside, copy) == before
    assert not (copy / "tables" / "heads.parquet").is_symlink()


def test_force_removes_no_table_by_a_name_that_leads_elsewhere(tiny, copy, outside):
    said = json.loads((copy / "manifest.json").read_text())
    for name in ("../../thesis.txt", "/etc/hosts", "../../letters/cv", "..", "a/b"):
        said["tables"][name] = {"rows": 0, "sha256": "0" * 64}
    said["format"] = 1
    (copy / "manifest.json").write_text(json.dumps(said))
    before = snapshot(outside, copy)
    with pytest.raises(CannotStudy, match="format 1"):
        tiny.study(TEXTS, copy, **OPTIONS)
    assert snapshot(outside, copy) == before


def test_what_a_kill_left_behind_a_finished_study_is_tidied(tiny, copy):
    (copy / "resume").mkdir()
    for name in ("lock", "state.safetensors", "state.safetensors.part"):
        (copy / "resume" / name).write_text("left")
    assert hs.open(copy).heads.num_rows == 12
    tiny.study(TEXTS, copy, **OPTIONS)
    assert not (copy / "resume").exists()


@pytest.mark.skipif(os.name != "posix", reason="rights are of POSIX")
def test_a_study_is_read_and_handed_back_where_nobody_may_write(made):
    """As from an archive, by somebody without rights."""
    script = (
        "import os, sys, filelock, headscope as hs\n"
        "from headscope.study.writer import StudyFolder\n"
        "hs.open(sys.argv[1]).heads  # imports what it needs\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "StudyFolder(sys.argv[1]).tidy()\n"
        "print(hs.open(sys.argv[1]).heads.num_rows)\n"
        "try:\n"
        "    StudyFolder(sys.argv[1] + '/new').held().__enter__()\n"
        "except hs.HeadscopeError as error:\n"
        "    print(error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(shutil.copytree(made.path, Path(folder) / "archive"))
        (archive / "resume").mkdir()
        for place in (archive / "resume", archive / "tables", archive, Path(folder)):
            place.chmod(0o555)
        command = [sys.executable, "-c", script, str(archive)]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        for place in (Path(folder), archive, archive / "tables", archive / "resume"):
            place.chmod(0o755)
    assert said.stdout.splitlines()[0] == "12", said.stderr
    assert "cannot be written: Permission denied" in said.stdout.splitlines()[1]


@pytest.mark.skipif(os.name != "posix", reason="limits are of POSIX")
@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 100, 5_000, 20_000])
def test_a_full_disk_is_told_and_what_was_saved_is_gone_on_with(size, tiny, tiny_folder, outside):
    (outside / "corpus.txt").write_text("\n".join(TEXTS))
    study = outside / "study"
    command = ["study", str(outside / "corpus.txt"), "--document", "line", "--window", "40"]
    command += ["--out", str(study), "--model", str(tiny_folder), "--quiet", "--device", "cpu"]
    before = snapshot(outside, study)
    said = subprocess.run(
        [sys.executable, "-m", "headscope", *command],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: largest_file(size),
    )
    assert said.returncode == 2, said.stderr
    assert "cannot be written" in said.stderr
    assert "Traceback" not in said.stderr
    assert str(study) in said.stderr.replace("\n", "")
    assert snapshot(outside, study) == before
    assert not list(study.rglob("*.part"))
    with pytest.raises(CannotStudy, match="not finished"):
        hs.open(study)
    after = subprocess.run([sys.executable, "-m", "headscope", *command], check=False)
    assert after.returncode == 0
    assert hs.open(study).heads.num_rows == 12


@pytest.mark.parametrize(
    "place", ["/proc/study", "/proc/self/study", "/dev/null/study", "/sys/study"]
)
def test_a_place_that_takes_no_folder_is_told(place, tiny):
    if not Path(place).parent.exists():
        pytest.skip("no such place here")
    with pytest.raises(CannotStudy, match=r"cannot be written|is a file") as caught:
        tiny.study(TEXTS, place, **OPTIONS)
    assert place in str(caught.value)


WRONG = [
    {"seed": -1},
    {"seed": 10**5000},
    {"replicates": 0},
    {"replicates": -5},
    {"window": 0},
    {"window": -3},
    {"window": 1},
    {"window": 3},
    {"window": 10**9},
    {"batch_tokens": 0},
    {"padding": -0.1},
    {"padding": float("nan")},
    {"padding": 1.0},
    {"texts": -1},
    {"language": ""},
    {"language": "../../etc"},
    {"readings": ()},
    {"readings": ("raw", "raw")},
    {"readings": ("loud",)},
    {"special": ("both",)},
    {"nulls": ("noise",)},
    {"nulls": ("shuffle", "shuffle")},
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: str(next(iter(wrong))))
def test_a_parameter_that_cannot_be_is_told_before_anything_is_written(wrong, tiny, outside):
    before = snapshot(outside, outside / "study")
    with pytest.raises(CannotStudy):
        tiny.study(TEXTS, outside / "study", **OPTIONS | wrong)
    assert not (outside / "study").exists()
    assert snapshot(outside, outside / "study") == before


def test_parameters_stand_for_themselves():
    assert Parameters(seed=2**63 - 1).seed == 2**63 - 1


def test_two_runs_do_not_share_a_folder(tiny, tmp_path):
    with StudyFolder(tmp_path / "s").held(), pytest.raises(CannotStudy, match="Another run"):
        tiny.study(TEXTS, tmp_path / "s", **OPTIONS)
