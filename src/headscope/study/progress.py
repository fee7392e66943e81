"""How a running study shows where it is: a bar for people, JSON for programs, or nothing."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from headscope.corpus import PACKED, Corpus, Skipped
from headscope.study.units import Unit


class Progress(Protocol):
    """What a study tells about itself while it runs."""

    def start(self, corpus: Corpus, documents: int, tokens: int) -> None:
        """Say what is studied, and how much of it was done before."""
        ...

    def advance(self, units: Sequence[Unit]) -> None:
        """Say that some units are done."""
        ...

    def skipped(self, what: Skipped) -> None:
        """Say that something could not be read."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *error: object) -> None: ...


class Quiet:
    """Says nothing."""

    def start(self, corpus: Corpus, documents: int, tokens: int) -> None:
        """Do nothing."""

    def advance(self, units: Sequence[Unit]) -> None:
        """Do nothing."""

    def skipped(self, what: Skipped) -> None:
        """Do nothing."""

    def __enter__(self) -> "Quiet":
        return self

    def __exit__(self, *error: object) -> None:
        pass


class JsonLines(Quiet):
    """A line of JSON on standard error every second, and one for each failure."""

    every = 1.0

    def start(self, corpus: Corpus, documents: int, tokens: int) -> None:
        """Remember where the run begins."""
        self.share = Share(corpus, documents)
        self.tokens, self.first, self.begun = tokens, tokens, time.monotonic()
        self.said = self.begun

    def advance(self, units: Sequence[Unit]) -> None:
        """Count, and speak when it is time."""
        self.tokens += sum(len(unit) for unit in units)
        self.share.add(units)
        if time.monotonic() - self.said >= self.every:
            self._say()

    def skipped(self, what: Skipped) -> None:
        """Speak of a failure."""
        said = {"skipped": what.source, "line": what.line, "reason": what.reason}
        print(json.dumps(said, ensure_ascii=False), file=sys.stderr, flush=True)

    def __exit__(self, *error: object) -> None:
        self._say()

    def _say(self) -> None:
        self.said = time.monotonic()
        seconds = self.said - self.begun
        left = self.share.seconds_left(seconds)
        said = {
            "documents": self.share.documents,
            "tokens": self.tokens,
            "tokens_per_second": round((self.tokens - self.first) / max(seconds, 1e-9), 1),
            "seconds": round(seconds, 1),
            "seconds_left": None if left is None else round(left, 1),
        }
        print(json.dumps(said), file=sys.stderr, flush=True)


class Bar(JsonLines):
    """A bar on standard error: documents, tokens a second, time left."""

    every = 0.2

    def start(self, corpus: Corpus, documents: int, tokens: int) -> None:
        """Draw the bar."""
        super().start(corpus, documents, tokens)
        from rich import progress as bars
        from rich.console import Console

        self.console = Console(stderr=True)
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

    def __enter__(self) -> "Bar":
        self.bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._say()
        self.bar.stop()

    def _say(self) -> None:
        self.said = time.monotonic()
        seconds = max(self.said - self.begun, 1e-9)
        speed = (self.tokens - self.first) / seconds
        left = self.share.seconds_left(seconds)
        said = f"{self.share.documents:,} documents, {speed:,.0f} tokens/s"
        if left is not None:
            said += f", {int(left) // 60}:{int(left) % 60:02d} left"
        self.bar.update(self.task, completed=self.share.done, said=said)


class Share:
    """How much of a corpus is done, by bytes of plain files or by documents of a sized source."""

    def __init__(self, corpus: Corpus, documents: int):
        self.documents = documents
        self.done = 0.0
        self.by_document = hasattr(corpus.source, "__len__") and not isinstance(corpus.source, str)
        self.total = self._total(corpus)

    def add(self, units: Sequence[Unit]) -> None:
        """Count some units."""
        for unit in units:
            first = unit.window == 0
            self.documents += first
            self.done += first if self.by_document else len(unit.text)

    def seconds_left(self, seconds: float) -> float | None:
        """How long it will take at this speed; None where nobody knows."""
        if self.total is None or not self.done:
            return None
        return max(self.total - self.done, 0.0) / self.done * seconds

    def _total(self, corpus: Corpus) -> float | None:
        source: Any = corpus.source
        if self.by_document:
            return float(len(source)) - self.documents
        if not isinstance(source, str | Path) or not Path(source).exists():
            return None
        path = Path(source)
        files = [path] if path.is_file() else list(path.rglob(corpus.pattern or "*"))
        if any(file.suffix in PACKED or file.suffix == ".parquet" for file in files):
            return None
        return float(sum(file.stat().st_size for file in files if file.is_file()))
