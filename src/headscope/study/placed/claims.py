"""The claims that mean something of pictures and sounds: where attention gathers, and the range."""

from headscope.measures.base import ratio
from headscope.study.bootstrap import Values
from headscope.study.claims import CLAIMS, Claim
from headscope.study.evidence import Evidence, first, last
from headscope.study.placed.measures import APART


def _far(unit: str) -> Claim:
    def curve(evidence: Evidence) -> Values:
        return evidence.layers("range", APART[unit], lift=True)

    return Claim(
        "range",
        "long range turns short with depth",
        f"mean distance of high pairs in {unit} over chance, first quarter of the layers / last "
        "quarter",
        "range",
        lambda e: ratio(first(curve(e)), last(curve(e))),
        1.1,
        curve,
        rising=False,
    )


def claims(unit: str) -> tuple[Claim, ...]:
    """Those of positions whose distances are in a unit."""
    return (*(one for one in CLAIMS if one.name == "centralisation"), _far(unit))
