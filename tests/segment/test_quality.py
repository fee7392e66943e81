"""How well texts are cut that nobody here wrote, of the half that nothing was learned from."""

import hashlib
import json

import numpy as np
import pytest

from headscope.segment.changes import cut_into
from headscope.segment.scores import boundary_f1, pk
from headscope.segment.segmenter import Segmenter, default_segmenter, kernel_vectors
from headscope.segment.topics import cut_units
from places import SHARED

BOOKS = ("biology", "sociology", "us-history")


def chapters(most: int) -> list[list[list[str]]]:
    """Chapters of schoolbooks as sections of sentences; `benchmarks/segment.py` has the halves."""
    found = []
    for book in BOOKS:
        lines = (SHARED / "data" / "openstax" / f"{book}.jsonl").read_text(encoding="utf-8")
        for record in map(json.loads, lines.splitlines()):
            judged = hashlib.sha256(record["id"].encode()).digest()[0] % 2 == 1
            if judged and len(record["segments"]) >= 4 and sum(map(len, record["segments"])) < 90:
                found.append((hashlib.sha256(record["id"].encode()).hexdigest(), record))
    return [record["segments"] for _, record in sorted(found, key=lambda pair: pair[0])[:most]]


def words(units: list[str]) -> np.ndarray:
    """Units as counts of their words, rare ones weighing more."""
    split = [unit.lower().split() for unit in units]
    known = {word: number for number, word in enumerate(sorted({w for ws in split for w in ws}))}
    counts = np.zeros((len(units), len(known)), dtype=np.float32)
    for row, ws in enumerate(split):
        for word in ws:
            counts[row, known[word]] += 1
    return counts * np.log(len(units) / (counts > 0).sum(axis=0))


@pytest.mark.shared
def test_chapters_are_cut_better_than_by_their_words_and_than_without_learning(specimen):
    learned = default_segmenter(specimen)
    late = Segmenter("late", learned.shape, learned.kernel, 2.0, learned.shortest)
    scores: dict[str, list[float]] = {"learned": [], "late": [], "words": [], "nowhere": []}
    agreed: dict[str, list[float]] = {"learned": [], "late": [], "words": []}
    for sections in chapters(10):
        units, lengths = [u for s in sections for u in s], [len(s) for s in sections]
        heads = learned.read(specimen, units)
        count, by_words = len(lengths), kernel_vectors(words(units)[:, None, :], np.ones(1))
        for name, cuts in (
            ("learned", cut_units(learned.evidence(heads), learned, count)),
            ("late", cut_units(late.evidence(heads), late, count)),
            ("words", cut_into(count, by_words, np.zeros(len(units)), learned.shortest)),
        ):
            found = np.diff([0, *cuts, len(units)]).tolist()
            scores[name].append(pk(found, lengths))
            agreed[name].append(boundary_f1(found, lengths))
        scores["nowhere"].append(pk([len(units)], lengths))
    error = {name: np.mean(values) for name, values in scores.items()}
    f1 = {name: np.mean(values) for name, values in agreed.items()}
    assert error["learned"] < min(error["late"], error["words"], error["nowhere"]), error
    assert f1["learned"] > max(f1["late"], f1["words"]), f1
