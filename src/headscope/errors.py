"""The errors headscope raises on purpose: each says what is wrong, where, and what to do."""


class HeadscopeError(Exception):
    """Anything headscope can explain; the command line prints it without a traceback."""


class CannotLoad(HeadscopeError):  # noqa: N818 - reads as a sentence
    """A model or its tokenizer cannot be loaded."""


class CannotObserve(HeadscopeError):  # noqa: N818
    """The heads of this model, or this part of them, cannot be seen."""


class CannotRead(HeadscopeError):  # noqa: N818
    """A text cannot be read."""
