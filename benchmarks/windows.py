"""What the benchmarks of a study read (the sample text, over and over), and how a study does it."""

import headscope as hs
from headscope.corpus import Document
from headscope.study.observe import Observer
from headscope.study.reader import read_chunk
from headscope.study.sums import Chunked, Totals
from headscope.units import Unit, read_units


def windows_of(scope: hs.Scope, texts: int, tokens: int) -> list[Unit]:
    """So many windows, all of the same number of tokens."""
    text = hs.sample_text()
    while True:
        units = read_units(0, Document(text, "sample"), scope.tokenizer, tokens, "en")
        if len(units) > texts:
            return units[:texts]
        text += "\n" + hs.sample_text()


def in_groups(units: list[Unit], together: int) -> list[list[Unit]]:
    """The units that are read together."""
    return [units[n : n + together] for n in range(0, len(units), together)]


def studied(observer: Observer, totals: Totals, units: list[Unit], together: int) -> None:
    """Observe units and add them up, as a study does with one chunk of a corpus."""
    places = range(len(units))
    groups = [places[n : n + together] for n in range(0, len(units), together)]
    vocabulary, chunk = len(observer.scope.tokenizer), Chunked(len(units))
    with observer.behind() as behind:
        for _ in read_chunk(units, groups, ["real"], observer, vocabulary, behind, chunk):
            pass
        behind(totals.close, units, chunk, vocabulary)
        behind.wait()
