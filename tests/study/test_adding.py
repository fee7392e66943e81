"""Tables added to a finished study: whole at every moment, and replaced by their own name only."""

import shutil

import pyarrow as pa
import pytest

import headscope as hs
from headscope.errors import CannotStudy
from headscope.study.manifest import Addition
from headscope.study.writer import StudyFolder

HOW = Addition((), hs.__version__, {"seed": "0"}, 3, 4, 500, "cpu", 1, 1.5)


@pytest.fixture
def folder(tmp_path, tiny):
    tiny.study(["One sea. One lamp on the sea.", "A keeper, and a lamp."], tmp_path / "study")
    return StudyFolder(tmp_path / "study")


def rows(*values):
    return pa.table({"layer": pa.array(values, pa.int32())})


def test_added_tables_are_tables_of_the_study(folder):
    before = {
        name: folder.path / "tables" / f"{name}.parquet" for name in hs.open(folder.path).tables
    }
    bytes_before = {name: file.read_bytes() for name, file in before.items()}
    folder.add("extra", {"one": rows(1, 2), "two": rows(3)}, HOW)
    study = hs.open(folder.path)
    assert study.one["layer"].to_pylist() == [1, 2]
    assert study.sql("select sum(layer) as s from one").to_pylist() == [{"s": 3}]
    assert study.manifest.added["extra"].tables == ("one", "two")
    assert study.manifest.added["extra"].parameters == {"seed": "0"}
    assert {name: file.read_bytes() for name, file in before.items()} == bytes_before
    assert sorted(path.name for path in folder.path.iterdir()) == ["manifest.json", "tables"]


def test_added_again_replaces_what_was_added_by_that_name_only(folder):
    folder.add("extra", {"one": rows(1), "two": rows(3)}, HOW)
    folder.add("others", {"third": rows(2)}, HOW)
    folder.add("extra", {"one": rows(2)}, HOW)
    study = hs.open(folder.path)
    assert study.one["layer"].to_pylist() == [2]
    assert study.third["layer"].to_pylist() == [2]
    assert "two" not in study.tables
    assert not (folder.path / "tables" / "two.parquet").exists()


def test_a_table_of_the_study_is_not_replaced(folder):
    folder.add("extra", {"one": rows(1)}, HOW)
    for name, taken in (("others", "findings"), ("others", "one")):
        with pytest.raises(CannotStudy, match=f"a table '{taken}' already"):
            folder.add(name, {taken: rows(1)}, HOW)
    assert len(hs.open(folder.path).findings) > 1


def test_a_study_is_whole_wherever_adding_is_stopped(folder, monkeypatch):
    """Stopped before any file is put in place, the study is there: with the tables, or without."""
    from headscope.study import writer

    folder.add("extra", {"one": rows(1), "two": rows(3)}, HOW)
    kept = folder.path.with_name("kept")
    shutil.copytree(folder.path, kept)
    put = writer._replace
    for stop in range(5):
        shutil.rmtree(folder.path)
        shutil.copytree(kept, folder.path)
        steps = iter(range(stop))

        def dies(file, data, steps=steps):
            if next(steps, None) is None:
                raise KeyboardInterrupt
            put(file, data)

        monkeypatch.setattr(writer, "_replace", dies)
        done = True
        try:
            folder.add("extra", {"one": rows(2), "two": rows(2)}, HOW)
        except KeyboardInterrupt:
            done = False
        monkeypatch.setattr(writer, "_replace", put)
        study = hs.open(folder.path)
        for name in study.tables:
            study.table(name)
        assert done == (stop == 4)
        found = [study.one["layer"].to_pylist()] if "one" in study.tables else []
        assert found in ([[1]], [], [[2]])
    folder.add("extra", {"one": rows(2), "two": rows(2)}, HOW)
    assert hs.open(folder.path).two["layer"].to_pylist() == [2]


def test_a_study_without_the_field_is_read_as_one_with_nothing_added(folder):
    import json

    from headscope.study.manifest import read_manifest, sealed

    said = json.loads((folder.path / "manifest.json").read_text())
    del said["added"], said["seal"]
    assert read_manifest(sealed(said), "manifest.json").added == {}
