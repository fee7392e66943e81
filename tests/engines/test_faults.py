"""What stops a study stops it in a sentence, with workers too, and what was saved stays."""

import os
import subprocess
import sys

import pytest

import headscope as hs
from engines.studied import DOCUMENTS, OPTIONS, Beside, corpus_of, digests
from headscope.corpus import Corpus
from headscope.errors import CannotRead, CannotStudy
from headscope.study.parameters import Parameters
from headscope.study.reader import Reader
from headscope.study.run import study
from headscope.study.writer import StudyFolder


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)
    monkeypatch.setattr("headscope.study.run.SAVE_EVERY", -1)


def made(scope, documents, out, **options):
    chosen = {name: value for name, value in OPTIONS.items() if name != "threads"}
    engine = Beside(stretches=False)
    corpus, parameters = Corpus(documents, "line"), Parameters(**chosen)
    return study(scope, corpus, out, parameters, engine=engine, threads=1, **options)


class Death(BaseException):
    """What ends a run without a word."""


def dying(after):
    """A reader that ends the run after so many answers."""
    left, answer = iter(range(after)), Reader.answer

    def answers(self, run):
        if next(left, None) is None:
            raise Death
        return answer(self, run)

    return answers


def test_a_corpus_that_changes_under_a_run_is_refused_where_it_was_read(
    tiny, tmp_path, monkeypatch
):
    """What was read must be as it was; what was not may be longer."""
    file = corpus_of(tmp_path, 4)
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "answer", dying(2))
        with pytest.raises(Death):
            made(tiny, file, tmp_path / "study")
    begun = file.read_text()
    file.write_text(begun.replace("light", "night", 1))
    with pytest.raises(CannotStudy, match=r"The corpus has changed since .* began"):
        made(tiny, file, tmp_path / "study")
    file.write_text(begun + "\nOne more document has come behind the others.")
    longer = digests(made(tiny, file, tmp_path / "longer"))
    assert digests(made(tiny, file, tmp_path / "study")) == longer


def test_a_file_that_is_gone_when_it_is_read_is_told(tiny, tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(DOCUMENTS[0])

    documents = iter(Corpus(folder))
    assert next(documents).source == "a.txt"
    (folder / "b.txt").unlink()
    [gone] = documents
    assert (gone.source, gone.reason.startswith("cannot be read to the end")) == ("b.txt", True)


def test_strict_stops_before_a_worker_reads_on(tiny, tmp_path):
    with pytest.raises(CannotRead, match=r"list, line \d+: empty.*--strict"):
        made(tiny, DOCUMENTS, tmp_path, strict=True)


def test_two_runs_do_not_share_a_folder(tiny, tmp_path):
    with StudyFolder(tmp_path).held(), pytest.raises(CannotStudy, match="Another run is writing"):
        made(tiny, DOCUMENTS, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits are of POSIX")
def test_a_full_disk_ends_the_workers_and_is_gone_on_with(tiny_folder, tmp_path):
    import resource

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    command = [sys.executable, "-m", "headscope", "study", str(corpus_of(tmp_path, 4))]
    command += ["--document", "line", "--model", str(tiny_folder), "--quiet", "--null", "none"]
    command += ["--device", "cpu", "--workers", "1", "--out", str(tmp_path / "study")]
    said = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=small_files
    )
    assert said.returncode == 2, said.stderr
    assert "cannot be written" in said.stderr
    assert "the same command then goes on" in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert hs.open(tmp_path / "study").heads.num_rows == 12
