"""Communities as colours in the text: found in the browser, and as Python finds them."""

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from effects.enumerated import energies, partitions
from headscope.effects.potts import couplings as potts
from headscope.pairs import reference
from viewer.conftest import Open, Tab

MARKED = "[...document.querySelectorAll('.marked')].map((span) => span.dataset.mark)"
ASK = """async ([layer, head]) => {
  const { session } = headscope;
  const { states, energy } = await session.communities(session.reading, layer, head);
  return [[...states], energy];
}"""


@pytest.mark.browser
def test_the_browser_finds_what_python_finds(tab: Tab, reading: hs.Reading) -> None:
    tab.set(reading="centred", special="left_out")
    same = 0
    for place in ((1, 1), (3, 8), (5, 5), (8, 2), (12, 12)):
        found = reading.communities(*place)
        states, energy = tab.page.evaluate(ASK, list(place))
        kept = ~reading.tokens.special
        C = reference.similarity(reading.head_vectors(*place), "centred", kept)[kept][:, kept]
        J = potts.couplings(C)
        own = potts.energy(J, np.array(states)) / potts.strength(C)
        assert energy == pytest.approx(own, abs=2e-3)  # of vectors in half precision
        assert energy == pytest.approx(found.energy, rel=0.02)
        same += states == found.of[kept].tolist()
    assert same >= 3


@pytest.mark.browser
def test_among_nine_tokens_they_are_the_least_there_are(
    open_tab: Open, specimen: hs.Scope, tmp_path: Path
) -> None:
    short = specimen.read("the keeper lit the lamp and slept .")
    kept = ~short.tokens.special
    assert 7 <= kept.sum() <= 10
    tab = open_tab(short.save(tmp_path / "page.html").as_uri(), offline=True)
    tab.set(reading="centred", special="left_out")
    ways = partitions(int(kept.sum()))
    missed = 0
    for layer in (1, 5, 12):
        for head in (1, 2, 3, 4):
            C = reference.similarity(short.head_vectors(layer, head), "centred", kept)
            C = C[kept][:, kept]
            least = energies(potts.couplings(C), ways).min() / potts.strength(C)
            _, energy = tab.page.evaluate(ASK, [layer, head])
            assert energy >= least - 2e-3
            missed += energy > least + 2e-3
    assert missed <= 1


@pytest.mark.browser
def test_the_text_is_coloured_on_request(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="text", reading="centred", special="left_out", layer="5", head="5")
    assert tab.page.evaluate(MARKED) == []
    tab.page.click("text=communities of this head")
    tab.settle()
    assert tab.hash()["communities"] == "shown"
    states, _ = tab.page.evaluate(ASK, [5, 5])
    assert tab.page.evaluate(MARKED) == [str(state + 1) for state in states]
    sizes = np.bincount(states)
    said = tab.page.inner_text(".marks")
    assert f"{len(sizes)} communit" in said
    assert f"1 {sizes[0]}" in said
    before = tab.page.evaluate(MARKED)
    tab.set(layer="1", head="2")
    other, _ = tab.page.evaluate(ASK, [1, 2])
    assert tab.page.evaluate(MARKED) == [str(state + 1) for state in other]
    tab.set(unit="word")
    assert len(tab.page.evaluate(MARKED)) < len(before)
    tab.page.click("text=communities of this head")
    tab.settle()
    assert tab.page.evaluate(MARKED) == []
    assert "communities" not in tab.hash()
