"""The errors headscope raises on purpose: each says what is wrong, where, and what to do.

All of them are here. The command line prints these in a sentence; any other error is a defect.
"""


class HeadscopeError(Exception):
    """Anything headscope can explain; the command line prints it without a traceback.

    What to do may differ: `python` says it to who calls a function, `command` to who types a
    command.
    """

    def __init__(self, said: str, *, python: str = "", command: str = ""):
        super().__init__(f"{said} {python}".strip())
        self.for_command_line = f"{said} {command}".strip()


class CannotLoad(HeadscopeError):  # noqa: N818 - reads as a sentence
    """A model or its tokenizer cannot be loaded."""


class CannotObserve(HeadscopeError):  # noqa: N818
    """The heads of this model, or this part of them, cannot be seen."""


class CannotRead(HeadscopeError):  # noqa: N818
    """A text, or a file of ours, cannot be read."""


class NoCorpus(HeadscopeError):  # noqa: N818
    """The corpus cannot be opened, or nothing in it can be read."""


class CannotStudy(HeadscopeError):  # noqa: N818
    """A study cannot be made, resumed or opened."""


class OtherStudy(CannotStudy):
    """The folder holds another study than the one asked for, or the rest of a damaged one."""


class CannotDraw(HeadscopeError):  # noqa: N818
    """A figure cannot be drawn or saved."""


class CannotShow(HeadscopeError):  # noqa: N818
    """A page cannot be made, or a browser could not hold it."""


class NotPossible(HeadscopeError, ValueError):  # noqa: N818
    """An argument has a value it cannot have; the message says which it can."""


class NoSuchHead(HeadscopeError, IndexError):  # noqa: N818
    """The model has no such layer or head."""


class NotFiniteError(HeadscopeError, ValueError):
    """Head vectors hold NaN or infinity, so no statistic of them means anything."""


class CannotWrite(HeadscopeError):  # noqa: N818
    """A page, a figure or a file cannot be written where it should go."""


class Refused(HeadscopeError):  # noqa: N818
    """A request that the local server does not answer, with its HTTP status."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class WorkerLost(HeadscopeError):  # noqa: N818
    """A worker of an engine is gone, and with it the run that it was reading."""


class NotPrepared(HeadscopeError):  # noqa: N818
    """A reader could not make anything of what it was told first."""
