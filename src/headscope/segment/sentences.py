"""Cut a text into sentences: a boundary wherever what is seen at a gap speaks for one.

Two sets of weights are learned, one for text with punctuation and one for text without; which is
used follows from the text. They come as JSON with the specimen; `benchmarks/segment_fit.py` made
them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import regex
from numpy.typing import NDArray

from headscope.errors import CannotRead
from headscope.progress import progress_bar
from headscope.segment.gaps import by_head, gaps, head_features, surface
from headscope.segment.segments import Explanation, Segments, cut_text

if TYPE_CHECKING:
    from headscope.observed import ObservedModel

FORMAT = "headscope sentences 1"
ENDS = regex.compile(r"[.!?…。！？]+(?=[\"'”’»)\]]*(?:\s|$))|[。！？]")
FEWEST_ENDS = 1 / 100  # of the words; with fewer sentence ends a text counts as unpunctuated


@dataclass(frozen=True, eq=False)
class Weights:
    """What speaks for a boundary, in log odds."""

    heads: NDArray[np.float32]  # one for each feature of the heads
    surface: NDArray[np.float32]  # (SURFACE,): one for each kind of gap; holds the constant


@dataclass(frozen=True, eq=False)
class SentenceModel:
    """The weights of one model, for text with and without punctuation."""

    model: str
    shape: tuple[int, int, int]  # layers, heads, head size
    punctuated: Weights
    bare: Weights

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "format": FORMAT,
            "model": self.model,
            "shape": self.shape,
            **{
                name: {
                    "heads": [float(f"{w:.3g}") for w in weights.heads],
                    "surface": [float(f"{w:.4g}") for w in weights.surface],
                }
                for name, weights in (("punctuated", self.punctuated), ("bare", self.bare))
            },
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> "SentenceModel":
        """Back from plain values."""
        layers, heads, size = found["shape"]
        both = [
            Weights(
                np.array(found[name]["heads"], dtype=np.float32),
                np.array(found[name]["surface"], dtype=np.float32),
            )
            for name in ("punctuated", "bare")
        ]
        return cls(found["model"], (layers, heads, size), *both)

    def odds(
        self, scope: "ObservedModel", text: str, advance: Callable[[int], None] | None = None
    ) -> "Odds":
        """For and against a boundary at every gap of the text, and from which heads.

        `advance` is told how many more gaps were looked at.
        """
        weights = self.punctuated if is_punctuated(text) else self.bare
        places = gaps(text)
        found = np.array([weights.surface[surface(text, gap)] for gap in places], dtype=np.float64)
        alike = np.zeros(len(places))
        heads = np.zeros((len(places), self.shape[0] * self.shape[1]), dtype=np.float16)
        for numbers, rows in head_features(scope, text):
            found[numbers] += rows @ weights.heads
            near, rest = by_head(rows, weights.heads, self.shape)
            alike[numbers] = near.sum(axis=1)
            heads[numbers] = near + rest
            if advance is not None:
                advance(len(numbers))
        return Odds(found, alike, heads)


@dataclass(frozen=True, eq=False)
class Odds:
    """What is seen at the gaps of a text, in log odds of a boundary."""

    total: NDArray[np.float64]  # (gaps,)
    alike: NDArray[np.float64]  # (gaps,): the part that is the similarity of both sides
    heads: NDArray[np.float16]  # (gaps, layers × heads): what each head adds

    def shares(self, chosen: NDArray[np.int64], heads: int) -> tuple[tuple[int, int, float], ...]:
        """Layer, head, share in the chosen gaps: what a head adds there beyond its mean."""
        if not len(chosen):
            return ()
        mean = self.heads.mean(axis=0, dtype=np.float64)
        added = np.maximum(self.heads[chosen].mean(axis=0, dtype=np.float64) - mean, 0)
        shares = added / max(added.sum(), 1e-12)
        return tuple(
            (int(h) // heads + 1, int(h) % heads + 1, float(shares[h]))
            for h in np.argsort(-shares, kind="stable")
            if shares[h] > 0
        )


def is_punctuated(text: str) -> bool:
    """Whether the text marks the ends of its sentences."""
    return len(ENDS.findall(text)) >= FEWEST_ENDS * len(text.split())


def segment_sentences(
    scope: "ObservedModel",
    text: str,
    *,
    n: int | None = None,
    granularity: float = 1.0,
    progress: bool = False,
) -> Segments:
    """Cut a text into `n` sentences, or wherever a boundary is likelier than not.

    White space at the end is not looked at, so that it cannot move a boundary.
    """
    shown = text.rstrip()
    places = gaps(shown)
    odds = Odds(
        np.full(len(places), -np.inf),
        np.zeros(len(places)),
        np.zeros((len(places), 0), dtype=np.float16),
    )
    try:
        if places:
            with progress_bar("looking between words", len(places), progress) as advance:
                odds = sentence_model(scope).odds(scope, shown, advance)
    except CannotRead as error:
        if "makes no token" not in str(error):
            raise
    if n is not None:
        best = np.sort(np.argsort(-odds.total, kind="stable")[: max(n - 1, 0)])
    else:
        best = np.flatnonzero(odds.total + np.log(granularity) > 0)
    spans = tuple((a, b) for a, b in zip([0, *places], [*places, len(shown)], strict=True))
    cuts = tuple(int(number) + 1 for number in best)
    scores = np.concatenate([[0.0], odds.total])
    alike = np.concatenate([[0.0], odds.alike])
    why = Explanation(
        spans=spans,
        cuts=cuts,
        scores=scores,
        similarity=alike,
        start=scores - alike,
        heads=odds.shares(best, scope.shape.heads),
        vectors=np.zeros((len(spans), 0), dtype=np.float32),
        text=text,
    )
    parts = cut_text(text, spans, cuts, [float(scores[cut]) for cut in cuts])
    return Segments(text, "sentence", parts, why)


def sentence_model(scope: "ObservedModel") -> SentenceModel:
    """The weights for a scope's model; only the specimen has some."""
    if scope.shape.name != "specimen":
        raise CannotRead(
            f"There are no weights to find sentences with {scope.shape.name}; they come with the "
            "specimen only.",
            python="hs.load().segment(text, level='sentence') uses it. To make some for another "
            "model see benchmarks/segment_fit.py.",
            command="Leave --model out to use it.",
        )
    return _shipped()


@cache
def _shipped() -> SentenceModel:
    text = (files("headscope.segment") / "specimen_sentences.json").read_text(encoding="utf-8")
    return SentenceModel.from_dict(json.loads(text))
