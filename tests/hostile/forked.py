"""Runs commands of headscope in children of its own, so that each begins in a moment.

Reads lines of JSON, {"arguments": […], "said": FILE}; answers the child's process id, and then how
it ended. With "batches" the child gets Ctrl-C after so many of them, however fast the machine is.
It computes nothing itself, so its children start with no threads but their own.
"""

import json
import os
import signal
import sys

import transformers  # noqa: F401 - so that no child has to
from transformers.models.bert import modeling_bert  # noqa: F401

import headscope.cli
import headscope.scope
import headscope.study.progress
import headscope.study.results
import headscope.study.run
import headscope.units

headscope.units.CHUNK_UNITS = 64
headscope.study.run.SAVE_EVERY = 0.2


def interrupt_after(batches: int) -> None:
    """Have a quiet study interrupt itself when it says that so many batches are done."""
    done = 0

    def advance(self: headscope.study.progress.Quiet, units: object) -> None:
        nonlocal done
        done += 1
        if done == batches:
            os.kill(os.getpid(), signal.SIGINT)

    headscope.study.progress.Quiet.advance = advance
    headscope.study.run.SAVE_EVERY = float("inf")  # so that it is Ctrl-C that saves


def child(order: dict) -> None:
    with open(order["said"], "w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    sys.argv = ["headscope", *order["arguments"]]
    if order["batches"] is not None:
        interrupt_after(order["batches"])
    code = 1
    try:
        headscope.cli.main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.stderr.flush()
        os._exit(code)


for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        child(json.loads(line))
    print(pid, flush=True)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
