"""What verbs have added to a study, as whoever shows it needs it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headscope.effects.registry import VERBS
from headscope.effects.verb import Verb

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]


def added_rows(study: "Study", level: str = "head") -> Iterator[tuple[Verb, Row]]:
    """Every number of every head (or layer, or the model) that a verb added, and which verb."""
    for name, verb in VERBS.items():
        there = study.manifest.added.get(name)
        for table in verb.tables if there else ():
            if there and table in there.tables:
                for row in study.table(table).to_pylist():
                    if row["level"] == level:
                        yield verb, row


def told_of_heads(study: "Study") -> dict[tuple[int, int], list[Row]]:
    """By (layer, head), the numbers that a head's card says first."""
    found = defaultdict(list)
    for verb, row in added_rows(study):
        if row["quantity"] in verb.told and row["value"] is not None:
            found[row["layer"], row["head"]].append(row)
    return found
