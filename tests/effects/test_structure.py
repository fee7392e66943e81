"""The verb `structure`: its tables are sums over windows of what loops find there."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from effects.test_gold import CONLLU
from effects.test_structure_scores import gold_text
from headscope import figures
from headscope.cli import app
from headscope.corpus import Document as Text
from headscope.effects.structure.formats import read_gold
from headscope.effects.structure.questions import ANY, questions, words_of
from headscope.effects.structure.scores import Asked
from headscope.effects.structure.signals import SIGNALS, read
from headscope.effects.structure.totals import Document, Squares, Sum
from headscope.effects.structure.verb import draw
from headscope.errors import CannotRead, OtherStudy
from headscope.pairs import reference
from headscope.report.added.structure import SECTION
from headscope.report.study_page import study_page
from headscope.study.bootstrap import standard_error, weights
from headscope.text import tokenize
from headscope.units import read_units

WORDS = ("keeper", "lamp", "sea", "light", "storm", "boat")


def sentence(random, things):
    """A sentence of CoNLL-U with two mentions and five arcs."""
    a, b = random.choice(len(WORDS), 2, replace=False)
    one, other = WORDS[a], WORDS[b]
    verb = ("saw", "lost", "left")[random.integers(3)]
    rows = [
        ("The", 2, "det", f"Entity=({things[a]}-x"),
        (one, 3, "nsubj", f"Entity={things[a]})"),
        (verb, 0, "root", "_"),
        ("the", 5, "det", f"Entity=({things[b]}-x"),
        (other, 3, "obj", f"Entity={things[b]})|SpaceAfter=No"),
        (".", 3, "punct", "_"),
    ]
    lines = [
        "\t".join([str(n), form, "_", "_", "_", "_", str(head), relation, "_", misc])
        for n, (form, head, relation, misc) in enumerate(rows, 1)
    ]
    return "\n".join(lines) + "\n\n"


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Eight documents of three to six sentences."""
    random = np.random.default_rng(0)
    text = ""
    for document in range(8):
        text += f"# newdoc id = d{document}\n"
        text += "".join(sentence(random, range(1, 7)) for _ in range(random.integers(3, 7)))
    file = tmp_path_factory.mktemp("gold") / "gold.conllu"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def added(tiny, gold, tmp_path_factory):
    return tiny.structure(gold, tmp_path_factory.mktemp("structure") / "study")


def row_of(study, **wanted):
    [row] = [
        row
        for row in study.table("structure").to_pylist()
        if all(row[name] == value for name, value in wanted.items())
    ]
    return row


def matrices(tiny, unit, words, layer, head):
    """Every signal between the words of a window, from A and z as a person gets them."""
    reading = tiny.read(unit.tokens.text)
    assert (reading.tokens.ids == unit.tokens.ids).all()
    z = reading.head_vectors(layer, head).astype(np.float64)
    A = reading.attention(layer, head)
    pieces = [np.flatnonzero(one) for one in words.total]
    vectors = np.array([z[own].mean(axis=0) for own in pieces])
    W = np.array([[A[np.ix_(a, b)].sum(axis=1).mean() for b in pieces] for a in pieces])
    alike = [reference.similarity(vectors, name) for name in ("raw", "cosine", "centred")]
    return dict(zip(SIGNALS, [*alike, W, W.T], strict=True))


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_share_is_the_words_whose_mate_gets_the_most(tiny, gold, added, signal):
    found, count, layer, head = 0, 0, 2, 3
    for document in read_gold(gold):
        [unit] = read_units(0, Text(document.text, "x"), tiny.tokenizer, 64, "en")
        words = words_of(document, unit.tokens)
        assert len(words.numbers) == len(document.spans)
        tile = matrices(tiny, unit, words, layer, head)[signal]
        for arc in document.arcs:
            if arc.relation == "nsubj":
                own = [
                    word
                    for word, number in enumerate(document.sentences)
                    if number == document.sentences[arc.word] and word != arc.word
                ]
                count += 1
                found += max(own, key=lambda word: tile[arc.word, word]) == arc.head
    row = row_of(added, relation="nsubj", signal=signal, layer=layer, head=head, quantity="found")
    assert row["count"] == count
    assert row["documents"] == 8
    assert row["value"] == pytest.approx(found / count)
    assert row["chance"] == pytest.approx(1 / 5)
    assert row["low"] <= row["value"] <= row["high"]


def test_errors_are_those_of_the_bootstrap_over_documents():
    random = np.random.default_rng(0)
    counts = random.integers(2, 30, size=60).astype(float)
    values = random.binomial(counts.astype(int), random.beta(3, 5, size=60)).astype(float)
    squares = Squares()
    for count, value in zip(counts, values, strict=True):
        squares.add(Sum(count, *(np.full((1, 1, 1), one) for one in (value, 0.0, 0.0))))
    numbers = squares.numbers("found")
    drawn = weights([str(n).encode() for n in range(60)], 0, 2000)
    every = (drawn.T @ values) / (drawn.T @ counts)
    assert numbers["value"].item() == pytest.approx(values.sum() / counts.sum())
    assert numbers["error"].item() == pytest.approx(standard_error(every), rel=0.1)


