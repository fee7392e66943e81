"""Studies read by processes: the same bytes, whoever reads and whoever is killed meanwhile."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading

import psutil
import pytest

import headscope as hs
from engines.studied import DOCUMENTS, OPTIONS, corpus_of, digests
from headscope.engines import engine_of
from headscope.engines.processes import Process
from headscope.errors import CannotStudy
from headscope.study.progress import Quiet
from headscope.study.reader import Reader
from headscope.study.writer import StudyFolder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are of POSIX")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """A study made in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.units.CHUNK_UNITS", 5)
        return digests(tiny.study(DOCUMENTS, tmp_path_factory.mktemp("whole"), **OPTIONS))


def workers_of(process: int) -> list[psutil.Process]:
    """The processes that read for a process."""
    found = []
    for child in psutil.Process(process).children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if "headscope.engines" in " ".join(child.cmdline()):
                found.append(child)
    return found


def end(process: psutil.Process) -> None:
    """Kill a process, unless it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


class Counting(Quiet):
    """Notes what it is told, and does something every time."""

    def __init__(self, each=lambda: None):
        self.tokens, self.failures, self.each = 0, [], each

    def advance(self, units):
        self.tokens += sum(map(len, units))
        self.each()

    def skipped(self, what):
        self.failures.append(str(what))


def test_workers_make_the_bytes_of_one_process_and_tell_their_progress(tiny, whole, tmp_path):
    seen = Counting()
    made = tiny.study(DOCUMENTS, tmp_path, workers=2, progress=seen, **OPTIONS)
    assert digests(made) == whole
    assert seen.tokens == made.manifest.corpus.tokens
    assert seen.failures == [f"list, line {DOCUMENTS.index(' ') + 1}: empty"]
    assert made.manifest.threads == 1
    assert not workers_of(os.getpid())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 5])
def test_any_number_of_workers_makes_the_same_bytes(tiny, whole, tmp_path, workers):
    assert digests(tiny.study(DOCUMENTS, tmp_path, workers=workers, **OPTIONS)) == whole


@pytest.mark.slow
def test_workers_killed_at_any_moment_change_nothing(tiny, whole, tmp_path):
    chance, killed = random.Random(0), []

    def kill():
        there = workers_of(os.getpid())
        if there and len(killed) < 10 and chance.random() < 0.5:
            victim = chance.choice(there)
            threading.Timer(chance.uniform(0, 0.3), end, [victim]).start()
            killed.append(victim.pid)

    made = tiny.study(DOCUMENTS, tmp_path, workers=2, progress=Counting(kill), **OPTIONS)
    assert digests(made) == whole
    assert len(set(killed)) > 2


@pytest.mark.slow
def test_the_driver_killed_goes_on_and_leaves_no_worker_behind(tiny_folder, tmp_path):
    """With SIGKILL while it saves, and with Ctrl-C; the second time with another number."""
    corpus = corpus_of(tmp_path, 6)
    script = """
