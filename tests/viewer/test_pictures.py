"""What is drawn is what numpy computes: the canvases are read back and compared, cell by cell."""

import base64
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headscope as hs
from headscope.pairs import parse_rule, reference
from viewer.conftest import Open, Tab

pytestmark = pytest.mark.browser

KINDS = ("raw", "cosine", "centred")
Matrix = NDArray[np.float64]


def percentiles(values: Matrix) -> tuple[float, float]:
    """The 1st and 99th percentile, as the viewer's legend defines them."""
    ordered, last = np.sort(values), len(values) - 1
    beyond = max(math.floor(0.01 * last + 0.5), int(last > 8))
    return float(ordered[beyond]), float(ordered[last - beyond])


def plain_pairs(C: Matrix, reading: hs.Reading) -> Matrix:
    """The pairs that set the colours: special tokens do not."""
    plain = ~reading.tokens.special
    inner = C[plain][:, plain]
    return inner[np.triu_indices(len(inner), 1)]


def steps(C: Matrix, kind: str, low: float, high: float) -> Matrix:
    """The place of each value among the 256 colours."""
    reach = max(abs(low), abs(high))
    start, end = (-reach, reach) if kind == "centred" else (low, high)
    return np.clip((C - start) / (end - start) * 255, 0, 255)


def colours(tab: Tab, kind: str) -> NDArray[np.int64]:
    found = tab.page.evaluate("kind => [...headscope.colours(kind, [0, 1]).colours]", kind)
    return np.array(found).reshape(256, 3)


