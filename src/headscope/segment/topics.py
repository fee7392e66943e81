"""Cut a text into topics: between sentences, where what the heads make of them changes."""

from collections.abc import Callable
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
        vectors, worth = segmenter.read(scope, units, advance)
    cuts = cut_units(vectors, worth, segmenter, n, granularity)
    why = explain(spans, cuts, vectors, worth, segmenter)
    scores = [float(why.scores[cut]) for cut in cuts]
    return Segments(text, "topic", cut_text(text, spans, cuts, scores), why)


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
) -> Explanation:
    """Say what every boundary is worth and which heads it comes from."""
    gained = gains(vectors, cuts)
    by_head = np.split(vectors, len(segmenter.kernel), axis=1)
    parts = np.array([gains(part, cuts)[cuts].sum() for part in by_head])
    if parts.sum() <= 0:  # no boundary: every head has its weight
        parts = np.array([weight for _, _, weight in segmenter.kernel])
    shares = parts / parts.sum()
    heads = [
        (layer, head, float(share))
        for (layer, head, _), share in zip(segmenter.kernel, shares, strict=True)
    ]
    return Explanation(
        spans=tuple(spans),
        cuts=tuple(cuts),
        scores=gained + worth,
        similarity=gained,
        start=worth,
        heads=tuple(sorted(heads, key=lambda head: -head[2])),
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
