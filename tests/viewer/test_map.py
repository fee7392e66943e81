"""The atlas as a map: heads that do the same near each other, and each a click away."""

from pathlib import Path

import pytest

import headscope as hs
from headscope.study.folder import Study
from headscope.viewer.studied import packed_study, scope_of
from viewer.conftest import Open

TEXTS = [
    "The keeper lit the lamp, and the lamp burned. The keeper slept.",
    "A ship passed the rocks in the fog, and the fog stayed until the morning came.",
    "The captain saw the lamp of the keeper, and the captain was glad of the lamp.",
]
MIDDLES = """[...document.querySelectorAll(".plane button.head")].map((button) => {
    const { left, right, top, bottom } = button.getBoundingClientRect();
    return [(left + right) / 2, -(top + bottom) / 2];
})"""


@pytest.fixture(scope="module")
def study(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("mapped") / "study"
    tiny.study(TEXTS, folder, readings=("raw",), nulls=())
    return tiny.agreement(TEXTS, folder)


@pytest.fixture(scope="module")
def page(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    saved = tmp_path_factory.mktemp("page") / "study.html"
    return study.save(saved, scope_of(study).read(TEXTS[0]))


def test_the_viewer_is_given_the_map_of_the_study(study: Study) -> None:
    told = packed_study(study)["map"]
    rows = study.table("head_map").to_pylist()
    assert told["x"] == pytest.approx([row["x"] for row in rows], rel=1e-3)
    assert told["closest"] == [[row["closest_layer"], row["closest_head"]] for row in rows]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 420])
def test_heads_stand_where_the_map_says_and_can_be_chosen(
    open_tab: Open, page: Path, study: Study, width: int
) -> None:
    tab = open_tab(page.as_uri(), viewport={"width": width, "height": 900})
    tab.page.click("text=map")
    tab.settle()
    rows = study.table("head_map").to_pylist()
    seen = tab.page.evaluate(MIDDLES)
    assert len(seen) == len(rows) == 12
    for axis, name in ((0, "x"), (1, "y")):
        places = [row[name] for row in rows]
        span, least = max(places) - min(places), min(places)
        pixels = [place[axis] for place in seen]
        reach, first = max(pixels) - min(pixels), min(pixels)
        shown = [(one - first) / reach for one in pixels]
        assert shown == pytest.approx([(one - least) / span for one in places], abs=0.01)
    at = max(range(12), key=lambda place: rows[place]["x"])
    button = tab.page.locator(".plane button.head").nth(at)
    closest = f"{rows[at]['closest_layer']}·{rows[at]['closest_head']}"
    assert f"agrees most with {closest}" in button.get_attribute("title")
    button.click()
    tab.settle()
    chosen = [int(tab.hash().get(name, 1)) for name in ("layer", "head")]
    assert chosen == [rows[at]["layer"], rows[at]["head"]]
    assert tab.hash()["order"] == "map"
    assert tab.page.evaluate("document.querySelector('.left').scrollWidth <= innerWidth")


@pytest.mark.browser
def test_without_a_map_none_is_offered(open_tab: Open, tiny: hs.Scope, tmp_path: Path) -> None:
    reading = tiny.read(TEXTS[0])
    tab = open_tab(reading.save(tmp_path / "reading.html").as_uri() + "#order=map")
    assert not tab.page.locator("text=map >> visible=true").count()
    assert tab.page.locator(".grid .axis").count()
