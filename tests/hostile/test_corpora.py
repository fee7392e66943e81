"""Corpora that are broken, hostile or huge: what can be read is read, the rest is told by name."""

import contextlib
import gzip
import io
import json
import lzma
import os
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope import documents
from headscope.corpus import Corpus, Document, NoCorpus, Skipped
from headscope.documents import PART

from .measured import most_memory

ROWS = b'{"text": "good"}\n%s\n{"text": "fine"}\n'


def jsonl(line: bytes) -> bytes:
    return ROWS % line


def parquet(column: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": column}), stream, **options)
    return stream.getvalue()


def broken_strings(data: bytes = b"bad \xff") -> Any:
    """Strings of Arrow one of which is no UTF-8, as a writer that does not look would make."""
    return pa.array([b"good", data, b"fine"], pa.binary()).view(pa.string())


@dataclass(frozen=True)
class Trial:
    what: str
    file: str
    attack: bytes | Callable[[], bytes]
    texts: list[str]
    reasons: list[str] = field(default_factory=list)  # how the reasons begin, or what is in them
    options: dict[str, Any] = field(default_factory=dict)


GOOD = ["good", "fine"]
TRIALS = [
    Trial(
        "a number of 5,000 digits beside the text",
        "a.jsonl",
        jsonl(b'{"text": "big", "n": ' + b"9" * 5000 + b"}"),
        ["good", "big", "fine"],
    ),
    Trial(
        "a number of 5,000 digits as the text",
        "a.jsonl",
        jsonl(b'{"text": ' + b"9" * 5000 + b"}"),
        GOOD,
        ["no text in column 'text' but int"],
    ),
    Trial(
        "a number as the text", "a.jsonl", jsonl(b'{"text": 12.5e3}'), GOOD, ["no text in column"]
    ),
    Trial("NaN as the text", "a.jsonl", jsonl(b'{"text": NaN}'), GOOD, ["no text in column"]),
    Trial(
        "an exponent beyond every float",
        "a.jsonl",
        jsonl(b'{"text": "x", "n": 1e999999999}'),
        ["good", "x", "fine"],
    ),
    Trial("JSON nested a million deep", "a.jsonl", jsonl(b"[" * 10**6), GOOD, ["broken JSON"]),
    Trial("objects nested deep", "a.jsonl", jsonl(b'{"a":' * 10**5), GOOD, ["broken JSON"]),
    Trial(
        "a line that ends in the middle", "a.jsonl", jsonl(b'{"text": "hal'), GOOD, ["broken JSON"]
    ),
    Trial(
        "two objects on one line",
        "a.jsonl",
        jsonl(b'{"text": "a"} {"text": "b"}'),
        GOOD,
        ["broken JSON"],
    ),
    Trial(
        "no UTF-8 in JSON", "a.jsonl", jsonl(b'{"text": "\xe9"}'), GOOD, ["not UTF-8: byte 0xe9"]
    ),
    Trial(
        "half a surrogate pair",
        "a.jsonl",
        jsonl(b'{"text": "\\ud800"}'),
        GOOD,
        ["half of a surrogate pair"],
    ),
    Trial("a null as the text", "a.jsonl", jsonl(b'{"text": null}'), GOOD, ["but nothing"]),
    Trial("a row without the column", "a.jsonl", jsonl(b'{"body": "x"}'), GOOD, ["but nothing"]),
    Trial("an empty object", "a.jsonl", jsonl(b"{}"), GOOD, ["but nothing"]),
    Trial("a list", "a.jsonl", jsonl(b"[1, 2]"), GOOD, ["but list"]),
    Trial("true", "a.jsonl", jsonl(b"true"), GOOD, ["but bool"]),
    Trial(
        "the column twice: the last counts",
        "a.jsonl",
        jsonl(b'{"text": "a", "text": "b"}'),
        ["good", "b", "fine"],
    ),
    Trial("white space as the text", "a.jsonl", jsonl(b'{"text": " \\n "}'), GOOD, ["empty"]),
    Trial(
        "control characters as the text",
        "a.jsonl",
        jsonl(b'{"text": "\\u0001\\u0002"}'),
        GOOD,
        ["nothing but control characters"],
    ),
    Trial(
        "NULs as the text",
        "a.jsonl",
        jsonl(b'{"text": "\\u0000\\u0000"}'),
        GOOD,
        ["nothing but control characters"],
    ),
    Trial(
        "a name that looks like a method",
        "a.jsonl",
        jsonl(b'{"get": 1, "text": "x"}'),
        ["good", "x", "fine"],
    ),
    Trial(
        "an array, not lines",
        "a.jsonl",
        b'[{"text": "a"},\n{"text": "b"}]\n',
        [],
        ["broken JSON", "broken JSON"],
    ),
    Trial(
        "a line of 17 MiB",
        "a.jsonl",
        lambda: jsonl(b'{"text": "' + b"a" * (17 << 20) + b'"}'),
        GOOD,
        ["more than 16 MiB"],
    ),
    Trial(
        "JSON lines in UTF-16",
        "a.jsonl",
        '{"text": "a"}\n'.encode("utf-16"),
        [],
        ["UTF-16", "broken JSON"],
    ),
    Trial(
        "UTF-16 with its mark",
        "a.txt",
        "words and more words".encode("utf-16"),
        [],
        ["UTF-16, not UTF-8; convert it: iconv -f utf-16"],
    ),
    Trial(
        "UTF-16 without its mark",
        "a.txt",
        "words and more words".encode("utf-16-le"),
        [],
        ["iconv -f utf-16le"],
    ),
    Trial(
        "UTF-16 the other way round",
        "a.txt",
        "words and more words".encode("utf-16-be"),
        [],
        ["zero bytes"],
    ),
    Trial(
        "Latin-1",
        "a.txt",
        "un café".encode("latin1"),
        [],
        ["not UTF-8: byte 0xe9; if it is Latin-1, convert it"],
    ),
    Trial(
        "one bad line among good ones",
        "a.txt",
        b"good\nbad \xff\nfine\n",
        GOOD,
        ["not UTF-8"],
        {"document": "line"},
    ),
    Trial(
        "one bad paragraph among good ones",
        "a.txt",
        b"good\n\nbad \xff\nx\n\nfine\n",
        GOOD,
        ["not UTF-8"],
        {"document": "paragraph"},
    ),
    Trial(
        "a character cut in two at the end",
        "a.txt",
        b"good\nfine\n\xe2\x82",
        GOOD,
        ["not UTF-8"],
        {"document": "line"},
    ),
    Trial("the mark of UTF-8 in front", "a.txt", b"\xef\xbb\xbfgood", ["good"]),
    Trial("an overlong NUL", "a.txt", b"a\xc0\x80b", [], ["not UTF-8: byte 0xc0"]),
    Trial("a surrogate in UTF-8", "a.txt", b"a\xed\xa0\x80b", [], ["not UTF-8: byte 0xed"]),
    Trial("beyond the last character", "a.txt", b"a\xf4\x90\x80\x80b", [], ["not UTF-8"]),
    Trial("a picture", "a.txt", b"\x89PNG\r\n\x1a\n" + bytes(2000), [], ["not UTF-8"]),
    Trial("a program", "a.txt", b"\x7fELF\x02\x01\x01" + bytes(2000), [], ["zero bytes"]),
    Trial("zeros", "a.txt", bytes(5000), [], ["nothing but control characters"]),
    Trial("an empty file", "a.txt", b"", [], ["empty"]),
    Trial("white space", "a.txt", b" \n\t\n", [], ["empty"]),
    Trial("no gzip at all", "a.txt.gz", b"no archive", [], ["cannot be read to the end"]),
    Trial(
        "half a gzip",
        "a.txt.gz",
        gzip.compress(b"words " * 999)[:-9],
        [],
        ["cannot be read to the end"],
    ),
    Trial(
        "a gzip with a wrong sum",
        "a.txt.gz",
        gzip.compress(b"words")[:-8] + bytes(8),
        [],
        ["cannot be read to the end"],
    ),
    Trial(
        "rubbish behind a gzip",
        "a.txt.gz",
        gzip.compress(b"words") + b"rubbish",
        [],
        ["cannot be read to the end"],
    ),
    Trial("an empty gzip", "a.txt.gz", b"", [], ["empty"]),
    Trial(
        "half an xz",
        "a.txt.xz",
        lzma.compress(b"words " * 999)[:-9],
        [],
        ["cannot be read to the end"],
    ),
    Trial("no zst at all", "a.txt.zst", b"no archive", [], ["cannot be read to the end"]),
    Trial(
        "a gzip of a gzip", "a.txt.gz", gzip.compress(gzip.compress(b"words")), [], ["not UTF-8"]
    ),
    Trial("no Parquet at all", "a.parquet", b"PAR1 not really PAR1", [], ["no Parquet"]),
    Trial("an empty Parquet file", "a.parquet", b"", [], ["no Parquet"]),
    Trial(
        "half a Parquet file", "a.parquet", lambda: parquet(["a"] * 999)[:-40], [], ["no Parquet"]
    ),
    Trial(
        "a Parquet footer of 2 GB",
        "a.parquet",
        lambda: parquet(["a"])[:-8] + struct.pack("<I", 2**31 - 1) + b"PAR1",
        [],
        ["no Parquet"],
    ),
    Trial(
        "no UTF-8 in Parquet",
        "a.parquet",
        lambda: parquet(broken_strings()),
        GOOD,
        ["not UTF-8: byte 0xff"],
    ),
    Trial(
        "no UTF-8 in Parquet, not as a dictionary",
        "a.parquet",
        lambda: parquet(broken_strings(), use_dictionary=False),
        GOOD,
        ["not UTF-8: byte 0xff"],
    ),
    Trial(
        "impossible times in Parquet",
        "a.parquet",
        lambda: parquet(pa.array([2**62], pa.timestamp("us"))),
        [],
        ["column 'text' holds timestamp["],
    ),
    Trial("lists in Parquet", "a.parquet", lambda: parquet([["a"], ["b"]]), [], ["holds list<"]),
    Trial("bytes in Parquet", "a.parquet", lambda: parquet([b"a"]), [], ["holds binary, no text"]),
    Trial(
        "nothing but nulls in Parquet",
        "a.parquet",
        lambda: parquet([None, None]),
        [],
        ["holds null, no text"],
    ),
    Trial(
        "nulls among strings in Parquet",
        "a.parquet",
        lambda: parquet(["a", None, "b"]),
        ["a", "b"],
        ["but nothing"],
    ),
    Trial("no rows in Parquet", "a.parquet", lambda: parquet(pa.array([], pa.string())), []),
    Trial(
        "a text of 17 MiB in Parquet",
        "a.parquet",
        lambda: parquet(["good", "a" * (17 << 20), "fine"]),
        GOOD,
        ["more than 16 MiB"],
    ),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.what)
def test_what_can_be_read_is_read_and_the_rest_is_told(trial, tmp_path):
    data = trial.attack if isinstance(trial.attack, bytes) else trial.attack()
    (tmp_path / trial.file).write_bytes(data)
    found = list(Corpus(tmp_path, **trial.options))
    assert [one.text for one in found if isinstance(one, Document)] == trial.texts
    skipped = [one for one in found if isinstance(one, Skipped)]
    assert len(skipped) == len(trial.reasons), skipped
    for one, expected in zip(skipped, trial.reasons, strict=True):
        assert one.source == trial.file
        assert expected in one.reason
        assert len(one.reason) < 400
        one.reason.encode()


NAMES = [
    b"caf\xe9.txt",
    b"\xff\xfe.txt",
    "naïve.txt".encode(),
    b"new\nline.txt",
    b"-.txt",
    b" .txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_any_name_is_read_and_named_in_utf_8(name, tmp_path):
    path = os.path.join(os.fsencode(tmp_path), name)
    try:
        with open(path, "wb") as stream:
            stream.write(b"words")
    except OSError:
        pytest.skip("this file system takes no such name")
    for corpus in (Corpus(tmp_path), Corpus(Path(os.fsdecode(path)))):
        [found] = corpus
        assert isinstance(found, Document)
        json.dumps([found.source, corpus.name], ensure_ascii=False).encode()


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "", "a/../../*", "**/../*", "***/x"])
def test_a_pattern_leads_nowhere_else(pattern, tmp_path):
    inside = tmp_path / "corpus"
    inside.mkdir()
    (inside / "a.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("outside")
    corpus = Corpus(inside, files=pattern)
    with contextlib.suppress(NoCorpus):
        assert {one.text for one in corpus} == {"inside"}


def test_links_that_go_round_are_no_corpus(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "round").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "nothing.txt").symlink_to(tmp_path / "gone")
    (tmp_path / "itself.txt").symlink_to(tmp_path / "itself.txt")
    assert [one.text for one in Corpus(tmp_path)] == ["words"]
    with pytest.raises(NoCorpus, match="There is no file or folder"):
        list(Corpus(tmp_path / "itself.txt"))


