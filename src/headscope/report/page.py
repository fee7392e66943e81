"""Readings and pairs as blocks of HTML, for the last line of a notebook's cell.

Whatever comes from a text is escaped. The page that `Reading.save` writes is the viewer's.
"""

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headscope.reading import Focus, PairTable, Reading

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
    style = files("headscope").joinpath("report/page.css").read_text(encoding="utf-8")
    return (
        f"<div class='headscope'><style>{style}</style>{_facts(reading)}"
        f"{_focus_table(reading.focus())}</div>"
    )


def pairs_as_html(pairs: "PairTable", rows: int = 20) -> str:
    """The table of a head's high pairs."""
    body = "".join(
        f"<tr><td>{pair.similarity:.4g}</td><td class='word'>{escape(pair.first_word)}</td>"
        f"<td class='word'>{escape(pair.second_word)}</td><td>{pair.first}</td>"
        f"<td>{pair.second}</td><td>{pair.distance}</td>"
        f"<td>{'yes' if pair.same_sentence else ''}</td>"
        f"<td>{'yes' if pair.same_word else ''}</td></tr>"
        for pair in pairs[:rows]
    )
    head = "".join(f"<th scope='col'>{name}</th>" for name in PAIR_COLUMNS)
    more = f" The first {rows} are shown." if len(pairs) > rows else ""
    caption = escape(pairs.caption[0].upper() + pairs.caption[1:])
    return (
        f"<table><caption>{caption}.{more}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _facts(reading: "Reading") -> str:
    shape, tokens = reading.scope.shape, reading.tokens
    words = len(np.unique(tokens.words[~tokens.special]))
    windows = f" in {len(reading.windows)} windows" if len(reading.windows) > 1 else ""
    return (
        f"<p class='facts'><b>{escape(shape.name)}</b>: {escape(shape.family)} "
        f"{shape.stack}, {shape.layers} layers × {shape.heads} heads × {shape.head_size}. "
        f"{len(tokens)} tokens{windows}, {words} words, {tokens.sentence_count} sentences.</p>"
    )


def _focus_table(focus: "Focus") -> str:
    head = "".join(f"<th scope='col'>{escape(target)}</th>" for target in focus.targets)
    rows = []
    for layer, masses in enumerate(focus.by_layer(), start=1):
        cells = "".join(
            f"<td style='--lift:{_strength(mass, chance):.2f}'>{100 * mass:.1f}</td>"
            for mass, chance in zip(masses, focus.chance, strict=True)
        )
        rows.append(f"<tr><th scope='row'>{layer}</th>{cells}</tr>")
    chance = "".join(f"<td>{100 * value:.1f}</td>" for value in focus.chance)
    return (
        f"<table class='focus'><thead><tr><th scope='col'>layer</th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody>"
        f"<tfoot><tr><th scope='row'>chance</th>{chance}</tr></tfoot></table>"
    )


def _strength(mass: float, chance: float) -> float:
    """0 at chance or below, 1 from thirty times chance on, even steps in the logarithm."""
    if mass <= chance or chance == 0:
        return 0.0
    return float(min(np.log(mass / chance) / np.log(30), 1))
