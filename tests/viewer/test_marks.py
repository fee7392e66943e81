"""The text coloured by a person's own labels."""

from pathlib import Path

import pytest

import headscope as hs
from viewer.conftest import Open

TEXT = "The keeper lit the lamp. He slept, and the lamp burned."


@pytest.mark.browser
def test_the_text_is_coloured_by_labels(open_tab: Open, tiny: hs.Scope, tmp_path: Path) -> None:
    reading = tiny.read(TEXT).mark("hostile", lambda word: "<b>" if word == "lamp" else None)
    reading.mark("case", lambda word: "upper" if word[0].isupper() else "lower")
    tab = open_tab(reading.save(tmp_path / "page.html").as_uri() + "#view=text", offline=True)
    marked = "[...document.querySelectorAll('.marked')].map((span) => span.dataset.mark)"
    assert set(tab.page.evaluate(marked)) == {"<b>"}
    count = sum(word == "lamp" for word in reading.tokens.word_texts)
    assert f"<b> {count}" in tab.page.inner_text(".marks")
    tab.page.click(".marks button >> text=case")
    assert set(tab.page.evaluate(marked)) == {"upper", "lower"}
    colours = tab.page.evaluate(
        "[...document.querySelectorAll('.marked')].map((span) => getComputedStyle(span).boxShadow)"
    )
    assert len(set(colours)) == 2
