"""Readings and pairs as blocks of HTML, for the last line of a notebook's cell.

The page that `Reading.save` writes is the viewer's.
"""

from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from headscope.markup import Element, h, style, written

if TYPE_CHECKING:
    from headscope.pair_table import End, PairTable
    from headscope.reading import Focus, Reading

PAIR_COLUMNS = (
    "similarity",
    "word",
    "word",
    "position",
    "position",
    "distance",
    "same sentence",
    "same word",
)


def reading_as_html(reading: "Reading") -> str:
    """What a notebook shows for a reading."""
    css = files("headscope").joinpath("report/page.css").read_text(encoding="utf-8")
    return written(
        h("div", {"class": "headscope"}, style(css), _facts(reading), _focus(reading.focus()))
    )


def pairs_as_html(pairs: "PairTable", rows: int = 20) -> str:
    """The table of a head's high pairs."""
    body = [
        h(
            "tr",
            None,
            h("td", None, f"{pair.similarity:.4g}"),
            [_end(end) for end in pair.ends],
            [h("td", None, number) for number in (pair.first, pair.second, pair.distance)],
            h("td", None, "yes" if pair.same_sentence else ""),
            h("td", None, "yes" if pair.same_word else ""),
        )
        for pair in pairs[:rows]
    ]
    more = f" The first {rows} are shown." if len(pairs) > rows else ""
    caption = f"{pairs.caption[0].upper()}{pairs.caption[1:]}.{more}"
    return written(
        h(
            "table",
            None,
            h("caption", None, caption),
            h("thead", None, h("tr", None, _columns(PAIR_COLUMNS))),
            h("tbody", None, body),
        )
    )


def _end(end: "End") -> Element:
    """A token of a pair, its piece inside its word."""
    before, piece, after = end.parts
    marked: Element | str = h("b", None, piece) if before or after else piece
    unknown = h("small", None, " unknown") if end.unknown else None
    return h("td", {"class": "word"}, before, marked, after, unknown)


def focus_as_html(focus: "Focus") -> str:
    """Where the attention of each layer goes, as a notebook shows it."""
    css = files("headscope").joinpath("report/page.css").read_text(encoding="utf-8")
    return written(h("div", {"class": "headscope"}, style(css), _focus(focus)))


def _columns(names: Iterable[str]) -> list[Element]:
    return [h("th", {"scope": "col"}, name) for name in names]


def _facts(reading: "Reading") -> Element:
    shape, tokens = reading.scope.shape, reading.tokens
    windows = f" in {len(reading.windows)} windows" if len(reading.windows) > 1 else ""
    note = reading.unknown_note
    return h(
        "p",
        {"class": "facts"},
        h("b", None, shape.name),
        f": {shape.family} {shape.stack}, {shape.layers_in_words} × {shape.heads} heads × "
        f"{shape.head_size}. {len(tokens)} tokens{windows}: {tokens.in_words}.",
        h("strong", None, f" {note}") if note else None,
    )


def _focus(focus: "Focus") -> Element:
    rows = [
        h(
            "tr",
            None,
            h("th", {"scope": "row"}, layer),
            [
                h("td", {"style": f"--lift:{_strength(mass, chance):.2f}"}, f"{100 * mass:.1f}")
                for mass, chance in zip(masses, focus.chance, strict=True)
            ],
        )
        for layer, masses in zip(focus.numbers, focus.by_layer(), strict=True)
    ]
    chance = [h("td", None, f"{100 * value:.1f}") for value in focus.chance]
    return h(
        "table",
        {"class": "focus"},
        h("thead", None, h("tr", None, _columns(["layer", *focus.targets]))),
        h("tbody", None, rows),
        h("tfoot", None, h("tr", None, h("th", {"scope": "row"}, "chance"), chance)),
    )


def _strength(mass: float, chance: float) -> float:
    """0 at chance or below, 1 from thirty times chance on, even steps in the logarithm."""
    if mass <= chance or chance == 0:
        return 0.0
    return float(min(np.log(mass / chance) / np.log(30), 1))
