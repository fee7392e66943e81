"""Windows of the corpus that a study keeps, and an example pair for each head from five of them.

Every window has a random priority that belongs to its text, and those with the smallest are kept,
so that the choice does not depend on order and is the same after resuming. They are what a person
browses beside the study; only at the end are five read once more, to find pairs for head cards.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus import Document
from headscope.measures.base import ObservedPairs
from headscope.pairs import Nearest, PairStatistics
from headscope.study.labels import REPETITIONS, Label, anchor_label
from headscope.study.observe import Observer
from headscope.study.prepare import EXAMPLE
from headscope.text import Tokens
from headscope.units import Unit, read_units

EXAMPLES = 5
LEADING = 5  # words with most ends of high pairs in a window, which may be anchors
TEXTS = 24  # windows kept for a person to look at, unless other is asked for
SHORTEST = 8  # tokens of a window that can show anything
LONGEST = 4096  # tokens of a window that is kept to be looked at
CHARACTERS = 2**16  # of its text: a tokenizer may drop any number of them
AROUND = 40  # characters of context on either side


def keep(
    kept: list[dict[str, Any]], units: Sequence[Unit], seed: int, texts: int
) -> list[dict[str, Any]]:
    """The windows with the smallest priorities, among those kept so far and new ones."""
    found, most = list(kept), max(EXAMPLES, texts)
    for unit in units:
        if not SHORTEST <= len(unit) <= LONGEST or len(unit.text) > CHARACTERS:
            continue
        priority = unit.priority(seed, EXAMPLE)
        if len(found) < most or priority < found[-1]["priority"]:
            found.append(
                {
                    "priority": priority,
                    "source": unit.source,
                    "line": unit.line,
                    "window": unit.window,
                    "text": unit.text,
                }
            )
            found.sort(key=lambda one: (one["priority"], one["text"]))
            del found[most:]
    return found


def example_pairs(
    kept: Sequence[dict[str, Any]], observer: Observer, window: int | None, language: str
) -> list[dict[str, Any]]:
    """A row for each head, each way of reading and each kept window; and more that show something.

    `chosen` picks from them once the labels of the heads are known.
    """
    rows = []
    for number, one in enumerate(kept[:EXAMPLES]):
        document = Document(one["text"], one["source"], one["line"])
        unit = read_units(number, document, observer.scope.tokenizer, window, language)[0]
        _, seen = observer.see([unit], "real", listed=True)
        for pairs in seen:
            if pairs.rule == 0:
                rows += _of_window(pairs, unit, observer.seed)
    return rows


def _of_window(seen: ObservedPairs, unit: Unit, seed: int) -> list[dict[str, Any]]:
    random, rows = unit.random(seed, "example pair"), []
    pairs, high, top = seen.statistics, seen.high_pairs, seen.statistics.top
    assert top is not None
    for layer in range(high.count.shape[1]):
        for head in range(high.count.shape[2]):
            # The most similar pairs are the high ones; of nearest only the first is sure to be.
            choice = 1 if isinstance(high.rule, Nearest) else int(high.count[0, layer, head])
            choice = min(choice, int((top.first[0, layer, head] >= 0).sum()))
            if not choice:
                continue
            first, second = top.first[0, layer, head, :choice], top.second[0, layer, head, :choice]
            anyone = int(random.integers(choice))
            drawn = (None, np.array([anyone]))
            for shows, places in (drawn, *_showing(unit, first, second).items()):
                place = int(places[random.integers(len(places))])
                i, j = int(first[place]), int(second[place])
                value = float(top.value[0, layer, head, place])
                rows.append(_row(unit, pairs, layer, head, value, i, j) | {"shows": shows})
    return rows


def _showing(
    unit: Unit, first: NDArray[np.int64], second: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Which of some pairs show what a label may say: a repetition of a class, or an anchor."""
    marks, tokens = unit.marks, unit.tokens
    word, occurrence = marks.words, marks.occurrences
    repeats = (word[first] == word[second]) & (word[first] >= 0)
    repeats &= occurrence[first] != occurrence[second]
    kind = np.maximum(marks.word_classes[first], marks.word_classes[second])
    found = {name: np.flatnonzero(repeats & (kind == n)) for n, name in enumerate(REPETITIONS)}
    ends = np.concatenate([word[first], word[second]])
    types, counts = np.unique(ends[ends >= 0], return_counts=True)
    for one in types[np.argsort(-counts, kind="stable")][:LEADING]:
        text = tokens.word_texts[int(np.flatnonzero(word == one)[0])].casefold()
        found[anchor_label(text)] = np.flatnonzero((word[first] == one) | (word[second] == one))
    return {name: places for name, places in found.items() if len(places)}


def _row(
    unit: Unit, pairs: PairStatistics, layer: int, head: int, value: float, i: int, j: int
) -> dict[str, Any]:
    tokens, marks = unit.tokens, unit.marks
    sentence, word, occurrence = marks.sentences, marks.words, marks.occurrences
    return {
        "reading": pairs.reading,
        "special": pairs.special,
        "layer": layer + 1,
        "head": head + 1,
        "similarity": value,
        "first": tokens.word_texts[i],
        "second": tokens.word_texts[j],
        "first_context": context(tokens, i),
        "second_context": context(tokens, j),
        "distance": j - i,
        "same_sentence": bool(sentence[i] == sentence[j] >= 0),
        "same_word": bool(word[i] == word[j] >= 0 and occurrence[i] != occurrence[j]),
        "source": unit.source,
        "line": unit.line,
        "text": unit.document + 1,
        "first_position": i,
        "second_position": j,
    }


def chosen(
    candidates: Sequence[dict[str, Any]], labels: Mapping[tuple[int, int], Sequence[Label]]
) -> list[dict[str, Any]]:
    """For each head, way of reading and window the pair that shows the strongest label it can."""
    found: dict[tuple[Any, ...], dict[str | None, dict[str, Any]]] = {}
    for one in candidates:
        where = tuple(one[name] for name in ("text", "reading", "special", "layer", "head"))
        found.setdefault(where, {})[one["shows"]] = one
    rows = []
    for (*_, layer, head), showing in found.items():
        names = [label.name for label in labels[layer, head] if label.name in showing]
        rows.append(showing[names[0] if names else None])
    return rows


def context(tokens: Tokens, place: int) -> str:
    """A token in its text, in brackets; a special token stands alone."""
    if tokens.special[place]:
        return f"[{tokens.symbols[place]}]"
    start, end = (int(n) for n in tokens.word_spans[tokens.words[place]])
    before = tokens.text[max(start - AROUND, 0) : start]
    after = tokens.text[end : end + AROUND]
    return " ".join(f"{before}[{tokens.text[start:end]}]{after}".split())