def test_halves_added_apart_are_the_whole():
    random = np.random.default_rng(1)
    sums = [Sum(float(n), *random.random((3, 2, 1, 1))) for n in range(1, 7)]
    whole, parts = Squares(), (Squares(), Squares())
    for number, one in enumerate(sums):
        whole.add(one)
        parts[number % 2].add(one)
    merged = parts[0].merged(parts[1]).numbers("auc")
    for name, value in whole.numbers("auc").items():
        np.testing.assert_allclose(merged[name], value)


def test_the_best_head_is_chosen_on_one_half_and_judged_on_the_other(tiny, gold, added):
    drawn = draw(gold, 200, 0)
    halves = [list(drawn.half(number)) for number in (0, 1)]
    assert len(halves[0]) + len(halves[1]) == 8
    assert halves[0]
    assert halves[1]
    shares = []
    for half in halves:
        document = Document((3, 4))
        for one in half:
            look(tiny, one, document)
        own = document.sums["dependency", "obj", "found"]
        shares.append(own.value / own.count)
    place = SIGNALS.index("attention_to")
    layer, head = divmod(int(shares[0][place].argmax()), 4)
    [row] = [
        row
        for row in added.table("structure_best").to_pylist()
        if (row["relation"], row["signal"]) == ("obj", "attention_to")
    ]
    assert (row["layer"], row["head"]) == (layer + 1, head + 1)
    assert row["chosen_value"] == pytest.approx(shares[0][place].max())
    assert row["value"] == pytest.approx(shares[1][place, layer, head])
    assert (row["baseline"], row["baseline_value"]) == ("-2", 1)  # "saw the lamp"
    assert row["difference"] == pytest.approx(row["value"] - 1)
    assert row["documents"] == len(halves[1])


def look(tiny, gold, document):
    [unit] = read_units(0, Text(gold.text, "x"), tiny.tokenizer, 64, "en")
    words = words_of(gold, unit.tokens)
    read(tiny, unit.tokens, words, [Asked(one) for one in questions(gold, words)], document.add)


def test_cards_say_what_the_table_says(added):
    cards = {
        (row["quantity"], row["layer"], row["head"]): row
        for row in added.table("structure_heads").to_pylist()
    }
    named = {name for name, _, _ in cards}
    assert named == {
        f"{what}_by_{by}"
        for what in ("arcs", "mentions")
        for by in ("similarity", "attention", "attention_back")
    }
    own = cards["arcs_by_attention", 1, 2]
    row = row_of(added, relation=ANY, signal="attention_to", layer=1, head=2, quantity="found")
    assert own["value"] == pytest.approx(row["value"])
    assert own["chance"] == pytest.approx(row["matched"])
    assert own["error"] == pytest.approx(row["error"], rel=0.5)


def test_a_relation_that_is_rare_is_left_out_and_a_study_is_made_of_the_texts(added):
    relations = {row["relation"] for row in added.table("structure").to_pylist()}
    assert relations == {ANY, "det", "nsubj", "obj", "mention of the same"}
    assert added.manifest.corpus.documents == 8
    how = added.manifest.added["structure"]
    assert (how.documents, how.parameters["gold"]) == (8, "gold.conllu")


def test_the_same_again_is_the_same_bytes(tiny, gold, added):
    before = {name: added.table(name) for name in ("structure", "structure_best")}
    again = tiny.structure(gold, added.path)
    for name, table in before.items():
        assert again.table(name).equals(table)


def test_what_cannot_be_is_said(tiny, gold, study, tmp_path):
    other = tiny.ablate([(1, 1)])
    with pytest.raises(OtherStudy, match="is not this model with these heads silenced"):
        other.structure(gold, study.path)
    empty = tmp_path / "empty.conllu"
    empty.write_text("# nothing\n")
    with pytest.raises(CannotRead, match="holds no annotated document"):
        tiny.structure(empty, study.path)
    alone = tmp_path / "alone.conllu"
    alone.write_text(CONLLU.splitlines()[-1] + "\n")
    with pytest.raises(CannotRead, match="annotates nothing that a head can be asked for"):
        tiny.structure(alone, study.path)


def test_a_question_without_gold_is_not_asked(tiny):
    gold = gold_text()
    bare = replace(gold, arcs=(), mentions=(), names=())
    assert questions(bare, words_of(bare, tokenize(bare.text, tiny.tokenizer))) == []


def test_the_report_and_the_terminal_show_the_best_heads(added, gold):
    page = study_page(added)
    assert f"<h2>{SECTION.title}</h2>" in page
    assert "chosen on" in page
    rows = [row for row in added.table("structure_best").to_pylist() if row["best"]]
    assert len({row["relation"] for row in rows}) == len(rows)
    said = CliRunner().invoke(app, ["structure", str(gold), "--out", str(added.path), "--quiet"])
    assert said.exit_code == 0, said.output
    for row in rows:
        assert row["relation"].split()[0] in said.stdout
        assert f"{row['layer']}–{row['head']}" in said.stdout
    for name in SECTION.figures:
        assert figures.FIGURES[name](added).to_dict()["title"]["text"]
