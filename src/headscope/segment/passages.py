"""The units between which a topic may change: sentences, and parts of what has no sentences.

No unit goes over the border of two blocks of the layout, and each knows what is before it.
"""

from itertools import pairwise

import regex

from headscope.segment.layout import ENDED, INSIDE, ITEM, Block, Place, blocks, places
from headscope.text import sentence_spans

MOST_WORDS = 60  # in a unit that no full stop ends, or a text without punctuation would be one unit
MOST_WORDS_ENDED = 200  # in a sentence that ends as sentences do
WORDS_IN_PART = 24
WORD = regex.compile(r"\S+")

Span = tuple[int, int]


def passages(text: str, language: str = "en") -> tuple[list[Span], list[Place]]:
    """The units of a text, and what the layout says of the place before each."""
    found = blocks(text)
    if len(found) < 2:
        spans = passage_spans(text, language)
        return spans, [INSIDE] * len(spans)
    spans, said = list[Span](), list[Place]()
    for block, place in zip(found, places(text, found), strict=True):
        inner = _units(text, block, language)
        spans += inner
        said += [place, *[INSIDE] * (len(inner) - 1)]
    return spans, said


def _units(text: str, block: Block, language: str) -> list[Span]:
    """The units of a block; a heading is one, and the number of an item is none by itself."""
    if block.kind in ("heading", "rule"):
        return [(block.start, block.end)]
    marker = ITEM.match(text, block.start, block.end) if block.kind == "item" else None
    start = marker.end() if marker else block.start
    inner = passage_spans(text[start : block.end], language)
    found = [(start + first, start + last) for first, last in inner]
    return [(block.start, found[0][1]), *found[1:]]


def passage_spans(text: str, language: str = "en") -> list[Span]:
    """The units of a text whose layout says nothing, without white space; none in an empty one.

    White space at the end of the text is not looked at, so that it cannot move a boundary.
    """
    text = text.rstrip()
    if not text:
        return []
    return [part for span in sentence_spans(text, language) for part in _parts(text, span)]


def _parts(text: str, span: Span) -> list[Span]:
    """A span as it is, or cut evenly into parts of about 24 words if it is too long."""
    words = [match.span() for match in WORD.finditer(text, *span)]
    ended = ENDED.search(text[max(span[0], span[1] - 8) : span[1]])
    if len(words) <= (MOST_WORDS_ENDED if ended else MOST_WORDS):
        return [span]
    count = round(len(words) / WORDS_IN_PART)
    edges = [round(len(words) * part / count) for part in range(count + 1)]
    return [(words[first][0], words[last - 1][1]) for first, last in pairwise(edges)]
