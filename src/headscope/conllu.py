"""CoNLL-U, line by line: sentences of what stands in a text, with the columns of its words.

What is written as one ("can't") may be several words of syntax. Both are kept, so that whoever
reads can take the piece of text or the words.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headscope.errors import CannotRead

# The columns by the names the format gives them.
COLUMNS = {"form": 1, "upos": 3, "xpos": 4, "head": 6, "deprel": 7, "misc": 9}


@dataclass(frozen=True, slots=True)
class SyntacticWord:
    """A word of the tree."""

    number: int  # in its sentence, from 1
    columns: tuple[str, ...]

    def __getitem__(self, column: str) -> str:
        return self.columns[COLUMNS[column]]


@dataclass(frozen=True, slots=True)
class Surface:
    """A piece of the text without white space inside, and the words it stands for."""

    line: int
    columns: tuple[str, ...]  # of the line that spells it
    words: tuple[SyntacticWord, ...]  # one, or those that are written as one

    @property
    def form(self) -> str:
        """How it is spelled."""
        return self.columns[COLUMNS["form"]]

    @property
    def space_after(self) -> bool:
        """Whether white space follows."""
        return "SpaceAfter=No" not in self.columns[COLUMNS["misc"]].split("|")

    def label(self, column: str) -> str:
        """What a column says; of several words written as one, what the first says that has any."""
        own = (self.columns[COLUMNS[column]], *(word[column] for word in self.words))
        return next((one for one in own if one != "_"), "_")


@dataclass(slots=True)
class Sentence:
    """The pieces of a sentence, and the comments before it without their #."""

    comments: list[str] = field(default_factory=list)
    pieces: list[Surface] = field(default_factory=list)

    def begins(self, what: str) -> str | None:
        """What stands behind a comment such as `newdoc id =`; None where there is none."""
        for comment in self.comments:
            name, _, value = comment.partition("=")
            if name.split()[:1] == [what]:
                return value.strip()
        return None


def sentences(lines: Iterable[str], name: str) -> Iterator[Sentence]:
    """Every sentence of a file; raises with file and line where it is no CoNLL-U."""
    sentence, covered = Sentence(), 0
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n")
        if not line.strip():
            if sentence.pieces:
                yield sentence
                sentence = Sentence()
            covered = 0
            continue
        if line.startswith("#"):
            sentence.comments.append(line[1:].strip())
            continue
        columns = tuple(line.split("\t"))
        if len(columns) != 10:
            raise CannotRead(
                f"'{name}', line {number}: a line of CoNLL-U has 10 columns between tabs, and this "
                f"has {len(columns)}."
            )
        first, dash, last = columns[0].partition("-")
        if "." in first:  # a word that is not in the text
            continue
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise CannotRead(
                f"'{name}', line {number}: a line of CoNLL-U begins with the number of a word, not "
                f"{columns[0]!a}."
            )
        if dash:  # several words written as one
            covered = int(last)
            sentence.pieces.append(Surface(number, columns, ()))
            continue
        word = SyntacticWord(int(first), columns)
        if word.number <= covered and sentence.pieces:
            whole = sentence.pieces[-1]
            sentence.pieces[-1] = Surface(whole.line, whole.columns, (*whole.words, word))
        else:
            sentence.pieces.append(Surface(number, columns, (word,)))
    if sentence.pieces:
        yield sentence
