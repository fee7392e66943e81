"""The command line, run in this process: the same answers in a hundredth of the time."""

import contextlib
import io
from dataclasses import dataclass

from headscope.cli import app
from headscope.cli.failure import run


@dataclass(frozen=True)
class Answer:
    """What a command said and how it ended."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        return " ".join(self.err.split())


def command(*words: object) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = run(app, [str(word) for word in words])
        except SystemExit as end:
            status = int(end.code or 0)
    return Answer(status, out.getvalue(), err.getvalue())


def refused(*words: object, says: str) -> None:
    """The command ends with one sentence on standard error, and nothing on standard output."""
    answer = command(*words)
    assert answer.status == 2, answer
    assert answer.error.startswith("error: "), answer.err
    assert "Traceback" not in answer.err
    assert "should not have happened" not in answer.error, answer.error
    assert says in answer.error, answer.error
    assert answer.out == ""
    assert len(answer.error) < 900
