"""What a person is told when a command fails: a sentence, never a traceback unless it is asked for.

Errors of ours say what is wrong and what to do, errors of the operating system name the file.
Anything else is a defect, and is said to be one.
"""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import typer

from headscope.errors import HeadscopeError
from headscope.terminal import say

# What is wrong with how a command was typed: the base of the library's own errors about that.
Mistyped: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
FAILED, STOPPED = 2, 130
WHAT_TO_DO = {
    errno.ENOENT: "Check the spelling; a folder that is to be written to must be there.",
    errno.EACCES: "Name a place that you may use, or ask for the right to it.",
    errno.EPERM: "Name a place that you may use, or ask for the right to it.",
    errno.EROFS: "Name a place that can be written to.",
    errno.ENOSPC: "Make room, or name a place on another disk, and run the same command again.",
    errno.EDQUOT: "Make room, or name a place on another disk, and run the same command again.",
    errno.EISDIR: "Name a file in it.",
    errno.ENOTDIR: "Part of this path is a file, not a folder.",
    errno.ENAMETOOLONG: "Give it a shorter name.",
    errno.ENOMEM: "Close other programs, or read less at once.",
}


def run(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run a command; the status it ends with."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character the terminal lacks is no reason to stop
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _warn
        try:
            ended = app(list(arguments), standalone_mode=False)
            sys.stdout.flush()
        except KeyboardInterrupt:
            say("Stopped.")
            return STOPPED
        except Exception as error:
            if "--debug" in arguments:
                traceback.print_exc()
            return _told(error)
    return ended if isinstance(ended, int) else 0


def _told(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):  # the reader of the pipe has seen enough
        _forget_output()
        return 0
    if isinstance(error, Mistyped):
        context = getattr(error, "ctx", None)
        more = f"\nSee: {context.command_path} --help" if context else ""
        _say_error(f"{error.format_message()}{more}")  # type: ignore[attr-defined]
    elif isinstance(error, typer.Abort) or _interrupted(error):
        say("Stopped.")
        return STOPPED
    elif isinstance(error, HeadscopeError):
        _say_error(error.for_command_line)
    elif isinstance(error, OSError):
        _say_error(_of_the_system(error))
        _forget_output()
    elif isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        _say_error(
            "There is not enough memory for this. Read a shorter text or a smaller model; "
            "with a GPU, --device cpu has more."
        )
    else:
        _say_error(
            f"This should not have happened, and is a fault of headscope, not yours "
            f"({type(error).__name__}: {_first_line(error)}). "
            f"Please report it, with what this shows: headscope --debug …"
        )
    return FAILED


def _interrupted(error: BaseException | None) -> bool:
    """Whether an error was made of Ctrl-C: Python does so where it comes while a class is made."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _of_the_system(error: OSError) -> str:
    """An error of the operating system with its file and what to do."""
    names = [os.fsdecode(n) for n in (error.filename, error.filename2) if n not in (None, "")]
    where = " and ".join(f"'{name}'" for name in names)
    what = (error.strerror or _first_line(error)).rstrip(".")
    to_do = WHAT_TO_DO.get(error.errno or 0, "")
    return f"{where + ': ' if where else ''}{what}. {to_do}".strip()


def _say_error(message: str) -> None:
    say(message, "bold red", "error: ")


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    say(str(message), "bold yellow", "note: ")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no more is known"])[0][:300]


def _forget_output() -> None:
    """Let nothing be written any more, where what was written to has gone or is full."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
