"""Pages about a stranger's study, or one's own text: whatever it spells, nothing in them runs."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headscope as hs
from headscope import figures
from headscope.errors import HeadscopeError
from headscope.markup import PAPER, Element, as_json, h, page, script, style, svg, written
from headscope.study.compare import compare
from headscope.study.folder import Study, open_study
from headscope.study.writer import StudyFolder
from headscope.visible import visible

SOURCE = Path(hs.__file__).parent
RUNS = "globalThis.hacked=1"
SPELLED = [
    f"<script>{RUNS}</script>",
    f"</script><script>{RUNS}</script>",
    f"<img src=x onerror={RUNS}>",
    f"\"'><svg onload={RUNS}>",
    f"</style></title></textarea><script>{RUNS}</script>",
    f"]]>--><!--<script>{RUNS}</script>",
    f"javascript:{RUNS}",
    f"<a href=javascript:{RUNS}>x</a>",
    f"<iframe srcdoc='<script>parent.{RUNS[11:]}</script>'></iframe>",
    f"' onmouseover='{RUNS}' x='",
    f"<script src=data:text/javascript,{RUNS}></script>",
    f"<base href=//evil.example><meta http-equiv=refresh content=0;url=javascript:{RUNS}>",
    f"&lt;script&gt;{RUNS}&lt;/script&gt;",
    f"{{{{constructor.constructor('{RUNS}')()}}}}",
    f"${{{RUNS}}}",
    "\x1b[31m\x07\u202e\u2028\u0085\ufffe",
    "[bold red]x[/] [link=javascript:alert(1)]y[/link]",
]
# Columns that say what is what; a stranger may fill them too, and then there is no page at all.
KINDS = {
    "reading", "special", "rule", "mode", "measure", "level", "quantity", "claim", "verdict",
    "kind", "label",
}  # fmt: skip


def hostile(study: Study, folder: Path, whole: bool = False) -> Study:
    """The same study with every text in it spelled by a stranger, sealed as a whole one."""
    number = 0

    def spelled(value: str | None) -> str | None:
        nonlocal number
        number += 1
        return None if value is None else SPELLED[number % len(SPELLED)]

    tables = {}
    for name in study.tables:
        table = study.table(name)
        for at, field in enumerate(table.schema):
            values = table[field.name].to_pylist()
            if field.name in KINDS and not whole:
                continue
            if field.type == pa.list_(pa.string()):
                column = [[spelled(value) for value in some] for some in values]
            elif pa.types.is_string(field.type):
                column = [spelled(value) for value in values]
            else:
                continue
            table = table.set_column(at, field, pa.array(column, field.type))
        tables[name] = table
    said = study.manifest
    model = replace(said.model, name=f"{SPELLED[0]}{SPELLED[2]}", family=SPELLED[1])
    corpus = replace(said.corpus, name="".join(SPELLED), column=SPELLED[3], files=SPELLED[4])
    made = replace(said, model=model, corpus=corpus, headscope=SPELLED[2], torch=SPELLED[0],
                   transformers=SPELLED[1], focus=SPELLED[2], device=SPELLED[0])  # fmt: skip
    folder.mkdir()
    StudyFolder(folder).finish(tables, made)
    return open_study(folder)


@pytest.fixture(scope="module")
def strange(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    own = open_study(place / "study")
    return hostile(own, tmp_path_factory.mktemp("strange") / "study")


@pytest.fixture(scope="module")
def reading(specimen: hs.Scope) -> hs.Reading:
    return specimen.read(" ".join(text for text in SPELLED if text.isprintable()))


class Looked:
    """A page in Chromium: what it asked for, complained about, and whether anything ran."""

    def __init__(self, context: Any, address: str):
        self.page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text[:300]))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)[:300]))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(address)
        self.page.wait_for_timeout(150)

    def nothing_ran(self, address: str) -> None:
        self.page.wait_for_timeout(150)
        assert self.page.evaluate("globalThis.hacked") is None
        assert self.page.url.split("#")[0] == address
        assert [u for u in self.requests if not u.startswith((address, "data:", "blob:"))] == []


Look = Callable[[Path], Looked]


@pytest.fixture
def look(chromium: Any) -> Iterator[Look]:
    context = chromium.new_context(offline=True)
    seen: list[tuple[Looked, str]] = []

    def look(file: Path) -> Looked:
        looked = Looked(context, file.as_uri())
        seen.append((looked, file.as_uri()))
        return looked

    yield look
    for looked, address in seen:
        looked.nothing_ran(address)
        assert looked.complaints == []
    context.close()


@pytest.mark.browser
def test_nothing_runs_in_a_report_and_it_shows_every_word(
    strange: Study, look: Look, tmp_path: Path
) -> None:
    looked = look(strange.report(tmp_path / "report.html"))
    browser = looked.page
    for details in browser.query_selector_all("summary"):
        details.click()
    away = [link.get_attribute("href") for link in browser.query_selector_all("a:not([href^='#'])")]
    assert away == [PAPER], "one link leads elsewhere: the paper's"
    for link in browser.query_selector_all("a[href^='#']:not(svg a)")[:12]:
        link.hover()
        link.click()
    for mark in browser.query_selector_all("svg a")[:12]:
        mark.dispatch_event("click")  # one may lie over another, and lead to the same card
    shown = browser.inner_text("body")
    for text in SPELLED[:3]:
        assert text in shown
    assert "\\x1b[31m\\x07\\u202e" in shown
    assert browser.evaluate("document.scripts.length") == 0
    assert browser.evaluate("document.querySelectorAll('figure svg').length") >= 8


@pytest.mark.browser
def test_nothing_runs_in_a_comparison(strange: Study, look: Look, tmp_path: Path) -> None:
    looked = look(compare(strange, strange).save(tmp_path / "compare.html"))
    assert "<script>" in looked.page.inner_text("body")
    assert looked.page.evaluate("document.scripts.length") == 0


@pytest.mark.browser
@pytest.mark.parametrize("name", ["focus", "anchor", "findings", "noise"])
@pytest.mark.parametrize("kind", ["html", "svg"])
def test_nothing_runs_in_a_figure(
    strange: Study, look: Look, tmp_path: Path, name: str, kind: str
) -> None:
    file = figures.save(figures.FIGURES[name](strange), tmp_path / f"figure.{kind}")
    looked = look(file)
    root = "document.querySelector('svg')"
    assert looked.page.evaluate(f"{root}.querySelectorAll('path').length") > 5
    assert "<script>" in looked.page.evaluate(f"{root}.textContent")
    assert looked.page.evaluate(f"{root}.querySelectorAll('script, a, image').length") == 0


@pytest.mark.browser
@pytest.mark.parametrize("beside", [True, False], ids=["with a text", "alone"])
def test_nothing_runs_in_a_saved_viewer_and_it_works(
    strange: Study, reading: hs.Reading, look: Look, tmp_path: Path, beside: bool
) -> None:
    from headscope.viewer.page import saved_page

    file = tmp_path / "viewer.html"
    told = "It is gone <script>"
    file.write_text(saved_page(reading if beside else None, strange, missing=told), "utf-8")
    looked = look(file)
    browser = looked.page
    end = "globalThis.headscope?.session.reading" if beside else "headscope.session.given.missing"
    for _ in range(200):
        if browser.evaluate(end):
            break
        browser.wait_for_timeout(50)
    assert browser.evaluate(end)
    for view in ("atlas", "head", "text", "segments", "compare") if beside else ("atlas",):
        for layer in (1, 2):
            browser.evaluate("state => headscope.session.state.set(state)",
                             {"view": view, "layer": layer, "head": 2, "token": 1})  # fmt: skip
            browser.wait_for_timeout(150)
    for _ in range(200):
        if browser.evaluate("headscope.idle()"):
            break
        browser.wait_for_timeout(50)
    assert browser.evaluate("headscope.idle()")
    assert browser.evaluate("headscope.session.given.corpus.name") == "".join(SPELLED)
    assert browser.evaluate("headscope.session.given.cards[0].labels[0].evidence") in SPELLED
    if beside:
        browser.evaluate("headscope.session.state.set({view: 'text'})")
        browser.wait_for_timeout(300)
        assert "<img src=x onerror" in browser.inner_text("body")


@pytest.mark.browser
def test_what_gets_into_a_page_all_the_same_does_not_run(
    strange: Study, reading: hs.Reading, chromium: Any, tmp_path: Path
) -> None:
    """The policy holds by itself: here markup is put into the finished pages by force."""
    from headscope.viewer.page import saved_page

    pages = {
        "report": strange.report(tmp_path / "report.html").read_text("utf-8"),
        "figure": figures.save(figures.focus(strange), tmp_path / "f.html").read_text("utf-8"),
        "viewer": saved_page(reading, None),
    }
    context = chromium.new_context(offline=True)
    for name, text in pages.items():
        whole = text.replace("</html>", f"<b id=in>in</b>{''.join(SPELLED[:12])}</html>")
        assert whole != text
        file = tmp_path / f"{name}-forced.html"
        file.write_text(whole, encoding="utf-8")
        looked = Looked(context, file.as_uri())
        assert looked.page.query_selector("#in")
        looked.page.wait_for_timeout(200)
        assert looked.page.evaluate("globalThis.hacked") is None
        assert any("Content Security Policy" in said for said in looked.complaints)
    context.close()


def test_a_study_whose_kinds_are_none_is_refused_in_a_sentence(place: Path, tmp_path: Path) -> None:
    made = hostile(open_study(place / "study"), tmp_path / "study", whole=True)
    for does in (
        lambda: made.report(tmp_path / "report.html"),
        lambda: made.save(tmp_path / "viewer.html"),
        lambda: figures.save(figures.focus(made), tmp_path / "figure.html"),
    ):
        with suppress(HeadscopeError):
            does()
    for file in tmp_path.glob("*.html"):
        assert "<script>globalThis" not in file.read_text(encoding="utf-8")


def test_no_character_ends_the_interpreter(place: Path, tmp_path: Path) -> None:
    """The chart library aborts the whole process at some characters, in SVG, PNG and PDF."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom dataclasses import replace\n"
        "import pyarrow as pa\nfrom headscope import figures\n"
        "from headscope.study.folder import open_study\n"
        "study, out = open_study(sys.argv[1]), Path(sys.argv[2])\n"
        "codes = [*range(32), *range(127, 160), 0xFFFE, 0xFFFF, 0x1FFFF, 0xFDD0, 0x2028, 0xFEFF,"
        " 0xD800, 0xDFFF, 0x202E, 0x200D, 0xE0041, 0x10FFFF]\n"
        "drawn = figures.anchor(study)\n"
        "drawn.title.text = ''.join(map(chr, codes))\n"
        "rows = drawn.data.values\n"
        "drawn.data.values = [row | {'text': f'a{chr(codes[n % len(codes)])}b'}\n"
        "    for n, row in enumerate(rows * 8)]\n"
        "for kind in ('svg', 'png', 'pdf', 'html'):\n"
        "    print(kind, figures.save(drawn, out / f'figure.{kind}').stat().st_size > 1000)\n"
        "text = (out / 'figure.svg').read_text(encoding='utf-8')\n"
        "assert all(f'a{repr(chr(n))[1:-1]}b' in text for n in (0, 7, 27, 0x9B, 0xFFFE, 0x202E))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, place / "study", tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["svg", "True", "png", "True", "pdf", "True", "html", "True"]


