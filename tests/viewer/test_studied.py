"""The viewer with a study beside it, and without the model that was studied."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import headscope as hs
from headscope.cli import main
from headscope.errors import CannotShow
from headscope.measures.registry import DEFINITIONS
from headscope.study.folder import Study
from headscope.study.manifest import written
from headscope.viewer.studied import packed_study, scope_of
from viewer.conftest import Open, Served, Tab, served
from viewer.test_exporting import SVG, exported

TEXT = "The keeper lit the lamp, and the lamp burned. The keeper slept."
HOSTILE = (
    '</script><script>window.broken = 1</script> <img src=x onerror="window.broken = 1"> sea fog. '
    "שלום the lamp \u202efo gof\u202c of the keeper [and] the lamp burned </option><b>. "
)
ORDER = """[...document.querySelectorAll("button.head")].map(({ dataset }) =>
    [Number(dataset.layer), Number(dataset.head)])"""


@pytest.fixture(scope="module")
def study(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Of a corpus that tries to be markup, in a file that does so too."""
    folder = tmp_path_factory.mktemp("studied")
    corpus = folder / "<img src=x onerror=alert(1)>.txt"
    plain = "The keeper lit the lamp. The fog came, and the lamp burned all night in the fog. " * 2
    corpus.write_text("\n\n".join([HOSTILE * 3, plain, HOSTILE + plain, plain.upper(), HOSTILE]))
    options = {"readings": ("raw",), "nulls": ()}
    return tiny.study(corpus, folder / "study", document="paragraph", **options)


