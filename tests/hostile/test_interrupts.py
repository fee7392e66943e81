"""A study that is interrupted or killed at any moment goes on, and ends with the same bytes."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import headscope as hs
from headscope.study.writer import StudyFolder

from .surroundings import TEXTS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are of POSIX")


@dataclass
class Commands:
    """Where commands are run, in a process that has imported everything before."""

    process: subprocess.Popen[str]
    said: Path

    def run(
        self,
        arguments: list[str],
        sign: int | None = None,
        after: float = 0,
        batches: int | None = None,
    ) -> int:
        """Run a command, with a signal after some seconds or batches; how it ended."""
        order = {"arguments": arguments, "said": str(self.said), "batches": batches}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        sent = threading.Timer(after, os.kill, (pid, sign)) if sign is not None else None
        if sent is not None:
            sent.start()
        code = int(self.process.stdout.readline())
        if sent is not None:
            sent.cancel()
        return code


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "forked.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | one_thread,
    )
    yield Commands(process, tmp_path_factory.mktemp("said") / "said.txt")
    process.stdin.close()
    process.wait(timeout=60)
    process.stdout.close()


def digests(folder: Path) -> dict[str, str]:
    return {name: entry.sha256 for name, entry in hs.open(folder).manifest.tables.items()}


def progress(folder: Path) -> tuple[int, int]:
    """How far the saved state of a study has come."""
    state = StudyFolder(folder).load_state()  # raises if it is not whole
    if state is None:
        return (0, 0)
    counts = state[1]["counts"]
    return counts["units"], counts["steps"]


@pytest.mark.parametrize(
    ("interrupts", "documents"),
    [
        pytest.param(3, 30, id="a few"),
        pytest.param(50, 120, id="fifty", marks=pytest.mark.slow),
    ],
)
def test_interrupted_and_killed_at_any_moment_it_ends_with_the_same_bytes(
    interrupts, documents, commands, tiny_folder, tmp_path
):
    chance = random.Random(interrupts)
    corpus = tmp_path / "corpus.txt"
    lines = [" ".join(chance.choices(TEXTS, k=chance.randrange(1, 5))) for _ in range(documents)]
    corpus.write_text("\n".join(lines))
    study = ["study", str(corpus), "--document", "line", "--model", str(tiny_folder)]
    study += ["--null", "shuffle", "--quiet", "--device", "cpu", "--out"]
    begun = time.monotonic()
    assert commands.run([*study, str(tmp_path / "once")]) == 0, commands.said.read_text()
    whole = time.monotonic() - begun
    expected, out, sent, ended = digests(tmp_path / "once"), tmp_path / "again", 0, 0
    while sent < interrupts or not (out / "manifest.json").exists():
        before = progress(out)
        sign = chance.choice([signal.SIGINT, signal.SIGKILL]) if sent < interrupts else None
        code = commands.run([*study, str(out)], sign, chance.uniform(0, whole))
        said = commands.said.read_text()
        # Python itself says so, and goes on, where a signal comes while it clears up at the start.
        assert "Traceback" not in said or said.startswith("Exception ignored in")
        if code == 0:
            assert digests(out) == expected
            assert {path.name for path in out.iterdir()} == {"manifest.json", "tables"}
            ended += 1
            if sent < interrupts:
                shutil.rmtree(out)
            continue
        sent += 1
        assert code == (130 if sign == signal.SIGINT else -signal.SIGKILL), said
        if (out / "manifest.json").exists():  # killed while it tidied up
            continue
        assert progress(out) >= before
        promised = "the same command goes on" in said
        # Before the study itself has begun nothing is promised, whatever an earlier run has saved.
        assert not promised or (sign == signal.SIGINT and StudyFolder(out).saved), said
    assert digests(out) == expected
    assert ended or interrupts < 10


def test_ctrl_c_within_a_chunk_saves_the_batches_that_were_read(commands, tiny_folder, tmp_path):
    """A study of one chunk lost all its work, while it said that the same command goes on."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([" ".join(TEXTS[:3])] * 60))  # one chunk, of two batches
    out = tmp_path / "study"
    study = ["study", str(corpus), "--document", "line", "--model", str(tiny_folder), "--quiet"]
    study += ["--null", "none", "--device", "cpu", "--out"]
    assert commands.run([*study, str(tmp_path / "once")]) == 0, commands.said.read_text()
    assert commands.run([*study, str(out)], batches=1) == 130, commands.said.read_text()
    assert "the same command goes on" in commands.said.read_text()
    assert progress(out)[1] == 1, "batches that were read"
    assert progress(out)[0] == 0, "the chunk is not done with"
    assert commands.run([*study, str(out)]) == 0
    assert digests(out) == digests(tmp_path / "once")