@pytest.mark.parametrize("spelled", [*SPELLED, *map(chr, range(160)), "\ud800", "\uffff", "\u2029"])
def test_a_string_is_text_wherever_it_stands(spelled: str) -> None:
    import xml.etree.ElementTree as ET

    made = written(h("p", {"title": spelled, "class": spelled}, spelled, h("b", None, spelled)))
    found = ET.fromstring(made)
    expected = visible(spelled, lines=True)
    assert (found.text or "") == expected
    assert "".join(found.itertext()) == 2 * expected
    assert {key: " ".join(value.split()) for key, value in found.attrib.items()} == dict.fromkeys(
        ("title", "class"), " ".join(expected.split())
    )
    assert len(list(found.iter())) == 2


@pytest.mark.parametrize("spelled", SPELLED)
def test_json_cannot_end_its_script(spelled: str) -> None:
    text = as_json({spelled: [spelled]})
    assert "<" not in text
    assert json.loads(text) == {spelled: [spelled]}
    assert written(script(text, "application/json")).count("<") == 2


@pytest.mark.parametrize(
    "refused",
    [
        lambda: h("p", {"onclick": "x"}),
        lambda: h("p", {"ONCLICK": "x"}),
        lambda: h("a", {"href": "javascript:x"}),
        lambda: h("a", {"href": " javascript:x"}),
        lambda: h("a", {"href": "//evil.example"}),
        lambda: h("a", {"href": f"{PAPER}@evil.example"}),
        lambda: h("a", {"href": f"{PAPER}\n"}),
        lambda: h("img", {"src": "https://evil.example/x.png"}),
        lambda: h("script", {"src": "data:text/html,x"}),
        lambda: h("p><script", None),
        lambda: h("p", {"x y": "z"}),
        lambda: h("p", {'"><script>': "z"}),
        lambda: written(style("</style><script>")),
        lambda: written(script("</SCRIPT >", "application/json")),
        lambda: written(script("<!--<script>", "application/json")),
        lambda: written(h("style", None, h("b", None, "x"))),
        lambda: svg("<svg><script>x</script></svg>", "x"),
        lambda: svg("<svg><a href='javascript:x'/></svg>", "x"),
        lambda: svg("<svg><image href='https://evil.example/x.png'/></svg>", "x"),
        lambda: svg("<svg><path onload='x'/></svg>", "x"),
        lambda: svg("<svg><foreignObject/></svg>", "x"),
    ],
)
def test_what_could_run_is_not_written(refused: Callable[[], Element]) -> None:
    with pytest.raises(AssertionError):
        refused()


