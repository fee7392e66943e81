"""Layout where a text has one: topics turn between paragraphs, headings and lists stay together."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.segment.layout import blocks, places
from headscope.segment.passages import passage_spans, passages
from headscope.segment.prior import worth_of_layout
from headscope.segment.segmenter import default_segmenter
from headscope.segment.topics import explain_at
from headscope.viewer.segmented import GRANULARITIES
from places import SHARED

WRAPPED = (
    "The keeper walked down to the\nshore every morning and looked\nfor ships. None came in "
    "the first\nyear.\n\nBread needs flour, water and\nsalt. It also needs time, and a\nwarm room."
)
PARAGRAPHS = st.lists(
    st.lists(
        st.sampled_from(
            ["The cat sleeps.", "A ship left.", "Is it late?", "The captain of the ship slept."]
        ),
        min_size=1,
        max_size=4,
    ).map(" ".join),
    min_size=2,
    max_size=6,
)


def turns(text: str) -> list[tuple[str, str]]:
    """Each block's first word, and what the layout says of the place before it."""
    found = blocks(text)
    said = places(text, found)
    return [(text[b.start : b.end].split()[0], p.turn) for b, p in zip(found, said, strict=True)]


def test_the_turns_of_the_sample_are_found_without_tuning(specimen: hs.Scope) -> None:
    starts = [segment.split()[0] for segment in specimen.segment(hs.sample_text())]
    assert starts == ["The", "Bread", "On"]


@given(paragraphs=PARAGRAPHS, n=st.none() | st.integers(1, 9))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_paragraph_is_cut_unless_that_is_asked_for(tiny, paragraphs, n):
    text = "\n\n".join(paragraphs)
    segments = tiny.segment(text, n=n)
    assert "".join(segments) == text
    starts = [text.find(p, at) for at, p in zip(_offsets(paragraphs), paragraphs, strict=True)]
    assert {segment.start for segment in segments} <= set(starts)
    inside = tiny.segment(text, n=n, inside_paragraphs=True)
    if n is not None:
        assert len(inside) == min(n, len(passages(text)[0]))


def _offsets(paragraphs):
    return np.cumsum([0, *(len(p) + 2 for p in paragraphs)])[:-1].tolist()


def test_lines_that_are_wrapped_are_no_paragraphs(tiny):
    assert [turn for _, turn in turns(WRAPPED)] == ["paragraph", "paragraph"]
    segments = tiny.segment(WRAPPED, n=5)
    assert [segment.split()[0] for segment in segments] == ["The", "Bread"]


def test_lines_that_end_as_sentences_do_are_paragraphs():
    text = "One paragraph. It has two sentences.\nAnother one is here.\nAnd a third. It ends."
    assert [turn for _, turn in turns(text)] == ["paragraph"] * 3


@pytest.mark.parametrize(
    "heading",
    ["# Bread", "## Bread and salt ##", " = = Bread = = ", "Bread\n=====", "CHAPTER IV", "Bread",
     "Chapter 4. Of Bread", "2.1 Bread", "Part One: Bread", "面包"],
)  # fmt: skip
def test_a_heading_belongs_to_what_follows_it(heading):
    text = f"The lamp is lit. It burns.\n\n{heading}\n\nFlour is needed. So is salt.\n\nThe end."
    assert [turn for _, turn in turns(text)] == ["paragraph", "heading", "kept", "paragraph"]


def test_what_only_looks_like_a_heading_is_none():
    for line in ("He was late.", '"Are you there?"', "and so on", "Never,", "Ships – and more:"):
        text = f"The lamp is lit. It burns.\n\n{line}\n\nFlour is needed. So is salt."
        assert "heading" not in [turn for _, turn in turns(text)], line
    names = "Present were:\n\nMary Hill\n\nPaul King\n\nAnne Reed\n\nTom Wood\n\nThe meeting began."
    assert "heading" not in [turn for _, turn in turns(names)]


def test_headings_know_how_high_they_are():
    text = "# A\n\nOne.\n\n### B\n\nTwo.\n\n***\n\nThree.\n\n# C\n\nFour."
    found = blocks(text)
    levels = [(p.turn, p.level) for p in places(text, found) if p.turn in ("heading", "rule")]
    assert levels == [("heading", 1), ("heading", 2), ("rule", 3), ("heading", 1)]
    worth = worth_of_layout(passages(text)[1], 4.0, 1.5)
    assert worth[6] == 4.0 > worth[2] > worth[4]


@pytest.mark.parametrize("marks", ["---", "***", ("1.", "2.", "3."), ("(a)", "(b)", "(c)"), "•••"])
def test_a_list_stays_together_with_what_leads_into_it(marks):
    items = [f"{mark} thing" for mark in marks]
    for between in ("\n", "\n\n"):
        text = f"Take these:\n\n{between.join(items)}\n\nThen begin. It is easy."
        assert [turn for _, turn in turns(text)] == [
            "paragraph", "kept", "kept", "kept", "paragraph",
        ]  # fmt: skip


