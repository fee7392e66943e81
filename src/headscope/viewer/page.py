"""The viewer's page: the same modules in every shell, and as one file that needs nothing else.

The modules import each other by bare names ("headscope/dom.js"), which an import map resolves: to
the server's own files, or, in a self-contained page, to data: addresses that hold the very same
bytes. The worker's files are classic scripts, which are made to stand one after the other. Nothing
in the page is JavaScript put together from strings, and the text of a reading and the words of a
study enter it only as base64: none of them is ever parsed as HTML.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from headscope.viewer.packed import label, packed

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.store import Study

WORKER_PARTS = ("similarity.js", "pairs.js", "paint.js", "answer.js")
BLOCK = 2**20  # characters of base64 in one block: a parser takes many small ones more smoothly


@dataclass(frozen=True)
class Assets:
    """The viewer's files, read once."""

    modules: dict[str, str]  # by name
    style: str
    worker: str  # one classic script
    line: str  # the module beside a notebook's frame


@cache
def assets() -> Assets:
    """Read the viewer's files from the package."""
    folder = files("headscope.viewer").joinpath("static")
    modules = {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".js")
    }
    parts = [folder.joinpath("worker", name).read_text(encoding="utf-8") for name in WORKER_PARTS]
    return Assets(
        modules=modules,
        style=folder.joinpath("style.css").read_text(encoding="utf-8"),
        worker="\n".join(parts),
        line=folder.joinpath("notebook", "line.js").read_text(encoding="utf-8"),
    )


def saved_page(
    reading: "Reading | None",
    study: "Study | None" = None,
    *,
    missing: str = "",
    notebook: str = "",
) -> str:
    """One self-contained page about a reading, a study, or a reading with a study beside it.

    `missing` says why a study has no reading; `notebook` names the widget that the page may ask.
    """
    imports = {
        f"headscope/{name}": f"data:text/javascript;base64,{_base64(code)}"
        for name, code in assets().modules.items()
    }
    mapped = json.dumps({"imports": imports})
    names, blocks = list[str](), list[str]()
    if study is not None:
        from headscope.viewer.studied import packed_study

        told = packed_study(study, missing)
        names.append(f"{told['model']['name']} on {told['corpus']['name']}")
        blocks += _blocks("headscope-study", json.dumps(told, allow_nan=False).encode())
    if reading is not None:
        names = names or [label(reading.scope.shape.name)]
        blocks += _blocks("headscope-data", packed(reading))
    policy = (
        f"default-src 'none'; script-src data: {_allowed(mapped)}; "
        f"style-src {_allowed(assets().style)}; worker-src blob:; img-src blob: data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return _page(
        title=f"headscope: {' '.join(names)}",
        head=[
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            f"<style>{assets().style}</style>",
            f'<script type="importmap">{mapped}</script>',
        ],
        body=[
            *blocks,
            f'<script type="module" src="{imports["headscope/boot.js"]}"></script>',
        ],
        notebook=notebook,
    )


def _blocks(kind: str, content: bytes) -> list[str]:
    """Bytes as base64 in scripts that are not run."""
    text = base64.b64encode(content).decode()
    return [
        f'<script type="application/octet-stream" class="{kind}">{text[at : at + BLOCK]}</script>'
        for at in range(0, len(text), BLOCK)
    ]


def server_page() -> tuple[str, str]:
    """The page that the server hands out, and its Content-Security-Policy."""
    mapped = json.dumps({"imports": {"headscope/": "/static/"}})
    page = _page(
        title="headscope",
        head=[
            '<link rel="stylesheet" href="/static/style.css">',
            f'<script type="importmap">{mapped}</script>',
        ],
        body=['<script type="module" src="/static/boot.js"></script>'],
    )
    policy = (
        f"default-src 'none'; script-src 'self' {_allowed(mapped)}; style-src 'self'; "
        "worker-src blob:; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
    return page, policy


def _page(title: str, head: list[str], body: list[str], notebook: str = "") -> str:
    worker = f'<script type="text/plain" id="headscope-worker">{_base64(assets().worker)}</script>'
    mark = f' data-notebook="{escape(notebook)}"' if notebook else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"{mark}>',
            '<meta charset="utf-8">',
            f"<title>{escape(title)}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            *head,
            '<div id="headscope"><noscript>This page needs JavaScript.</noscript></div>',
            worker,
            *body,
            "</html>",
            "",
        ]
    )


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _allowed(text: str) -> str:
    """A part of the page, by its hash, for a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
