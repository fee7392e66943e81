"""The verb `structure`: how well each head finds what people have annotated.

The gold documents are a corpus of their own, whichever the study was made from. A hash of its text
puts each on one of two halves: a relation's best head is chosen on one and judged on the other.
"""

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headscope.corpus import Document as Text
from headscope.corpus import printable
from headscope.effects.adding import described, refuse_other_model, refuse_without_texts
from headscope.effects.sample import Sample
from headscope.effects.structure.best import Chosen, Judged, Offsets
from headscope.effects.structure.formats import read_gold
from headscope.effects.structure.gold import Gold
from headscope.effects.structure.questions import ANY, Values, questions, words_of
from headscope.effects.structure.scores import Asked
from headscope.effects.structure.signals import SIGNALS, read
from headscope.effects.structure.tables import best_table, heads_table
from headscope.effects.structure.totals import Document, Totals
from headscope.effects.sums import ReplicateSums
from headscope.effects.tables import quantity_table
from headscope.effects.verb import Verb
from headscope.errors import CannotRead
from headscope.measures.base import Definition, Quantity, ratio
from headscope.observed import ObservedModel
from headscope.study.folder import Study, open_study
from headscope.study.progress import Progress, Quiet
from headscope.study.run import study
from headscope.study.writer import StudyFolder
from headscope.units import Unit, read_units

if TYPE_CHECKING:
    from headscope.study.manifest import Manifest

LEAST = 20  # words asked: a relation with fewer is left out
ONE_NAME, MENTION = "one name", "mention of the same"
TOLD = {
    "arcs": ("dependency", ANY, "the word that it hangs on, among the words of its sentence"),
    "mentions": (
        "coreference",
        MENTION,
        "a mention of the same thing, among all mentions of the window",
    ),
    "names": ("name", ONE_NAME, "a word of the same name, among the words of its sentence"),
}
BY = {
    "similarity": ("cosine", "the cosine of their vectors"),
    "attention": ("attention_to", "attention from it"),
    "attention_back": ("attention_from", "attention from the candidate to it"),
}


def _definition(what: str, by: str) -> Definition:
    return Definition(
        f"{what}_by_{by}",
        f"share of the words that have one whose largest signal is to {TOLD[what][2]}; the signal "
        f"is {BY[by][1]}",
        "share of words",
        "percent",
        f"the head finds more {what}",
        "candidates picked at the distances that the head picks for the other words of the window",
        "ours",
    )


