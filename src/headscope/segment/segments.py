"""A text cut into segments, and why it was cut there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from headscope.segment.layout import Place
from headscope.segment.reasons import Reason, in_words, reasons
from headscope.segment.ways import Ways


class Segment(str):
    """A part of a text: a string that knows where it stands."""

    start: int  # its first character in the text
    end: int  # one past its last
    score: float  # what the boundary before it is worth; 0 for the first segment

    def __new__(cls, text: str, start: int, end: int, score: float) -> Self:
        """The part of `text` from `start` to `end`."""
        made = super().__new__(cls, text[start:end])
        made.start, made.end, made.score = start, end, score
        return made

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "start": self.start,
            "end": self.end,
            "score": round(self.score, 6),
            "text": str(self),
        }


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a text was cut where it was: every unit, every boundary it could have, every head.

    Units are sentences, or words where sentences are looked for; that has no kernel, only the
    similarity of neighbours, and scores that are log odds.
    """

    spans: tuple[tuple[int, int], ...]  # of the units, in characters
    cuts: tuple[int, ...]  # units before each boundary that was chosen
    scores: NDArray[np.float64]  # (units,): what a boundary before each unit is or would be worth
    similarity: NDArray[np.float64]  # (units,): the part that is the kernel's gain, or similarity
    start: NDArray[np.float64]  # (units,): the other part, learned from texts already cut
    heads: tuple[tuple[int, int, float], ...]  # layer, head (from 1), share in the cuts; most first
    vectors: NDArray[np.float32]  # (units, size): the kernel is their Gram matrix
    text: str = ""
    asked: str = ""  # what was asked for: a number of segments, or a granularity
    # Of topics: what the layout has before each unit, what that is worth (−∞ where no boundary may
    # be), what each head adds to each boundary chosen, (boundaries, layers, heads), and all ways.
    places: tuple[Place, ...] = ()
    layout: NDArray[np.float64] | None = None
    added: NDArray[np.float64] | None = None
    ways: Ways | None = None

    @property
    def boundaries(self) -> list[Reason]:
        """Why each boundary is where it is; of topics only."""
        return [] if self.layout is None else reasons(self)

    @property
    def has_layout(self) -> bool:
        """Whether the text has paragraphs, headings or lists."""
        return any(place.turn != "inside" for place in self.places[1:])

    @property
    def inside_paragraphs(self) -> bool:
        """Whether a boundary could be inside a paragraph."""
        allowed = () if self.layout is None else ~np.isneginf(self.layout)
        both = zip(self.places[1:], allowed[1:], strict=True)
        return any(place.turn == "inside" and may for place, may in both)

    @cached_property
    def price(self) -> float:
        """What a boundary costs where as many are expected as there are; 0 if that is not known."""
        return 0.0 if self.ways is None else self.ways.price(len(self.cuts) + 1)

    @property
    def kernel(self) -> NDArray[np.float32]:
        """How alike every two units are: (units, units), made when asked for."""
        kernel: NDArray[np.float32] = self.vectors @ self.vectors.T
        return kernel

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what was asked for, and why each boundary is where it is."""
        heads = [[layer, head, round(share, 4)] for layer, head, share in self.heads]
        boundaries = [reason.as_dict() for reason in self.boundaries]
        return {"asked": self.asked, "boundaries": boundaries, "heads": heads}

    def __str__(self) -> str:
        """Why there is each boundary, in words."""
        return in_words(self)

    def __repr__(self) -> str:
        shares = ", ".join(f"{layer}-{head} {share:.0%}" for layer, head, share in self.heads[:6])
        return (
            f"<{len(self.cuts)} of {max(len(self.spans) - 1, 0)} boundaries between units; "
            f"from heads {shares or 'none'}>"
        )


class Segments(Sequence[Segment]):
    """The segments of one text, in order; joined they are the text."""

    def __init__(self, text: str, level: str, parts: list[Segment], why: Explanation):
        self.text = text
        self.level = level
        self.parts = parts
        self._why = why

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, index: Any) -> Any:
        return self.parts[index]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.parts)

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """First character of each segment and one past its last."""
        return [(segment.start, segment.end) for segment in self]

    def explain(self) -> Explanation:
        """Units, kernel, what every boundary is worth, the heads behind it; printed, in words."""
        return self._why

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"level": self.level, "segments": [segment.as_dict() for segment in self]}

    def __repr__(self) -> str:
        begins = "; ".join(repr(segment.strip()[:30]) for segment in self.parts[:4])
        more = "; …" if len(self) > 4 else ""
        size = f"{len(self)} of {len(self.text):,} characters"
        return f"<Segments by {self.level}: {size}: {begins}{more}>"


def cut_text(
    text: str, spans: Sequence[tuple[int, int]], cuts: Sequence[int], scores: Sequence[float]
) -> list[Segment]:
    """Segments from units: each begins where its first unit does, the first at the very start."""
    if not text:
        return []
    starts = [0, *(spans[cut][0] for cut in cuts)]
    ends = [*starts[1:], len(text)]
    return [
        Segment(text, start, end, score)
        for start, end, score in zip(starts, ends, [0.0, *scores], strict=True)
    ]
