"""A text as a model reads it: tokens, and what the measures need to know of each of them.

Words and sentences are found in the text itself and carried over to the tokens by character
offsets, so they are the same for every tokenizer: a person sees words, whatever the pieces.
"""

import bisect
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.words import WordClass, word_classes

# Letters and digits with their marks, joined by apostrophes; an ideograph alone; else one
# character as a person sees it (an emoji with its modifiers, a punctuation mark). Flags are
# spelled out: to find where one begins, \X counts all that stand before it, which is quadratic.
WORD = regex.compile(
    r"\p{Han}\p{M}*|[\p{L}\p{N}_--\p{Han}][\p{L}\p{M}\p{N}_--\p{Han}]*"
    r"(?:['’][\p{L}\p{N}_--\p{Han}][\p{L}\p{M}\p{N}_--\p{Han}]*)*|"
    r"\p{Regional_Indicator}{1,2}[\p{GCB=Extend}\p{GCB=SpacingMark}\u200d]*|(?![\s\p{Cc}])\X",
    regex.V1,
)
FINAL = regex.compile(r"[\p{STerm}…‽]+")
COMMA = regex.compile(r"[,،、，﹐߸᠂᠈]+")
PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")


class TokenClass(IntEnum):
    """What kind of token attention may fall on; each token is of exactly one class."""

    FIRST = 0  # the token at position 0, whatever it is
    SEPARATOR = 1  # a special token after position 0: [SEP], </s>, …; none in GPT-2 or Llama
    FINAL = 2  # punctuation that ends a sentence
    COMMA = 3
    PUNCTUATION = 4  # any other punctuation or symbol
    WORD = 5

    @property
    def label(self) -> str:
        """The name a person reads."""
        return _LABELS[self]


_LABELS = {
    TokenClass.FIRST: "first token",
    TokenClass.SEPARATOR: "separator",
    TokenClass.FINAL: "sentence end",
    TokenClass.COMMA: "comma",
    TokenClass.PUNCTUATION: "other punctuation",
    TokenClass.WORD: "word",
}