VERB = Verb(
    "structure",
    "how well each head finds dependencies, mentions of the same thing and names",
    {"structure_heads": tuple(_definition(what, by) for what in TOLD for by in BY)},
    told=("arcs_by_attention", "mentions_by_similarity"),
    other_tables=("structure", "structure_best"),
)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Which documents of a source of gold are read, and on which half each is."""

    source: str | Path
    most: int  # the largest key of a document that is drawn
    number: int
    seed: int

    def half(self, number: int) -> Iterator[Gold]:
        """The documents of one half, in their order."""
        for gold in read_gold(self.source):
            key = _key(gold, self.seed)
            if key <= self.most and key % 2 == number:
                yield gold


def add_structure(
    scope: ObservedModel,
    gold: str | Path,
    out: str | Path,
    *,
    limit: int = 200,
    windows: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> Study:
    """Add to a study how well heads find what is annotated in `gold`: a file, or a folder of them.

    At most `limit` documents, drawn by the seed, and `windows` of each; 0: all.
    """
    begun, told = time.monotonic(), progress or Quiet()
    folder = StudyFolder(out)
    said = open_study(out) if folder.finished else None
    refuse_without_texts(scope, None if said is None else said.manifest.corpus)
    if said is not None:
        refuse_other_model(said, scope)
    drawn = draw(gold, limit, seed)
    if not folder.finished:
        texts = [one.text for half in (0, 1) for one in drawn.half(half)]
        study(scope, texts, out, progress=told)
    work = _Work(scope, open_study(out).manifest, drawn, windows, told)
    told.start(Sample(gold, number=drawn.number), 0, 0)
    with told:
        tables = work.tables()
    parameters = {
        "gold": Path(gold).name,
        "limit": limit or "all",
        "windows": windows or "all",
        "seed": seed,
        "documents chosen on": work.documents[0],
        "documents judged on": work.documents[1],
    }
    how = described(scope, begun, (sum(work.documents), work.windows_read, work.tokens), parameters)
    folder.add(VERB.name, tables, how)
    return open_study(out)


def draw(source: str | Path, limit: int, seed: int) -> Drawn:
    """Go over the documents once and draw."""
    keys = {_key(gold, seed) for gold in read_gold(source)}
    if not keys:
        raise CannotRead(f"'{source}' holds no annotated document.")
    kept = heapq.nsmallest(limit or len(keys), keys)
    return Drawn(source, kept[-1], len(kept), seed)


def _key(gold: Gold, seed: int) -> int:
    text = gold.text.encode("utf-8", "surrogatepass")
    key = blake2b(text, digest_size=16, key=f"{seed} gold".encode())
    return int.from_bytes(key.digest(), "little")


class _Work:
    """Both halves being read, the first before the second."""

    def __init__(
        self,
        scope: ObservedModel,
        manifest: "Manifest",
        drawn: Drawn,
        windows: int,
        progress: Progress,
    ):
        chosen = manifest.parameters
        self.scope, self.drawn, self.most, self.progress = scope, drawn, windows, progress
        self.window, self.language = chosen.window or scope.shape.window, chosen.language
        self.shape = (scope.shape.layers, scope.shape.heads)
        self.sums = ReplicateSums(chosen.seed, chosen.replicates)
        self.halves = (Totals(), Totals())
        self.documents = [0, 0]
        self.windows_read = self.tokens = 0
        self.names: dict[str, None] = {}

    def tables(self) -> dict[str, "object"]:
        """Read everything."""
        offsets, judged = Offsets(), None
        for number, totals in enumerate(self.halves):
            if number == 1:
                judged = Judged(Chosen.on(self.halves[0], offsets), self.sums)
            for gold in self.drawn.half(number):
                units = self._units(gold)
                document, baseline = Document(self.shape), Offsets()
                for unit in units:
                    self._window(gold, unit, document, baseline)
                if not document.sums:
                    continue
                self.documents[number] += 1
                totals.add(document)
                self._heads(units[0], document)
                if judged is None:
                    offsets.add(baseline)
                else:
                    judged.add(units[0], document, baseline)
                self.progress.advance(units)
        assert judged is not None
        both = self.halves[0].merged(self.halves[1])
        if not both.sums:
            raise CannotRead(
                f"'{self.drawn.source}' annotates nothing that a head can be asked for: no "
                "dependencies, and no mentions or names of which one has another in its window."
            )
        tables = {
            "structure": heads_table(both, LEAST),
            "structure_best": best_table(judged, both, LEAST),
        }
        means = {
            name: Quantity(
                ratio(self.sums[name], self.sums[f"{name}#"]),
                ratio(self.sums[f"{name} matched"], self.sums[f"{name}#"]),
            )
            for name in self.names
        }
        return {"structure_heads": quantity_table(means), **tables}

    def _units(self, gold: Gold) -> list[Unit]:
        text = Text(gold.text, printable(gold.name))
        try:
            units = read_units(0, text, self.scope.tokenizer, self.window, self.language)
        except CannotRead:
            return []  # nothing in it that the tokenizer makes a token of
        if self.most and len(units) > self.most:
            units = [units[place * len(units) // self.most] for place in range(self.most)]
        return units

    def _window(self, gold: Gold, unit: Unit, document: Document, baseline: Offsets) -> None:
        words = words_of(gold, unit.tokens)
        asked = [Asked(question) for question in questions(gold, words)]
        if not asked:
            return
        self.windows_read += 1
        self.tokens += len(unit)
        baseline.look(asked)
        read(self.scope, unit.tokens, words, asked, document.add)

    def _heads(self, unit: Unit, document: Document) -> None:
        """Add what the cards of heads say."""
        for what, (kind, relation, _) in TOLD.items():
            own = document.sums.get((kind, relation, "found"))
            for by, (signal, _) in BY.items() if own else ():
                assert own is not None
                place, name = SIGNALS.index(signal), f"{what}_by_{by}"
                self.names[name] = None
                values: dict[str, Values] = {
                    name: own.value[place],
                    f"{name} matched": own.matched[place],
                    f"{name}#": np.full((1, 1), own.count),
                }
                self.sums.add([unit], **{key: value[None] for key, value in values.items()})