def test_items_that_are_paragraphs_are_treated_as_such():
    item = "This item says a great deal about what it is that it says. " * 8
    text = f"There are two ways:\n\n1. {item}\n\n2. {item}\n\nThat is all."
    assert [turn for _, turn in turns(text)] == ["paragraph", "kept", "paragraph", "paragraph"]


def test_a_text_that_is_one_list_is_cut_between_its_items():
    text = "\n".join(f"- The ship number {i} left. It was late." for i in range(4))
    assert [turn for _, turn in turns(text)] == ["paragraph"] * 4


def test_blank_lines_in_code_end_no_paragraph():
    text = "Run this.\n\n```\nfirst\n\nsecond\n```\n\nThen stop."
    assert [word for word, _ in turns(text)] == ["Run", "```", "Then"]


def test_a_text_without_layout_is_cut_as_its_sentences_alone(specimen):
    text = " ".join(hs.sample_text().split())
    spans, said = passages(text)
    assert spans == passage_spans(text)
    assert not worth_of_layout(said, 5.0, 1.5).any()
    why = specimen.segment(text, n=4).explain()
    assert not why.has_layout
    np.testing.assert_array_equal(why.ways.worth, why.start)


def test_one_paragraph_under_a_heading_is_cut_between_its_sentences(tiny):
    text = "# Title\n\n" + "The cat sleeps. A ship left. " * 6
    segments = tiny.segment(text, n=4)
    assert len(segments) == 4
    assert all(not segment.startswith("The cat", 9) or segment.start == 0 for segment in segments)


def test_a_paragraph_longer_than_a_segment_can_be_is_cut(tiny, monkeypatch):
    from headscope.segment import prior

    monkeypatch.setattr(prior, "LONGEST", 5)
    text = "The cat sleeps. " * 12 + "\n\nA ship left. It was late."
    _, said = passages(text)
    allowed = ~np.isneginf(worth_of_layout(said, 2.0, 6.0))
    assert allowed[:13].all()
    assert not allowed[13]  # of the short paragraph after it


def smooth(counts: list[int]) -> bool:
    """Whether no step makes more than half as many again, or one more."""
    steps = list(pairwise(counts))
    return all(a <= b <= max(a + 1, 1.5 * a) for a, b in steps)


def counts_of(scope: hs.Scope, text: str) -> list[int]:
    found = explain_at(scope, text, default_segmenter(scope), GRANULARITIES)
    return [len(why.cuts) + 1 for why in found]


@pytest.mark.parametrize("form", ["as it is", "bare"])
def test_the_number_of_segments_moves_smoothly_with_granularity(specimen, form):
    text = hs.sample_text() if form == "as it is" else " ".join(hs.sample_text().split())
    counts = counts_of(specimen, text)
    assert smooth(counts), counts
    assert counts[0] == 1
    assert counts[-1] > 3


def test_a_model_without_a_segmenter_moves_smoothly_too(tiny):
    text = "The cat sleeps. A ship left. Is it late? The captain of the ship slept. " * 8
    assert smooth(counts_of(tiny, text))


NOVELS = (
    "105_persuasion",
    "11_alices_adventures_in_wonderland",
    "62_a_princess_of_mars",
    "5230_the_invisible_man_a_grotesque_romance",
)


@pytest.mark.shared
@pytest.mark.parametrize("novel", NOVELS)
def test_a_chapter_of_a_novel_is_cut_and_smoothly(specimen, novel):
    text = (SHARED / "data" / "gutenberg_novels" / "ship" / f"{novel}.txt").read_text("utf-8")
    chapters = [c for c in re.split(r"(?mi)^(?=chapter\b)", text) if len(c) > 6000]
    counts = counts_of(specimen, chapters[1][:8000])
    assert smooth(counts), counts
    assert 2 <= counts[GRANULARITIES.index(1.0)] < counts[GRANULARITIES.index(4.0)]


@pytest.mark.shared
def test_an_article_is_cut_smoothly(specimen):
    lines = (SHARED / "data" / "wiki300" / "wiki300.ship.jsonl").read_text("utf-8").splitlines()
    units = [unit for segment in json.loads(lines[0])["segments"] for unit in segment][:120]
    counts = counts_of(specimen, " ".join(units))
    assert smooth(counts), counts


@pytest.mark.shared
def test_paragraphs_help_to_find_the_sections_of_a_schoolbook(specimen):
    lines = (SHARED / "data" / "openstax" / "sociology.jsonl").read_text("utf-8").splitlines()
    found = {"paragraphs": 0, "sentences": 0}
    short = [r for r in map(json.loads, lines) if 40 < sum(map(len, r["segments"])) < 75]
    for record in short[:4]:
        text, sections = "", set()
        for section, starts in zip(record["segments"], record["par_starts"], strict=True):
            sections.add(len(text))
            for a, b in pairwise([*starts, len(section)]):
                text += " ".join(section[a:b]) + "\n\n"
        for name, inside in (("paragraphs", False), ("sentences", True)):
            shown = text if not inside else text.replace("\n\n", "  ")
            cut = specimen.segment(shown, n=len(sections))
            found[name] += len(sections & {segment.start for segment in cut}) - 1
    assert found["paragraphs"] > found["sentences"], found
