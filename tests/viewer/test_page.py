"""The self-contained page as a file, before any browser sees it."""

import base64
import json
import re
from pathlib import Path

import headscope as hs
from headscope.viewer.page import assets, saved_page, server_page

STATIC = Path(hs.__file__).parent / "viewer" / "static"
SPELLED = "</script><img src=x onerror=alert(1)> marzipan"


def test_every_module_is_inside_byte_for_byte(tiny: hs.Scope) -> None:
    page = saved_page(tiny.read("The lamp."))
    mapped = re.search(r'<script type="importmap">(.*?)</script>', page)
    assert mapped is not None
    imports = json.loads(mapped[1])["imports"]
    files = {f"headscope/{path.name}": path.read_bytes() for path in STATIC.glob("*.js")}
    assert len(files) > 15
    inside = {
        name: base64.b64decode(address.removeprefix("data:text/javascript;base64,"))
        for name, address in imports.items()
    }
    assert inside == files


def test_every_import_has_a_module() -> None:
    modules = assets().modules
    imported = r'^(?:import|\}).* from "(.+?)"'  # not the types in comments
    wanted = {name for code in modules.values() for name in re.findall(imported, code, re.M)}
    assert len(wanted) > 15
    assert wanted <= {f"headscope/{name}" for name in modules}


def test_no_word_of_the_text_stands_in_the_page(tiny: hs.Scope) -> None:
    page = saved_page(tiny.read(SPELLED))
    assert "marzipan" not in page
    assert "onerror" not in page


def test_nothing_in_the_page_points_elsewhere(tiny: hs.Scope) -> None:
    page = saved_page(tiny.read("The lamp."))
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "connect-src" not in page  # default-src 'none' holds for it
    assert "default-src &#x27;none&#x27;" in page


def test_no_policy_allows_eval_or_inline_scripts(tiny: hs.Scope) -> None:
    saved = re.search(r'Content-Security-Policy" content="(.+?)"', saved_page(tiny.read("Fog.")))
    assert saved is not None
    for policy in (saved[1], server_page()[1]):
        assert "script-src" in policy
        assert "unsafe" not in policy


def test_the_code_of_the_viewer_parses_no_html() -> None:
    code = "".join([*assets().modules.values(), assets().worker, assets().line])
    assert len(code) > 50_000
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert way not in code, way
