"""Windows of real text that tests of effects read."""

import headscope as hs
from headscope.corpus import Document
from headscope.units import Unit, read_units

PARAGRAPHS = [part for part in hs.sample_text().split("\n") if part.strip()]


def units_for(scope: hs.Scope, number: int = 4, window: int | None = None) -> list[Unit]:
    """The first window of each of the first paragraphs of the sample text."""
    longest = window or scope.shape.window
    return [
        read_units(n, Document(text, f"text {n}"), scope.tokenizer, longest, "en")[0]
        for n, text in enumerate(PARAGRAPHS[:number])
    ]
