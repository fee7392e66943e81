"""What a process of ours does all its life: it is told what it is for, and then answers.

It hears on standard input and answers on standard output, as pickles: they come from the process
that started it, and from nowhere else. When that process is no more, so is this one.
"""

import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Said = tuple[Any, Exception | None]


def serve(begin: Callable[[Any], Callable[[Any], Any]]) -> None:
    """Answer until nobody asks any more, by what `begin` makes of the first thing that is said."""
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb", 2**20)
    os.dup2(2, 1)  # what anything else prints must not come between the answers
    heard: SimpleQueue[Any] = SimpleQueue()

    def listen() -> None:
        try:
            while True:
                heard.put(pickle.load(asked))
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(0)

    def say(said: Said) -> None:
        pickle.dump(said, answers, 5)
        answers.flush()

    threading.Thread(target=listen, daemon=True).start()
    try:
        answer = begin(heard.get())
    except Exception as error:
        say((None, sendable(error)))
        return
    say((None, None))
    while True:
        say(answered(answer, heard.get()))


def answered(answer: Callable[[Any], Any], asked: Any) -> Said:
    """The answer, or what went wrong."""
    try:
        return answer(asked), None
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
