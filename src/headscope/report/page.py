"""A reading as HTML: a block for a notebook and a page of its own that needs no other file.

Matrices are drawn as small PNG pictures inside the page. Whatever comes from a text is escaped.
"""

import base64
import struct
import zlib
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
THUMBNAIL = 56  # pixels a side
# Viridis at nine places: even steps to the eye, readable without colour and by the colour-blind.
VIRIDIS = np.array(
    [
        (68, 1, 84),
        (71, 44, 122),
        (59, 81, 139),
        (44, 113, 142),
        (33, 144, 141),
        (39, 173, 129),
        (92, 200, 99),
        (170, 220, 50),
        (253, 231, 37),
    ]
)


def reading_page(reading: "Reading") -> str:
    """A whole page about one reading."""
    style = files("headscope").joinpath("report/page.css").read_text(encoding="utf-8")
    name = escape(reading.scope.shape.name)
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>headscope: {name}</title>'
        '<meta name="viewport" content="width=device-width">'
        '<link rel="icon" href="data:,">'
        f"<style>{style}</style></head><body><main>\n"
        f"<h1>What the heads of {name} bring together</h1>\n{_facts(reading)}\n"
        f"<h2>Where attention goes</h2>\n{_focus_note()}\n{_focus_table(reading.focus())}\n"
        f"<h2>Every head's context similarity matrix</h2>\n{_atlas_note()}\n{_atlas(reading)}\n"
        f"<h2>High pairs</h2>\n{pairs_as_html(reading.high_pairs(len(reading.layers), 1))}\n"
        f"<h2>The text</h2>\n<div class='text'>{escape(reading.tokens.text)}</div>\n"
        "</main></body></html>\n"
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


def _focus_note() -> str:
    return (
        "<p>Percent of the attention of each layer, mean over its heads and over all tokens. A "
        "cell is darker the further it is above <i>chance</i>, what evenly spread attention "
        "would give. A row does not add up to 100: own sentence and neighbours overlap with the "
        "classes before them.</p>"
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


def _atlas_note() -> str:
    return (
        "<p>C<sub>ij</sub> = z<sub>i</sub>·z<sub>j</sub>, the scalar product of the head's output "
        "vectors for tokens i and j. A row is a layer, a column a head, both from 1. Each picture "
        "has its own scale, dark for its 1st and yellow for its 99th percentile.</p>"
    )


def _atlas(reading: "Reading") -> str:
    shape = reading.scope.shape
    cells = ["<span></span>"] + [f"<span class='n'>{h}</span>" for h in range(1, shape.heads + 1)]
    for layer in range(1, shape.layers + 1):
        cells.append(f"<span class='n'>{layer}</span>")
        for head in range(1, shape.heads + 1):
            picture = base64.b64encode(_png(_colours(_small(reading.head_vectors(layer, head)))))
            label = f"layer {layer}, head {head}"
            cells.append(
                f"<img alt='{label}' title='{label}' width='{THUMBNAIL}' height='{THUMBNAIL}' "
                f"src='data:image/png;base64,{picture.decode()}'>"
            )
    return f"<div class='atlas' style='--heads:{shape.heads}'>{''.join(cells)}</div>"


def _small(z: NDArray[np.float32]) -> NDArray[np.float64]:
    """The similarity matrix averaged over blocks of tokens; the blocks' mean vectors give it."""
    size = min(THUMBNAIL, len(z))
    edges = np.linspace(0, len(z), size + 1).astype(int)
    means = np.add.reduceat(z.astype(np.float64), edges[:-1], axis=0) / np.diff(edges)[:, None]
    product: NDArray[np.float64] = means @ means.T
    return product


def _colours(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values to viridis: (rows, columns, 3)."""
    low, high = np.percentile(values, [1, 99])
    place = np.clip((values - low) / max(high - low, 1e-12), 0, 1) * (len(VIRIDIS) - 1)
    below = np.minimum(place.astype(int), len(VIRIDIS) - 2)
    part = (place - below)[..., None]
    colours: NDArray[np.uint8] = (VIRIDIS[below] * (1 - part) + VIRIDIS[below + 1] * part).astype(
        np.uint8
    )
    return colours


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels (rows, columns, 3) as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    rows, columns, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
