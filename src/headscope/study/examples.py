"""Example pairs for head cards: for each head one high pair from each of five windows.

Every window has a random priority that belongs to its text, and the five with the smallest are
kept, so that the choice does not depend on order and is the same after resuming. Only at the end
are the kept windows read once more, to find their pairs.
"""

from collections.abc import Sequence
from typing import Any

from headscope.corpus import Document
from headscope.measures.seen import SeenPairs
from headscope.pairs import Nearest
from headscope.study.observe import Observer
from headscope.study.units import Unit, read_units
from headscope.text import Tokens

EXAMPLES = 5
SHORTEST = 8  # tokens of a window that can show anything
AROUND = 40  # characters of context on either side


def keep(kept: list[dict[str, Any]], units: Sequence[Unit], seed: int) -> list[dict[str, Any]]:
    """The windows with the smallest priorities, among those kept so far and new ones."""
    found = list(kept)
    for unit in units:
        if len(unit) < SHORTEST:
            continue
        priority = int(unit.random(seed, "example").integers(2**62))
        if len(found) < EXAMPLES or priority < found[-1]["priority"]:
            found.append(
                {
                    "priority": priority,
                    "source": unit.source,
                    "line": unit.line,
                    "text": unit.text,
                }
            )
            found.sort(key=lambda one: (one["priority"], one["text"]))
            del found[EXAMPLES:]
    return found


def example_pairs(
    kept: Sequence[dict[str, Any]], observer: Observer, window: int | None, language: str
) -> list[dict[str, Any]]:
    """A row for each head, each way of reading and each kept window."""
    rows = []
    for number, one in enumerate(kept):
        document = Document(one["text"], one["source"], one["line"])
        unit = read_units(number, document, observer.scope.tokenizer, window, language)[0]
        _, seen = observer.see([unit], "real", listed=True)
        for pairs in seen:
            if pairs.rule == 0:
                rows += _of_window(pairs, unit, observer.seed)
    return rows


def _of_window(seen: SeenPairs, unit: Unit, seed: int) -> list[dict[str, Any]]:
    random, tokens, rows = unit.random(seed, "example pair"), unit.tokens, []
    for number, layer in enumerate(seen.layers):
        high, top = layer.high[0], layer.top
        assert top is not None
        for head in range(high.count.shape[1]):
            # The most similar pairs are the high ones; of nearest only the first is sure to be.
            choice = 1 if isinstance(high.rule, Nearest) else int(high.count[0, head])
            choice = min(choice, int((top.first[0, head] >= 0).sum()))
            if not choice:
                continue
            place = int(random.integers(choice))
            i, j = int(top.first[0, head, place]), int(top.second[0, head, place])
            sentence, word = unit.marks.sentences, unit.marks.words
            rows.append(
                {
                    "reading": layer.reading,
                    "special": layer.special,
                    "layer": number + 1,
                    "head": head + 1,
                    "similarity": float(top.value[0, head, place]),
                    "first": tokens.word_texts[i],
                    "second": tokens.word_texts[j],
                    "first_context": context(tokens, i),
                    "second_context": context(tokens, j),
                    "distance": j - i,
                    "same_sentence": bool(sentence[i] == sentence[j] >= 0),
                    "same_word": bool(word[i] == word[j] >= 0),
                    "source": unit.source,
                    "line": unit.line,
                }
            )
    return rows


def context(tokens: Tokens, place: int) -> str:
    """A token in its text, in brackets; a special token stands alone."""
    if tokens.special[place]:
        return f"[{tokens.symbols[place]}]"
    start, end = (int(n) for n in tokens.word_spans[tokens.words[place]])
    before = tokens.text[max(start - AROUND, 0) : start]
    after = tokens.text[end : end + AROUND]
    return " ".join(f"{before}[{tokens.text[start:end]}]{after}".split())
