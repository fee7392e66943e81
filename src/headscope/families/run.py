"""Check many model types, in processes of their own: what crashes or hangs is told, and goes on."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from threading import Timer
from typing import Any

from headscope.families.check import Checked, check

SECONDS = 180.0  # for one type
BEGINNING = 1800.0  # for the first one: on a new machine fast functions are compiled with it


def families() -> list[str]:
    """Every model type of the installed transformers."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return sorted(CONFIG_MAPPING.keys())


def check_all(wanted: Sequence[str], *, steps: bool = True) -> Iterator[Checked]:
    """What works with each type, in their order."""
    left = list(wanted)
    while left:
        before = len(left)
        for found in _worker(left, steps):
            left.pop(0)
            yield found
        if left:
            yield Checked(left.pop(0), observed="crashed", note="its process ended, or hung")
        assert len(left) < before


def _worker(wanted: Sequence[str], steps: bool) -> Iterator[Checked]:
    """Check types in one process, until they are done or it dies."""
    command = [
        sys.executable,
        "-m",
        "headscope.families.run",
        "steps" if steps else "heads",
        *wanted,
    ]
    quiet = {"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **quiet},
    ) as process:
        assert process.stdout is not None
        patience = BEGINNING
        while True:
            timer = Timer(patience, process.kill)
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                return
            patience = SECONDS
            if line.startswith("{"):
                yield Checked(**json.loads(line))


def _main(steps: str, *wanted: str) -> None:
    import transformers

    from headscope.scope import load

    transformers.utils.logging.set_verbosity_error()
    tokenizer: Any = load(device="cpu").tokenizer
    for family in wanted:
        found = check(family, tokenizer, steps=steps == "steps")
        sys.stdout.write(json.dumps(found.as_dict()) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main(*sys.argv[1:])
