"""What a text's layout says of where its topics turn: paragraphs, headings, lists, rules.

A text is taken apart into blocks of lines, and of the place before each block it is said whether a
topic may turn there: a heading belongs to what follows it, a list to the words that lead into it.
A text without line breaks is one block, and its layout says nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

import regex

ENDED = regex.compile(r"[\p{STerm}…‽][\p{Pe}\p{Pf}\"']*$")
FENCE = regex.compile(r"\s*(```|~~~)")
RULE = regex.compile(r"\s*(?:([*_=~#+•·–—-])(?:\s*\1){2,}|⁂|❧|#)\s*$")
UNDERLINE = regex.compile(r"(?:=+|-+)\s*$")
ITEM = regex.compile(r"\s*(?:([-*+•◦▪‣])|\(?(?:(\d{1,3})|([a-z]|[ivx]{1,5}))[.)])\s+(?=\S)")
MARKED = regex.compile(r"(#{1,6})\s+\S|\s*(=(?:\s?=)*)\s+?\S.*\S?\s+?\2\s*$|(={2,6})[^=].*\3\s*$")
NUMBERED = regex.compile(
    r"(?i:chapter|part|book|volume|section|act|scene|canto|letter|appendix|stave)\s+"
    r"(?:\d+|(?i:[ivxlcdm]+)|\p{Lu})\b|(?i:prologue|epilogue|preface|introduction)\W*$"
)
LONGEST_HEADING = 10  # words, of a line that is a heading only by standing alone
LONGEST_TITLE = 16  # words, of one that says so: Chapter 2. The Curse of the Baskervilles
MOST_HEADINGS = 3  # lines alone, one after the other, before they are taken for a list or verse
LONG_ITEM = 60  # words, on average: items of a list that are paragraphs of their own

BlockKind = Literal["paragraph", "heading", "rule", "item"]
Turn = Literal["heading", "rule", "paragraph", "inside", "kept"]


class Place(NamedTuple):
    """What the layout says of the place before a unit."""

    turn: Turn  # "inside" a paragraph; "kept" with what stands before it; else what begins here
    level: int = 0  # of a heading, 1 for the highest in the text


INSIDE = Place("inside")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together."""

    start: int
    end: int
    kind: BlockKind
    level: int = 0  # of a heading: as it is marked, or 0 where nothing but its shape says so
    touches: bool = False  # no blank line is before it
    marker: str = ""  # of an item


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    touches: bool
    fenced: bool


def blocks(text: str) -> list[Block]:
    """The blocks of a text, in order; white space between them belongs to none."""
    lines = list(_lines(text))
    each = _lines_are_paragraphs(lines)
    found = list[Block]()
    for line in lines:
        block = _block(line)
        before = found[-1] if found else None
        if before and line.touches and _goes_on(before, block, line, each):
            found[-1] = replace(before, end=line.end)
        elif before and line.touches and before.kind == "paragraph" and _underlines(before, line):
            found[-1] = replace(before, end=line.end, kind="heading", level=_depth(line.text))
        else:
            found.append(block)
    return _with_headings(text, _without_lone_items(found))


def places(text: str, found: list[Block]) -> list[Place]:
    """What the layout says of the place before each block."""
    levels = {level: rank for rank, level in enumerate(_levels(found), start=1)}
    long = _long_items(text, found)
    said = list[Place]()
    for number, block in enumerate(found):
        before = found[number - 1] if number else None
        if before is not None and _keeps(text, before, block, number in long):
            said.append(Place("kept"))
        elif block.kind in ("heading", "rule"):
            said.append(Place(block.kind, levels[block.level]))
        else:
            said.append(Place("paragraph"))
    if all(place.turn == "kept" for place in said[1:]):  # nothing but a list: between its items
        for number, (before, block) in enumerate(pairwise(found), start=1):
            if before.kind == block.kind == "item":
                said[number] = Place("paragraph")
    return said


def _lines(text: str) -> Iterator[_Line]:
    """Lines that are not blank, without white space around them."""
    at, touches, fenced = 0, False, False
    for line in text.splitlines(keepends=True):
        inner = line.strip()
        start, at = at + line.find(inner) if inner else at, at + len(line)
        is_fence = bool(FENCE.match(line))
        if inner or fenced:
            yield _Line(start, start + len(inner), line.rstrip(), touches, fenced)
        fenced ^= is_fence
        touches = bool(inner) or fenced


