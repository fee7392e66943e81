"""A study keeps some windows of its corpus, so that what it says can be looked at where it was."""

from texts import TEXTS

from headscope.pairs import quantile
from headscope.sample import SAMPLE, sample_text
from headscope.viewer.studied import first_text, packed_study

OPTIONS = {"rule": quantile(0.05), "replicates": 5, "window": 40, "nulls": ()}
DOCUMENTS = [f"{text} {number}" for number in range(4) for text in TEXTS]


def test_kept_texts_are_windows_of_the_corpus_whatever_its_order(tiny, tmp_path):
    one = tiny.study(DOCUMENTS, tmp_path / "one", texts=6, **OPTIONS).texts.to_pylist()
    other = tiny.study(DOCUMENTS[::-1], tmp_path / "other", texts=6, **OPTIONS).texts.to_pylist()
    assert [row["number"] for row in one] == [1, 2, 3, 4, 5, 6]
    assert [row["text"] for row in one] == [row["text"] for row in other]
    assert all(any(row["text"] in document for document in DOCUMENTS) for row in one)


def test_an_example_pair_is_found_again_in_its_text(tiny, tmp_path):
    study = tiny.study(DOCUMENTS, tmp_path / "study", **OPTIONS)
    texts = {row["number"]: row["text"] for row in study.texts.to_pylist()}
    examples = study.examples.to_pylist()
    assert len({row["text"] for row in examples}) == 5
    for row in examples[:: len(examples) // 40]:
        reading = tiny.read(texts[row["text"]], window=40)
        words = reading.tokens.word_texts
        first, second = row["first_position"], row["second_position"]
        assert (words[first], words[second]) == (row["first"], row["second"])
        C = reading.similarity(row["layer"], row["head"], row["reading"])
        assert abs(C[first, second] - row["similarity"]) < 1e-4 * abs(C).max()


def test_an_example_shows_what_the_label_says_where_a_pair_does(specimen, tmp_path):
    study = specimen.study(SAMPLE, tmp_path, document="paragraph", nulls=(), replicates=20)
    labels = {(row["layer"], row["head"]): row["labels"] for row in study.heads.to_pylist()}
    rows = [row for row in study.examples.to_pylist() if row["special"] == "left_out"]
    assert len(rows) == 144 * 2 * 5
    showing = [row for row in rows if row["shows"]]
    for row in showing:
        assert row["shows"] in labels[row["layer"], row["head"]]
        if row["shows"].startswith("anchor"):
            word = row["shows"].split("‘")[1].rstrip("’")
            assert word in (row["first"].casefold(), row["second"].casefold())
        else:
            assert row["same_word"], row
    repeating = {place for place, own in labels.items() if "repetition" in own}
    assert repeating <= {(row["layer"], row["head"]) for row in showing}
    raw = [row for row in rows if row["reading"] == "raw"]
    anchored = [row for row in raw if labels[row["layer"], row["head"]][0].startswith("anchor")]
    assert sum(bool(row["shows"]) for row in anchored) > 0.6 * len(anchored) > 20


def test_without_kept_texts_a_study_shows_the_sample(tiny, tmp_path):
    study = tiny.study(DOCUMENTS, tmp_path / "study", texts=0, **OPTIONS)
    assert "texts" not in study.tables
    assert packed_study(study)["texts"] == []
    assert first_text(study) == sample_text()
