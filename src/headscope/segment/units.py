"""The units between which a topic may change: sentences, and parts of what has no sentences."""

from itertools import pairwise

import regex

from headscope.text import sentence_spans

MOST_WORDS = 60  # in a unit that no full stop ends, or a text without punctuation would be one unit
MOST_WORDS_ENDED = 200  # in a sentence that ends as sentences do
WORDS_IN_PART = 24
WORD = regex.compile(r"\S+")
ENDED = regex.compile(r"[\p{STerm}…‽][\p{Pe}\p{Pf}\"']*$")

Span = tuple[int, int]


def unit_spans(text: str, language: str = "en") -> list[Span]:
    """Character spans of the units, white space between them left out; none in an empty text.

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
