"""The viewer's page: the same modules in every shell, and as one file that needs nothing else.

The modules import each other by bare names ("headscope/dom.js"), which an import map resolves: to
the server's own files, or, in a self-contained page, to data: addresses that hold the very same
bytes. The worker's files are classic scripts, which are made to stand one after the other. Nothing
in the page is JavaScript put together from strings, and the text of a reading and the words of a
study enter it only as base64: none of them is ever parsed as HTML. `headscope.markup` writes it.
"""

import base64
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from headscope.markup import Element, as_json, content_policy, h, page, script, style
from headscope.placed import PlacedReading
from headscope.viewer.packed import label, packed

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.study.folder import Study

WORKER_PARTS = ("similarity.js", "pairs.js", "communities.js", "paint.js", "answer.js")
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
    reading: "Reading | PlacedReading | None",
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
    names, blocks = list[str](), list[Element]()
    pictures = "blob: data:" if isinstance(reading, PlacedReading) else "blob:"
    if study is not None:
        from headscope.viewer.studied import packed_study

        text = None if isinstance(reading, PlacedReading) else reading
        told = packed_study(study, missing, saved=text)
        names.append(f"{told['model']['name']} on {told['corpus']['name']}")
        blocks += _blocks("headscope-study", json.dumps(told, allow_nan=False).encode())
    if reading is not None:
        names = names or [label(reading.scope.shape.name)]
        blocks += _blocks("headscope-data", packed(reading))
    return page(
        f"headscope: {' '.join(names)}",
        [style(assets().style), script(as_json({"imports": imports}), "importmap")],
        [
            *_frame(),
            *blocks,
            script("", "module", src=imports["headscope/boot.js"]),
        ],
        attributes={"data-notebook": notebook} if notebook else {},
        # A picture that was read stands in the page's own data, as an address that holds it.
        policy={"worker-src": "blob:", "img-src": pictures},
    )


def server_page() -> tuple[str, str]:
    """The page that the server hands out, and its Content-Security-Policy."""
    head = [
        h("link", {"rel": "stylesheet", "href": "/static/style.css"}),
        script(as_json({"imports": {"headscope/": "/static/"}}), "importmap"),
    ]
    body = [*_frame(), script("", "module", src="/static/boot.js")]
    policy = {
        "script-src": "'self'",
        "style-src": "'self'",
        "worker-src": "blob:",
        "img-src": "'self' blob:",
        "connect-src": "'self'",
    }
    sent = content_policy([head, body], {**policy, "frame-ancestors": "'none'"})
    return page("headscope", head, body, policy=policy), sent


def _frame() -> list[Element]:
    """Where the viewer is put, and its worker."""
    waiting = h("noscript", None, "This page needs JavaScript.")
    return [
        h("div", {"id": "headscope"}, waiting),
        script(_base64(assets().worker), "text/plain", id="headscope-worker"),
    ]


def _blocks(kind: str, content: bytes) -> list[Element]:
    """Bytes as base64 in scripts that are not run."""
    text = base64.b64encode(content).decode()
    return [
        script(text[at : at + BLOCK], "application/octet-stream", **{"class": kind})
        for at in range(0, len(text), BLOCK)
    ]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
