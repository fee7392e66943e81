"""One call for both levels: check what was asked, choose the segmenter, cut."""

from pathlib import Path
from typing import TYPE_CHECKING

from headscope.segment.segmenter import Segmenter, default_segmenter
from headscope.segment.segments import Segments
from headscope.segment.topics import segment_topics
from headscope.text import checked

if TYPE_CHECKING:
    from headscope.scope import Scope

LEVELS = ("topic", "sentence")


def segment(
    scope: "Scope",
    text: str,
    level: str,
    n: int | None,
    granularity: float,
    segmenter: Segmenter | str | Path | None,
    language: str,
    progress: bool,
) -> Segments:
    """See `Scope.segment`."""
    if level not in LEVELS:
        raise ValueError(f"there is no level '{level}': it is 'topic' or 'sentence'")
    if n is not None and n < 1:
        raise ValueError(f"n={n} segments cannot be: a text has at least 1")
    if not 0 < granularity < float("inf"):
        raise ValueError(f"granularity={granularity} must be above 0; 1 is as calibrated")
    if not isinstance(text, str) or text.strip():  # an empty text has a segmentation, an empty one
        checked(text)
    if level == "sentence":
        from headscope.segment.sentences import segment_sentences

        return segment_sentences(scope, text, n=n, granularity=granularity, progress=progress)
    if segmenter is None:
        segmenter = default_segmenter(scope)
    elif not isinstance(segmenter, Segmenter):
        segmenter = Segmenter.load(segmenter)
    return segment_topics(
        scope,
        text,
        segmenter,
        n=n,
        granularity=granularity,
        language=language,
        progress=progress,
    )
