"""A study is looked at on the texts it is about, and an example pair is found again in its text."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import headscope as hs
from headscope.study.folder import Study
from headscope.viewer.studied import first_text, packed_study
from viewer.conftest import Open, Served, Tab, served

CHOICE = 'select[aria-label="Text of the study\'s corpus"]'
OTHER = "A text that no corpus holds, of the sea and a lamp."

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def study(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "nights.txt").write_text(
        "\n\n".join(
            f"In night {n} the keeper lit the lamp. The lamp burned in night {n}, and the fog came."
            for n in range(9)
        )
    )
    return tiny.study(folder / "nights.txt", folder / "study", document="paragraph", texts=6)


@pytest.fixture(scope="module")
def study_server(study: Study, tiny: hs.Scope) -> Iterator[Served]:
    with served({"tiny": tiny}, first_text(study), study=packed_study(study)) as running:
        yield running


def open_texts(tab: Tab) -> str:
    """What the page shows as its text."""
    found: str = tab.page.evaluate("headscope.session.reading.request.text")
    return found


def test_the_texts_of_the_corpus_can_be_browsed(
    open_tab: Open, study_server: Served, study: Study
) -> None:
    texts = study.texts.to_pylist()
    tab = open_tab(study_server.address)
    assert open_texts(tab) == texts[0]["text"]
    labels = tab.page.locator(f"{CHOICE} option").all_inner_texts()
    assert labels[1:] == [f"text {t['number']}: nights.txt, line {t['line']}" for t in texts]
    tab.page.select_option(CHOICE, "4")
    tab.settle()
    assert open_texts(tab) == texts[3]["text"]
    assert f"line {texts[3]['line']}" in tab.page.get_attribute(".about", "title")


def test_a_text_that_is_not_of_the_corpus_is_said_to_be_none(
    open_tab: Open, study_server: Served
) -> None:
    tab = open_tab(study_server.address)
    tab.page.click("text=New text …")
    tab.page.fill("textarea", OTHER)
    tab.page.click("dialog.entry button[type=submit]")
    tab.until("headscope.session.reading.request.text.startsWith('A text that no corpus')")
    tab.settle()
    assert tab.page.locator(f"{CHOICE} option:checked").inner_text() == "not of the corpus"
    assert "not of the corpus" in tab.page.get_attribute(".about", "title")


def test_an_example_pair_opens_its_text_at_the_pair(
    open_tab: Open, study_server: Served, study: Study
) -> None:
    tab = open_tab(study_server.address)
    tab.set(view="atlas", layer=2, head=3)
    told = packed_study(study)
    pairs = told["cards"][1 * 4 + 2]["examples"]
    number = next(n for n, pair in enumerate(pairs) if pair["text"] != 1)
    tab.page.locator(".examples li >> nth=" + str(number)).locator("text=Show it there").click()
    pair = pairs[number]
    tab.until(
        "text => headscope.session.reading.request.text === text",
        told["texts"][pair["text"] - 1]["text"],
    )
    tab.settle()
    found = tab.hash()
    assert (found["view"], found["layer"], found["head"]) == ("head", "2", "3")
    assert int(found["token"]) == pair["first_position"]
    words = tab.page.evaluate("headscope.session.reading.tokens.word")
    ends = (pair["first_position"], pair["second_position"])
    assert tuple(words[end] for end in ends) == (pair["first"], pair["second"])


def test_a_saved_study_names_its_text_and_leads_to_pairs_in_it(
    open_tab: Open, study: Study, tmp_path: Path
) -> None:
    page = study.save(tmp_path / "study.html")
    tab = open_tab(page.as_uri(), offline=True)
    assert not tab.page.locator(CHOICE).is_visible()
    assert "Text 1 of those kept" in tab.page.get_attribute(".about", "title")
    told = packed_study(study)
    for place in range(12):
        tab.set(view="atlas", layer=place // 4 + 1, head=place % 4 + 1)
        own = [pair for pair in told["cards"][place]["examples"] if pair["text"] == 1]
        assert tab.page.locator("text=Show it there").count() == len(own)
