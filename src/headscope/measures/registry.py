"""Every measure there is. A new one is a file beside this one, its test, and a line here."""

from headscope.measures import (
    anchor,
    focus,
    noise,
    range,
    repetition,
    selection,
    sentence,
    size,
)
from headscope.measures.base import (
    AnyMeasure,
    Definition,
    Measure,
    ObservedAttention,
    ObservedPairs,
)

ATTENTION_MEASURES: tuple[Measure[ObservedAttention], ...] = (focus.MEASURE,)
PAIR_MEASURES: tuple[Measure[ObservedPairs], ...] = (
    size.MEASURE,
    selection.MEASURE,
    range.MEASURE,
    sentence.MEASURE,
    repetition.MEASURE,
    anchor.MEASURE,
    noise.MEASURE,
)
MEASURES: dict[str, AnyMeasure] = {
    **{measure.name: measure for measure in ATTENTION_MEASURES},
    **{measure.name: measure for measure in PAIR_MEASURES},
}

DEFINITIONS: dict[str, Definition] = {
    definition.name: definition
    for measure in MEASURES.values()
    for definition in measure.definitions
}
"""What every quantity means, by its name."""