@dataclass(frozen=True, eq=False, repr=False)
class Tokens:
    """The tokens of one text, or of one window of it; arrays are aligned with each other."""

    text: str  # the whole text; offsets point into it
    ids: NDArray[np.int64]
    spelled: tuple[str, ...] | str  # its symbols; or all in one string, with \0 between them
    starts: NDArray[np.int64]  # first character of each piece; an empty span for special tokens
    ends: NDArray[np.int64]  # one past its last character
    special: NDArray[np.bool_]  # added by the tokenizer, not part of the text
    words: NDArray[np.int64]  # number of the word in the text; -1 for special tokens
    word_spans: NDArray[np.int64]  # (words of the whole text, 2): first character, one past last
    word_classes: NDArray[np.int64]  # of `words.WordClass`: that of the word, markup if unknown
    sentences: NDArray[np.int64]  # number of the sentence in the text; -1 for special tokens
    classes: NDArray[np.int64]  # of `TokenClass`
    unknown: NDArray[np.bool_]  # no entry of the vocabulary: the model read its unknown token there

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The tokens as the tokenizer spells them: "##ing", "Ġthe", "[SEP]"."""
        return tuple(self.spelled.split("\0")) if isinstance(self.spelled, str) else self.spelled

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """What each token covers in the text; a special token stands as its symbol."""
        return tuple(
            symbol if special else self.text[a:b]
            for symbol, special, a, b in zip(
                self.symbols, self.special, self.starts, self.ends, strict=True
            )
        )

    @cached_property
    def word_texts(self) -> tuple[str, ...]:
        """The whole word each token belongs to, joined from its pieces."""
        texts = {  # each once: a word of a million letters has hundreds of thousands of pieces
            word: self.text[self.word_spans[word, 0] : self.word_spans[word, 1]]
            for word in np.unique(self.words[self.words >= 0])
        }
        return tuple(
            symbol if word < 0 else texts[word]
            for symbol, word in zip(self.symbols, self.words, strict=True)
        )

    @cached_property
    def word_types(self) -> NDArray[np.int64]:
        """A number per token, equal where the words are equal but for case; -1 when special."""
        numbers: dict[str, int] = {}
        return np.array(
            [
                -1 if special else numbers.setdefault(word.casefold(), len(numbers))
                for word, special in zip(self.word_texts, self.special, strict=True)
            ],
            dtype=np.int64,
        )

    def __repr__(self) -> str:
        return f"<Tokens: {len(self)}, {self.in_words}>"

    @property
    def in_words(self) -> str:
        """How much of a text it is: "1 word in 1 sentence"."""
        words = len(np.unique(self.words[~self.special]))
        return f"{_counted(words, 'word')} in {_counted(self.sentence_count, 'sentence')}"

    @property
    def sentence_count(self) -> int:
        """How many sentences have a token here."""
        return len(np.unique(self.sentences[~self.special]))

    @cached_property
    def places_in_words(self) -> NDArray[np.int64]:
        """Where in its word each piece begins; -1 for one that is not a part of a single word."""
        spans = self.word_spans[np.maximum(self.words, 0)]
        inside = ~self.special & (self.starts >= spans[:, 0]) & (self.ends <= spans[:, 1])
        return np.where(inside, self.starts - spans[:, 0], -1)

    @property
    def unknown_share(self) -> float:
        """How much of the text the model could not read, as a share of its tokens."""
        return float(self.unknown.sum() / max((~self.special).sum(), 1))

    def take(self, positions: NDArray[np.int64]) -> "Tokens":
        """The tokens at the given positions."""
        return Tokens(
            text=self.text,
            ids=self.ids[positions],
            spelled=tuple(self.symbols[i] for i in positions),
            starts=self.starts[positions],
            ends=self.ends[positions],
            special=self.special[positions],
            words=self.words[positions],
            word_spans=self.word_spans,
            word_classes=self.word_classes[positions],
            sentences=self.sentences[positions],
            classes=self.classes[positions],
            unknown=self.unknown[positions],
        )


def begun_with(tokens: Tokens, id: int, symbol: str) -> Tokens:
    """The tokens after a special one that a decoder begins with."""
    first = tokens.pieces[0]
    before = {
        "ids": id,
        "starts": 0,
        "ends": 0,
        "special": True,
        "words": -1,
        "word_classes": int(WordClass.MARKUP),
        "sentences": -1,
        "classes": int(TokenClass.FIRST),
        "unknown": False,
    }
    arrays: dict[str, Any] = {
        name: np.insert(getattr(tokens, name), 0, value) for name, value in before.items()
    }
    arrays["classes"][1] = _class_of(1, first, bool(tokens.special[0]), False)
    return replace(tokens, spelled=(symbol, *tokens.symbols), **arrays)


def checked(text: object) -> str:
    """Return the text if it can be read, else raise an error that says what to do."""
    if not isinstance(text, str):
        raise CannotRead(
            f"read() takes a text (str), not {type(text).__name__}. This is a text model: it "
            "cannot read images, audio or token ids. Bytes must be decoded first: "
            "data.decode('utf-8')."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise CannotRead(
            f"The text holds half of a surrogate pair ({text[error.start]!r}) at character "
            f"{error.start}, which is no character and cannot be encoded. To read the rest: "
            "text.encode('utf-8', 'replace').decode()."
        ) from None
    if not text.strip():
        raise CannotRead(
            "The text is empty or only white space: there is nothing to read. Check the file or "
            "the string that was passed."
        )
    return text


def sentence_spans(text: str, language: str = "en") -> list[tuple[int, int]]:
    """Character spans of the sentences, white space between them left out."""
    import sentencex

    spans, at = [], 0
    for sentence in sentencex.segment(language, text):
        start = text.find(sentence, at)
        if start < 0:  # only if the splitter altered the text; its sentence then ends at the next
            continue
        at = start + len(sentence)
        inner = sentence.strip()
        if inner:
            start += sentence.index(inner)
            spans.append((start, start + len(inner)))
    return spans or [(0, len(text))]


def tokenize(text: str, tokenizer: Any, *, language: str = "en") -> Tokens:
    """The whole text as tokens, however long, special tokens included."""
    checked(text)
    encoded = tokenizer(
        text,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        split_special_tokens=True,  # a text that spells [SEP] is still only a text
        verbose=False,
    )
    ids, special = encoded["input_ids"], np.array(encoded["special_tokens_mask"], dtype=bool)
    if special.all():
        raise CannotRead(
            "The tokenizer makes no token of this text (only characters it drops, such as "
            "control characters): there is nothing to read."
        )
    words = [match.span() for match in WORD.finditer(text)] or [(0, len(text))]
    sentences = sentence_spans(text, language)
    starts, ends = _trimmed(text, encoded["offset_mapping"])
    word_numbers = _numbers(words, starts)
    sentence_numbers = _numbers(sentences, starts)
    closings = [_closing(text, span) for span in sentences]
    classes = [
        _class_of(i, text[a:b], bool(is_special), a >= closings[sentence])
        for i, (a, b, is_special, sentence) in enumerate(
            zip(starts, ends, special, sentence_numbers, strict=True)
        )
    ]
    return Tokens(
        text=text,
        ids=np.array(ids, dtype=np.int64),
        spelled=tuple(tokenizer.convert_ids_to_tokens(ids)),
        starts=np.array(starts, dtype=np.int64),
        ends=np.array(ends, dtype=np.int64),
        special=special,
        words=np.where(special, -1, word_numbers),
        word_spans=np.array(words, dtype=np.int64),
        word_classes=_word_classes(text, words, word_numbers, ids, tokenizer, language),
        sentences=np.where(special, -1, sentence_numbers),
        classes=np.array(classes, dtype=np.int64),
        unknown=~special & (np.array(ids) == _unknown_id(tokenizer)),
    )


def _unknown_id(tokenizer: Any) -> int:
    """The number of the token for what is not in the vocabulary; -1 where there is none."""
    found = tokenizer.unk_token_id
    return -1 if found is None else int(found)


@dataclass(frozen=True, eq=False, repr=False)
class Window:
    """A part of a text that a model reads at once."""

    tokens: Tokens
    positions: NDArray[np.int64]  # of these tokens in the whole text
    own: NDArray[np.bool_]  # every token of the text is own in exactly one window

    def __repr__(self) -> str:
        there = self.positions[~self.tokens.special]
        where = f"tokens {there[0]} to {there[-1]} of the text, " if len(there) else ""
        return f"<Window: {where}{int(self.own.sum())} of them its own>"


def windows(tokens: Tokens, size: int | None, overlap: int = 0) -> list[Window]:
    """Cut a text into windows of at most `size` tokens, neighbours sharing `overlap` of them.

    Each window has the special tokens of the whole. A token in two windows belongs to the one
    where it stands further from the edge; leading special tokens to the first, others to the last.
    """
    everything = np.arange(len(tokens))
    if size is None or len(tokens) <= size:
        return [Window(tokens, everything, np.ones(len(tokens), dtype=bool))]
    content = everything[~tokens.special]
    before = everything[tokens.special & (everything < content[0])]
    after = everything[tokens.special & (everything > content[0])]
    room = size - len(before) - len(after)
    starts = range(0, max(len(content) - overlap, 1), room - overlap)
    cut = []
    for number, start in enumerate(starts):
        inner = content[start : start + room]
        first, last = number == 0, number == len(starts) - 1
        rank = np.arange(len(inner))
        own = (rank >= (0 if first else overlap // 2)) & (
            rank < (len(inner) if last else room - overlap + overlap // 2)
        )
        positions = np.concatenate([before, inner, after])
        part = tokens.take(positions)
        part.classes[0] = TokenClass.FIRST
        owned = np.concatenate([np.full(len(before), first), own, np.full(len(after), last)])
        cut.append(Window(part, positions, owned))
    return cut


def _word_classes(
    text: str,
    words: list[tuple[int, int]],
    numbers: list[int],
    ids: list[int],
    tokenizer: Any,
    language: str,
) -> NDArray[np.int64]:
    """The class of each token's word; what the tokenizer does not know is no word."""
    by_word = np.array(word_classes(text, words, language), dtype=np.int64)
    unknown = np.array(ids) == (-1 if tokenizer.unk_token_id is None else tokenizer.unk_token_id)
    return np.where(unknown, WordClass.MARKUP, by_word[numbers])


