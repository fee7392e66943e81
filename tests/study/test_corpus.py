"""Documents from every kind of source; what cannot be read is told, not lost."""

import gzip
import io
import json
import lzma
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headscope.corpus import Corpus, Document, Skipped
from headscope.errors import NoCorpus
from headscope.units import Padding, Position, batches, chunks

TWO = "First paragraph,\nof two lines.\n\n\nSecond paragraph.\n"


def texts(corpus: Corpus) -> list[str]:
    return [item.text for item in corpus if isinstance(item, Document)]


def failures(corpus: Corpus) -> list[Skipped]:
    return [item for item in corpus if isinstance(item, Skipped)]


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("file", [TWO]),
        ("paragraph", ["First paragraph,\nof two lines.", "Second paragraph."]),
        ("line", ["First paragraph,", "of two lines.", "Second paragraph."]),
    ],
)
def test_plain_text_is_cut_into_files_paragraphs_or_lines(tmp_path, cut, expected):
    (tmp_path / "a.txt").write_text(TWO)
    assert texts(Corpus(tmp_path / "a.txt", cut)) == expected


def test_paragraphs_know_the_line_they_begin_on(tmp_path):
    (tmp_path / "a.txt").write_text(TWO)
    assert [item.line for item in Corpus(tmp_path / "a.txt", "paragraph")] == [1, 5]


def pack_zst(path, data):
    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(data)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", lambda path, data: path.write_bytes(gzip.compress(data))),
        (".xz", lambda path, data: path.write_bytes(lzma.compress(data))),
        (".zst", pack_zst),
    ],
)
def test_packed_files_are_unpacked(tmp_path, suffix, pack):
    pack(tmp_path / f"a.jsonl{suffix}", b'{"text": "one"}\n{"text": "two"}\n')
    assert texts(Corpus(tmp_path)) == ["one", "two"]


def test_a_broken_archive_is_told_and_the_next_file_still_read(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"whole " * 5000)[:-20])
    (tmp_path / "b.txt.xz").write_bytes(b"no archive at all")
    (tmp_path / "c.txt").write_text("fine")
    corpus = Corpus(tmp_path)
    assert texts(corpus) == ["fine"]
    assert [one.source for one in failures(corpus)] == ["a.txt.gz", "b.txt.xz"]


def test_rows_of_jsonl_and_parquet_come_from_the_text_column(tmp_path):
    lines = [json.dumps({"body": text}) for text in ("one", "two")]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    pq.write_table(pa.table({"body": ["three", None, "four"]}), tmp_path / "b.parquet")
    corpus = Corpus(tmp_path, column="body")
    assert texts(corpus) == ["one", "two", "three", "four"]
    assert failures(corpus) == [Skipped("b.parquet", 2, "no text in column 'body' but nothing")]


def test_a_missing_column_is_named_with_those_that_are_there(tmp_path):
    pq.write_table(pa.table({"body": ["x"]}), tmp_path / "b.parquet")
    [failure] = failures(Corpus(tmp_path))
    assert failure.reason == "no column 'text'; there are: body"