@pytest.fixture(scope="module")
def lost(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The same study, of a model that is not there any more."""
    folder = tmp_path_factory.mktemp("lost") / "study"
    shutil.copytree(study.path, folder)
    model = replace(study.manifest.model, name="/private/gone-bert")
    (folder / "manifest.json").write_bytes(written(replace(study.manifest, model=model)))
    return hs.open(folder)


@pytest.fixture(scope="module")
def pages(study: Study, lost: Study, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "study": study.save(folder / "study.html", scope_of(study).read(TEXT)),
        "lost": lost.save(folder / "lost.html"),
    }


@pytest.fixture(scope="module")
def study_server(study: Study, tiny: hs.Scope) -> Iterator[Served]:
    with served({"tiny": tiny}, TEXT, study=packed_study(study)) as running:
        yield running


@pytest.fixture(params=["server", "file"])
def tab(
    request: pytest.FixtureRequest, open_tab: Open, study_server: Served, pages: dict[str, Path]
) -> Tab:
    if request.param == "server":
        return open_tab(study_server.address)
    return open_tab(pages["study"].as_uri(), offline=True)


def numbers(study: Study, table: str, quantity: str, number: str = "value") -> dict[Any, float]:
    """By (layer, head), as the study's report tells it."""
    return {
        (row["layer"], row["head"]): row[number]
        for row in study.table(table).to_pylist()
        if row["level"] == "head"
        and row["quantity"] == quantity
        and row["special"] in (None, "left_out")
    }


def test_every_number_is_that_of_the_tables(study: Study) -> None:
    told = packed_study(study)
    names = {one["name"] for one in told["measures"]}
    assert {"separator", "norm", "mean_distance", "same_word", "word_share", "snr"} <= names
    for one in told["measures"]:
        for number in ("value", "low", "high", "chance", "lift"):
            expected = list(numbers(study, one["measure"], one["name"], number).values())
            if number not in one:
                assert set(expected) <= {None}
                continue
            known = [(a, b) for a, b in zip(one[number], expected, strict=True) if b is not None]
            assert np.array(known)[:, 0] == pytest.approx(np.array(known)[:, 1], rel=1e-3)
    heads = study.table("heads").to_pylist()
    for card, row in zip(told["cards"], heads, strict=True):
        for part, column in (
            ("name", "labels"),
            ("strength", "strengths"),
            ("evidence", "evidence"),
        ):
            assert [label[part] for label in card["labels"]] == row[column]
    assert all(len(card["examples"]) == 5 for card in told["cards"])


def test_every_measure_says_what_it_is(study: Study) -> None:
    for one in packed_study(study)["measures"]:
        known = DEFINITIONS[one["name"]]
        assert (one["definition"], one["by_chance"], one["shown"]) == (
            known.says,
            known.chance,
            known.show,
        )


@pytest.mark.browser
@pytest.mark.parametrize(
    ("table", "quantity", "by"),
    [("repetition", "same_word", "lift"), ("focus", "separator", "value")],
)
def test_heads_stand_in_order_of_any_measure_of_the_study(
    tab: Tab, study: Study, table: str, quantity: str, by: str
) -> None:
    tab.page.select_option("select[aria-label='Measure of the heads']", f"study.{quantity}")
    if by == "lift":
        tab.page.click("text=× chance")
    tab.page.click("text=high first")
    tab.settle()
    expected = numbers(study, table, quantity, by)
    order = [expected[tuple(place)] for place in tab.page.evaluate(ORDER)]
    assert len(order) == 12
    places = tab.page.evaluate(ORDER)
    tab.set(layer=places[0][0], head=places[0][1])
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):  # rows of four
        tab.page.keyboard.press(key)
    assert [int(tab.hash().get(name, 1)) for name in ("layer", "head")] == places[4]
    assert order == pytest.approx(sorted(order, reverse=True), rel=1e-3)
    distinct = np.unique([float(f"{value:.4g}") for value in order])  # as they are handed over
    middle = float(distinct[len(distinct) // 2 - 1 :][:2].mean())  # between two of them
    tab.set(order="low", least=middle)
    kept = [expected[tuple(place)] for place in tab.page.evaluate(ORDER)]
    assert kept == pytest.approx(sorted(v for v in order if v >= middle), rel=1e-3)
    tab.set(least="", most=middle)
    assert len(tab.page.evaluate(ORDER)) == sum(v <= middle for v in order)
    assert {"measure", "order", "most"} <= set(tab.hash())


@pytest.mark.browser
def test_heads_can_be_chosen_by_their_label(tab: Tab, study: Study) -> None:
    heads = study.table("heads").to_pylist()
    kind = heads[0]["labels"][-1].split(":")[0]
    wanted = [
        (row["layer"], row["head"])
        for row in heads
        if kind in [name.split(":")[0] for name in row["labels"]]
    ]
    tab.page.select_option("select[aria-label='Label of the heads']", kind)
    tab.settle()
    assert tab.page.locator("button.head:not(.out)").count() == len(wanted)
    assert tab.page.locator("button.head").count() == 12  # in the grid the others only recede
    tab.set(order="high")
    assert {tuple(place) for place in tab.page.evaluate(ORDER)} == set(wanted)
    assert tab.hash()["label"] == kind
    tab.set(label=heads[-1]["labels"][-1])
    same = [row for row in heads if heads[-1]["labels"][-1] in row["labels"]]
    assert tab.page.locator("button.head").count() == len(same)


@pytest.mark.browser
def test_the_atlas_of_a_study_shows_labels_first(tab: Tab, study: Study, tmp_path: Path) -> None:
    expected = study.table("heads")["labels"].to_pylist()
    shown = tab.page.evaluate(
        """[...document.querySelectorAll("button.head")].map((button) =>
            [...button.querySelectorAll("i")].map((label) => label.textContent))"""
    )
    assert shown == expected
    grounds = tab.page.evaluate(
        "[...document.querySelectorAll('button.head')].map((b) => b.style.backgroundColor)"
    )
    kinds = [names[0].split(":")[0] for names in expected]
    assert len(set(zip(kinds, grounds, strict=True))) == len(set(kinds)) == len(set(grounds))
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    words = " ".join(text.text or "" for text in drawing.iter(f"{SVG}text"))
    assert kinds[0].split()[0] in words
    tab.page.click("text=on one scale")
    tab.settle()
    assert tab.page.locator("button.head canvas").count() == 12


@pytest.mark.browser
def test_squares_can_show_a_measure(tab: Tab, study: Study) -> None:
    tab.set(cells="measure", measure="study.norm")
    values = numbers(study, "size", "norm")
    shown = tab.page.evaluate(
        "[...document.querySelectorAll('button.head b')].map((b) => Number(b.textContent))"
    )
    assert shown == pytest.approx(list(values.values()), rel=5e-3)
    grounds = tab.page.evaluate(
        "[...document.querySelectorAll('button.head')].map((b) => b.style.backgroundColor)"
    )
    dark = np.array([-sum(map(int, re.findall(r"\d+", ground))) for ground in grounds])
    assert np.argmax(dark) == np.argmax(list(values.values()))
    tab.page.keyboard.press("d")
    tab.settle()
    again = tab.page.evaluate(
        "[...document.querySelectorAll('button.head')].map((b) => b.style.backgroundColor)"
    )
    assert again != grounds


@pytest.mark.browser
def test_the_card_of_a_head_stands_beside_it(tab: Tab, study: Study) -> None:
    pairs = [p for p in study.table("examples").to_pylist() if p["special"] == "left_out"]
    layer, head = next(  # one that shows what would be markup
        (pair["layer"], pair["head"])
        for pair in pairs
        if any(m in pair["first_context"] + pair["second_context"] for m in ("<img", "</script>"))
    )
    own = {"layer": layer, "head": head}
    row = next(r for r in study.table("heads").to_pylist() if own.items() <= r.items())
    for view, beside in {"atlas": ".card", "text": ".panel", "head": ".panel"}.items():
        tab.set(view=view, **own)
        assert tab.page.locator(f"{beside} .tag").all_inner_texts() == row["labels"]
        said = tab.page.inner_text(beside)
        for strength, evidence in zip(row["strengths"], row["evidence"], strict=True):
            assert evidence[1:] in said
            assert f"strength {strength:.2f}" in said
        assert tab.page.locator(f"{beside} .examples li").count() == 5
    pairs = [pair for pair in pairs if own.items() <= pair.items()]
    contexts = tab.page.evaluate(
        "[...document.querySelectorAll('.examples q')].map((q) => q.textContent)"
    )
    marked = tab.page.evaluate(
        "[...document.querySelectorAll('.examples mark')].map((m) => m.textContent)"
    )
    ends = [(p[end], p[f"{end}_context"]) for p in pairs for end in ("first", "second")]
    assert len(contexts) == 10
    assert marked == [word for word, _ in ends]
    for context, (word, expected) in zip(contexts, ends, strict=True):
        assert context.strip("…") == expected.replace(f"[{word}]", word, 1)
    hidden = tab.page.evaluate(
        """[...document.querySelectorAll(".panel .examples mark")].filter((mark) => {
            const [word, row] = [mark, mark.closest("li")].map((e) => e.getBoundingClientRect());
            return !word.width || word.left < row.left || word.right > row.right + 1;
        }).length"""
    )
    assert hidden == 0
    assert any("<img" in context or "</script>" in context for context in contexts)
    assert "<img src=x onerror=alert(1)>.txt" in said


@pytest.mark.browser
def test_no_word_of_a_study_becomes_markup(tab: Tab) -> None:
    for view in ("atlas", "head", "text", "segments", "compare"):
        tab.set(view=view, layer=2, head=3, cells="measure")
        assert tab.page.evaluate("window.broken") is None
        assert tab.page.locator("#headscope img, #headscope script").count() == 0
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 1280
        nameless = tab.page.evaluate(
            """[...document.querySelectorAll("button, select, input, textarea, meter")]
                .filter((control) => !control.getAttribute("aria-label")
                    && !control.textContent.trim() && !control.closest("label"))
                .map((c) => c.outerHTML)"""
        )
        assert nameless == []


def test_no_word_of_a_study_stands_in_its_page(pages: dict[str, Path]) -> None:
    for page in pages.values():
        written = page.read_text(encoding="utf-8")
        assert "onerror" not in written.split("<title>")[0] + written.split("</title>")[1]
        assert "<img" not in written
        assert "/private" not in written


@pytest.mark.browser
def test_the_atlas_can_be_exported_as_it_stands(tab: Tab, study: Study, tmp_path: Path) -> None:
    tab.set(cells="measure", measure="study.norm", order="high")
    drawing = ElementTree.fromstring(exported(tab, "SVG", tmp_path))
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    first = tab.page.evaluate(ORDER)[0]
    assert f"{first[0]}·{first[1]}" == words[1]
    assert len(list(drawing.iter(f"{SVG}rect"))) == 13
    tab.until("headscope.views.atlas.measures.size === 12")
    rows = list(csv.DictReader(io.StringIO(exported(tab, "CSV", tmp_path).decode(), newline="")))
    norms = list(numbers(study, "size", "norm").values())
    assert [float(row["study.norm"]) for row in rows] == pytest.approx(norms, rel=1e-3)
    labels = study.table("heads")["labels"].to_pylist()
    assert [row["labels"] for row in rows] == [", ".join(names) for names in labels]


@pytest.mark.browser
@pytest.mark.parametrize("shell", ["server", "file"])
def test_without_its_model_a_study_shows_what_it_holds(
    open_tab: Open, lost: Study, pages: dict[str, Path], shell: str
) -> None:
    with served({}, TEXT, study=packed_study(lost, "The model gone-bert is not at hand.")) as empty:
        address = empty.address if shell == "server" else pages["lost"].as_uri()
        tab = open_tab(f"{address}#view=head&layer=99", offline=shell == "file")
        assert "gone-bert is not at hand" in tab.page.inner_text(".notice")
        assert tab.page.locator("button.head").count() == 12
        assert tab.page.locator("button.head b:empty").count() == 0
        for key in ("h", "t", "g", "c", "r", "/", "Enter"):
            tab.page.keyboard.press(key)
        tab.settle()
        tab.page.keyboard.press("ArrowRight")
        tab.settle()
        assert tab.page.inner_text(".card h2 >> nth=0") == "Layer 3, head 2"
        assert tab.page.locator(".examples li").count() == 5
        measures = packed_study(lost)["measures"]
        assert tab.page.locator(".facts.studied th[scope=row]").count() == len(measures)
        assert not tab.page.locator("text=New text …").is_visible()
        tab.set(measure="study.norm", order="low")
        order = [numbers(lost, "size", "norm")[tuple(p)] for p in tab.page.evaluate(ORDER)]
        assert order == pytest.approx(sorted(order), rel=1e-3)


def test_a_notebook_shows_a_study_without_its_model(lost: Study) -> None:
    viewer = lost.show()
    assert viewer.line is None  # there is nobody to ask
    assert "headscope-study" in viewer.html
    assert "headscope-data" not in viewer.html


def test_another_model_is_not_taken_for_the_one_studied(
    study: Study, specimen: hs.Scope, tiny: hs.Scope, tmp_path: Path
) -> None:
    with pytest.raises(CannotShow, match="is not the model of this study"):
        study.save(tmp_path / "x.html", specimen.read(TEXT))
    other = hs.load(tiny.shape.name)
    next(other.model.parameters()).data[0] += 1
    with pytest.raises(CannotShow, match="its weights have changed"):
        study.save(tmp_path / "x.html", other.read(TEXT))


def test_the_heads_silenced_in_a_study_are_silent_in_the_viewer(
    tiny: hs.Scope, tmp_path: Path
) -> None:
    corpus = ["The keeper lit the lamp and the lamp burned.", "A ship passed the rocks in the fog."]
    made = tiny.ablate([(2, 3)]).study(corpus, tmp_path / "study")
    assert scope_of(made).silenced == {(2, 3)}


@pytest.mark.skipif(os.name == "nt", reason="signals are other there")
def test_the_command_opens_a_study_with_its_model(study: Study, tmp_path: Path) -> None:
    text = tmp_path / "lamp.txt"
    text.write_text(TEXT)
    code = "from headscope.cli import main; main()"
    words = ["view", str(study.path), str(text), "--no-open"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            running = Served.printed(line, [""])
            said = json.loads(running.ask("GET", "/api/session")[2])
            assert said["text"] == TEXT
            assert said["models"] == [Path(study.manifest.model.name).name]
            assert said["study"] == packed_study(study)
            assert running.ask("GET", "/api/session", Host="evil.example")[0] == 403
            assert running.post("/api/read", model=said["models"][0], text=TEXT)[0] == 200
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(10)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["."], "There is no study in '.'"),
        (["one text", "another text"], "one text and one study at a time"),
    ],
)
def test_what_cannot_be_viewed_is_explained(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["headscope", "view", *words, "--no-open"])
    with pytest.raises(SystemExit):
        main()
    assert said in " ".join(capsys.readouterr().err.split())
