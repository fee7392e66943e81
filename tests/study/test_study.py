"""A whole study: resumed after any death, independent of batches and order, and readable."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from texts import TEXTS

import headscope as hs
from headscope.corpus import Corpus
from headscope.errors import CannotRead, CannotStudy, NoCorpus
from headscope.pairs import quantile
from headscope.study import run as running
from headscope.study import writer
from headscope.study.parameters import Parameters
from headscope.study.run import study
from headscope.study.writer import StudyFolder

DOCUMENTS = [*TEXTS, " ", *(f"{text} {text}" for text in TEXTS)]
PLAIN = {"rule": quantile(0.05), "replicates": 20, "window": 40, "readings": ("raw",)}
OPTIONS = PLAIN | {"nulls": ()}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)
    monkeypatch.setattr("headscope.study.run.SAVE_EVERY", -1)


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """An uninterrupted study of the documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.units.CHUNK_UNITS", 5)
        return tiny.study(DOCUMENTS, tmp_path_factory.mktemp("whole"), **OPTIONS)


def digests(made: hs.Study) -> dict[str, str]:
    return {name: about.sha256 for name, about in made.manifest.tables.items()}


class Death(BaseException):
    """What ends a run without a word, as far as files can tell."""


def dies(*_: object) -> None:
    raise Death


@pytest.mark.parametrize("moment", range(8))
def test_a_study_that_dies_at_any_moment_resumes_to_the_same_bytes(
    tiny, whole, tmp_path, monkeypatch, moment
):
    """Dies before, while and after saving a state, and while writing the tables."""
    steps = iter(range(1000))

    def dying(function):
        def step(*args, **kwargs):
            if next(steps) == moment:
                raise Death
            return function(*args, **kwargs)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_to_disk", dying(writer._to_disk))
        patch.setattr(running._Run, "_observe", dying(running._Run._observe))
        with pytest.raises(Death):
            tiny.study(DOCUMENTS, tmp_path, **OPTIONS)
    with pytest.raises(CannotStudy, match="not finished"):
        hs.open(tmp_path)
    assert digests(tiny.study(DOCUMENTS, tmp_path, **OPTIONS)) == digests(whole)


def test_a_study_that_dies_between_tables_and_manifest_resumes(tiny, whole, tmp_path, monkeypatch):
    original = writer._replace

    def replace(file, data):
        if file.name == "manifest.json":
            raise Death
        original(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "_replace", replace)
        with pytest.raises(Death):
            tiny.study(DOCUMENTS, tmp_path, **OPTIONS)
    assert (tmp_path / "tables").exists()
    with pytest.raises(CannotStudy, match="not finished"):
        hs.open(tmp_path)
    assert digests(tiny.study(DOCUMENTS, tmp_path, **OPTIONS)) == digests(whole)


@pytest.mark.slow
def test_kill_9_and_the_same_command_end_with_the_same_bytes(tiny_folder, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(DOCUMENTS * 3))
    script = textwrap.dedent("""
        import os, signal, sys
        import headscope.study.run, headscope.units
        from headscope.study.writer import StudyFolder
        headscope.units.CHUNK_UNITS, headscope.study.run.SAVE_EVERY = 16, -1
        save, left = StudyFolder.save_state, [int(sys.argv.pop(1))]
        def dying(self, *args):
            save(self, *args)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        StudyFolder.save_state = dying
        from headscope.cli import main
        main()
    """)
    made = {}
    for name, deaths in (("once", []), ("killed", [1, 2])):
        options = ["study", str(corpus), "--document", "line", "--out", str(tmp_path / name)]
        options += ["--model", str(tiny_folder)]
        for number in [*deaths, -1]:
            command = [sys.executable, "-c", script, str(number), *options, "--quiet"]
            code = subprocess.run(command, capture_output=True, text=True, check=False)
            assert code.returncode == (-9 if number > 0 else 0), (number, code.stderr)
        made[name] = digests(hs.open(tmp_path / name))
    assert made["once"] == made["killed"]


MEASURED = ("focus", "size", "range", "sentence", "repetition", "anchor", "noise")


