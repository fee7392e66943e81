"""What a study asks of units that depends on their texts alone, made before a model reads them."""

from collections.abc import Sequence

from headscope.measures import anchor, focus, repetition
from headscope.measures.type_counts import word_places
from headscope.units import Unit

EXAMPLE, NULL = "example", "null"  # what windows are chosen for, by their priorities


def prepare(units: Sequence[Unit], *, seed: int, vocabulary: int, causal: bool) -> None:
    """Have units remember their chance levels and where their words are counted."""
    for unit in units:
        anchor.types_of(unit, seed)
        focus.of_text(unit, causal=causal)
        word_places(unit, vocabulary)
        for purpose in (EXAMPLE, NULL):
            unit.priority(seed, purpose)
    if units:
        repetition.couples(units, seed)
