"""Intervals are over groups: documents, the files they are of, or blocks of a long one."""

import io

import numpy as np
import pytest
from texts import TEXTS

import headscope as hs
from headscope.cli.compare import summary
from headscope.errors import CannotStudy
from headscope.report.comparison import comparison_page
from headscope.report.study_page import study_page
from headscope.terminal import Terminal

FAST = {"nulls": (), "readings": ("raw",), "special": ("kept",), "window": 40}


def errors(made):
    return np.array(
        made.sql("select error from focus where level = 'layer'")["error"].to_pylist(), float
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Two files of many paragraphs."""
    folder = tmp_path_factory.mktemp("corpus")
    for n, texts in enumerate((TEXTS[:5] * 3, TEXTS[5:] * 3)):
        named = [f"{text} Number {k} of file {n}." for k, text in enumerate(texts)]
        (folder / f"{n}.txt").write_text("\n\n".join(named))
    return folder


def test_paragraphs_of_a_file_weigh_together_when_asked(tiny, corpus, tmp_path):
    made = {
        group: tiny.study(corpus, tmp_path / group, document="paragraph", group=group, **FAST)
        for group in ("document", "file")
    }
    assert not np.allclose(errors(made["document"]), errors(made["file"]), rtol=0.1)
    one = tiny.study(corpus / "0.txt", tmp_path / "one", document="paragraph", group="file", **FAST)
    assert np.isnan(errors(one)).all(), "one file has no other to differ from"
    assert "one group has" in one.findings.to_pylist()[0]["reason"]
    reasons = {row["reason"] for row in made["file"].findings.to_pylist()}
    assert any("so few groups" in reason for reason in reasons)
    assert "over files" in study_page(made["file"])
    assert "over paragraphs of corpus" in study_page(made["document"])


def test_paragraphs_of_several_files_weigh_by_file_unless_said_otherwise(tiny, corpus, tmp_path):
    made = tiny.study(corpus, tmp_path / "usual", document="paragraph", **FAST)
    assert made.manifest.parameters.group == "file"
    assert "over files" in study_page(made)
    one = tiny.study(corpus / "0.txt", tmp_path / "one", document="paragraph", **FAST)
    assert one.manifest.parameters.group == "document"
    assert "over paragraphs of 0.txt" in study_page(one)
    whole = tiny.study(corpus, tmp_path / "whole", **FAST)
    assert whole.manifest.parameters.group == "document"


def test_one_group_has_no_interval_anywhere(tiny, tmp_path):
    """In every replicate one document has the same ratios: an interval of no width says nothing."""
    one = tiny.study([" ".join(TEXTS)], tmp_path / "one", **FAST | {"nulls": ("shuffle",)})
    ends = [n for n in one.findings.column_names if n.endswith(("low", "high"))]
    assert len(ends) == 6
    assert {row[end] for row in one.findings.to_pylist() for end in ends} == {None}
    for table in ("focus", "range", "distances", "nulls"):
        ends = [name for name in one.table(table).column_names if name.endswith(("low", "high"))]
        ends.remove("high") if table == "distances" else None  # how many pairs are high
        assert ends
        assert all(set(one.table(table)[name].to_pylist()) == {None} for name in ends), table
    assert any(row["value"] for row in one.findings.to_pylist())
    two = tiny.study(TEXTS, tmp_path / "two", **FAST)
    found = hs.compare(one, two)
    assert len(found.numbers) > 12 * 20
    assert found.unsure
    assert found.differing == 0
    assert "one study is of one group" in printed(summary(found, 3))
    assert "which has no interval" in comparison_page(found)


def printed(table):
    console = Terminal(file=io.StringIO(), width=100)
    console.print(table)
    return console.file.getvalue()


def test_one_document_is_told_what_interval_can_be_had(tiny, tmp_path):
    made = tiny.study([" ".join(TEXTS * 2)], tmp_path, **FAST)
    assert "--group window" in made.findings.to_pylist()[0]["reason"]


def test_windows_of_one_long_document_are_blocks_that_are_named_so(tiny, tmp_path):
    text = [" ".join(TEXTS * 2)]
    alone = tiny.study(text, tmp_path / "alone", **FAST)
    blocks = tiny.study(text, tmp_path / "blocks", group="window", **FAST)
    assert blocks.manifest.corpus.documents == 1
    assert blocks.manifest.corpus.windows > 5
    assert not np.nan_to_num(errors(alone)).max() > 1e-9
    assert np.nanmedian(errors(blocks)) > 1e-4
    assert "one group has" in alone.findings.to_pylist()[0]["reason"]
    assert "one group has" not in blocks.findings.to_pylist()[0]["reason"]
    assert "windows, as blocks of 1 documents" in study_page(blocks)


def test_an_unknown_group_is_refused(tiny, tmp_path):
    with pytest.raises(CannotStudy, match="group is one of document, file, window"):
        tiny.study(TEXTS, tmp_path, group="shelf", **FAST)
