"""A person's own classes of tokens: given one by one, by a function of the word, or as CoNLL-U.

Labels are only looked at: the viewer colours the text by them. No measure depends on them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from headscope.conllu import sentences
from headscope.errors import CannotRead, NotPossible
from headscope.text import Tokens

Labels: TypeAlias = Sequence[str | None] | Callable[[str], str | None] | str | Path
COLUMNS = ("upos", "xpos", "deprel", "misc")  # of CoNLL-U, that hold labels


def labels_of(tokens: Tokens, given: Labels, column: str = "upos") -> tuple[str | None, ...]:
    """A label, or none, for every token.

    given: a label for each token (None for none); a function that is asked once for each word; or
        a CoNLL-U file of the same text, of which `column` is taken.
    """
    if isinstance(given, (str, Path)):
        return _of_spans(tokens, _aligned(tokens.text, Path(given), column))
    if callable(given):
        asked = {word: given(word) for word in dict.fromkeys(tokens.word_texts)}
        labels = [
            None if special else asked[word]
            for word, special in zip(tokens.word_texts, tokens.special, strict=True)
        ]
    else:
        labels = list(given)
        if len(labels) != len(tokens):
            raise NotPossible(f"{len(labels)} labels do not fit the text's {len(tokens)} tokens.")
    wrong = next((one for one in labels if not (one is None or isinstance(one, str))), None)
    if wrong is not None:
        raise NotPossible(f"A label is a string, or None for none; not {wrong!r}.")
    return tuple(labels)


def _of_spans(tokens: Tokens, spans: list[tuple[int, int, str]]) -> tuple[str | None, ...]:
    """The label of the span in which each token begins."""
    found: list[str | None] = []
    for start, special in zip(tokens.starts.tolist(), tokens.special.tolist(), strict=True):
        own = (label for first, last, label in spans if first <= start < last)
        found.append(None if special else next(own, None))
    return tuple(found)


def _aligned(text: str, path: Path, column: str) -> list[tuple[int, int, str]]:
    """Where the words of a CoNLL-U file stand in the text, with their labels."""
    if column not in COLUMNS:
        raise NotPossible(f"column is one of {', '.join(COLUMNS)}, not {column!r}.")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(f"The labels in '{path}' cannot be read: {error}.") from None
    spans: list[tuple[int, int, str]] = []
    at = 0
    for sentence in sentences(lines, str(path)):
        for piece in sentence.pieces:
            place = text.find(piece.form, at)
            if place < 0 or text[at:place].strip():
                raise CannotRead(
                    f"'{path}', line {piece.line}: '{piece.form}' does not come next in the text. "
                    "The labels must be of the same text, word after word."
                )
            at = place + len(piece.form)
            spans.append((place, at, piece.label(column)))
    return [span for span in spans if span[2] != "_"]
