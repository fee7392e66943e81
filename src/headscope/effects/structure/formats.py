"""Files of annotated text, by what is in them: CoNLL-U, columns with names, LitBank, GAP.

The kind of a file is seen from its first line, but for one that is called .conllu.
"""

import csv
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from headscope.conllu import Sentence, sentences
from headscope.corpus import opened, printable
from headscope.effects.structure.gold import (
    Arc,
    Gold,
    Mention,
    Name,
    Text,
    head_of,
    names_of,
)
from headscope.errors import CannotRead
from headscope.text import WORD, sentence_spans

ENTITY = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
TAG = re.compile(r"O|[BI]-.+")
GAP = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref")
KINDS = "CoNLL-U, columns of words and tags (CoNLL), LitBank as JSON lines, or GAP's table"

Lines = Iterator[str]


def read_gold(source: str | Path) -> Iterator[Gold]:
    """Every document of a file, or of the files of a folder in the order of their names."""
    path = Path(source)
    if path.is_dir():
        files = sorted(one for one in path.rglob("*") if one.is_file() and _may_be(one))
        if not files:
            raise CannotRead(f"The folder '{path}' holds no annotated text: {KINDS}.")
    elif path.is_file():
        files = [path]
    else:
        raise CannotRead(f"There is no file or folder '{path}'. Check the spelling.")
    for file in files:
        yield from _file(file)


def _may_be(file: Path) -> bool:
    """Whether a file of a folder is read: by its name, so that a README is passed over."""
    ends = [one.lower() for one in file.suffixes]
    ends = ends[:-1] if ends and ends[-1] in (".gz", ".xz", ".zst") else ends
    known = (".conllu", ".conll", ".iob", ".iob2", ".bio", ".jsonl", ".tsv")
    return bool(ends) and (ends[-1] in known or ".conll" in ends)


def _file(file: Path) -> Iterator[Gold]:
    name = printable(file.name)
    try:
        with opened(file) as stream:
            lines = (line.decode("utf-8-sig") for line in stream)
            begin: list[str] = []
            for line in lines:
                begin.append(line)
                if line.strip() and not line.startswith("#"):
                    break
            yield from _kind(begin[-1] if begin else "", name)(chain(begin, lines), name)
    except UnicodeDecodeError:
        raise CannotRead(f"'{name}' is no UTF-8.") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise CannotRead(f"'{name}' cannot be read: {error}.") from None


def _kind(line: str, name: str) -> Callable[[Lines, str], Iterator[Gold]]:
    """How a file is read, by its first line that says something."""
    columns = line.rstrip("\r\n").split("\t")
    if len(columns) == 10 or ".conllu" in name:
        return _conllu
    if line.startswith("{"):
        return _litbank
    if set(GAP) <= set(columns):
        return _gap
    if len(line.split()) > 1:
        return _names
    raise CannotRead(f"'{name}' is no annotated text that is known here: {KINDS}.")


def _conllu(lines: Lines, name: str) -> Iterator[Gold]:
    """Trees, and mentions where MISC has GUM's Entity=."""
    document = _Trees(name)
    for number, sentence in enumerate(sentences(lines, name)):
        begins = sentence.begins("newdoc")
        if begins is not None and document.text.spans:
            yield document.gold()
            document = _Trees(begins)
        elif begins is not None:
            document.name = begins
        document.add(sentence, number)
    if document.text.spans:
        yield document.gold()


class _Trees:
    """A document of CoNLL-U as it is read."""

    def __init__(self, name: str) -> None:
        self.name, self.text = name, Text()
        self.arcs: list[Arc] = []
        self.mentions: list[Mention] = []
        self.open: list[tuple[str, int]] = []
        self.on: dict[int, int] = {}  # what a word hangs on, by number in the text

    def add(self, sentence: Sentence, number: int) -> None:
        """Put a sentence behind what there is."""
        if sentence.begins("newpar") is not None:
            self.text.break_paragraph()
        places: dict[int, int] = {}  # of the words of the tree
        for piece in sentence.pieces:
            forms = [word["form"] for word in piece.words]
            apart = len(forms) > 1 and "".join(forms) == piece.form
            last = len(piece.words) - 1
            for place, word in enumerate(piece.words):
                if apart:
                    space = piece.space_after and place == last
                    places[word.number] = self.text.add(forms[place], number, space=space)
                elif place == 0:  # written as one, and not in pieces: one word for all
                    at = self.text.add(piece.form, number, space=piece.space_after)
                    places[word.number] = at
                else:
                    places[word.number] = at
        words = [word for piece in sentence.pieces for word in piece.words]
        for word in words:
            if word["head"].isdecimal() and int(word["head"]) in places:
                here, head = places[word.number], places[int(word["head"])]
                relation = word["deprel"].partition(":")[0]
                if here != head and here not in self.on:
                    self.on[here] = head
                    self.arcs.append(Arc(here, head, relation))
        for word in words:
            self._mentions(word["misc"], places[word.number])

    def _mentions(self, misc: str, word: int) -> None:
        """Open and close the mentions that a word begins or ends."""
        said = next((one for one in misc.split("|") if one.startswith("Entity=")), "")
        for match in ENTITY.finditer(said.removeprefix("Entity=")):
            begun, ends_here, ended = match.groups()
            if begun is not None:
                self.open.append((begun.partition("-")[0], word))
            if ends_here or ended is not None:
                thing = (ended or begun).partition("-")[0]
                place = next(
                    (n for n in reversed(range(len(self.open))) if self.open[n][0] == thing), None
                )
                if place is not None:
                    _, first = self.open.pop(place)
                    self.mentions.append(Mention(first, word, word, thing.partition("[")[0]))

    def gold(self) -> Gold:
        """The document; a mention's head is its first word that hangs on one outside of it."""
        mentions = []
        for one in self.mentions:
            inside = range(one.first, one.last + 1)
            head = next((w for w in inside if self.on.get(w, -1) not in inside), one.last)
            mentions.append(Mention(one.first, one.last, head, one.thing))
        return self.text.gold(self.name, self.arcs, mentions)


