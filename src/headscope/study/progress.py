"""How a running study shows where it is: a bar, lines of words or of JSON, or nothing."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from headscope.corpus import PACKED, Skipped
from headscope.terminal import say, say_json


class Source(Protocol):
    """What a study reads."""

    @property
    def name(self) -> str:
        """What a person calls it."""

    @property
    def source(self) -> Any:
        """A path, or a list of documents."""

    @property
    def files(self) -> str | None:
        """Which files of a folder."""

    @property
    def documents(self) -> int | None:
        """How many there are, where that is known."""


class Done(Protocol):
    """What was read at once: a window of a text, or a whole picture or sound."""

    @property
    def window(self) -> int:
        """Its number in the part of the document."""

    @property
    def part(self) -> int:
        """Of a document too long to be read at once."""

    @property
    def text(self) -> str:
        """What it says."""

    def __len__(self) -> int: ...


class Progress(Protocol):
    """What a study tells about itself while it runs."""

    def start(self, corpus: Source, documents: int, tokens: int) -> None:
        """Say what is studied, and how much of it was done before."""
        ...

    def advance(self, units: Sequence[Done]) -> None:
        """Say that some units are done."""
        ...

    def skipped(self, what: Skipped) -> None:
        """Say that something could not be read."""
        ...

    def stopping(self) -> None:
        """Say that Ctrl-C was heard."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...


class Quiet:
    """Says nothing."""

    def start(self, corpus: Source, documents: int, tokens: int) -> None:
        """Do nothing."""

    def advance(self, units: Sequence[Done]) -> None:
        """Do nothing."""

    def skipped(self, what: Skipped) -> None:
        """Do nothing."""

    def stopping(self) -> None:
        """Do nothing."""

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: object) -> None:
        pass


class JsonLines(Quiet):
    """A line of JSON on standard error every second, and one for each failure."""

    every = 1.0

    def start(self, corpus: Source, documents: int, tokens: int) -> None:
        """Remember where the run begins."""
        self.share = Share(corpus, documents)
        self.tokens, self.first, self.begun = tokens, tokens, time.monotonic()
        self.said = self.begun

    def advance(self, units: Sequence[Done]) -> None:
        """Count, and speak when it is time."""
        self.tokens += sum(len(unit) for unit in units)
        self.share.add(units)
        if time.monotonic() - self.said >= self.every:
            self._say()

    def skipped(self, what: Skipped) -> None:
        """Speak of a failure."""
        said = {"skipped": what.source, "line": what.line, "reason": what.reason}
        say_json(said)

    def stopping(self) -> None:
        """Speak of Ctrl-C."""
        say_json({"stopping": True})

    def __exit__(self, *error: object) -> None:
        self._say()

    def _say(self) -> None:
        self.said = time.monotonic()
        seconds = self.said - self.begun
        left = self.share.seconds_left(seconds)
        said = {
            "documents": self.share.documents,
            "tokens": self.tokens,
            "done": None if self.share.total is None else min(self.share.part, 1.0),
            "tokens_per_second": round((self.tokens - self.first) / max(seconds, 1e-9), 1),
            "seconds": round(seconds, 1),
            "seconds_left": None if left is None else round(left, 1),
        }
        say_json(said)

    def _speed(self) -> str:
        """How far it is, how fast, and how long it will take, in words."""
        seconds = max(self.said - self.begun, 1e-9)
        speed = (self.tokens - self.first) / seconds
        said = f"{self.share.documents:,} documents, {speed:,.0f} tokens/s"
        left = self.share.seconds_left(seconds)
        return said if left is None else f"{said}, {int(left) // 60}:{int(left) % 60:02d} left"


STOPPING = "Stopping after this batch, and saving. Ctrl-C again stops at once."


class Lines(JsonLines):
    """The same in words, a line every ten seconds: for a log."""

    every = 10.0

    def skipped(self, what: Skipped) -> None:
        """Say what failed."""
        say(f"skipped {what}")

    def stopping(self) -> None:
        """Say what happens now."""
        say(STOPPING)

    def _say(self) -> None:
        self.said = time.monotonic()
        done = "" if self.share.total is None else f"{min(self.share.part, 1.0):.0%}, "
        say(f"{done}{self._speed()}")


class Bar(JsonLines):
    """A bar on standard error: documents, tokens a second, time left."""

    every = 0.2

    def start(self, corpus: Source, documents: int, tokens: int) -> None:
        """Draw the bar."""
        super().start(corpus, documents, tokens)
        from rich import progress as bars

        from headscope.terminal import Terminal

        self.console = Terminal(stderr=True)
        self.bar = bars.Progress(
            bars.TextColumn("{task.description}"),
            bars.BarColumn(),
            bars.TextColumn("{task.fields[said]}"),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task(corpus.name, total=self.share.total, said="")

    def skipped(self, what: Skipped) -> None:
        """Print a failure above the bar."""
        self.console.print(f"skipped {what}", style="yellow", markup=False, soft_wrap=True)

    def stopping(self) -> None:
        """Print above the bar what happens now."""
        self.console.print(STOPPING, style="yellow")

    def __enter__(self) -> "Bar":
        self.bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._say()
        self.bar.stop()

    def _say(self) -> None:
        self.said = time.monotonic()
        self.bar.update(self.task, completed=self.share.done, said=self._speed())


class Share:
    """How much of a corpus is done, by bytes of plain files or by documents of a sized source."""

    def __init__(self, corpus: Source, documents: int):
        self.documents = documents
        self.done = 0.0
        self.by_document = corpus.documents is not None
        self.total = self._total(corpus)

    def add(self, units: Sequence[Done]) -> None:
        """Count some units."""
        for unit in units:
            first = unit.window == unit.part == 0
            self.documents += first
            self.done += first if self.by_document else len(unit.text)

    @property
    def part(self) -> float:
        """How much of the rest of the corpus this run has done, from 0 to 1."""
        return round(self.done / self.total, 4) if self.total else 0.0

    def seconds_left(self, seconds: float) -> float | None:
        """How long it will take at this speed; None where nobody knows."""
        if self.total is None or not self.done:
            return None
        return max(self.total - self.done, 0.0) / self.done * seconds

    def _total(self, corpus: Source) -> float | None:
        source: Any = corpus.source
        if corpus.documents is not None:
            return float(corpus.documents) - self.documents
        if not isinstance(source, str | Path):
            return None
        try:
            path = Path(source)
            files = [path] if path.is_file() else list(path.rglob(corpus.files or "*"))
            if any(file.suffix in PACKED or file.suffix == ".parquet" for file in files):
                return None
            return float(sum(file.stat().st_size for file in files if file.is_file())) or None
        except (OSError, ValueError, NotImplementedError):  # the corpus itself says what is wrong
            return None
