"""A reading in the terminal, as rich tables; plain text where the output is a pipe."""

import io

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from headscope.reading import Focus, PairTable, Reading

COLUMNS = {
    "first token": "first",
    "separator": "sep.",
    "sentence end": "end",
    "comma": "comma",
    "other punctuation": "punct.",
    "word": "word",
    "previous token": "prev.",
    "own token": "own",
    "next token": "next",
    "own sentence": "sentence",
}


def summary(reading: Reading, pairs: PairTable, rows: int = 12) -> Group:
    """What a person wants to see first of a reading."""
    shape, tokens = reading.scope.shape, reading.tokens
    words = len(set(tokens.words[~tokens.special]))
    windows = f", in {len(reading.windows)} windows" if len(reading.windows) > 1 else ""
    head = Text.assemble(
        (f"{shape.name}", "bold"),
        f"  {shape.family} {shape.stack}, {shape.layers} layers × {shape.heads} heads × "
        f"{shape.head_size}\n",
        f"{len(tokens)} tokens{windows}: {words} words in {tokens.sentence_count} sentences, "
        f"{int(tokens.special.sum())} special tokens",
    )
    return Group(
        head,
        Text(),
        Text("Where attention goes, by layer: % of its mass, mean over heads", style="italic"),
        focus_table(reading.focus()),
        Text(),
        Text(pairs.caption[0].upper() + pairs.caption[1:], style="italic"),
        _table(pairs, rows),
    )


def focus_table(focus: Focus) -> Table:
    """Where the attention of each layer goes, in percent, with the chance level below."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("layer", justify="right")
    for target in focus.targets:
        table.add_column(COLUMNS[target], justify="right")
    for layer, masses in enumerate(focus.by_layer(), start=1):
        cells = [
            Text(f"{100 * mass:.1f}", style="bold" if mass > 3 * chance else "")
            for mass, chance in zip(masses, focus.chance, strict=True)
        ]
        table.add_row(str(layer), *cells)
    table.add_section()
    table.add_row("chance", *[f"{100 * chance:.1f}" for chance in focus.chance], style="dim")
    none = [
        target for target, chance in zip(focus.targets, focus.chance, strict=True) if chance == 0
    ]
    more = f" None here: {', '.join(none)}." if none else ""
    table.caption = f"Chance: evenly spread attention. Bold: more than 3 × chance.{more}"
    return table


def _table(pairs: PairTable, rows: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    for name, side in (
        ("similarity", "right"),
        ("word", "right"),
        ("word", "left"),
        ("positions", "left"),
        ("distance", "right"),
        ("same", "left"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for pair in pairs[:rows]:
        same = [
            name
            for name, holds in (("word", pair.same_word), ("sentence", pair.same_sentence))
            if holds
        ]
        table.add_row(
            f"{pair.similarity:.4g}",
            Text(visible(pair.first_word)),
            Text(visible(pair.second_word)),
            f"{pair.first}, {pair.second}",
            str(pair.distance),
            ", ".join(same),
        )
    if len(pairs) > rows:
        table.caption = f"The first {rows} of {len(pairs)}."
    return table


def pairs_as_text(pairs: PairTable, rows: int = 20) -> str:
    """The table of pairs as plain text, for `repr`."""
    console = Console(file=io.StringIO(), width=100, no_color=True, force_terminal=False)
    console.print(pairs.caption, highlight=False)
    console.print(_table(pairs, rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


def visible(word: str, longest: int = 24) -> str:
    """A word on one line: control characters escaped, a very long one cut in the middle."""
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in word)
    if len(shown) > longest:
        shown = f"{shown[: longest // 2]}…{shown[-longest // 2 + 1 :]}"
    return shown
