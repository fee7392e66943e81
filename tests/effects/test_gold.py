"""Annotated texts of every format, read into words, arcs, mentions and names."""

import gzip
from pathlib import Path

import pytest

from headscope.effects.structure.formats import read_gold
from headscope.effects.structure.gold import Gold, head_of
from headscope.errors import CannotRead
from places import SHARED

DATA = SHARED / "data"
CONLLU = """# newdoc id = lamp
# newpar
# text = The keeper can't find it.
1	The	the	DET	DT	_	2	det	_	Entity=(1-person-new-cf1-2-coref
2	keeper	keeper	NOUN	NN	_	5	nsubj:x	_	Entity=1)
3-4	can't	_	_	_	_	_	_	_	_
3	ca	can	AUX	MD	_	5	aux	_	_
4	n't	not	PART	RB	_	5	advmod	_	_
5	find	find	VERB	VB	_	0	root	_	_
6	it	it	PRON	PRP	_	5	obj	_	Entity=(2-object-giv-cf1-1-ana)|SpaceAfter=No
7	.	.	PUNCT	.	_	5	punct	_	_

# newpar
1-2	zum	_	_	_	_	_	_	_	_
1	zu	zu	ADP	APPR	_	3	case	_	_
2	dem	der	DET	ART	_	3	det	_	Entity=(2-object-giv-cf1-2-coref(1-person-giv-cf2-1-ana)
3	Licht	Licht	NOUN	NN	_	0	root	_	Entity=2)
3.1	ging	gehen	VERB	VB	_	_	_	_	_

# newdoc id = other
1	Gone	go	VERB	VBN	_	0	root	_	_
"""


def written(folder: Path, name: str, text: str) -> list[Gold]:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return list(read_gold(file))


@pytest.mark.parametrize("name", ["gold.conllu", "gold.conllu.gz"])
def test_trees_and_mentions_of_conllu(tmp_path: Path, name: str) -> None:
    lamp, other = written(tmp_path, name, CONLLU)
    assert (lamp.name, other.name) == ("lamp", "other")
    assert lamp.text == "The keeper can't find it. \n\nzum Licht"
    words = [lamp.spelled(word) for word in range(len(lamp.spans))]
    assert words == ["The", "keeper", "ca", "n't", "find", "it", ".", "zum", "Licht"]
    assert lamp.sentences == (0,) * 7 + (1,) * 2
    arcs = {(words[arc.word], words[arc.head]): arc.relation for arc in lamp.arcs}
    assert arcs == {
        ("The", "keeper"): "det",
        ("keeper", "find"): "nsubj",
        ("ca", "find"): "aux",
        ("n't", "find"): "advmod",
        ("it", "find"): "obj",
        (".", "find"): "punct",
        ("zum", "Licht"): "case",
    }
    mentions = {
        (words[one.first], words[one.last], words[one.head], one.thing) for one in lamp.mentions
    }
    assert mentions == {
        ("The", "keeper", "keeper", "1"),
        ("it", "it", "it", "2"),
        ("zum", "Licht", "Licht", "2"),
        ("zum", "zum", "zum", "1"),
    }


def test_names_with_numbers_with_marks_and_without(tmp_path: Path) -> None:
    [one, two] = written(
        tmp_path, "a.conll", "Ann B-PER\nLee I-PER\nmet O\nBo I-PER\n\n# O\nOslo B-LOC\n"
    )
    assert one.text == "Ann Lee met Bo"
    assert [(name.first, name.last, name.kind) for name in one.names] == [
        (0, 1, "PER"),
        (3, 3, "PER"),
    ]
    assert two.spelled(0) == "#"
    [numbered] = written(
        tmp_path, "b.iob2", "# newdoc id = x\n1\tAnn\tB-PER\t-\ty\n\n1\tOslo\tB-LOC\t-\ty\n"
    )
    assert (numbered.name, numbered.text, numbered.sentences) == ("x", "Ann Oslo", (0, 1))
    assert [name.kind for name in numbered.names] == ["PER", "LOC"]
    first, second = written(
        tmp_path,
        "c.conll",
        "-DOCSTART- O\n\nAnn I-PER\n\nis O\n\n-DOCSTART- O\n\nBo B-PER\nIk B-PER\n",
    )
    assert first.text == "Ann is"
    assert len(second.names) == 2


