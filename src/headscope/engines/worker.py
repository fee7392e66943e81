"""What a worker does, whoever started it; run by `processes` as a program of its own.

It gets its job and then runs to read on standard input, and answers on standard output, as pickles:
they come from the process that started it, and from nowhere else. When that process is no more, so
is the worker.
"""

import io
import os
import pickle
import sys
import threading
import traceback
from queue import SimpleQueue
from typing import Any

import torch

from headscope.errors import CannotStudy
from headscope.study.reader import Answer, Job, Reader, Run


def packed_job(job: Job) -> bytes:
    """A job with its model, to be sent to workers."""
    data = io.BytesIO()
    try:
        torch.save(job, data)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise CannotStudy(
            f"This model cannot be sent to workers ({str(error)[:200]}). Study it with the engine "
            "'local', or load it from a folder."
        ) from error
    return data.getvalue()


def reader_of(data: bytes, device: str) -> Reader:
    """A reader for a job that was packed, with the model on a device."""
    job: Job = torch.load(io.BytesIO(data), map_location=device, weights_only=False)
    torch.set_num_threads(job.threads)
    return Reader(job)


def answered(reader: Reader, run: Run) -> tuple[Answer | None, Exception | None]:
    """What a run has shown, or what went wrong."""
    try:
        return reader.answer(run), None
    except Exception as error:
        return None, sendable(error)


def sendable(error: Exception) -> Exception:
    """The error itself with where it was raised, or one that can be sent in its place."""
    error.add_note("In a worker: " + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def main() -> None:
    """Answer until nobody asks any more."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything else prints must not come between the answers
    runs: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                runs.put(pickle.load(asked))
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    data, device = runs.get()
    try:
        reader = reader_of(data, device)
        said: tuple[Answer | None, Exception | None] = (None, None)
    except Exception as error:
        said = (None, sendable(error))
    while True:
        pickle.dump(said, answers, 5)
        answers.flush()
        said = answered(reader, runs.get())