def test_what_cannot_be_read_is_told_with_file_and_line(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "good"}\n{broken\n\n{"text": " "}\n"\xff"\n[1]\n')
    (tmp_path / "b.txt").write_bytes(b"one line\nbad \xe9 byte\n")
    (tmp_path / "c.txt").write_bytes(b"")
    corpus = Corpus(tmp_path)
    assert texts(corpus) == ["good"]
    found = [(one.source, one.line, one.reason.split(":")[0]) for one in failures(corpus)]
    assert found == [
        ("a.jsonl", 2, "broken JSON"),
        ("a.jsonl", 4, "empty"),
        ("a.jsonl", 5, "not UTF-8"),
        ("a.jsonl", 6, "no text in column 'text' but list"),
        ("b.txt", 2, "not UTF-8"),
        ("c.txt", None, "empty"),
    ]


def test_folders_are_read_deep_in_order_and_by_pattern(tmp_path):
    for name in ("b/two.txt", "a/one.md", "three.txt", "picture.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert texts(Corpus(tmp_path)) == ["a/one.md", "b/two.txt", "three.txt"]
    assert texts(Corpus(tmp_path, files="**/*.txt")) == ["b/two.txt", "three.txt"]
    assert next(iter(Corpus(tmp_path))).source == "a/one.md"


def test_standard_input_and_rows_of_a_data_set_are_read(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"from a pipe\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert texts(Corpus("-", "line")) == ["from a pipe"]
    assert texts(Corpus([{"text": "row"}, "plain"])) == ["row", "plain"]


def test_a_hugging_face_data_set_needs_its_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)  # as where it is not installed
    with pytest.raises(NoCorpus, match=r"pip install 'headscope\[datasets\]'"):
        list(Corpus("hf:wikitext@wikitext-2-raw-v1:test"))


def test_errors_say_what_is_missing_and_what_to_do(tmp_path):
    with pytest.raises(NoCorpus, match=r"There is no file or folder .*\.jsonl"):
        list(Corpus(tmp_path / "nowhere"))
    with pytest.raises(NoCorpus, match="holds no file"):
        list(Corpus(tmp_path))
    with pytest.raises(NoCorpus, match="not a 'page'"):
        Corpus(tmp_path, "page")


def test_the_same_text_has_the_same_identity_wherever_it_stands():
    one, other = Document("text", "a", 1), Document("text", "b", 9)
    assert one.identity == other.identity != Document("Text", "a", 1).identity


def test_chunks_from_any_place_are_the_rest_of_all_chunks(tiny, monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 4)
    corpus = Corpus(["A few words. " * 60, " ", "Two.", "Three.", "And more words. " * 90, "End."])

    def cut(start):
        return list(chunks(corpus, tiny.tokenizer, window=32, start=start))

    def places(chunk):
        return [(unit.document, unit.window) for unit in chunk.units]

    whole = cut(Position())
    assert len(whole) > 3
    assert any(chunk.after.windows for chunk in whole), "no chunk ends inside a document"
    for number, chunk in enumerate(whole[:-1]):
        rest = cut(chunk.after)
        assert [places(one) for one in rest] == [places(one) for one in whole[number + 1 :]]
        done = sum(one.fingerprint for one in whole[: number + 1])
        assert rest[0].passed == done
    assert sum(chunk.documents for chunk in whole) == 5
    assert [str(one) for chunk in whole for one in chunk.skipped] == ["list, line 2: empty"]


def test_a_text_the_tokenizer_makes_nothing_of_is_skipped(tiny):
    [chunk] = chunks(Corpus(["\u200b", "Fine."]), tiny.tokenizer, window=32)
    assert len(chunk.units) == 1
    assert [one.line for one in chunk.skipped] == [1]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_batches_stay_under_budget_and_padding(units, share):
    many, padding = units * 4, Padding(share, window=160)
    budget = 200
    groups = batches(many, budget, padding)
    assert sorted(place for group in groups for place in group) == list(range(len(many)))
    for group in groups:
        lengths = [len(many[place]) for place in group]
        [padded] = {padding.length(length) for length in lengths}
        assert padded * len(group) <= budget or len(group) == 1
        assert len({length == padded for length in lengths}) == 1  # with a mask or without
        assert all(length <= padded <= (1 + share) * length for length in lengths)
    assert len(groups) < len(many)


def test_a_data_set_is_read_and_one_that_is_not_there_is_explained(tmp_path, monkeypatch):
    pytest.importorskip("datasets", reason="pip install 'headscope[datasets]' to test data sets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    (tmp_path / "data").mkdir()
    lines = [json.dumps({"text": f"Text {n}.", "other": n}) for n in range(3)]
    (tmp_path / "data" / "train.jsonl").write_text("\n".join(lines))
    found = list(Corpus(f"hf:{tmp_path / 'data'}:train"))
    assert [document.text for document in found] == ["Text 0.", "Text 1.", "Text 2."]
    for missing in (f"hf:{tmp_path / 'nothing'}", f"hf:{tmp_path / 'data'}:test"):
        with pytest.raises(NoCorpus, match=r"cannot be opened .* hf:NAME@CONFIG"):
            list(Corpus(missing))
