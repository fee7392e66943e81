"""What works with every model type, as a table for people: in the terminal and in the docs."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import transformers

from headscope.families.check import STEPS, Checked

COLUMNS = ("type", "class", "run with", "heads seen by", "calls", "steps with a text", "why not")
LONGEST = 160  # characters of a reason


def rows(found: Iterable[Checked]) -> list[tuple[str, ...]]:
    """A row for each type, in the order of their names."""
    return [
        (
            one.family,
            one.model or "–",
            one.takes or "–",
            one.observed,
            ", ".join(f"{stack} {number}" for stack, number in one.calls.items()) or "–",
            steps(one),
            why(one),
        )
        for one in sorted(found, key=lambda one: one.family)
    ]


def steps(one: Checked) -> str:
    """Which steps of the product work with a text."""
    if not one.steps:
        return "–"
    works = [name for name in STEPS if not one.steps.get(name, "?")]
    return "all" if len(works) == len(STEPS) else ", ".join(works) or "none"


def why(one: Checked) -> str:
    """What stands in the way, in short; "" where nothing does."""
    said = [f"{path}: {reason}" for path, reason in one.unseen.items()][:1]
    said += [one.note] if one.note else []
    said += list(dict.fromkeys(reason for reason in one.steps.values() if reason))[:1]
    if one.identical is False:
        said.insert(0, "its output changed")
    short = re.sub(r"/\S*/site-packages/", "", "; ".join(said).replace("\n", " "))
    return short if len(short) <= LONGEST else f"{short[:LONGEST]}…"


def counts(found: Sequence[Checked]) -> dict[str, int]:
    """How many types there are of each kind."""
    seen = Counter(one.observed.split(",")[0] for one in found)
    return {
        "model types": len(found),
        "built tiny and run": sum(bool(one.takes) for one in found),
        "with bit-identical outputs under observation": sum(one.identical is True for one in found),
        "with other outputs": sum(one.identical is False for one in found),
        "seen by the interface": seen["interface"],
        "seen by their structure": seen["structure"],
        "seen by both": seen["both"],
        "seen in part, the rest named": seen["partly"],
        "without attention heads, or refused": seen["refused"] + seen["no heads"],
        "that could not be built or run here": seen["not built"] + seen["not run"],
        "that every step of the product works with, from a text": sum(one.passes for one in found),
    }


def as_markdown(found: Sequence[Checked]) -> str:
    """The page of all model types."""
    lines = [
        "# Model types",
        "",
        f"Every model type of transformers {transformers.__version__}, built tiny with random "
        "weights and run with and without observation; written by `python docs/models.py`, and "
        "printed by `headscope models --check`.",
        "",
        *(f"- {number} {name}" for name, number in counts(found).items()),
        "",
        f"Steps: {', '.join(STEPS)} (`page` is the saved viewer). *Not built* and *not run* say "
        "that no tiny model of a type could be made here, or that its inputs are not known: "
        "nothing is said of its heads.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows(found)),
    ]
    return "\n".join(lines) + "\n"


def from_markdown(page: str) -> dict[str, tuple[str, ...]]:
    """The rows of such a page, by type."""
    cells = [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| ")]
    return {row[0]: tuple(row[1:]) for row in cells if row[0] != COLUMNS[0]}
