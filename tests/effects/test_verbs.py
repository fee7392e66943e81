"""Verbs that add to a study: what they read and refuse, and that stopping one does no harm."""

import dataclasses
import random

import numpy as np
import pytest

import headscope as hs
from effects.texts import PARAGRAPHS
from headscope.effects.adding import Adding
from headscope.effects.registry import DEFINITIONS, VERBS
from headscope.effects.sample import Reads
from headscope.effects.tables import quantity_table
from headscope.effects.verb import Verb
from headscope.errors import CannotRead, NotPossible, OtherStudy
from headscope.measures.base import Definition, Quantity
from headscope.study.bootstrap import document_weights
from headscope.study.progress import Quiet

LENGTH = Definition("length", "tokens", "tokens", "number", "longer", "", "ours")
VERB = Verb("lengths", "how long texts are", {"lengths": (LENGTH,)})


def adding(scope, study, source, **reads):
    return Adding(VERB, scope, source, study.path, Reads(**reads))


def texts_of(one):
    return sorted(unit.text for units in one.batches() for unit in units)


def test_a_verb_reads_the_windows_of_the_study_the_same_in_every_pass(tiny, study, corpus):
    one = adding(tiny, study, corpus, limit=0, windows=0)
    first = texts_of(one)
    assert first == texts_of(one)
    said = study.manifest.corpus
    assert (one.documents, one.windows, one.tokens) == (
        said.documents,
        said.windows,
        said.tokens,
    )
    for units in one.batches():
        lengths = {one.padding.length(len(unit)) for unit in units}
        assert lengths == {one.length(units)}
        assert len(units) * one.length(units) <= study.manifest.parameters.batch_tokens


def test_as_many_documents_are_drawn_as_were_asked_for_whatever_their_order(
    tiny, study, corpus, tmp_path
):
    one = adding(tiny, study, corpus, limit=4)
    drawn = texts_of(one)
    assert one.documents == 4
    moved = tmp_path / "moved.txt"
    paragraphs = PARAGRAPHS[:10]
    random.Random(0).shuffle(paragraphs)
    moved.write_text("\n\n".join(paragraphs))
    assert texts_of(adding(tiny, study, moved, limit=4)) == drawn
    assert texts_of(adding(tiny, study, corpus, limit=4, seed=1)) != drawn
    assert set(texts_of(adding(tiny, study, corpus, limit=3))) < set(drawn)


def test_a_long_document_is_read_from_its_first_window_to_its_last(tiny, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text(hs.sample_text())
    options = {"nulls": (), "readings": ("raw",), "special": ("kept",)}
    study = tiny.study(long, tmp_path / "study", **options)
    windows = study.manifest.corpus.windows
    places = [unit.window for units in adding(tiny, study, long).batches() for unit in units]
    assert sorted(places) == [place * windows // 8 for place in range(8)]


def test_replicates_are_those_of_the_study(tiny, study, corpus):
    one = adding(tiny, study, corpus, limit=0)
    sums = one.sums()
    for units in one.batches():
        sums.add(units, tokens=np.array([float(len(unit)) for unit in units]))
    weights = {}
    for units in one.batches():
        for unit in units:
            weights.setdefault(unit.identity, []).append(len(unit))
    expected = sum(
        document_weights(identity, study.manifest.parameters.seed) * sum(lengths)
        for identity, lengths in weights.items()
    )
    assert sums["tokens"] == pytest.approx(expected)
    assert sums["tokens"][0] == study.manifest.corpus.tokens


def test_what_is_added_is_in_the_study_with_how_it_was_made(tiny, study, corpus):
    one = adding(tiny, study, corpus, limit=5, seed=3)
    texts_of(one)
    values = np.arange(201.0)
    table = quantity_table({"length": Quantity(values)})
    made = one.finish({"lengths": table}, way="counted")
    (row,) = made.lengths.to_pylist()
    assert (row["level"], row["layer"], row["quantity"], row["value"]) == (
        "model",
        None,
        "length",
        0,
    )
    how = made.manifest.added["lengths"]
    assert how.parameters == {"limit": "5", "windows": "8", "seed": "3", "way": "counted"}
    assert (how.documents, how.tokens) == (5, one.tokens)


def test_a_table_has_a_row_for_each_head_and_no_number_where_there_is_none():
    generator = np.random.default_rng(0)
    value = generator.normal(size=(201, 2, 3))
    value[:, 1, 2] = np.nan
    rows = quantity_table({"of_heads": Quantity(value, np.ones_like(value))}).to_pylist()
    assert [(row["layer"], row["head"]) for row in rows] == [
        (layer, head) for layer in (1, 2) for head in (1, 2, 3)
    ]
    assert rows[5]["value"] is None
    for row, own in zip(rows[:5], value.reshape(201, -1).T, strict=False):
        assert row["value"] == own[0]
        assert row["low"] == pytest.approx(max(own[0] - 1.959964 * own[1:].std(ddof=1), own.min()))
        assert (row["chance"], row["lift"]) == (1, own[0])


def test_another_model_or_corpus_than_the_study_is_of_is_refused(tiny, study, corpus, tmp_path):
    with pytest.raises(OtherStudy, match="these heads silenced"):
        adding(tiny.ablate([(1, 1)]), study, corpus)
    with pytest.raises(OtherStudy, match="not the same"):
        adding(tiny, study, corpus, document="file")
    other = tmp_path / "other.txt"
    other.write_text("A text of another corpus, with words of its own.")
    with pytest.raises(OtherStudy, match=r"another corpus than 'other\.txt'"):
        adding(tiny, study, other)
    weight = tiny.model.get_input_embeddings().weight
    before = weight.data.clone()
    weight.data[7] += 1
    try:
        with pytest.raises(OtherStudy, match="weights have changed"):
            adding(tiny, study, corpus)
    finally:
        weight.data.copy_(before)
    assert not study.manifest.added


def test_what_can_be_read_only_once_is_refused_before_anything_is_studied(tiny, tmp_path):
    for source in ("-", iter(PARAGRAPHS[:3])):
        with pytest.raises(CannotRead, match="only once"):
            Adding(VERB, tiny, source, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_study_is_made_where_there_is_none(tiny, tmp_path):
    made = tiny.effects(PARAGRAPHS[:3], tmp_path / "study")
    assert len(made.findings) > 1
    assert len(made.effects) == 1 + 2 * 12 + 1  # the loss, two numbers a head, their agreement


def test_a_verb_that_is_stopped_leaves_the_study_as_it_was(tiny, study, corpus):
    class Stops(Quiet):
        def advance(self, units):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny.effects(corpus, study.path, progress=Stops())
    found = hs.open(study.path)
    assert not found.manifest.added
    assert found.tables == study.tables


def test_wrong_numbers_are_refused():
    for wrong in ({"limit": -1}, {"windows": -1}, {"seed": 2**63}):
        with pytest.raises(NotPossible, match="has to be a number from 0"):
            Reads(**wrong)


def test_every_verb_defines_its_quantities_and_no_name_is_taken_twice():
    names = [name for verb in VERBS.values() for name in verb.definitions]
    assert len(DEFINITIONS) == len(set(DEFINITIONS) - set(names)) + len(names)
    for verb in VERBS.values():
        assert set(verb.told) <= set(verb.definitions)
        for one in verb.definitions.values():
            assert all(getattr(one, field.name) is not None for field in dataclasses.fields(one))