import os, signal, sys
import headscope.study.run, headscope.units
from headscope.study.writer import StudyFolder
headscope.units.CHUNK_UNITS, headscope.study.run.SAVE_EVERY = 5, -1
save, left, sign = StudyFolder.save_state, [int(sys.argv.pop(1))], int(sys.argv.pop(1))
def dying(self, *args):
    save(self, *args)
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), sign)
StudyFolder.save_state = dying
from headscope.cli import main
main()
"""
    command = [sys.executable, "-c", script]
    study = ["study", str(corpus), "--document", "line", "--model", str(tiny_folder), "--quiet"]
    study += ["--null", "none", "--device", "cpu", "--out"]

    def run(out, left, sign, *options):
        words = [*command, str(left), str(int(sign)), *study, str(out), *options]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    once = run(tmp_path / "once", -1, signal.SIGTERM, "--threads", "1")
    assert once.returncode == 0, once.stderr
    out, units = tmp_path / "again", [0]
    for workers, sign, status in (("2", signal.SIGKILL, -9), ("3", signal.SIGINT, 130)):
        ended = run(out, 3, sign, "--workers", workers)
        assert ended.returncode == status, ended.stderr
        units.append(StudyFolder(out).load_state()[1]["counts"]["units"])
        assert units[-1] > units[-2]
    assert "the same command goes on" in ended.stderr
    last = run(out, -1, signal.SIGTERM, "--workers", "2")
    assert last.returncode == 0, last.stderr
    assert digests(hs.open(out)) == digests(hs.open(tmp_path / "once"))
    left = [one for one in psutil.process_iter(["cmdline"]) if str(out) in str(one.info["cmdline"])]
    assert not left


@pytest.mark.parametrize("program", ["worker", pytest.param("reader", marks=pytest.mark.slow)])
def test_a_worker_ends_with_the_process_that_started_it(program):
    script = (
        "import os, sys, json, subprocess\n"
        "from headscope.engines.processes import BEGIN\n"
        f"program = 'headscope.engines.{program}'\n"
        "words = [sys.executable, '-c', BEGIN, json.dumps(sys.path), program]\n"
        "pipe = subprocess.PIPE\n"
        "worker = subprocess.Popen(words, stdin=pipe, stdout=pipe, start_new_session=True)\n"
        "print(worker.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    driver = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    worker = psutil.Process(int(driver.stdout)) if psutil.pid_exists(int(driver.stdout)) else None
    if worker is not None:
        psutil.wait_procs([worker], timeout=60)
        assert not worker.is_running()


def test_what_goes_wrong_in_a_worker_is_told_as_it_is(tiny, tmp_path, monkeypatch):
    """A weight that is no number: the error that this process would have raised, and no other."""
    broken = hs.load(tiny.model.__class__(tiny.model.config).eval(), tiny.tokenizer)
    broken.model.bert.encoder.layer[1].attention.self.value.weight.data.fill_(float("nan"))
    errors = []
    for options in ({}, {"workers": 1}):
        with pytest.raises(hs.errors.NotFiniteError) as error:
            broken.study(DOCUMENTS, tmp_path / str(len(errors)), **OPTIONS, **options)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def test_documents_that_end_every_worker_are_named(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(Process, "ask", lambda self, run: self.process.kill() or self._answer())
    monkeypatch.setattr("headscope.engines.pool.ATTEMPTS", 2)
    with pytest.raises(CannotStudy, match=r"2 workers .*from list, line 1 .* by SIGKILL.*memory"):
        tiny.study(DOCUMENTS, tmp_path, workers=1, **OPTIONS)


def test_a_model_that_cannot_be_sent_is_told(tiny, tmp_path):
    model = tiny.model.__class__(tiny.model.config).eval()
    model.bert.mine = lambda: None
    with pytest.raises(CannotStudy, match=r"cannot be sent to workers.*engine 'local'"):
        hs.load(model, tiny.tokenizer).study(DOCUMENTS, tmp_path, workers=1, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "spark"}, "engine is one of local, processes, ray, not 'spark'"),
        ({"name": None, "workers": 0}, "workers has to be a number from 1 to 4,096, not 0"),
        ({"name": None, "threads": 0}, "threads has to be a number"),
        ({"name": "local", "workers": 2}, "takes no workers"),
        ({"name": "processes", "address": "auto"}, "An address is of the engine 'ray'"),
        ({"name": "ray", "devices": ("cpu",)}, "finds devices by itself"),
        ({"name": None, "workers": 1, "devices": ("cpu", "cpu")}, "1 workers cannot use 2"),
    ],
)
def test_engines_that_cannot_be_are_told(options, says):
    with pytest.raises(CannotStudy, match=says):
        engine_of(**options)


def test_a_device_that_is_not_there_is_told():
    with pytest.raises(hs.errors.CannotLoad, match="There is no device 'cuda:9'"):
        engine_of(None, devices=("cuda:9",))


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(CannotStudy, match=r"pip install 'headscope\[ray\]'"):
        engine_of("ray")


def test_the_number_of_threads_that_a_study_began_with_is_kept(tiny, tmp_path, monkeypatch):
    """Torch rounds by it, so who goes on takes it from the state."""
    options = {name: value for name, value in OPTIONS.items() if name != "threads"}
    monkeypatch.setattr("headscope.study.run.SAVE_EVERY", -1)
    numbers = []

    def steps(self, *given, original=Reader.steps):
        import torch

        numbers.append(torch.get_num_threads())
        yield from original(self, *given)

    def stop():
        if len(numbers) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Reader, "steps", steps)
    with pytest.raises(KeyboardInterrupt):
        tiny.study(DOCUMENTS, tmp_path, progress=Counting(stop), **options, threads=3)
    made = tiny.study(DOCUMENTS, tmp_path, **options, threads=1)
    assert set(numbers) == {3}
    assert made.manifest.threads == 3
