"""One call for both levels: check what was asked, choose the segmenter, cut."""

from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import NotPossible
from headscope.segment.segmenter import Segmenter, default_segmenter
from headscope.segment.segments import Segments
from headscope.segment.topics import segment_topics
from headscope.text import checked

if TYPE_CHECKING:
    from headscope.observed import ObservedModel

LEVELS = ("topic", "sentence")


def segment(
    scope: "ObservedModel",
    text: str,
    level: str = "topic",
    n: int | None = None,
    granularity: float = 1.0,
    segmenter: Segmenter | str | Path | None = None,
    language: str = "en",
    inside_paragraphs: bool = False,
    progress: bool = False,
) -> Segments:
    """See `Scope.segment`."""
    if level not in LEVELS:
        raise NotPossible(f"there is no level '{level}': it is 'topic' or 'sentence'")
    if n is not None and n < 1:
        raise NotPossible(f"n={n} segments cannot be: a text has at least 1")
    if not 0 < granularity < float("inf"):
        raise NotPossible(f"granularity={granularity} must be above 0; 1 is as calibrated")
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
        inside_paragraphs=inside_paragraphs,
        progress=progress,
    )