def _lines_are_paragraphs(lines: list[_Line]) -> bool:
    """Whether a line break ends a paragraph: most lines that others follow end as sentences do."""
    followed = [a for a, b in pairwise(lines) if b.touches and not _stands_out(a)]
    ended = sum(bool(ENDED.search(line.text)) for line in followed)
    return ended > len(followed) / 2


def _stands_out(line: _Line) -> bool:
    return line.fenced or _block(line).kind != "paragraph" or line.text.lstrip().startswith("|")


def _block(line: _Line) -> Block:
    """A line as a block of its own."""
    made = Block(line.start, line.end, "paragraph", touches=line.touches)
    if line.fenced:
        return made
    if RULE.match(line.text):
        return replace(made, kind="rule", level=99)  # less than any heading
    if marked := MARKED.match(line.text):
        signs = next(filter(None, marked.groups()))
        return replace(made, kind="heading", level=sum(sign in "#=" for sign in signs))
    if NUMBERED.match(line.text) and len(line.text.split()) <= LONGEST_TITLE:
        return replace(made, kind="heading", level=1)
    if item := ITEM.match(line.text):
        sign, figure, _ = item.groups()
        return replace(made, kind="item", marker=sign or ("1" if figure else "a"))
    return made


def _goes_on(before: Block, block: Block, line: _Line, each: bool) -> bool:
    """Whether a line continues the block before it."""
    if line.fenced:
        return True
    indented = line.text[:1].isspace()
    ends_here = each and not (before.kind == "item" and indented)
    return block.kind == "paragraph" and before.kind in ("paragraph", "item") and not ends_here


def _underlines(before: Block, line: _Line) -> bool:
    """Whether a line of = or - makes a heading of the line before it."""
    return bool(UNDERLINE.match(line.text)) and before.end - before.start <= 80


def _depth(underline: str) -> int:
    return 1 if underline.lstrip().startswith("=") else 2


def _without_lone_items(found: list[Block]) -> list[Block]:
    """One item is no list: it is a paragraph that begins with a number, or a heading."""
    made = list[Block]()
    for _, some in groupby(found, key=lambda block: (block.kind, block.marker)):
        run = list(some)
        lone = run[0].kind == "item" and len(run) == 1
        made += [replace(run[0], kind="paragraph", marker="")] if lone else run
    return made


def _with_headings(text: str, found: list[Block]) -> list[Block]:
    """Short lines that stand alone before a paragraph, made headings."""
    deepest = max((b.level for b in found if b.kind == "heading"), default=0) + 1
    made = list(found)
    for alone, run in groupby(range(len(found)), key=lambda i: _stands_alone(text, found, i)):
        numbers = list(run)
        after = found[numbers[-1] + 1 :]
        if alone and len(numbers) <= MOST_HEADINGS and after and after[0].kind == "paragraph":
            for number in numbers:
                made[number] = replace(found[number], kind="heading", level=deepest)
    return made


def _stands_alone(text: str, found: list[Block], number: int) -> bool:
    """Whether a block is one short line, a blank line around it, that does not end as text does."""
    block = found[number]
    line = text[block.start : block.end]
    after = found[number + 1] if number + 1 < len(found) else None
    return (
        block.kind == "paragraph"
        and not block.touches
        and not (after and after.touches)
        and "\n" not in line
        and len(line.split()) <= LONGEST_HEADING
        and len(line) <= 80
        and bool(regex.match(r"[\p{Lu}\p{Lo}\p{Lt}\p{N}\p{Ps}]", line))
        and not regex.search(r"[\p{STerm}\p{Terminal_Punctuation}…\"”’'»—-]$", line)
    )


def _levels(found: list[Block]) -> list[int]:
    return sorted({block.level for block in found if block.kind in ("heading", "rule")})


def _keeps(text: str, before: Block, block: Block, long: bool) -> bool:
    """Whether a block is kept with the one before it."""
    if before.kind in ("heading", "rule"):
        return True
    if block.kind in ("heading", "rule"):
        return False
    announced = text[before.start : before.end].endswith((":", "："))
    if block.kind == "item" and not long:
        return announced or before.kind == "item" or block.touches
    return announced


def _long_items(text: str, found: list[Block]) -> set[int]:
    """Numbers of the items of lists whose items are paragraphs in length."""
    long = set[int]()
    for kind, run in groupby(range(len(found)), key=lambda i: found[i].kind):
        numbers = list(run)
        words = sum(len(text[found[i].start : found[i].end].split()) for i in numbers)
        if kind == "item" and words > LONG_ITEM * len(numbers):
            long |= set(numbers)
    return long