def _names(lines: Lines, name: str) -> Iterator[Gold]:
    """Names: a word and its tag on every line, a blank line between sentences.

    The word may have its number before it. Documents begin at `# newdoc` or -DOCSTART-; without
    such marks a sentence is a document.
    """
    text, names, marked = Text(), list[Name](), False
    title, sentence, words, tags = name, 0, list[int](), list[str]()
    for number, line in enumerate(chain(lines, [""]), 1):
        fields = line.split()
        begins = line.startswith(("-DOCSTART-", "# newdoc"))
        if (begins or not fields) and words:
            names += names_of(tags, words, f"'{name}', line {number - 1}")
            sentence, words, tags = sentence + 1, [], []
        if (begins or not fields) and text.spans and (begins or not marked):
            yield text.gold(title, names=names)
            text, names = Text(), []
        if begins:
            marked, title = True, line.partition("=")[2].strip() or f"{name}, line {number}"
        elif fields and not _is_comment(line):
            if len(fields) < 2:
                raise CannotRead(f"'{name}', line {number}: no tag beside {fields[0]!a}.")
            numbered = len(fields) > 2 and fields[0].isdecimal()
            words.append(text.add(fields[numbered], sentence))
            tags.append(fields[2] if numbered else fields[-1])
    if text.spans:
        yield text.gold(title, names=names)


def _is_comment(line: str) -> bool:
    """Whether a line begins with # and is not that character with its tag."""
    fields = line.split()
    return line.startswith("#") and not (len(fields) > 1 and TAG.fullmatch(fields[1]))


def _litbank(lines: Lines, name: str) -> Iterator[Gold]:
    """Mentions: tokens, the first of each sentence, and clusters of [first, last]."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            said = json.loads(line)
            tokens, starts = [str(one) for one in said["tokens"]], set(said["sent_starts"])
            spans = [
                (int(first), int(last), str(thing))
                for thing, cluster in enumerate(said["clusters"])
                for first, last in cluster
            ]
            title = str(said.get("id", f"{name}, line {number}"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CannotRead(
                f"'{name}', line {number}: a line has tokens, sent_starts and clusters of "
                f"[first, last] ({type(error).__name__}: {str(error)[:80]})."
            ) from None
        if any(not 0 <= first <= last < len(tokens) for first, last, _ in spans):
            raise CannotRead(f"'{name}', line {number}: a mention lies outside the tokens.")
        text, sentence = Text(), -1
        for place, token in enumerate(tokens):
            sentence += place in starts or sentence < 0
            text.add(token, sentence)
        mentions = [Mention(a, b, head_of(tokens, a, b), thing) for a, b, thing in spans]
        yield text.gold(title, mentions=mentions)


def _gap(lines: Lines, name: str) -> Iterator[Gold]:
    """A pronoun and two names; what of them stands for the same."""
    for number, row in enumerate(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE), 2):
        try:
            text = row["Text"]
            marked = [("Pronoun", "pronoun")] + [
                (one, "pronoun" if row[f"{one}-coref"].upper() == "TRUE" else one) for one in "AB"
            ]
            places = [(int(row[f"{one}-offset"]), len(row[one]), thing) for one, thing in marked]
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise CannotRead(
                f"'{name}', line {number}: a line of GAP has {', '.join(GAP)}, B, … "
                f"({type(error).__name__}: {str(error)[:80]})."
            ) from None
        spans = tuple(match.span() for match in WORD.finditer(text))
        inside = sentence_spans(text)
        of = tuple(sum(a <= first for a, _ in inside) - 1 for first, _ in spans)
        spelled = [text[a:b] for a, b in spans]
        mentions = []
        for start, length, thing in places:
            words = [n for n, (a, b) in enumerate(spans) if a < start + length and b > start]
            if words:
                head = head_of(spelled, words[0], words[-1])
                mentions.append(Mention(words[0], words[-1], head, thing))
        yield Gold(row["ID"] or f"{name}, line {number}", text, spans, of, mentions=tuple(mentions))
