"""Every section about a verb, in the order of the report. A new one is a file and a line here."""

from collections.abc import Mapping

from headscope.report.added import (
    agreement,
    communities,
    denoise,
    effects,
    entropy,
    prune,
    structure,
)
from headscope.report.added.section import Figure, Section

SECTIONS: tuple[Section, ...] = (
    effects.SECTION,
    prune.SECTION,
    entropy.SECTION,
    agreement.SECTION,
    denoise.SECTION,
    communities.SECTION,
    structure.SECTION,
)

FIGURES: Mapping[str, Figure] = {
    name: section.drawing(name) for section in SECTIONS for name in section.figures
}
QUANTITIES: Mapping[str, tuple[str, ...]] = {
    name: figure.quantities for section in SECTIONS for name, figure in section.figures.items()
}
"""What each of these figures shows, by the names that `effects.registry` defines."""