@pytest.mark.parametrize("source", [5, 1.5, None, object(), "\0", "x" * 5000, ""])
def test_what_is_no_corpus_is_said_to_be_none(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoCorpus):
        list(Corpus(source))


def test_a_long_document_comes_in_parts_that_are_one_document(tmp_path):
    line = "Words of a long book, and more of them.\n"
    pages = (7 * PART // 2) // (50 * len(line))
    text = "".join(line * 50 + f"\nWords of page {page} end.\n\n" for page in range(pages))
    (tmp_path / "book.txt").write_text(text)
    parts = list(Corpus(tmp_path / "book.txt"))
    assert len(parts) == 4
    assert "".join(part.text for part in parts) == text
    assert len({part.identity for part in parts}) == 1
    assert len({part.content for part in parts}) == 4
    assert [part.part for part in parts] == [0, 1, 2, 3]
    assert parts[0].line is None
    lines = text.split("\n")
    for part in parts[1:]:
        assert part.text.startswith("Words"), "a part begins with a paragraph"
        assert lines[part.line - 1] == part.text.split("\n")[0]
    [other] = Corpus([line])
    assert other.identity != parts[0].identity


def test_parts_are_the_same_from_a_file_a_row_and_a_list(tmp_path):
    text = "word " * PART
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}))
    pq.write_table(pa.table({"text": [text]}), tmp_path / "a.parquet")
    made = [
        [part.text for part in corpus]
        for corpus in (
            Corpus(tmp_path / "a.txt"),
            Corpus(tmp_path / "a.jsonl"),
            Corpus(tmp_path / "a.parquet"),
            Corpus([text]),
        )
    ]
    assert len(made[0]) == 6
    assert made[1:] == made[:1] * 3


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60) | st.text(max_size=20).map(str.encode), max_size=8))
@pytest.mark.parametrize("cut", ["file", "paragraph", "line"])
def test_any_bytes_become_documents_or_are_told(cut, pieces):
    for name in ("plain", "jsonl"):
        data = b"\n".join(pieces)
        stream = io.BytesIO(data)
        found = list(
            documents.plain(stream, "x", cut)
            if name == "plain"
            else documents.jsonl(stream, "x", "text")
        )
        for one in found:
            if isinstance(one, Skipped):
                assert one.reason
            else:
                assert one.text.encode() in data or name == "jsonl"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(VALUES | st.fixed_dictionaries({"text": VALUES}))
