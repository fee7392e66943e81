"""The high pairs of a head as a table that a person reads: in a terminal, a notebook, Arrow."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tokens that a head brings together."""

    similarity: float
    first: int  # position in the text, from 0
    second: int
    first_word: str
    second_word: str
    first_piece: str  # what the token itself covers: a part of the word, or all of it
    second_piece: str
    first_place: int  # where in its word the piece begins; -1 if it is no part of a single word
    second_place: int
    distance: int  # in tokens
    same_sentence: bool
    same_word: bool  # the same word twice; two pieces of one word do not count
    special: bool  # one end is a special token
    first_unknown: bool  # the model does not know the token and read [UNK], <unk> … instead
    second_unknown: bool

    @property
    def ends(self) -> "tuple[End, End]":
        """Both tokens, as they are shown."""
        return (
            End(self.first_word, self.first_piece, self.first_place, self.first_unknown),
            End(self.second_word, self.second_piece, self.second_place, self.second_unknown),
        )


class End(NamedTuple):
    """A token of a pair as it is shown: its piece inside its word."""

    word: str
    piece: str
    place: int
    unknown: bool

    @property
    def parts(self) -> tuple[str, str, str]:
        """What of the word stands before the piece, the piece, and what stands after it."""
        if self.place < 0:
            return "", self.piece, ""
        return self.word[: self.place], self.piece, self.word[self.place + len(self.piece) :]


class PairTable(Sequence[Pair]):
    """The high pairs of a head, most similar first."""

    def __init__(self, pairs: list[Pair], caption: str):
        self.pairs = pairs
        self.caption = caption

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def rows(self) -> list[dict[str, Any]]:
        """A plain dictionary per pair."""
        return [asdict(pair) for pair in self.pairs]

    def to_arrow(self) -> "pyarrow.Table":
        """As an Arrow table (`.to_pandas()` from there)."""
        import pyarrow as pa

        return pa.table({f.name: [getattr(p, f.name) for p in self] for f in fields(Pair)})

    def __repr__(self) -> str:
        from headscope.report.terminal import pairs_as_text

        return pairs_as_text(self)

    def _repr_html_(self) -> str:
        from headscope.report.page import pairs_as_html

        return pairs_as_html(self)
