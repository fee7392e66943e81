"""Looking around in the viewer: pointing, sliding, keys, addresses, dark, hostile texts."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headscope as hs
from headscope.pairs import parse_rule
from viewer.conftest import Open, Served, Tab, served

pytestmark = pytest.mark.browser

HOSTILE = {
    "script": "</script><script>window.broken = 1</script> the lamp",
    "image": '<img src=x onerror="window.broken = 1"> the lamp',
    "right to left": "שלום לעולם. مرحبا بالعالم. The lamp \u202efo gof\u202c.",
    "emoji": "The 👩‍👩‍👧‍👦 lamp 🏳️‍🌈 and naïve café 𝒳.",
    "no space": "x" * 10_000,
}


def point_at(tab: Tab, i: int, j: int) -> None:
    """Move the pointer to the middle of cell (i, j) of the large matrix."""
    x, y = tab.page.evaluate(
        """([i, j]) => {
            const matrix = headscope.views.head.shown.values().next().value.matrix;
            const box = matrix.over.getBoundingClientRect();
            const at = (k) => matrix.margin + (k + 0.5) * matrix.layout().cell;
            return [box.left + at(j), box.top + at(i)];
        }""",
        [i, j],
    )
    tab.page.mouse.move(x, y)
    # A page is told of moves a frame at a time.
    frame = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    tab.page.evaluate(frame)


@pytest.mark.parametrize(("i", "j"), [(3, 17), (17, 3), (1, 2)])
def test_pointing_names_both_tokens_value_distance_and_rank(
    tab: Tab, reading: hs.Reading, i: int, j: int
) -> None:
    tab.set(view="head", layer=4, head=7)
    point_at(tab, i, j)
    said = tab.page.inner_text(".panel .readout")
    C, tokens = reading.similarity(4, 7), reading.tokens
    assert f"“{tokens.pieces[i]}”" in said
    assert f"“{tokens.pieces[j]}”" in said
    assert f"{abs(i - j)} tokens apart" in said
    found = re.search(r"C = (\S+), rank ([\d,]+) of ([\d,]+)", said)
    assert found, said
    assert float(found[1]) == pytest.approx(C[i, j], rel=5e-3, abs=5e-3)
    values = C[np.triu_indices(len(C), 1)]
    assert int(found[3].replace(",", "")) == len(values)
    rank = 1 + (values > C[i, j]).sum()
    assert abs(int(found[2].replace(",", "")) - rank) <= 5  # float16 may swap neighbours


def test_the_diagonal_is_told_apart_from_pairs(tab: Tab) -> None:
    tab.set(view="head")
    point_at(tab, 4, 4)
    said = tab.page.inner_text(".panel .readout")
    assert "with itself" in said
    assert "rank" not in said


@pytest.mark.parametrize("rule", ["quantile(0.01)", "quantile(0.1)", "sigma(2.0)", "nearest(2)"])
@pytest.mark.parametrize("special", ["kept", "left_out"])
def test_high_pairs_are_those_of_the_library(
    tab: Tab, reading: hs.Reading, rule: str, special: Any
) -> None:
    tab.set(view="head", layer=9, head=2, rule=rule, special=special)
    expected = reading.high_pairs(9, 2, rule, special=special)
    found = tab.page.evaluate(
        """(() => {
            const { found, main } = headscope.views.head;
            return found.pairs.map(([i, j]) => [main.positions[i], main.positions[j]]);
        })()"""
    )
    wanted = {(pair.first, pair.second) for pair in expected}
    assert len(wanted) > 3
    assert len(wanted ^ set(map(tuple, found))) <= 2  # float16, at the threshold
    count = int(tab.page.inner_text(".panel .amount").split(" of ")[0].replace(",", ""))
    assert abs(count - len(expected)) <= 2


def test_the_slider_chooses_how_many_pairs_are_high(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head")
    few = tab.page.inner_text(".panel .amount")
    tab.page.focus(".panel input[type=range]")
    tab.page.keyboard.press("End")
    tab.settle()
    many = tab.page.inner_text(".panel .amount")
    pairs = len(reading) * (len(reading) - 1) // 2
    assert few == f"{parse_rule('quantile(0.01)').number(pairs)} of {pairs}"  # type: ignore[union-attr]
    assert many == f"{parse_rule('quantile(0.2)').number(pairs)} of {pairs}"  # type: ignore[union-attr]
    assert tab.hash()["rule"] == "quantile(0.2)"
    assert "20 % most similar pairs" in tab.page.inner_text(".panel")


def test_another_rule_can_be_chosen(tab: Tab) -> None:
    tab.set(view="head")
    tab.page.select_option(".panel section select", "nearest")
    tab.settle()
    assert tab.hash()["rule"] == "nearest(3)"
    assert "among the 3 most similar" in tab.page.inner_text(".panel")


def test_the_distances_stand_beside_those_of_all_pairs(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head", layer=5, head=5)
    bars = tab.page.locator(".panel .histogram rect").count()
    assert bars >= 8
    assert tab.page.locator(".panel .histogram .chance").count() == 1
    mean = tab.page.locator(".panel .facts tr", has_text="mean distance").first.inner_text()
    high = reading.high_pairs(5, 5)
    shown, chance = map(float, re.findall(r"[\d.]+", mean))
    assert shown == pytest.approx(np.mean([pair.distance for pair in high]), abs=1.5)
    size = len(reading)
    assert chance == pytest.approx((size + 1) / 3, abs=0.05)


def test_the_words_that_a_head_writes_stand_beside_it(tab: Tab, reading: hs.Reading) -> None:
    for view, beside in (("head", ".panel"), ("text", ".panel"), ("atlas", ".card")):
        tab.set(view=view, layer=6, head=3, token="")
        words = tab.page.locator(f"{beside} .writes tr").first.locator(".word").all_inner_texts()
        assert words == [word for word, _ in reading.writes(6, 3, top=8).raised]
    tab.set(view="head", token=4)
    said = tab.page.inner_text(".panel .writes")
    if tab.page.url.startswith("file:"):
        assert "open the text with “headscope view”" in said
    else:
        assert reading.tokens.pieces[4] in said
        assert reading.writes(6, 3, position=4).raised[0][0] in said


def test_the_keys_move_through_layers_heads_and_views(tab: Tab) -> None:
    press = tab.page.keyboard.press
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        press(key)
    tab.settle()
    assert tab.hash() == {"layer": "2", "head": "3"}
    assert "Layer 2, head 3" in tab.page.inner_text(".card")
    views = {"h": "head", "t": "text", "g": "segments", "c": "compare", "a": "atlas"}
    for key, view in views.items():
        press(key)
        tab.settle()
        assert tab.hash().get("view", "atlas") == view
    press("ArrowUp")
    press("ArrowUp")
    press("ArrowLeft")
    tab.settle()
    assert tab.hash() == {"head": "2"}  # layer 1 is the first
    press("r")
    press("s")
    tab.settle()
    assert tab.hash() == {"head": "2", "reading": "cosine", "special": "left_out"}
    press("?")
    assert tab.page.locator("dialog.help").is_visible()
    assert "previous, next head" in tab.page.inner_text("dialog.help")
    press("Escape")
    assert not tab.page.locator("dialog.help").is_visible()


def test_slash_finds_a_token_and_enter_goes_to_the_next(tab: Tab, reading: hs.Reading) -> None:
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("keeper")
    tab.settle()
    first = int(tab.hash()["token"])
    tab.page.keyboard.press("Enter")
    tab.settle()
    second = int(tab.hash()["token"])
    assert [reading.tokens.word_texts[p] for p in (first, second)] == ["keeper", "keeper"]
    assert second > first
    assert tab.page.inner_text(".find .count").startswith("2 of ")


def test_the_address_holds_the_view(open_tab: Open, server: Served, saved: Path) -> None:
    looked = "#view=head&layer=3&head=4&reading=cosine&beside=raw&rule=sigma%282%29&token=5"
    for address in (server.address, saved.as_uri()):
        tab = open_tab(address + looked)
        assert tab.page.locator(".board figure").count() == 2
        assert tab.page.evaluate(
            "[...document.querySelectorAll('.picker select')].map(s => s.value)"
        ) == ["3", "4"]
        assert "2 standard deviations" in tab.page.inner_text(".panel")
        cosine = "headscope.views.head.shown.get('cosine').matrix.drawn"
        assert tab.page.evaluate(f"{cosine}.pinned") == 5
        assert tab.page.url == address + looked


@pytest.mark.parametrize(
    "hash_", ["#layer=99&head=-3", "#view=nothing&rule=x(y)&reading=9", "#%ff&=&&"]
)
def test_a_broken_address_still_shows_something(open_tab: Open, saved: Path, hash_: str) -> None:
    tab = open_tab(saved.as_uri() + hash_)
    assert tab.page.locator("button.head canvas").count() == 144
    assert tab.page.locator("button.head[aria-current]").count() == 1


def test_a_text_typed_in_is_drawn_and_its_address_can_be_shared(
    open_tab: Open, server: Served, specimen: hs.Scope
) -> None:
    tab = open_tab(server.address)
    text = "A ship is not a lamp, and a lamp is not a ship."
    tab.page.click("text=New text …")
    tab.page.fill("dialog textarea", text)
    tab.page.keyboard.press("Control+Enter")
    tab.until(
        "count => headscope.session.reading.tokens.id.length === count", len(specimen.read(text))
    )
    tab.settle()
    assert tab.hash()["text"] == text
    again = open_tab(tab.page.url)
    assert again.page.evaluate("headscope.session.reading.tokens.word.join(' ')").count("ship") == 2


def test_what_the_server_refuses_is_said_where_it_was_asked(open_tab: Open, server: Served) -> None:
    tab = open_tab(server.address)
    tab.page.click("text=New text …")
    tab.page.fill("dialog textarea", "   ")
    tab.page.click("dialog button.main >> nth=0")
    tab.until("!document.querySelector('dialog .note').textContent.startsWith('Reading')")
    assert "nothing to read" in tab.page.inner_text("dialog .note")
    assert tab.page.locator("dialog.entry").is_visible()
    tab.complaints.clear()  # Chromium itself reports every status from 400 on


def test_a_first_text_that_is_too_long_can_be_shortened(open_tab: Open, tiny: hs.Scope) -> None:
    text = "The keeper lit the lamp. " * 40
    with served({"tiny": tiny}, text, most_tokens=60) as running:
        tab = open_tab(running.address)
        assert "shows up to 60. Paste a part of it" in tab.page.inner_text("dialog .note")
        assert tab.page.input_value("dialog textarea") == text
        tab.page.fill("dialog textarea", text[:60])
        tab.page.click("dialog button.main >> nth=0")
        tab.until("headscope.session.reading")
        tab.settle()
        assert tab.page.locator("button.head").count() == 12
        assert not tab.page.locator(".problem").is_visible()
        tab.complaints.clear()  # Chromium itself reports every status from 400 on


def test_dark_follows_the_system_and_the_button(open_tab: Open, saved: Path) -> None:
    def ground(tab: Tab) -> float:
        colour = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return float(np.mean([int(part) for part in re.findall(r"\d+", colour)][:3]))

    light = open_tab(saved.as_uri(), color_scheme="light")
    dark = open_tab(saved.as_uri(), color_scheme="dark")
    assert ground(dark) < 60 < 200 < ground(light)
    lowest = "headscope.colours('raw', [0, 1]).colours[0]"
    assert dark.page.evaluate(lowest) < 60 < 200 < light.page.evaluate(lowest)
    light.page.keyboard.press("d")
    light.settle()
    assert ground(light) == ground(dark)
    assert light.page.evaluate(lowest) == dark.page.evaluate(lowest)


def test_the_text_is_shaded_by_similarity_to_a_token(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="text", layer=4, head=7)
    position = reading.tokens.pieces.index("lamp")
    tab.page.hover(f'.page [data-position="{position}"]')
    tab.settle()
    shades = tab.page.evaluate(
        "[...document.querySelectorAll('.page .token')].map((t) => t.style.backgroundColor)"
    )
    darkness = np.array([-sum(map(int, re.findall(r"\d+", shade))) for shade in shades])
    row = reading.similarity(4, 7)[position]
    others = np.arange(len(row)) != position
    high = int(np.argmax(np.where(others, row, -np.inf)))
    assert darkness[others].argmax() == high - (high > position)
    # The less similar half is plain, and the order of the rest is that of similarity.
    plain = darkness == darkness.min()
    assert plain[others & (row < np.median(row[others]) - 0.01)].all()
    shaded = np.flatnonzero(others & ~plain)
    assert 5 < len(shaded) <= others.sum() // 2 + 2
    assert np.corrcoef(np.argsort(np.argsort(row[shaded])), darkness[shaded])[0, 1] > 0.9
    said = tab.page.inner_text(".panel .readout")
    assert "“lamp”" in said
    assert reading.tokens.word_texts[high] in said.split("most similar: ")[1]


def test_arcs_lead_to_the_high_pairs_of_a_token(tab: Tab, reading: hs.Reading) -> None:
    rule = "nearest(2)"
    tab.set(view="text", layer=4, head=7, rule=rule, token=6)
    partners = [p for p in reading.high_pairs(4, 7, rule) if 6 in (p.first, p.second)]
    assert 2 <= len(partners) < 12  # no more than twelve are drawn
    assert abs(tab.page.locator(".arcs path").count() - len(partners)) <= 1


def test_two_heads_stand_side_by_side(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="compare", layer=2, head=3, other="8-4", rule="quantile(0.1)")
    pairs = [
        {(p.first, p.second) for p in reading.high_pairs(*head, "quantile(0.1)")}
        for head in ((2, 3), (8, 4))
    ]
    share = 100 * len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1])
    tab.until("document.querySelector('.agreement').textContent !== ''")
    said = tab.page.inner_text(".agreement")
    found = re.search(r"([\d.]+) % of those", said)
    assert found, said
    assert float(found[1]) == pytest.approx(share, abs=2)
    for side, head in enumerate(((2, 3), (8, 4))):
        values = tab.page.evaluate(
            "side => [...headscope.views.compare.sides[side].looked.data.values]", side
        )
        C = reading.similarity(*head)
        assert np.array(values).reshape(C.shape) == pytest.approx(C, abs=3e-3 * np.abs(C).max())


def test_two_texts_can_be_compared(open_tab: Open, server: Served, specimen: hs.Scope) -> None:
    tab = open_tab(server.address)
    tab.set(view="compare")
    tab.page.click("text=Other text or model on the right")
    text = "Nothing about Pluto had changed, but the word had."
    tab.page.fill("dialog textarea", text)
    tab.page.click("dialog button.main >> nth=0")
    tab.until("headscope.session.opened[1] !== null")
    tab.settle()
    sizes = tab.page.evaluate("headscope.views.compare.sides.map((side) => side.looked.data.size)")
    assert sizes == [len(specimen.read(server.text)), len(specimen.read(text))]
    assert "Two readings" in tab.page.inner_text(".agreement")


def test_heads_can_be_put_in_order_of_a_measure(tab: Tab, reading: hs.Reading) -> None:
    tab.until("headscope.views.atlas.measures.size === 144")
    tab.page.select_option("select[aria-label='Measure of the heads']", "similarity")
    tab.page.click("text=high first")
    tab.settle()
    order = tab.page.evaluate(
        """[...document.querySelectorAll("button.head")].map(({ dataset }) =>
            [Number(dataset.layer), Number(dataset.head)])"""
    )
    upper = np.triu_indices(len(reading), 1)
    means = [reading.similarity(*place)[upper].mean() for place in order]
    assert len(means) == 144
    assert all(a >= b - 0.01 * abs(b) for a, b in pairwise(means))
    tab.page.click("text=low first")
    tab.settle()
    assert tab.page.evaluate(
        """[...document.querySelectorAll("button.head")].map(({ dataset }) =>
            [Number(dataset.layer), Number(dataset.head)])"""
    ) == sorted(order, key=lambda place: means[order.index(place)])


def test_heads_below_a_value_can_be_left_out(tab: Tab, reading: hs.Reading) -> None:
    tab.until("headscope.views.atlas.measures.size === 144")
    tab.set(measure="size", order="high")
    tab.page.fill("input.least", "2.5")
    tab.page.keyboard.press("Enter")
    tab.settle()
    sizes = [
        np.linalg.norm(reading.head_vectors(layer, head), axis=1).mean()
        for layer in range(1, 13)
        for head in range(1, 13)
    ]
    expected = sum(size >= 2.5 for size in sizes)
    assert 0 < expected < 144
    assert abs(tab.page.locator("button.head").count() - expected) <= 1
    assert tab.hash()["least"] == "2.5"
    tab.set(least="1000")
    assert "No head is like this" in tab.page.inner_text(".grid")


def word_vectors(reading: hs.Reading, layer: int, head: int) -> tuple[list[str], Any]:
    """Words and special tokens in order, and the mean vector of the pieces of each."""
    z, tokens = reading.head_vectors(layer, head), reading.tokens
    rows: list[list[int]] = []
    for i in range(len(tokens)):
        goes_on = i > 0 and tokens.words[i] == tokens.words[i - 1] and not tokens.special[i]
        if goes_on and not tokens.special[i - 1]:
            rows[-1].append(i)
        else:
            rows.append([i])
    return [tokens.word_texts[row[0]] for row in rows], np.array([z[row].mean(0) for row in rows])


def test_pieces_can_be_joined_to_words(open_tab: Open, server: Served, specimen: hs.Scope) -> None:
    text = "Zygomorphic lampkeepers, unlampable lampkeepers: the fog. The zygomorphic keeper slept."
    reading = specimen.read(text)
    words, z = word_vectors(reading, 3, 4)
    assert len(words) < len(reading) - 5
    tab = open_tab(f"{server.address}#view=head&layer=3&head=4&text={text}")
    tab.page.keyboard.press("w")
    tab.settle()
    assert tab.hash()["unit"] == "word"
    values, names = tab.page.evaluate(
        """(() => {
            const { values, names, positions } = headscope.views.head.shown.get("raw").matrix.drawn;
            return [[...values], [...positions].map((position) => names[position])];
        })()"""
    )
    C = z.astype(float) @ z.astype(float).T
    assert names == words
    assert np.array(values).reshape(C.shape) == pytest.approx(C, abs=3e-3 * np.abs(C).max())
    tab.set(beside="attention")
    tab.until("headscope.views.head.shown.get('attention')?.matrix.drawn?.values")
    rows = np.array(
        tab.page.evaluate("[...headscope.views.head.shown.get('attention').matrix.drawn.values]")
    ).reshape(C.shape)
    assert rows.sum(axis=1) == pytest.approx(np.ones(len(words)), abs=5e-3)
    tab.set(view="text", special="left_out", token=2)
    spans = tab.page.evaluate(
        "[...document.querySelectorAll('.page .token')].map((t) => t.textContent)"
    )
    assert spans == [word for word in words if not word.startswith("[")]
    assert tab.page.evaluate("document.querySelector('.page').textContent") == text
    assert tab.page.inner_text(".token.chosen").lower() == "zygomorphic"  # token 2 is a piece of it


def test_a_wheel_zooms_and_a_drag_moves(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head")
    point_at(tab, 10, 10)
    for _ in range(4):
        tab.page.mouse.wheel(0, -100)
    tab.page.wait_for_timeout(100)
    view = "(({ x, y, span }) => [x, y, span])(headscope.views.head.viewport)"
    x, y, span = tab.page.evaluate(view)
    assert span < len(reading) / 1.8
    tab.page.mouse.down()
    tab.page.mouse.move(420, 420, steps=4)
    tab.page.mouse.up()
    assert tab.page.evaluate(view)[:2] != [x, y]
    tab.page.keyboard.press("0")
    assert tab.page.evaluate(view) == [0, 0, len(reading)]


def test_a_saved_page_says_why_it_has_no_attention(open_tab: Open, saved: Path) -> None:
    tab = open_tab(saved.as_uri(), offline=True)
    tab.set(view="head", beside="attention")
    assert "not kept in a saved page" in tab.page.inner_text("figure[data-kind=attention]")
    assert "headscope view" in tab.page.inner_text("figure[data-kind=attention]")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_shown_as_text(
    open_tab: Open, server: Served, specimen: hs.Scope, tmp_path: Path, name: str
) -> None:
    text = HOSTILE[name]
    saved = specimen.read(text).save(tmp_path / "hostile.html")
    for address in (saved.as_uri(), server.address):
        tab = open_tab(address)
        if address == server.address:
            tab.page.click("text=New text …")
            tab.page.fill("dialog textarea", text)
            tab.page.click("dialog button.main >> nth=0")
            tab.until("!document.querySelector('dialog[open]')")
        for view in ("text", "head", "compare", "segments", "atlas"):
            tab.set(view=view, token=1)
            assert tab.page.evaluate("window.broken") is None
            assert tab.page.locator("#headscope img, #headscope script").count() == 0
            wide = tab.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 1280, view
        for view in ("text", "segments"):
            tab.set(view=view, special="left_out")
            shown = tab.page.evaluate("document.querySelector('.page').textContent")
            assert shown.replace("·", "") == text.replace("·", "")


def test_every_control_has_a_name(tab: Tab) -> None:
    for view in ("atlas", "head", "text", "segments", "compare"):
        tab.set(view=view)
        nameless = tab.page.evaluate(
            """[...document.querySelectorAll("button, select, input, textarea")].filter((control) =>
                !control.getAttribute("aria-label") && !control.textContent.trim()
                && !control.closest("label")?.textContent.trim()).map((c) => c.outerHTML)"""
        )
        assert nameless == []
        assert tab.page.locator("button").count() > 10
