"""What the measures mean that the page works out for a text itself: as the registry says it."""

from dataclasses import dataclass
from typing import Literal

from headscope.measures.registry import DEFINITIONS


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """A measure of one text: its name in the page, and the quantity that it is."""

    name: str
    title: str
    quantity: str
    of_chance: bool = False  # the quantity as a multiple of what it would be over all pairs

    @property
    def packed(self) -> dict[str, str]:
        """What the page is told of it."""
        defined = DEFINITIONS[self.quantity]
        shown: Literal["percent", "number", "times"] = "times" if self.of_chance else defined.show
        says = defined.says.removesuffix("; mean over texts")  # there is one
        beside = ", over the same of all pairs: 1 is chance" if self.of_chance else ""
        return {
            "name": self.name,
            "title": self.title,
            "definition": says + beside,
            "shown": shown,
        }


TEXT_MEASURES = (
    TextMeasure("similarity", "mean similarity", "similarity"),
    TextMeasure("size", "vector size", "norm"),
    TextMeasure("common_mode", "common mode", "common_mode"),
    TextMeasure("range", "range", "mean_distance", of_chance=True),
    TextMeasure("same_sentence", "same sentence", "same_sentence"),
    TextMeasure("repetition", "repetition", "same_word"),
)
