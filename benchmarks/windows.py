"""The windows of text that the benchmarks of a study read: the sample text, over and over."""

import headscope as hs
from headscope.corpus import Document
from headscope.study.units import Unit, read_units


def windows_of(scope: hs.Scope, texts: int, tokens: int) -> list[Unit]:
    """So many windows, all of the same number of tokens."""
    text = hs.sample_text()
    while True:
        units = read_units(0, Document(text, "sample"), scope.tokenizer, tokens, "en")
        if len(units) > texts:
            return units[:texts]
        text += "\n" + hs.sample_text()