def test_mentions_of_litbank(tmp_path: Path) -> None:
    line = (
        '{"id": "x", "tokens": ["The", "keeper", "of", "it", "slept", ".", "He", "woke"], '
        '"sent_starts": [0, 6], "clusters": [[[0, 3], [6, 6]], [[3, 3]]]}'
    )
    [one] = written(tmp_path, "a.jsonl", line + "\n")
    assert one.sentences == (0,) * 6 + (1,) * 2
    assert [(m.first, m.last, m.head, m.thing) for m in one.mentions] == [
        (0, 3, 1, "0"),
        (6, 6, 6, "0"),
        (3, 3, 3, "1"),
    ]
    assert head_of(["a", "man", ",", "old"], 0, 3) == 1


def test_pronouns_of_gap(tmp_path: Path) -> None:
    head = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
    row = 'v-1\tAnn Lee met "Bo". She left.\tShe\t18\tAnn Lee\t0\tTRUE\tBo\t13\tFALSE\thttp://x\n'
    [one] = written(tmp_path, "a.tsv", head + row)
    found = {(one.spelled(m.first), one.spelled(m.head), m.thing) for m in one.mentions}
    assert found == {("She", "She", "pronoun"), ("Ann", "Lee", "pronoun"), ("Bo", "Bo", "B")}


def test_a_folder_is_read_in_the_order_of_names_and_a_readme_passed_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("two words\n")
    (tmp_path / "b.conll").write_text("Bo B-PER\n")
    (tmp_path / "a.conllu").write_text(CONLLU)
    assert [one.name for one in read_gold(tmp_path)] == ["lamp", "other", "b.conll"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.conllu", CONLLU.replace("\tdet\t", " det ", 1), "line 4: a line of CoNLL-U has 10"),
        ("a.conllu", CONLLU.replace("2\tkeeper", "x\tkeeper"), "line 5: a line of CoNLL-U begins"),
        ("a.conll", "Ann B-PER\nLee person\n", "line 2: a tag of names is O, B-KIND"),
        ("a.conll", "Ann B-PER\nLee\n", "line 2: no tag beside 'Lee'"),
        ("a.jsonl", '{"tokens": ["a"]}\n', "line 1: a line has tokens, sent_starts"),
        ("a.jsonl", '{"tokens": ["a"], "sent_starts": [0], "clusters": [[[0, 1]]]}', "outside"),
        ("a.txt", "Words\n", "no annotated text that is known here"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(CannotRead, match=said):
        written(tmp_path, name, text)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "gold.conllu.gz"
    file.write_bytes(gzip.compress(CONLLU.encode() * 40)[:200])
    with pytest.raises(CannotRead, match=r"'gold.conllu.gz' cannot be read"):
        list(read_gold(file))


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="There is no file or folder"):
        list(read_gold(tmp_path / "none"))
    with pytest.raises(CannotRead, match="holds no annotated text"):
        list(read_gold(tmp_path))


@pytest.mark.shared
def test_real_corpora_are_read_whole() -> None:
    """As many words and names as their makers counted."""
    ewt = list(read_gold(DATA / "ud_ewt/dev.conllu.gz"))
    assert (len(ewt), max(ewt[-1].sentences) + 1) == (318, 2001)
    assert sum(len(one.spans) for one in ewt) == pytest.approx(25147, abs=20)  # some are one piece
    gum = list(read_gold(DATA / "ud_gum/dev.conllu.gz"))
    assert len(gum) == 18
    assert sum(len(one.mentions) for one in gum) > 3000
    pronouns = [m for one in gum for m in one.mentions if one.spelled(m.head).lower() == "she"]
    assert pronouns
    assert all(m.first == m.last for m in pronouns)
    counts = {"uner_ewt/en_ewt-ud-dev.iob2": 966, "wnut17/emerging.dev.conll": 836}
    for file, number in counts.items():
        assert sum(len(one.names) for one in read_gold(DATA / file)) == number
    litbank = list(read_gold(DATA / "litbank_coref"))
    assert all(one.mentions for one in litbank)
    assert len(list(read_gold(DATA / "gap/gap-validation.tsv"))) == 454
