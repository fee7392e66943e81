"""Cut a text into topics: between sentences, where what the heads make of them changes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.segment.bar import bar
from headscope.segment.changes import cut_into, cut_with, gains
from headscope.segment.consensus import agree_into
from headscope.segment.segmenter import Seen, Segmenter
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
    with bar("reading units", len(units), progress) as advance:
        seen = segmenter.see(segmenter.read(scope, units, advance))
    cuts = cut_units(seen, segmenter, n, granularity)
    why = explain(spans, cuts, seen, segmenter)
    scores = [float(why.scores[cut]) for cut in cuts]
    return Segments(text, "topic", cut_text(text, spans, cuts, scores), why)


def explain_at(
    scope: "Scope", text: str, segmenter: Segmenter, granularities: Sequence[float]
) -> list[Explanation]:
    """Why a text is cut where it is at each granularity; its units are read once."""
    spans = unit_spans(text)
    if len(spans) < 2:
        return [_no_reason(spans)] * len(granularities)
    seen = segmenter.see(segmenter.read(scope, [text[start:end] for start, end in spans]))
    ways = [
        tuple(cut_units(seen, segmenter, granularity=granularity)) for granularity in granularities
    ]
    why = {way: explain(spans, list(way), seen, segmenter) for way in set(ways)}
    return [why[way] for way in ways]


def cut_units(
    seen: Seen, segmenter: Segmenter, n: int | None = None, granularity: float = 1.0
) -> list[int]:
    """The boundaries between units; a boundary is the number of units before it."""
    if n is not None:
        into = agree_into if segmenter.learned else cut_into
        return into(n, seen.vectors, seen.worth, segmenter.shortest)
    return cut_with(segmenter.penalty / granularity, seen.vectors, seen.worth, segmenter.shortest)


def explain(
    spans: list[tuple[int, int]], cuts: list[int], seen: Seen, segmenter: Segmenter
) -> Explanation:
    """Say what every boundary is worth and which heads it comes from."""
    gained = gains(seen.vectors, cuts)
    of_kernel = np.split(seen.vectors, len(segmenter.kernel), axis=1)
    layers, heads, _ = segmenter.shape
    parts = np.zeros(layers * heads)
    parts[segmenter.columns] = [gains(part, cuts)[cuts].sum() for part in of_kernel]
    parts += seen.by_head[cuts].sum(axis=0)
    parts = np.maximum(parts, 0)  # a head that speaks against the boundaries has no share in them
    if not parts.any():  # no boundary: every head of the kernel has its weight
        parts[segmenter.columns] = [weight for _, _, weight in segmenter.kernel]
    shares = parts / parts.sum()
    most_first = [int(h) for h in np.argsort(-shares, kind="stable") if shares[h] > 0]
    return Explanation(
        spans=tuple(spans),
        cuts=tuple(cuts),
        scores=gained + seen.worth,
        similarity=gained,
        start=seen.worth,
        heads=tuple((h // heads + 1, h % heads + 1, float(shares[h])) for h in most_first),
        vectors=seen.vectors,
    )


def _no_reason(spans: list[tuple[int, int]]) -> Explanation:
    """Of a text with no place for a boundary."""
    nothing = np.zeros(len(spans))
    empty = np.zeros((len(spans), 0), dtype=np.float32)
    return Explanation(tuple(spans), (), nothing, nothing, nothing, (), empty)