@pytest.mark.parametrize("batch", [{"batch_tokens": 1}, {"batch_tokens": 400, "padding": 0.3}])
def test_batches_and_padding_change_only_the_last_digits(tiny, whole, tmp_path, batch):
    """The products of a model round differently for other numbers of rows; nothing else does."""
    made = tiny.study(DOCUMENTS, tmp_path, **batch, **OPTIONS)
    if "padding" in batch:
        assert 0 < made.manifest.padding < 0.3
    for name in MEASURED:
        one, other = made.table(name), whole.table(name)
        for column in ("value", "low", "high", "chance"):
            mine, theirs = (
                np.array(t.column(column).to_pylist(), np.float64) for t in (one, other)
            )
            np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-5, err_msg=name)


def rows_are_rounded_alone(scope: hs.Scope) -> bool:
    """Whether this machine rounds a text alike, whatever else is in its batch."""
    ids = torch.arange(50 * 40).reshape(50, 40) % 3000 + 1000
    with torch.no_grad():
        parts = {number: scope.model(ids[-number:]).last_hidden_state for number in (1, 7, 24, 50)}
        alone = torch.cat([scope.model(own[None]).last_hidden_state for own in ids])
    return all(torch.equal(alone[-number:], part) for number, part in parts.items())


@pytest.fixture
def one_thread():
    """On several threads a product is shared out by its rows, and rounded accordingly."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_order_of_documents_changes_only_the_last_digits_of_lengths(tiny, tmp_path, random):
    order = random.permutation(len(DOCUMENTS))
    made = tiny.study([DOCUMENTS[place] for place in order], tmp_path / "shuffled", **OPTIONS)
    whole = tiny.study(DOCUMENTS, tmp_path / "in order", **OPTIONS)
    assert made.manifest.corpus.fingerprint == whole.manifest.corpus.fingerprint
    mine, theirs = digests(made), digests(whole)
    same = {name for name in theirs if mine[name] == theirs[name]}
    if rows_are_rounded_alone(tiny):
        # Lines are numbered by their place; lengths and similarities have no grid to be exact on.
        assert set(theirs) - same <= {"size", "heads", "examples", "skipped", "replicates", "texts"}
        digits = {"rel": 1e-10}
    else:
        digits = {"rel": 2e-4, "abs": 2e-5}
    for name in ("size", *MEASURED):
        for one, other in zip(made.table(name).columns, whole.table(name).columns, strict=True):
            for a, b in zip(one.to_pylist(), other.to_pylist(), strict=True):
                assert a == (pytest.approx(b, **digits) if isinstance(b, float) else b)


def test_a_finished_study_is_returned_as_it_is(tiny, whole):
    before = (whole.path / "manifest.json").stat().st_mtime_ns
    again = tiny.study(DOCUMENTS, whole.path, **OPTIONS)
    assert (again.path / "manifest.json").stat().st_mtime_ns == before
    assert not (whole.path / "resume").exists()


def test_another_study_in_the_same_folder_is_refused_by_name(tiny, whole):
    with pytest.raises(CannotStudy, match=r"seed: 0 there, 5 now.*another folder"):
        tiny.study(DOCUMENTS, whole.path, seed=5, **OPTIONS)


def test_a_corpus_that_changed_is_refused(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running._Run, "_write", dies)
        with pytest.raises(Death):
            tiny.study(DOCUMENTS, tmp_path, **OPTIONS)
    with pytest.raises(CannotStudy, match="The corpus has changed"):
        tiny.study(["Something else.", *DOCUMENTS[1:]], tmp_path, **OPTIONS)


def test_two_runs_do_not_write_one_folder(tiny, tmp_path):
    with (
        StudyFolder(tmp_path).held(),
        pytest.raises(CannotStudy, match="Another run is writing"),
    ):
        tiny.study(DOCUMENTS, tmp_path, **OPTIONS)


def test_the_manifest_says_what_was_studied_and_how(whole):
    said = whole.manifest
    assert said.corpus.documents == len(DOCUMENTS) - 1
    assert said.corpus.skipped == 1
    assert said.corpus.windows > said.corpus.documents
    assert said.parameters.rule == "quantile(0.05)"
    assert said.headscope == hs.__version__
    assert len(said.model.weights) == 32
    plain = json.loads((whole.path / "manifest.json").read_text())
    assert plain["format"] == 2
    assert plain["corpus"]["documents"] == said.corpus.documents
    assert whole.skipped.to_pylist() == [{"source": "list", "line": 10, "reason": "empty"}]


def test_tables_count_layers_and_heads_from_1(whole):
    rows = whole.sql("select min(layer) a, max(layer) b, min(head) c, max(head) d from heads")
    assert rows.to_pylist() == [{"a": 1, "b": 3, "c": 1, "d": 4}]
    assert len(whole.heads) == 12


def test_every_measure_table_has_values_intervals_and_chance(whole):
    for name in ("focus", "size", "range", "sentence", "repetition", "anchor", "noise"):
        rows = whole.sql(f"select * from {name} where level = 'head' and value is not null")
        found = rows.to_pylist()
        assert found, name
        assert all(row["low"] <= row["value"] <= row["high"] for row in found), name
    far = whole.sql("select * from distances where high > 0").to_pylist()
    assert all(row["ratio"] == pytest.approx(row["high"] / row["chance"]) for row in far)
    assert all(row["ratio_low"] <= row["ratio"] <= row["ratio_high"] for row in far)
    assert sum(row["ratio_low"] < row["ratio_high"] for row in far) > 0.9 * len(far)
    lifted = whole.sql("select * from sentence where level = 'layer'").to_pylist()
    assert all(row["lift"] == pytest.approx(row["value"] / row["chance"]) for row in lifted)


def test_a_layer_pools_the_high_pairs_of_its_heads(whole):
    heads = whole.sql(
        "select avg(value) v from repetition where level='head' and layer=2 "
        "and quantity='same_word' and special='kept'"
    ).to_pylist()
    layer = whole.sql(
        "select value v from repetition where level='layer' and layer=2 "
        "and quantity='same_word' and special='kept'"
    ).to_pylist()
    assert heads[0]["v"] == pytest.approx(layer[0]["v"], rel=0.02)  # ties may add a pair


def test_examples_are_high_pairs_in_their_context(whole):
    rows = whole.sql("select * from examples where special = 'left_out'").to_pylist()
    assert len(rows) == 5 * 12
    for row in rows:
        assert f"[{row['first']}]" in row["first_context"]
        assert f"[{row['second']}]" in row["second_context"]


def test_words_of_several_pieces_are_counted_as_words(whole):
    types = whole.sql("select distinct type from anchors where kind = 'word'").column(0).to_pylist()
    pieces = (
        whole.sql("select distinct type from anchors where kind = 'token'").column(0).to_pylist()
    )
    assert any(piece.startswith("##") for piece in pieces)
    assert not any(word.startswith("##") for word in types)
    assert {"unbelievably", "incomprehensible"} & set(types)


def test_strict_stops_at_what_cannot_be_read(tiny, tmp_path):
    with pytest.raises(CannotRead, match=r"list, line 10: empty.*--strict"):
        tiny.study(DOCUMENTS, tmp_path, strict=True, **OPTIONS)


def test_a_corpus_without_a_readable_document_is_an_error(tiny, tmp_path):
    with pytest.raises(NoCorpus, match=r"No document .* could be read \(2 failed\)"):
        tiny.study([" ", ""], tmp_path, **OPTIONS)


def test_unknown_settings_are_refused():
    with pytest.raises(CannotStudy, match="null is one of shuffle"):
        Parameters(nulls=("noise",))
    with pytest.raises(CannotStudy, match="reading is one of raw"):
        Parameters(readings=("loud",))


def test_nulls_stand_beside_the_real_thing(tiny, tmp_path):
    nulls = ("shuffle", "random", "uniform", "identity")
    made = tiny.study(DOCUMENTS[:4], tmp_path, **PLAIN | {"replicates": 4, "nulls": nulls})
    assert set(made.nulls.column("mode").to_pylist()) == {*nulls, "random-2", "random-3"}
    row = made.sql(
        "select * from nulls where mode='identity' and quantity='own_token' and level='model'"
    ).to_pylist()[0]
    assert row["null"] == pytest.approx(1)
    assert row["difference"] == pytest.approx(row["value"] - row["null"])


def test_nulls_are_run_on_a_sample_that_does_not_depend_on_order(tiny, tmp_path):
    options = PLAIN | {"nulls": ("shuffle",), "null_tokens": 120, "batch_tokens": 1}
    made = [
        tiny.study(documents, tmp_path / name, **options)
        for name, documents in (("forwards", DOCUMENTS), ("backwards", DOCUMENTS[::-1]))
    ]
    for one in made:
        assert 60 < one.manifest.nulls.tokens <= 120
        assert 0 < one.manifest.nulls.windows < one.manifest.corpus.windows
    rows = [one.sql("select * from nulls where measure != 'size'").to_pylist() for one in made]
    assert rows[0] == rows[1]


def test_a_study_that_dies_among_its_nulls_resumes_to_the_same_bytes(tiny, tmp_path, monkeypatch):
    options = PLAIN | {"nulls": ("shuffle", "identity")}
    whole = tiny.study(DOCUMENTS[:5], tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        patch.setattr(running._Run, "_write", dies)
        with pytest.raises(Death):
            tiny.study(DOCUMENTS[:5], tmp_path / "killed", **options)
    assert digests(tiny.study(DOCUMENTS[:5], tmp_path / "killed", **options)) == digests(whole)


def test_layers_of_a_rule_with_a_threshold_of_its_own_are_the_mean_over_heads(tiny, tmp_path):
    made = tiny.study(DOCUMENTS[:4], tmp_path, sweep=True, **OPTIONS | {"replicates": 4})
    values = {
        (row["rule"], row["level"]): row["v"]
        for row in made.sql(
            "select rule, level, avg(value) v from range where quantity = 'mean_distance' "
            "and layer = 2 and special = 'kept' group by rule, level"
        ).to_pylist()
    }
    for rule in ("peak(0.3)", "sigma(3.0)"):
        assert values[rule, "layer"] == pytest.approx(values[rule, "head"])
    assert values["nearest(3)", "layer"] != pytest.approx(values["nearest(3)", "head"], rel=1e-9)


def test_a_sweep_runs_every_rule_and_reading_in_one_pass(tiny, tmp_path):
    made = tiny.study(
        DOCUMENTS[:4],
        tmp_path,
        sweep=True,
        readings=("raw", "cosine", "centred"),
        replicates=4,
    )
    rules = set(made.sentence.column("rule").to_pylist())
    assert {"quantile(0.01)", "quantile(0.002)", "peak(0.3)", "sigma(3.0)", "nearest(3)"} <= rules
    assert len(rules) == 8
    assert set(made.findings.column("reading").to_pylist()) == {"raw", "cosine", "centred", None}


def test_a_causal_model_is_studied_too(tiny, tmp_path):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tiny.tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=64
    )
    scope = hs.load(transformers.GPT2Model(config), tiny.tokenizer)
    made = scope.study(DOCUMENTS[:3], tmp_path, **PLAIN | {"nulls": ("uniform",)})
    rows = made.sql(
        "select value, chance from focus "
        "where mode='uniform' and level='model' and chance is not null"
    ).to_pylist()
    assert len(rows) > 10
    for row in rows:
        assert row["value"] == pytest.approx(row["chance"], rel=1e-3)


def test_a_family_without_visible_attention_is_studied_without_focus(tiny, tmp_path):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        vocab_size=len(tiny.tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
    )
    scope = hs.load(transformers.MPNetModel(config), tiny.tokenizer)
    made = scope.study(DOCUMENTS[:3], tmp_path, **OPTIONS)
    assert "focus" not in made.tables
    assert "out of sight" in made.manifest.focus
    assert len(made.heads) == 8


def test_the_state_on_disk_is_plain_arrays(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running._Run, "_write", dies)
        with pytest.raises(Death):
            tiny.study(DOCUMENTS[:3], tmp_path, **OPTIONS)
    arrays, about = StudyFolder(tmp_path).load_state()
    assert json.dumps(about)
    assert all(np.isfinite(value).all() for value in arrays.values())


def test_a_state_of_another_version_is_not_gone_on_with(tiny, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(running, "STATE", running.STATE - 1)
        patch.setattr(running._Run, "_write", dies)
        with pytest.raises(Death):
            tiny.study(DOCUMENTS[:3], tmp_path, **OPTIONS)
    with pytest.raises(CannotStudy, match=r"begun by another version.*force=True"):
        tiny.study(DOCUMENTS[:3], tmp_path, **OPTIONS)


def test_documents_may_come_from_a_corpus_object(tiny, tmp_path):
    made = study(tiny, Corpus(DOCUMENTS[:2]), tmp_path, Parameters(replicates=3))
    assert made.manifest.corpus.documents == 2
