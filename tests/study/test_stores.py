"""A corpus named by a URL is the corpus of the same files in a folder."""

import gzip
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headscope.corpus import Corpus
from headscope.documents import Document, Skipped
from headscope.errors import CannotRead, NoCorpus

TEXT = "The lamp is gone.\n\nThe sea is not gone."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "corpus"
    (place / "deep").mkdir(parents=True)
    (place / "b.txt").write_text(TEXT)
    (place / "deep" / "a.jsonl").write_text('{"text": "One."}\n{"text": 2}\n')
    (place / "c.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (place / "cut.txt.gz").write_bytes(gzip.compress(TEXT.encode() * 99)[:-20])
    (place / "picture.png").write_bytes(b"\x89PNG")
    with pa.CompressedOutputStream(str(place / "d.txt.zst"), "zstd") as out:
        out.write(TEXT.encode())
    pq.write_table(pa.table({"text": ["Two.", "Three."]}), place / "e.parquet")
    return place


@pytest.fixture
def memory(folder: Path):
    """The same files in fsspec's memory."""
    store = fsspec.filesystem("memory")
    store.put(str(folder), "/corpus", recursive=True)
    yield "memory://corpus"
    store.rm("/corpus", recursive=True)


def found(corpus: Corpus) -> list[Document | Skipped]:
    return list(corpus)


@pytest.mark.parametrize("options", [{}, {"document": "paragraph"}, {"files": "**/*.jsonl"}])
def test_every_kind_of_file_is_read_from_a_url(folder, memory, options):
    here = found(Corpus(folder, **options))
    assert len(here) > 1
    assert found(Corpus(memory, **options)) == here
    assert found(Corpus(folder.as_uri(), **options)) == here
    assert Corpus(memory, **options).has_parts == Corpus(folder, **options).has_parts
    assert Corpus(memory).name == Corpus(folder).name == "corpus"


def test_one_file_is_read_from_a_url(folder, memory):
    assert found(Corpus(f"{memory}/b.txt")) == found(Corpus(folder / "b.txt"))
    assert found(Corpus(f"{memory}/e.parquet")) == found(Corpus(folder / "e.parquet"))


def test_a_file_system_of_pyarrow_is_used_where_fsspec_has_none(folder, monkeypatch):
    def missing(url):
        raise ImportError("Install something to access this")

    here = found(Corpus(folder))
    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    assert found(Corpus(folder.as_uri())) == here


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("memory://nothing/there", "no file at 'there' that can be read as text"),
        ("file:///nothing/there.txt", "no file at 'there.txt'"),
        ("nowhere://user:secret@host/corpus?key=secret", "'nowhere://…' cannot be opened here"),
    ],
)
def test_a_url_that_leads_nowhere_is_told_without_its_secrets(url, says):
    with pytest.raises(NoCorpus, match=says) as error:
        found(Corpus(url))
    assert "secret" not in str(error.value)


def test_a_store_that_stops_answering_stops_the_study_and_skips_nothing(memory, monkeypatch):
    def fails(self, path, *given, **named):
        raise ConnectionResetError("reset by peer")

    documents = iter(Corpus(memory))
    assert next(documents).source == "b.txt"
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "open", fails)
    with pytest.raises(CannotRead, match=r"cannot be read to the end .*reset.*goes on"):
        list(documents)
