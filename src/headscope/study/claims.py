"""The claims of the paper, each with the statistic that tests it.

The claims are those of the abstract (arXiv 2512.21956); every statistic, threshold and null is our
own choice. docs/findings.md says why.
"""

from collections.abc import Callable
from dataclasses import dataclass

from headscope.measures.base import Quantity, ratio
from headscope.study.bootstrap import Values
from headscope.study.evidence import Evidence, first, last
from headscope.study.modes import Null

OTHER_WEIGHTS: tuple[Null, ...] = ("random", "permuted")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and how it is tested."""

    name: str
    says: str
    statistic: str
    measure: str
    value: Callable[[Evidence], Values]  # (replicates + 1,), or (replicates + 1, heads) of heads
    threshold: float
    curve: Callable[[Evidence], Values] | None = None  # (replicates + 1, layers)
    rising: bool = True
    nulls: tuple[Null, ...] = OTHER_WEIGHTS  # that the statistic has to exceed
    of_heads: bool = False  # there is a head: the one that shows it most surely is told of

    @property
    def about_pairs(self) -> bool:
        """Whether it speaks of high pairs, and so needs a view."""
        return self.measure != "focus"


def _above_chance(quantity: Quantity) -> Values:
    assert quantity.chance is not None
    return quantity.value - quantity.chance


CLAIMS = (
    Claim(
        "separators",
        "final layers focus on separators",
        "attention mass on special separators over chance, last quarter of the layers",
        "focus",
        lambda e: last(e.layers("focus", "separator", lift=True)),
        2.0,
        lambda e: e.layers("focus", "separator"),
    ),
    Claim(
        "sentence_ends",
        "final layers focus on the ends of sentences",
        "attention mass on sentence-final punctuation over chance, last quarter of the layers",
        "focus",
        lambda e: last(e.layers("focus", "sentence_end", lift=True)),
        2.0,
        lambda e: e.layers("focus", "sentence_end"),
    ),
    Claim(
        "centralisation",
        "attention centralises",
        "attended columns over chance, first quarter of the layers / last quarter",
        "focus",
        lambda e: ratio(
            first(e.layers("focus", "attended_columns", lift=True)),
            last(e.layers("focus", "attended_columns", lift=True)),
        ),
        1.25,
        lambda e: e.layers("focus", "attended_columns", lift=True),
        rising=False,
    ),
    Claim(
        "repetition_heads",
        "there are repetition heads",
        "share of repeated content words among high pairs over chance, surest head",
        "repetition",
        lambda e: e.heads("repetition", "same_content_word", lift=True),
        5.0,
        nulls=(*OTHER_WEIGHTS, "identity"),
        of_heads=True,
    ),
    Claim(
        "common_token_heads",
        "there are heads around a common token",
        "share of the anchor among the ends of high pairs over those permuted, surest head",
        "anchor",
        lambda e: e.heads("anchor", "word_share", lift=True),
        2.0,
        of_heads=True,
    ),
    Claim(
        "range",
        "long range turns short with depth",
        "mean distance of high pairs over chance, first quarter of the layers / last quarter",
        "range",
        lambda e: ratio(
            first(e.layers("range", "mean_distance", lift=True)),
            last(e.layers("range", "mean_distance", lift=True)),
        ),
        1.1,
        lambda e: e.layers("range", "mean_distance", lift=True),
        rising=False,
    ),
    Claim(
        "same_sentence",
        "preference for the same sentence grows",
        "same-sentence share of high pairs over chance, last quarter of the layers",
        "sentence",
        lambda e: last(e.layers("sentence", "same_sentence", lift=True)),
        1.2,
        lambda e: e.layers("sentence", "same_sentence", lift=True),
        nulls=(*OTHER_WEIGHTS, "shuffle"),
    ),
    Claim(
        "same_sentence_beyond_distance",
        "preference for the same sentence grows beyond what distance explains",
        "same-sentence share over that of pairs as far apart, last quarter of the layers",
        "sentence",
        lambda e: last(e.layers("sentence", "same_sentence_matched", lift=True)),
        1.05,
        lambda e: e.layers("sentence", "same_sentence_matched", lift=True),
        nulls=(*OTHER_WEIGHTS, "shuffle"),
    ),
    Claim(
        "unique_anchors",
        "each head has an anchor of its own",
        "distinct anchors / heads of a layer, above that of permuted tokens",
        "anchor",
        lambda e: _above_chance(e.model("anchor", "word_uniqueness_in_layer")),
        0.1,
        nulls=(*OTHER_WEIGHTS, "shuffle"),
    ),
)
