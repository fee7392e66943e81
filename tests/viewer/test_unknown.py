"""What the model does not know is marked wherever it is shown, and a piece stands in its word."""

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from viewer.conftest import Open, Served
from viewer.test_looking import point_at

pytestmark = pytest.mark.browser

KNOWN = "The lamp is lit, and the keeper slept in the fog all night. "


def test_unknown_tokens_are_marked_in_every_view(
    open_tab: Open, tiny: hs.Scope, tmp_path: Path
) -> None:
    reading = tiny.read(KNOWN + "灯 灯 灯 the lamp.")
    unknown = np.flatnonzero(reading.tokens.unknown)
    assert len(unknown) == 3
    share = f"{100 * reading.tokens.unknown_share:.1f} %"
    tab = open_tab(reading.save(tmp_path / "unknown.html").as_uri(), offline=True)
    for view in ("atlas", "head", "text", "compare"):
        tab.set(view=view, rule="quantile(1.0)")
        notice = tab.page.inner_text(".notice")
        assert f"3 of {(~reading.tokens.special).sum()} tokens ({share}) are unknown" in notice
        assert "model of its language" in notice
    tab.set(view="head")
    point_at(tab, int(unknown[0]), int(unknown[2]))
    assert tab.page.inner_text(".panel .readout").count("“灯” (unknown to the model)") == 2
    assert tab.page.locator(".panel:visible .pairs .mark.unknown").count() > 0
    tab.set(view="text")
    marked = tab.page.evaluate(
        """[...document.querySelectorAll('.page .token.unknown')].map((token) =>
            [Number(token.dataset.position), token.textContent, token.title])"""
    )
    assert [place for place, _, _ in marked] == unknown.tolist()
    assert all(text == "灯" and "vocabulary" in title for _, text, title in marked)


def test_a_few_unknown_tokens_are_told_without_a_warning(
    open_tab: Open, tiny: hs.Scope, tmp_path: Path
) -> None:
    reading = tiny.read(KNOWN * 4 + "灯")
    tab = open_tab(reading.save(tmp_path / "few.html").as_uri(), offline=True)
    assert tab.page.locator(".notice").is_hidden()
    tab.set(view="text")
    assert "1 of " in tab.page.inner_text(".split .hint >> nth=0").split("no high pair.")[1]


def test_a_list_shows_the_piece_inside_its_word_under_headings(
    open_tab: Open, tiny: hs.Scope, tmp_path: Path
) -> None:
    reading = tiny.read("The gammarus, the lamp, the gammarus.")
    tab = open_tab(reading.save(tmp_path / "pieces.html").as_uri(), offline=True)
    tab.set(view="head", layer=2, head=1, rule="quantile(1.0)")
    first = tab.page.evaluate(
        """[...document.querySelector('.panel .pairs li').querySelectorAll('.mark')].map((mark) =>
            [mark.textContent, [...mark.childNodes].filter((part) => part.nodeType === 3)
                .map((part) => part.textContent).join("")])"""
    )
    pair = max(reading.high_pairs(2, 1, "quantile(1.0)"), key=lambda pair: pair.similarity)
    assert first == [["".join(end.parts), end.piece] for end in pair.ends]
    heads = tab.page.inner_text(".panel:visible .pairs-head")
    assert heads.split("\n") == ["C", "the two tokens", "tokens apart"]


def test_another_reading_is_compared_by_the_same_head(open_tab: Open, server: Served) -> None:
    tab = open_tab(server.address)
    tab.set(view="compare", layer=5, head=3)
    other = "headscope.session.other"
    assert tab.page.evaluate(other) == [5, 4]  # of one text, two heads
    tab.page.evaluate("headscope.session.open({ model: 'specimen', text: 'A lamp is lit.' }, 1)")
    tab.until("headscope.session.opened[1] !== null")
    tab.settle()
    assert tab.page.evaluate(other) == [5, 3]
    chosen = "[...document.querySelectorAll('.compare .picker select')].map((menu) => menu.value)"
    assert tab.page.evaluate(chosen) == ["5", "3", "5", "3"]