def test_any_row_of_json_is_a_document_or_is_told(value):
    line = json.dumps(value, ensure_ascii=True).encode()
    found = list(documents.jsonl(io.BytesIO(line + b"\n"), "x", "text"))
    text = value.get("text") if isinstance(value, dict) else value
    assert len(found) == 1
    if isinstance(found[0], Document):
        assert found[0].text == text
    else:
        assert not isinstance(text, str) or not text.strip() or "\0" in text or found[0].reason


def test_a_study_of_files_of_any_name_is_finished(tiny, tmp_path):
    """One such name made a study impossible to finish."""
    (tmp_path / "corpus").mkdir()
    try:
        for name in NAMES:
            with open(os.path.join(os.fsencode(tmp_path), b"corpus", name), "wb") as stream:
                stream.write(b"The keeper lit the lamp, and the lamp was gone. The sea was not.")
    except OSError:
        pytest.skip("this file system takes no such name")
    made = tiny.study(tmp_path / "corpus", tmp_path / "study", replicates=2)
    assert made.manifest.corpus.documents == len(NAMES)
    assert "caf\\xe9.txt" in made.texts.column("source").to_pylist()
    assert tiny.study(tmp_path / "corpus", tmp_path / "study", replicates=2).tables == made.tables


def test_of_a_million_failures_a_thousand_are_listed_and_all_are_counted(tiny, tmp_path):
    """The list outgrew the header of the state."""
    rows = b"{}\n" * 5_000 + b'{"text": "The keeper lit the lamp, and the sea was gone."}\n'
    (tmp_path / "a.jsonl").write_bytes(rows)
    made = tiny.study(tmp_path / "a.jsonl", tmp_path / "study", replicates=2)
    assert made.manifest.corpus.skipped == 5_000
    assert made.skipped.num_rows == 1_000
    assert made.manifest.corpus.documents == 1