def test_a_page_names_what_may_run_and_nothing_else() -> None:
    made = page("t", style("p { }"), [script("1", "module"), script("x", "text/plain")])
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', made)
    assert policy is not None
    assert "unsafe" not in policy[1]
    assert policy[1].count("sha256-") == 2  # the style and the module
    assert "default-src &#x27;none&#x27;" in policy[1]
    assert made.index("Content-Security-Policy") < made.index("<style")


def test_no_page_has_a_number_that_its_text_could_know() -> None:
    def number(text: str) -> str:
        source = script("", "module", src="data:text/javascript;base64,")
        found = re.search(r'nonce="(.*?)"', page("t", None, [h("p", None, text), source]))
        assert found is not None
        return found[1]

    assert number("a") != number("b")
    assert number(number("a")) != number("a")


def test_markup_is_written_in_one_place_only() -> None:
    """No string of the product but the writer's own looks like a tag."""
    tag = re.compile(r"<(?![a-z]\d$)[a-zA-Z!/]|<$")  # but no "<f2", a kind of number
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name == "markup.py":
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        free = {id(node) for node in _free(tree)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and id(node) not in free and tag.search(text):
                found.append(f"{file.relative_to(SOURCE)}:{node.lineno} {text[:40]!r}")
            if isinstance(node, ast.ImportFrom) and node.module in ("html", "markupsafe"):
                found.append(f"{file.relative_to(SOURCE)}:{node.lineno} escapes by hand")
            if isinstance(node, (ast.Import, ast.ImportFrom)) and file.name != "drawing.py":
                names = [alias.name for alias in node.names] + [getattr(node, "module", None)]
                if "vl_convert" in names:
                    found.append(f"{file.relative_to(SOURCE)}:{node.lineno} draws by hand")
    assert found == []


def _free(tree: ast.AST) -> Iterator[ast.AST]:
    """Documentation, what `repr` says, and what is looked for in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "compile":
            yield from ast.walk(node)
        if isinstance(node, ast.FunctionDef) and node.name == "__repr__":
            yield from ast.walk(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def test_a_terminal_is_written_to_in_one_place_only() -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if file.name == "terminal.py" and file.parent == SOURCE:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "id", getattr(called, "attr", ""))
            if name in ("Console", "echo", "secho") or (name == "print" and _bare(called)):
                found.append(f"{file.relative_to(SOURCE)}:{node.lineno} {name}")
    assert found == []


def _bare(called: ast.AST | None) -> bool:
    return isinstance(called, ast.Name)
