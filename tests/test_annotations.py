"""A person's own labels of tokens, from a list, a function or CoNLL-U, as the viewer gets them."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.errors import CannotRead, NotPossible
from headscope.viewer.packed import packed
from viewer.test_packed import unpacked

TEXT = "The keeper can't sleep. He lit the lamp."
CONLLU = """# text = The keeper can't sleep.
1	The	the	DET	DT	_	2	det	_	_
2	keeper	keeper	NOUN	NN	_	5	nsubj	_	_
3-4	can't	_	_	_	_	_	_	_	_
3	ca	can	AUX	MD	_	5	aux	_	_
4	n't	not	PART	RB	_	5	advmod	_	_
5	sleep	sleep	VERB	VB	_	0	root	_	SpaceAfter=No
6	.	.	PUNCT	.	_	5	punct	_	_

1	He	he	PRON	PRP	_	2	nsubj	_	_
2	lit	light	VERB	VBD	_	0	root	_	_
2.1	it	it	PRON	PRP	_	_	_	_	_
3	the	the	DET	DT	_	4	det	_	_
4	lamp	lamp	NOUN	NN	_	2	obj	_	SpaceAfter=No
5	.	.	PUNCT	.	_	2	punct	_	_
"""


@pytest.fixture(scope="module")
def reading(tiny: hs.Scope) -> hs.Reading:
    return tiny.read(TEXT)


def test_a_function_labels_words_and_no_special_token(reading: hs.Reading) -> None:
    labels = reading.mark("long", lambda word: "long" if len(word) > 4 else None).marks["long"]
    for word, special, label in zip(
        reading.tokens.word_texts, reading.tokens.special, labels, strict=True
    ):
        assert label == ("long" if len(word) > 4 and not special else None)


def test_conllu_labels_the_words_it_aligns_with(reading: hs.Reading, tmp_path: Path) -> None:
    file = tmp_path / "gold.conllu"
    file.write_text(CONLLU)
    by_word = {}
    for column in ("upos", "deprel"):
        labels = reading.mark(column, file, column=column).marks[column]
        by_word[column] = dict(zip(reading.tokens.word_texts, labels, strict=True))
    assert {"keeper": "NOUN", "sleep": "VERB", "can't": "AUX", "lamp": "NOUN"}.items() <= by_word[
        "upos"
    ].items()
    assert by_word["deprel"]["He"] == "nsubj"
    assert by_word["upos"]["[CLS]"] is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (CONLLU.replace("keeper\tkeeper", "sailor\tsailor"), "line 3: 'sailor' does not come next"),
        ("1\tThe\tthe\n", "line 1: a line of CoNLL-U has 10 columns"),
    ],
)
def test_labels_of_another_text_are_refused_with_their_line(
    reading: hs.Reading, tmp_path: Path, content: str, said: str
) -> None:
    file = tmp_path / "gold.conllu"
    file.write_text(content)
    with pytest.raises(CannotRead, match=said):
        reading.mark("gold", file)
    with pytest.raises(CannotRead, match="cannot be read"):
        reading.mark("gold", tmp_path / "none.conllu")


def test_labels_that_do_not_fit_are_refused(reading: hs.Reading) -> None:
    with pytest.raises(NotPossible, match=f"1 labels do not fit the text's {len(reading)} tokens"):
        reading.mark("mine", ["a"])
    with pytest.raises(NotPossible, match="A label is a string"):
        reading.mark("mine", [1] * len(reading))  # type: ignore[list-item]
    with pytest.raises(NotPossible, match="column is one of"):
        reading.mark("mine", "gold.conllu", column="lemma")


def test_the_page_gets_labels_with_the_most_frequent_first(tiny: hs.Scope) -> None:
    reading = tiny.read(TEXT)
    labels = [None, *("ab"[n % 3 == 0] for n in range(len(reading) - 1))]
    header, _ = unpacked(packed(reading.mark("mine", labels)))
    [mark] = header["marks"]
    assert mark["labels"] == ["a", "b"]
    assert [None if n < 0 else mark["labels"][n] for n in mark["of"]] == labels
