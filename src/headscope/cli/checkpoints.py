"""What `study --checkpoints` does and prints: a study for each checkpoint, then the series."""

from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from headscope.study.series import Series
from headscope.terminal import say


def study_checkpoints(
    source: str,
    corpus: str,
    out: Path,
    device: str,
    dtype: str | None,
    quiet: bool,
    options: dict[str, Any],
) -> Series:
    """Study every checkpoint, and say which is read."""
    from headscope.checkpoint_series import Checkpoint, checkpoints

    found = checkpoints(source, device=device, dtype=dtype)
    names = [one.name for one in found]

    def begin(one: Checkpoint) -> None:
        if not quiet:
            say(f"checkpoint {names.index(one.name) + 1} of {len(names)}: {one.name}")

    try:
        return found.study(corpus, out, begin=begin, **options)
    except KeyboardInterrupt:
        say(f"Stopped; the same command goes on in {out}: what was saved is not read again.")
        raise typer.Exit(130) from None


def checkpoints_summary(series: Series) -> Group:
    """When each kind of head and each claim is first there, for the terminal."""
    from headscope.over_training import kind_of

    names = list(series.studies)
    counts: dict[str, dict[str, int]] = {}
    for row in series.labels.arrow.to_pylist():
        of_kind = counts.setdefault(kind_of(row["label"]), dict.fromkeys(names, 0))
        of_kind[row["checkpoint"]] += 1
    title = f"{len(names)} checkpoints, {names[0]} to {names[-1]}"
    heads = _table(escape(title), ("heads", "first seen", "most", f"at {names[-1]}"))
    for kind, of_kind in sorted(counts.items(), key=lambda one: names.index(_first(one[1]))):
        most = max(of_kind, key=lambda name: of_kind[name])
        cells = (kind, _first(of_kind), f"{of_kind[most]} at {most}", str(of_kind[names[-1]]))
        heads.add_row(*map(escape, cells))
    claims = _table("", ("claim", "first holds", f"at {names[-1]}"))
    told = series.findings.arrow.to_pylist()
    for says in dict.fromkeys(row["says"] for row in told):
        own = [row for row in told if row["says"] == says]
        holds = [row["checkpoint"] for row in own if row["verdict"] == "holds"]
        claims.add_row(*map(escape, (says, holds[0] if holds else "–", own[-1]["verdict"])))
    claims.caption = f"All tables are in {escape(str(series.path))}"
    return Group(heads, claims)


def _first(of_kind: dict[str, int]) -> str:
    return next(name for name, number in of_kind.items() if number)


def _table(title: str, names: tuple[str, ...]) -> Table:
    made = Table(title=title, title_justify="left", caption_justify="left", box=SIMPLE_HEAD)
    for name in names:
        made.add_column(escape(name))
    return made