READ_ALL = """
from headscope.corpus import Corpus, Skipped
from headscope.units import chunks
import headscope as hs
scope = hs.load(device="cpu")
documents = 0
for chunk in chunks(Corpus(PATH, **OPTIONS), scope.tokenizer, window=512):
    documents += chunk.documents
print(documents)
"""


def bomb(path: Path, megabytes: int, block: bytes) -> None:
    with gzip.open(path, "wb", compresslevel=6) as stream:
        for _ in range(megabytes):
            stream.write(block)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "file", "options", "documents"),
    [
        ("a gigabyte of zeros in 1 MB", "a.txt.gz", {}, 0),
        ("the same as JSON", "a.jsonl.gz", {}, 0),
        ("a line of 300 MB", "a.jsonl", {}, 0),
        ("a hundred thousand texts of a megabyte in one page", "a.parquet", {}, 0),
        ("a page of a gigabyte", "b.parquet", {}, 0),
        ("a million marks, each a token", "b.txt", {}, 1),
    ],
)
def test_no_document_takes_more_than_two_gigabytes(what, file, options, documents, tmp_path):
    path = tmp_path / file
    match file:
        case "a.txt.gz" | "a.jsonl.gz":
            bomb(path, 1000, bytes(10**6))
        case "a.jsonl":
            with path.open("wb") as stream:
                stream.write(b'{"text": "')
                for _ in range(300):
                    stream.write(b"many words" * 100_000)
                stream.write(b'"}\n')
        case "a.parquet":
            text = pa.DictionaryArray.from_arrays(
                pa.array([0] * 300, pa.int32()), pa.array(["\0" * 10**6])
            )
            pq.write_table(pa.table({"text": text}), path, compression="zstd")
        case "b.parquet":
            texts = pa.array(["\0" * 10**6] * 1000)
            pq.write_table(
                pa.table({"text": texts}),
                path,
                compression="zstd",
                use_dictionary=False,
                data_page_size=2**30,
            )
        case "b.txt":
            path.write_text("a," * 1_000_000)
    script = f"PATH, OPTIONS = {str(path)!r}, {options!r}\n" + READ_ALL
    peak, said = most_memory([sys.executable, "-c", script])
    assert said.stdout.split()[-1] == str(documents), said.stderr
    assert peak < 2 * 2**30, f"{what}: {peak / 2**20:,.0f} MiB"
