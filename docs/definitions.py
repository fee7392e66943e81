"""Write what every measure is into docs/method.md: `python docs/definitions.py`."""

import sys
from collections.abc import Iterable
from pathlib import Path

from headscope.effects.registry import VERBS
from headscope.effects.verb import Verb
from headscope.measures.base import AnyMeasure, Definition
from headscope.measures.registry import MEASURES
from headscope.study.placed.measures import FOCUS, KEPT, RANGE, PlacedMeasure

PAGE = Path(__file__).with_name("method.md")
BEGIN, END = "<!-- from docs/definitions.py: begin -->\n", "<!-- end -->\n"


def written(page: str) -> str:
    """The page with its section as the registry has it."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    measures = "".join(section(one) for one in MEASURES.values())
    placed = "".join(of_places(one) for one in (FOCUS, RANGE))
    verbs = "".join(added(one) for one in VERBS.values())
    return f"{before}{BEGIN}\n{measures}{placed}{verbs}{END}{after}"


def section(measure: AnyMeasure) -> str:
    """What one measure is made from, and its quantities."""
    ways = {"reading": "reading", "special": "setting of special tokens", "rule": "rule"}
    keys = [ways[key] for key in measure.keys]
    each = f"; for each {', '.join(keys[:-1])} and {keys[-1]}" if keys else ""
    about = f"{sentence(measure.about)} From {' and '.join(measure.inputs)}{each}."
    return f"### {measure.name}\n\n{about}\n\n{table(measure.definitions)}"


def of_places(measure: PlacedMeasure) -> str:
    """What a measure is in a study of pictures or sounds, where it is not what it is of texts."""
    own = [one for one in measure.definitions if one.name not in KEPT]
    title = f"### {measure.name}, of pictures and sounds"
    return f"{title}\n\n{sentence(measure.about)}\n\n{table(own)}"


def added(verb: Verb) -> str:
    """What one verb adds to a study."""
    about = f"{sentence(verb.about)} Added to a study by `headscope {verb.name}`."
    tables = [f"Table `{name}`:\n\n{table(rows)}" for name, rows in verb.tables.items()]
    return f"### {verb.name}\n\n{about}\n\n{''.join(tables)}"


def sentence(words: str) -> str:
    """Words as a sentence."""
    return f"{words[0].upper()}{words[1:]}."


def table(definitions: Iterable[Definition]) -> str:
    """Quantities, a row each."""
    head = "| quantity | definition | unit | more means | chance | |\n|---|---|---|---|---|---|\n"
    return f"{head}{''.join(map(row, definitions))}\n"


def row(of: Definition) -> str:
    """One quantity."""
    cells = (of.name, of.says, of.unit or "–", of.more, of.chance or "–", f"[{of.source}]")
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(written(page), encoding="utf-8")
    sys.exit(page != written(page))