def _numbers(spans: list[tuple[int, int]], positions: list[int]) -> list[int]:
    """For each character position the span that holds it, or stands last before it."""
    starts = [start for start, _ in spans]
    return [max(bisect.bisect_right(starts, position) - 1, 0) for position in positions]


def _counted(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _trimmed(text: str, offsets: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Offsets without the white space that some tokenizers count to the piece that follows it."""
    starts, ends = [], []
    for a, b in offsets:
        piece = text[a:b]
        bare = piece.strip()
        if bare:
            a += piece.index(bare)
            b = a + len(bare)
        starts.append(a)
        ends.append(b)
    return starts, ends


def _closing(text: str, span: tuple[int, int]) -> int:
    """Where the closing punctuation of a sentence begins."""
    start, end = span
    while end > start and PUNCTUATION.fullmatch(text[end - 1]):
        end -= 1
    return end


def _class_of(position: int, piece: str, special: bool, closes: bool) -> TokenClass:
    if position == 0:
        return TokenClass.FIRST
    if special:
        return TokenClass.SEPARATOR
    if closes and FINAL.match(piece):
        return TokenClass.FINAL
    if COMMA.fullmatch(piece):
        return TokenClass.COMMA
    if PUNCTUATION.fullmatch(piece):
        return TokenClass.PUNCTUATION
    return TokenClass.WORD
