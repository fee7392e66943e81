"""A reading in the terminal, as rich tables; plain text where the output is a pipe."""

import io

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from headscope.pair_table import End, PairTable
from headscope.reading import MUCH_UNKNOWN, Focus, Reading
from headscope.terminal import Terminal
from headscope.visible import shortened
from headscope.writing import Written

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


def summary(
    reading: Reading, pairs: PairTable, rows: int = 12, words: Written | None = None
) -> Group:
    """What a person wants to see first of a reading."""
    shape, tokens = reading.scope.shape, reading.tokens
    windows = f", in {len(reading.windows)} windows" if len(reading.windows) > 1 else ""
    head = Text.assemble(
        (f"{shape.name}", "bold"),
        f"  {shape.family} {shape.stack}, {shape.layers_in_words} × {shape.heads} heads × "
        f"{shape.head_size}\n",
        f"{len(tokens)} tokens{windows}: {tokens.in_words}, "
        f"{int(tokens.special.sum())} special tokens",
    )
    note = reading.unknown_note
    much = tokens.unknown_share > MUCH_UNKNOWN
    return Group(
        head,
        *([Text(note, style="bold yellow" if much else "")] if note else []),
        Text(),
        Text("Where attention goes, by layer: % of its mass, mean over heads", style="italic"),
        focus_table(reading.focus()),
        Text(),
        Text(pairs.caption[0].upper() + pairs.caption[1:], style="italic"),
        _table(pairs, rows),
        *([] if words is None else _words(words)),
    )


def _words(words: Written) -> list[Text]:
    """What a head writes, in two lines."""
    lines = [
        Text.assemble(
            (f"{side:<7} ", "bold"),
            ", ".join(f"{shortened(word)} {much:+.1f}" for word, much in listed),
        )
        for side, listed in (("raises", words.raised), ("lowers", words.lowered))
    ]
    where = f"Layer {words.layer}, head {words.head}"
    said = f"{where}: what it writes, in standard deviations over the vocabulary"
    return [Text(), Text(said, style="italic"), *lines]


def focus_table(focus: Focus) -> Table:
    """Where the attention of each layer goes, in percent, with the chance level below."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption_justify="left")
    table.add_column("layer", justify="right")
    for target in focus.targets:
        table.add_column(COLUMNS.get(target, target), justify="right")
    for layer, masses in zip(focus.numbers, focus.by_layer(), strict=True):
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
            *map(_end, pair.ends),
            f"{pair.first}, {pair.second}",
            str(pair.distance),
            ", ".join(same),
        )
    if len(pairs) > rows:
        table.caption = f"The first {rows} of {len(pairs)}."
    return table


def _end(end: End) -> Text:
    """A token of a pair, its piece inside its word: gam‹mar›us."""
    before, piece, after = (shortened(part, 16) for part in end.parts)
    inside = (before + "‹", piece, "›" + after) if before or after else ("", piece, "")
    return Text.assemble(
        (inside[0], "dim"), inside[1], (inside[2], "dim"), " (unknown)" if end.unknown else ""
    )


def focus_as_text(focus: Focus) -> str:
    """Where attention goes as plain text, for `repr`."""
    console = Terminal(file=io.StringIO(), width=120, no_color=True, force_terminal=False)
    console.print("Where attention goes, by layer: % of its mass, mean over heads", highlight=False)
    console.print(focus_table(focus))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


def pairs_as_text(pairs: PairTable, rows: int = 20) -> str:
    """The table of pairs as plain text, for `repr`."""
    console = Terminal(file=io.StringIO(), width=100, no_color=True, force_terminal=False)
    console.print(pairs.caption, highlight=False)
    console.print(_table(pairs, rows))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()
