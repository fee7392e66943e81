"""What the pair statistics need to know about the tokens of a text, and which of them take part."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from headscope.errors import NotPossible

Ints: TypeAlias = npt.NDArray[np.int32]
Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]

SimilarityReading: TypeAlias = Literal["raw", "cosine", "centred"]
READINGS: tuple[SimilarityReading, ...] = ("raw", "cosine", "centred")

Special: TypeAlias = Literal["kept", "left_out"]
SPECIAL: tuple[Special, ...] = ("kept", "left_out")

UNRELATED_DISTANCE = 32
"""Pairs of tokens no further apart than this are never *unrelated* (METHOD.md, noise)."""

AROUND = 2
"""Tokens no further than this from an occurrence of a type are in its surroundings."""


WORD_CLASSES = 4
"""Classes of words that repetitions are told apart by; see `words.WordClass`."""


@dataclass(frozen=True, slots=True)
class PairTokens:
    """The tokens of one text, as six arrays of one entry a token."""

    sentences: Ints
    """Number of the sentence a token is in; -1 for none (never the same sentence)."""
    ids: Ints
    """Token id: two tokens of equal id are the same token type."""
    words: Ints
    """Number of the word *type* a token is a piece of; -1 for none (never the same word)."""
    occurrences: Ints
    """Number of the word in the text: pieces of one occurrence are no repetition of each other."""
    word_classes: Ints
    """Class of the word, from 0 to `WORD_CLASSES` - 1; of a pair, the later of its ends'."""
    special: Bools
    """Whether a token is special ([CLS], [SEP], <s>, …)."""

    def __post_init__(self) -> None:
        for name in ("sentences", "ids", "words", "occurrences", "word_classes"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.int32))
        object.__setattr__(self, "special", np.ascontiguousarray(self.special, np.bool_))
        arrays = (self.sentences, self.ids, self.words, self.occurrences, self.word_classes)
        shapes = {array.shape for array in (*arrays, self.special)}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            raise NotPossible(f"the arrays of a text need one equal length, not {shapes}")

    def __len__(self) -> int:
        return len(self.ids)

    def kept(self, special: Special) -> Bools:
        """Which tokens take part: all of them, or all that are not special."""
        if special not in SPECIAL:
            raise NotPossible(f"special is one of {', '.join(SPECIAL)}, not {special!r}")
        return ~self.special if special == "left_out" else np.ones(len(self), np.bool_)


def plain_tokens(
    ids: Sequence[int] | Ints,
    sentences: Sequence[int] | Ints | None = None,
    words: Sequence[int] | Ints | None = None,
    special: Sequence[bool] | Bools | None = None,
) -> PairTokens:
    """Tokens from ids alone: one sentence, a word a token, nothing special, unless given."""
    identity = np.asarray(ids, np.int32)
    return PairTokens(
        np.zeros_like(identity) if sentences is None else np.asarray(sentences, np.int32),
        identity,
        identity if words is None else np.asarray(words, np.int32),
        np.arange(len(identity), dtype=np.int32),
        np.zeros_like(identity),
        np.zeros(len(identity), np.bool_) if special is None else np.asarray(special, np.bool_),
    )
