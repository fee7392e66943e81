"""Cut a text into topics: between sentences, where what the heads make of them changes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headscope.progress import progress_bar
from headscope.segment.changes import LONGEST, Worth, cut_into, cut_near, gains
from headscope.segment.consensus import MOST_STEPS, agree_into
from headscope.segment.layout import INSIDE, Place
from headscope.segment.passages import Span, passages
from headscope.segment.prior import worth_of_layout
from headscope.segment.segmenter import BoundaryEvidence, Segmenter
from headscope.segment.segments import Explanation, Segments, cut_text
from headscope.segment.ways import Ways

if TYPE_CHECKING:
    from headscope.observed import ObservedModel


def segment_topics(
    scope: "ObservedModel",
    text: str,
    segmenter: Segmenter,
    *,
    n: int | None = None,
    granularity: float = 1.0,
    language: str = "en",
    inside_paragraphs: bool = False,
    progress: bool = False,
) -> Segments:
    """Cut a text into `n` topics, or as many as are worth it; see `Scope.segment`."""
    spans, places = passages(text, language)
    units = [text[start:end] for start, end in spans]
    if len(units) < 2:
        return Segments(text, "topic", cut_text(text, spans, [], []), _no_reason(text, spans))
    with progress_bar("reading units", len(units), progress) as advance:
        evidence = segmenter.evidence(segmenter.read(scope, units, advance))
    layout = worth_of_layout(places, segmenter.penalty, segmenter.sharpness, inside_paragraphs)
    ways = ways_to_cut(evidence, segmenter, layout)
    cuts = cut(ways, segmenter.learned, n, granularity)
    asked = f"granularity {granularity:g}" if n is None else f"{n} asked for"
    why = explain(text, spans, places, cuts, evidence, segmenter, ways, asked)
    scores = [float(why.scores[cut]) for cut in cuts]
    return Segments(text, "topic", cut_text(text, spans, cuts, scores), why)


def explain_at(
    scope: "ObservedModel", text: str, segmenter: Segmenter, granularities: Sequence[float]
) -> list[Explanation]:
    """Why a text is cut where it is at each granularity; its units are read once."""
    spans, places = passages(text)
    if len(spans) < 2:
        return [_no_reason(text, spans)] * len(granularities)
    evidence = segmenter.evidence(segmenter.read(scope, [text[start:end] for start, end in spans]))
    layout = worth_of_layout(places, segmenter.penalty, segmenter.sharpness)
    ways = ways_to_cut(evidence, segmenter, layout)
    counts = [ways.segments(granularity) for granularity in granularities]
    why = dict[int, Explanation]()
    for count, granularity in zip(counts, granularities, strict=True):
        if count not in why:
            cuts = cut(ways, segmenter.learned, granularity=granularity)
            asked = f"granularity {granularity:g}"
            why[count] = explain(text, spans, places, cuts, evidence, segmenter, ways, asked)
    return [why[count] for count in counts]


def ways_to_cut(
    evidence: BoundaryEvidence, segmenter: Segmenter, layout: Worth | None = None
) -> Ways:
    """All ways to cut units there are; without a layout a boundary can be anywhere."""
    worth = evidence.worth if layout is None else evidence.worth + layout
    return Ways(evidence.vectors, worth, segmenter.penalty, segmenter.sharpness, segmenter.shortest)


def cut(ways: Ways, learned: bool, n: int | None = None, granularity: float = 1.0) -> list[int]:
    """The boundaries between units; a boundary is the number of units before it."""
    into = agree_into if learned else cut_into
    if n is not None:
        return into(n, ways.vectors, ways.worth, ways.shortest)
    count, units = ways.segments(granularity), len(ways.vectors)
    if units > LONGEST or units**2 * count > MOST_STEPS:
        return cut_near(count, ways.penalty, ways.vectors, ways.worth, ways.shortest)
    return into(count, ways.vectors, ways.worth, ways.shortest)


def cut_units(
    evidence: BoundaryEvidence, segmenter: Segmenter, n: int | None = None, granularity: float = 1.0
) -> list[int]:
    """The boundaries of units without a layout."""
    return cut(ways_to_cut(evidence, segmenter), segmenter.learned, n, granularity)


def explain(
    text: str,
    spans: list[Span],
    places: list[Place],
    cuts: list[int],
    evidence: BoundaryEvidence,
    segmenter: Segmenter,
    ways: Ways,
    asked: str,
) -> Explanation:
    """Say what every boundary is worth and which heads it comes from."""
    gained = gains(evidence.vectors, cuts)
    of_kernel = np.split(evidence.vectors, len(segmenter.kernel), axis=1)
    layers, heads, _ = segmenter.shape
    added = evidence.by_head[cuts].copy()  # (boundaries, heads)
    added[:, segmenter.columns] += np.stack([gains(part, cuts)[cuts] for part in of_kernel], axis=1)
    parts = np.maximum(added.sum(axis=0), 0)  # a head that speaks against them has no share
    if not parts.any():  # no boundary: every head of the kernel has its weight
        parts[segmenter.columns] = [weight for _, _, weight in segmenter.kernel]
    shares = parts / parts.sum()
    most_first = [int(h) for h in np.argsort(-shares, kind="stable") if shares[h] > 0]
    return Explanation(
        spans=tuple(spans),
        cuts=tuple(cuts),
        scores=gained + evidence.worth,
        similarity=gained,
        start=evidence.worth,
        heads=tuple((h // heads + 1, h % heads + 1, float(shares[h])) for h in most_first),
        vectors=evidence.vectors,
        text=text,
        asked=asked,
        places=tuple(places),
        layout=ways.worth - evidence.worth,
        added=added.reshape(len(cuts), layers, heads),
        ways=ways,
    )


def _no_reason(text: str, spans: list[Span]) -> Explanation:
    """Of a text with no place for a boundary."""
    nothing = np.zeros(len(spans))
    empty = np.zeros((len(spans), 0), dtype=np.float32)
    found = Explanation(tuple(spans), (), nothing, nothing, nothing, (), empty, text)
    return replace(found, places=(INSIDE,) * len(spans), layout=nothing)
