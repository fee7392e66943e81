"""`headscope models --check`: what works with every type of model, tried in tiny ones."""

from difflib import get_close_matches

from headscope.errors import NotPossible
from headscope.families.run import check_all, families
from headscope.families.table import COLUMNS, counts, rows
from headscope.progress import progress_bar
from headscope.terminal import write, write_csv, write_json


def check_types(types: list[str] | None, *, as_json: bool, as_csv: bool) -> None:
    """Check some types, or all that transformers knows, and print a row for each."""
    known = families()
    for one in types or ():
        if one not in known:
            near = ", ".join(get_close_matches(one, known, 3)) or "see transformers' own list"
            raise NotPossible(f"transformers knows no model type '{one}'. Near it: {near}.")
    wanted, found = types or known, []
    with progress_bar("checking", len(wanted), True) as advance:
        for checked in check_all(wanted):
            found.append(checked)
            if advance is not None:
                advance(1)
    if as_json:
        write_json([one.as_dict() for one in found], indent=2)
        return
    if as_csv:
        write_csv([dict(zip(COLUMNS, row, strict=True)) for row in rows(found)], COLUMNS)
        return
    write("\t".join(COLUMNS))
    for row in rows(found):
        write("\t".join(row))
    if not types:
        write("")
        for name, number in counts(found).items():
            write(f"{number} {name}")
