"""Cut a text into topics: between sentences, where what the heads make of them changes."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.segment.changes import cut_into, cut_with, gains
from headscope.segment.segmenter import Segmenter
from headscope.segment.segments import Explanation, Segments, cut_text
from headscope.segment.units import unit_spans

if TYPE_CHECKING:
    from headscope.scope import Scope


def segment_topics(
    scope: "Scope",
    text: str,
    segmenter: Segmenter,
    *,
    n: int | None = None,
    granularity: float = 1.0,
    language: str = "en",
    progress: bool = False,
) -> Segments:
    """Cut a text into `n` topics, or as many as are worth it; see `Scope.segment`."""
    spans = unit_spans(text, language)
    units = [text[start:end] for start, end in spans]
    if len(units) < 2:
        return Segments(text, "topic", cut_text(text, spans, [], []), _no_reason(spans))
    with _bar(len(units), progress) as advance:
        seen = segmenter.see(segmenter.read_heads(scope, units, advance))
    cuts = cut_units(seen.vectors, seen.worth, segmenter, n, granularity)
    why = explain(spans, cuts, seen.vectors, seen.worth, segmenter, seen.by_head)
    scores = [float(why.scores[cut]) for cut in cuts]
    return Segments(text, "topic", cut_text(text, spans, cuts, scores), why)


def explain_at(
    scope: "Scope", text: str, segmenter: Segmenter, granularities: Sequence[float]
) -> list[Explanation]:
    """Why a text is cut where it is at each granularity; its units are read once."""
    spans = unit_spans(text)
    if len(spans) < 2:
        return [_no_reason(spans)] * len(granularities)
    seen = segmenter.see(segmenter.read_heads(scope, [text[start:end] for start, end in spans]))
    ways = [
        tuple(cut_units(seen.vectors, seen.worth, segmenter, granularity=granularity))
        for granularity in granularities
    ]
    why = {
        way: explain(spans, list(way), seen.vectors, seen.worth, segmenter, seen.by_head)
        for way in set(ways)
    }
    return [why[way] for way in ways]


def cut_units(
    vectors: NDArray[np.float32],
    worth: NDArray[np.float64],
    segmenter: Segmenter,
    n: int | None = None,
    granularity: float = 1.0,
) -> list[int]:
    """The boundaries between units; a boundary is the number of units before it."""
    if n is not None:
        return cut_into(n, vectors, worth, segmenter.shortest)
    return cut_with(segmenter.penalty / granularity, vectors, worth, segmenter.shortest)


def explain(
    spans: list[tuple[int, int]],
    cuts: list[int],
    vectors: NDArray[np.float32],
    worth: NDArray[np.float64],
    segmenter: Segmenter,
    by_head: NDArray[np.float64] | None = None,
) -> Explanation:
    """Say what every boundary is worth and which heads it comes from.

    `by_head` is the worth, (units, layers × heads); without it heads share in the kernel's gain.
    """
    gained = gains(vectors, cuts)
    of_kernel = np.split(vectors, len(segmenter.kernel), axis=1)
    layers, heads, _ = segmenter.shape
    parts = np.zeros(layers * heads)
    parts[segmenter.columns] = [gains(part, cuts)[cuts].sum() for part in of_kernel]
    if by_head is not None:
        parts += by_head[cuts].sum(axis=0)
    parts = np.maximum(parts, 0)  # a head that speaks against the boundaries has no share in them
    if not parts.any():  # no boundary: every head of the kernel has its weight
        parts[segmenter.columns] = [weight for _, _, weight in segmenter.kernel]
    shares = parts / parts.sum()
    most_first = [int(h) for h in np.argsort(-shares, kind="stable") if shares[h] > 0]
    return Explanation(
        spans=tuple(spans),
        cuts=tuple(cuts),
        scores=gained + worth,
        similarity=gained,
        start=worth,
        heads=tuple((h // heads + 1, h % heads + 1, float(shares[h])) for h in most_first),
        vectors=vectors,
    )


def _no_reason(spans: list[tuple[int, int]]) -> Explanation:
    """Of a text with no place for a boundary."""
    nothing = np.zeros(len(spans))
    empty = np.zeros((len(spans), 0), dtype=np.float32)
    return Explanation(tuple(spans), (), nothing, nothing, nothing, (), empty)


def _bar(units: int, shown: bool) -> Any:
    """A progress bar on standard error, as a context that gives what to call; or nothing."""
    if not shown:
        return nullcontext(None)
    from rich.console import Console
    from rich.progress import Progress

    class Bar(Progress):
        def __enter__(self) -> Callable[[int], None]:  # type: ignore[override]
            super().__enter__()
            task = self.add_task("reading units", total=units)
            return lambda count: self.advance(task, count)

    return Bar(console=Console(stderr=True), transient=True)
