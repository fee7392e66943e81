"""A text with what people have marked in it: trees, mentions of the same thing, names.

Whatever a file has is brought to words with places in a text; what a format does not have is left
empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.errors import CannotRead

# Where a mention without a tree stops having its head: "the keeper | of the lamp".
WORDS = "of in on at to for from with by about into over under between among than as who whom"
AFTER_HEAD = frozenset((*WORDS.split(), "whose", "which", "that", "where", "when", *",;:(-–—"))


@dataclass(frozen=True, slots=True)
class Arc:
    """A word hangs on another."""

    word: int
    head: int
    relation: str


@dataclass(frozen=True, slots=True)
class Mention:
    """Some words that stand for something, and the number of what they stand for."""

    first: int
    last: int  # included
    head: int  # the word that stands for them all
    thing: str


@dataclass(frozen=True, slots=True)
class Name:
    """A name, and what kind of thing it names."""

    first: int
    last: int  # included
    kind: str


@dataclass(frozen=True, slots=True)
class Gold:
    """A document; words are counted from 0."""

    name: str  # where it is from
    text: str
    spans: tuple[tuple[int, int], ...]  # of the words: first character, one past the last
    sentences: tuple[int, ...]  # of the words
    arcs: tuple[Arc, ...] = ()
    mentions: tuple[Mention, ...] = ()
    names: tuple[Name, ...] = ()

    def spelled(self, word: int) -> str:
        """How a word is spelled."""
        first, last = self.spans[word]
        return self.text[first:last]


class Text:
    """A text being put together from its words."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.spans: list[tuple[int, int]] = []
        self.sentences: list[int] = []
        self.length = 0

    def add(self, form: str, sentence: int, *, space: bool = True) -> int:
        """Put a word behind what there is; its number."""
        self.spans.append((self.length, self.length + len(form)))
        self.sentences.append(sentence)
        self._put(form + " " * space)
        return len(self.spans) - 1

    def break_paragraph(self) -> None:
        """Put a blank line behind what there is, if there is anything."""
        if self.parts:
            self._put("\n\n")

    def _put(self, some: str) -> None:
        self.parts.append(some)
        self.length += len(some)

    def gold(
        self,
        name: str,
        arcs: Sequence[Arc] = (),
        mentions: Sequence[Mention] = (),
        names: Sequence[Name] = (),
    ) -> Gold:
        """The document."""
        text = "".join(self.parts).rstrip()
        spans, sentences = tuple(self.spans), tuple(self.sentences)
        return Gold(name, text, spans, sentences, tuple(arcs), tuple(mentions), tuple(names))


def head_of(words: Sequence[str], first: int, last: int) -> int:
    """The head of a mention by its spelling alone: the last word before what only adds to it."""
    for place in range(first + 1, last + 1):
        if words[place].casefold() in AFTER_HEAD:
            return place - 1
    return last


def names_of(tags: Sequence[str], words: Sequence[int], where: str) -> list[Name]:
    """The names in the tags of a sentence: B-LOC, I-LOC, O (a name may also begin with I-)."""
    found: list[Name] = []
    open_kind = ""
    for tag, word in zip(tags, words, strict=True):
        letter, _, kind = tag.partition("-")
        if tag in ("O", "_", "-"):
            open_kind = ""
        elif letter not in ("B", "I") or not kind:
            raise CannotRead(f"{where}: a tag of names is O, B-KIND or I-KIND, not {tag!a}.")
        elif letter == "I" and kind == open_kind:
            found[-1] = Name(found[-1].first, word, kind)
        else:
            found.append(Name(word, word, kind))
            open_kind = kind
    return found