def drawn_steps(pixels: NDArray[np.uint8], table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Colours of opaque pixels (…, 4) back to their places among the 256."""
    code = np.array([1 << 16, 1 << 8, 1])
    places = {int(colour): place for place, colour in enumerate(table @ code)}
    seen = pixels[..., :3].astype(np.int64) @ code
    assert set(np.unique(seen).tolist()) <= set(places), "a pixel's colour is not in the map"
    found: NDArray[np.int64] = np.vectorize(places.__getitem__)(seen)
    return found


def pixels_of(tab: Tab, canvases: str) -> NDArray[np.uint8]:
    """The pixels (canvases, size, size, 4) of some square canvases of one size."""
    found = tab.page.evaluate(
        f"""async () => {{
            const all = ({canvases}).map((picture) => {{
                if (picture instanceof HTMLCanvasElement) return picture;
                const canvas = document.createElement("canvas");
                canvas.width = canvas.height = picture.width;
                canvas.getContext("2d").drawImage(picture, 0, 0);
                return canvas;
            }});
            const parts = all.map((canvas) =>
                canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data);
            const reader = new FileReader();
            const read = new Promise((resolve) => {{ reader.onload = resolve; }});
            reader.readAsDataURL(new Blob(parts));
            await read;
            return [all.length, all[0].width, reader.result.split(",")[1]];
        }}"""
    )
    count, size, data = found
    return np.frombuffer(base64.b64decode(data), np.uint8).reshape(count, size, size, 4)


THUMBNAILS = '[...document.querySelectorAll("button.head canvas")]'
PLACES = [(layer, head) for layer in range(1, 13) for head in range(1, 13)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_thumbnail_is_the_heads_matrix(tab: Tab, reading: hs.Reading, kind: str) -> None:
    tab.set(reading=kind)
    size, table = len(reading), colours(tab, kind)
    pixels = pixels_of(tab, THUMBNAILS)
    assert pixels.shape == (144, size, size, 4)
    for (layer, head), drawn in zip(PLACES, drawn_steps(pixels, table), strict=True):
        C = reading.similarity(layer, head, kind)  # type: ignore[arg-type]
        low, high = percentiles(plain_pairs(C, reading))
        assert np.abs(drawn - steps(C, kind, low, high)).max() <= slack(C, low, high), (layer, head)


def slack(C: Matrix, low: float, high: float) -> float:
    """float16 rounds to 1 in 2,000, and a step among the colours is 1 in 256 of their range."""
    return 2 + 255 * float(np.abs(C).max()) / (high - low) / 700


def test_a_shared_scale_is_one_scale(tab: Tab, reading: hs.Reading) -> None:
    tab.set(cells="shared")
    low, high = tab.page.evaluate("[...headscope.views.atlas.thumbnails.shared]")
    everything = np.concatenate(
        [plain_pairs(reading.similarity(*place), reading) for place in PLACES]
    )
    assert low == pytest.approx(np.quantile(everything, 0.01), rel=0.05, abs=0.02)
    assert high == pytest.approx(np.quantile(everything, 0.99), rel=0.05)
    drawn = drawn_steps(pixels_of(tab, THUMBNAILS), colours(tab, "raw"))
    for place, one in zip(PLACES, drawn, strict=True):
        C = reading.similarity(*place)
        assert np.abs(one - steps(C, "raw", low, high)).max() <= slack(C, low, high), place


def test_a_thumbnail_of_a_long_text_averages_blocks(
    open_tab: Open, specimen: hs.Scope, tmp_path: Path
) -> None:
    reading = specimen.read(hs.sample_text())
    assert len(reading) > 300
    tab = open_tab(reading.save(tmp_path / "long.html").as_uri(), offline=True)
    size = len(reading)
    edges = [b * size // 64 for b in range(65)]
    average = np.array(
        [np.bincount(range(a, b), minlength=size) / (b - a) for a, b in pairwise(edges)]
    )
    drawn = drawn_steps(pixels_of(tab, THUMBNAILS), colours(tab, "raw"))
    for place, one in zip(PLACES, drawn, strict=True):
        means = average @ reading.similarity(*place) @ average.T
        low, high = percentiles(means[np.triu_indices(64, 1)])
        worst = np.abs(one - steps(means, "raw", low, high)).max()
        assert worst <= slack(means, low, high), place


KIND = "headscope.session.state.values.reading"
LARGE = f"[headscope.views.head.shown.get({KIND}).matrix.drawn.picture]"


@pytest.mark.parametrize("kind", KINDS)
def test_the_large_matrix_is_the_heads_matrix(tab: Tab, reading: hs.Reading, kind: str) -> None:
    tab.set(view="head", layer=4, head=7, reading=kind)
    C = reading.similarity(4, 7, kind)  # type: ignore[arg-type]
    low, high = percentiles(plain_pairs(C, reading))
    below = np.tril_indices(len(C))  # above the diagonal most pairs recede
    drawn = drawn_steps(pixels_of(tab, LARGE)[0][below], colours(tab, kind))
    worst = np.abs(drawn - steps(C, kind, low, high)[below]).max()
    assert worst <= slack(C, low, high)


def test_above_the_diagonal_just_the_high_pairs_stand_out(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head", layer=4, head=7, rule="quantile(0.05)")
    C, kept = reading.similarity(4, 7), np.ones(len(reading), bool)
    high = reference.high_pairs(C, parse_rule("quantile(0.05)"), kept)
    opacity = pixels_of(tab, LARGE)[0, ..., 3]
    above = np.triu(np.ones(C.shape, bool), 1)
    wrong = (opacity == 255)[above] != high[above]
    assert high.sum() > 10
    assert wrong.sum() <= 2  # float16 may swap neighbours at the threshold
    assert (opacity[~above] == 255).all()


def test_on_screen_a_cell_has_the_colour_of_its_value(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head", layer=2, head=5)
    C = reading.similarity(2, 5)
    low, high = percentiles(plain_pairs(C, reading))
    screen = pixels_of(tab, '[headscope.views.head.shown.get("raw").matrix.base]')[0]
    margin, cell = tab.page.evaluate(
        """(() => {
            const matrix = headscope.views.head.shown.get("raw").matrix;
            return [matrix.margin, matrix.layout().cell];
        })()"""
    )
    assert cell > 8
    below = [(i, j) for i in range(len(C)) for j in range(i)]
    # Off the middle of a cell, where no line between sentences runs.
    cells = np.array(
        [screen[int(margin + (i + 0.4) * cell), int(margin + (j + 0.4) * cell)] for i, j in below]
    )
    drawn = drawn_steps(cells, colours(tab, "raw"))
    expected = np.array([steps(C, "raw", low, high)[place] for place in below])
    assert np.abs(drawn - expected).max() <= slack(C, low, high)


def test_attention_stands_beside_similarity(open_tab: Open, server: Any, specimen: Any) -> None:
    tab = open_tab(server.address)
    tab.set(view="head", layer=3, head=2, beside="attention")
    tab.until("headscope.views.head.shown.get('attention').matrix.drawn")
    A = specimen.read(server.text).attention(3, 2)
    shown = "headscope.views.head.shown.get('attention')"
    values = tab.page.evaluate(f"[...{shown}.matrix.drawn.values]")
    assert np.array(values).reshape(A.shape) == pytest.approx(A, abs=1e-3)


def test_special_tokens_can_be_left_out(tab: Tab, reading: hs.Reading) -> None:
    tab.set(view="head", layer=6, head=2, reading="centred", special="left_out")
    kept = ~reading.tokens.special
    assert 0 < kept.sum() < len(kept)
    C = reference.similarity(reading.head_vectors(6, 2), "centred", kept)[kept][:, kept]
    values = tab.page.evaluate("[...headscope.views.head.shown.get('centred').matrix.drawn.values]")
    assert np.array(values).reshape(C.shape) == pytest.approx(C, abs=5e-3)


def test_one_outlier_and_the_special_tokens_do_not_set_the_colours(
    open_tab: Open, specimen: hs.Scope, tmp_path: Path
) -> None:
    reading = specimen.read("The keeper lit the lamp at dusk, and the ship passed.")
    z = reading.layers[3][6]
    z[5] *= 30  # a token whose pairs are far above all others
    z[0] *= 30  # and [CLS]
    tab = open_tab(reading.save(tmp_path / "outlier.html").as_uri(), offline=True)
    tab.set(view="head", layer=4, head=7)
    low, high = tab.page.evaluate("[...headscope.views.head.shown.get('raw').matrix.drawn.range]")
    C = reading.similarity(4, 7)
    others = [i for i in range(len(C)) if i not in (5,) and not reading.tokens.special[i]]
    plain = C[np.ix_(others, others)][np.triu_indices(len(others), 1)]
    assert C[0, 5] > 100 * plain.max()
    assert high < C[0, 5] / 20
    legend = tab.page.locator("figure .scale")
    assert "without special tokens" in legend.get_attribute("title")
    assert legend.inner_text().split() == [f"{low:.4g}", f"{high:.4g}"]


@pytest.mark.parametrize("view", ["atlas", "head", "compare", "segments"])
def test_every_matrix_has_a_scale_of_its_colours(tab: Tab, view: str) -> None:
    tab.set(view=view, layer=4, head=7)
    matrices = tab.page.locator("main .matrix:visible").count()
    scales = tab.page.locator("main .scale:visible").count()
    assert scales == matrices + (view == "atlas")
    for said in tab.page.locator("main .scale:visible").all_inner_texts():
        assert len(said.split()) >= 2
    if view == "atlas":
        tab.set(cells="shared")
        low, high = tab.page.evaluate("[...headscope.views.atlas.thumbnails.shared]")
        shown = tab.page.inner_text(".squares .scale").split()
        assert [float(end) for end in shown] == pytest.approx([low, high], rel=1e-3)
        tab.until("headscope.views.atlas.measures.size === 144")
        tab.set(cells="measure", measure="common_mode")
        assert tab.page.inner_text(".squares .scale").count("%") == 2
        assert tab.page.inner_text(".squares .hint") == ""  # all heads are measured


def test_the_atlas_says_how_many_heads_are_measured(tab: Tab) -> None:
    tab.until("headscope.views.atlas.measures.size === 144")
    said = tab.page.evaluate(
        """async () => {
            const progress = document.querySelector(".squares .hint");
            const said = [];
            new MutationObserver(() => said.push(progress.textContent))
                .observe(progress, { childList: true, characterData: true, subtree: true });
            headscope.session.state.set({ rule: "sigma(2)" });
            for (let wait = 0; wait < 400 && said.at(-1) !== ""; wait++)
                await new Promise((resolve) => setTimeout(resolve, 25));
            return said;
        }"""
    )
    assert said[0] == "Measuring heads: 0 of 144 …"
    assert said[-1] == ""
    counts = [int(text.split()[2]) for text in said[:-1]]
    assert counts == sorted(counts)
    assert len(set(counts)) > 20
