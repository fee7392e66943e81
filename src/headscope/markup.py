"""The one place where HTML is written.

A page is a tree of elements and of strings. A string is always text: it is escaped when the page is
written, and so are attributes, so whatever a corpus, a model or a person calls itself stays words.
A page carries a Content-Security-Policy that names its own styles and scripts by their hashes:
nothing else runs in it, and it loads nothing.
"""

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from headscope.visible import visible

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
# No handlers of events; addresses only where `ADDRESS` allows them.
ATTRIBUTE = re.compile(r"(?![oO][nN])[a-zA-Z][a-zA-Z0-9:-]*")
ADDRESSES = {"href", "src", "action", "formaction", "xlink:href", "srcset", "data", "poster"}
PAPER = "https://arxiv.org/abs/2512.21956"  # the one address elsewhere that a page leads to
ADDRESS = re.compile(rf"(?:#|/static/|data:(?:,$|text/javascript;base64,)|{re.escape(PAPER)}\Z)")
EMPTY = {"br", "link", "meta"}  # have no end
DRAWN = {"g", "path", "line", "rect", "text", "tspan", "defs", "linearGradient", "stop", "clipPath"}
HANDED_OVER = {"application/json", "application/octet-stream", "text/plain"}  # scripts not run
CLOSES = re.compile(r"</(?:script|style)|<!--|\0", re.IGNORECASE)

Policy: TypeAlias = Mapping[str, str]
Node: TypeAlias = "Element | str"
Content: TypeAlias = "Node | int | Iterable[Content] | None"


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a page; `h` makes one."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Node, ...]


def h(name: str, attributes: Mapping[str, str | int] | None = None, *content: Content) -> Element:
    """An element; strings within it are text, `None` is nothing, lists are spread out."""
    given = tuple((key, str(value)) for key, value in (attributes or {}).items())
    if not NAME.fullmatch(name):
        raise AssertionError(f"no name of an element: {name!r}")
    for key, value in given:
        if not ATTRIBUTE.fullmatch(key):
            raise AssertionError(f"no attribute to write: {key!r}")
        if key.lower() in ADDRESSES and not ADDRESS.match(value):
            raise AssertionError(f"no address to lead to: {value!r}")
    return Element(name, given, tuple(_spread(content)))


def style(css: str) -> Element:
    """A style, as it stands."""
    return Element("style", (), (css,))


def script(code: str, kind: str, **attributes: str) -> Element:
    """A script, as it stands: a program, or something handed over to one."""
    return Element("script", (("type", kind), *attributes.items()), (code,))


def as_json(value: Any) -> str:
    """JSON that can stand in a script: no `<` in it, so that nothing in it can end the script."""
    text = json.dumps(value, allow_nan=False)  # ASCII, so no half of a surrogate pair either
    return text.replace("<", "\\u003c")


def svg(drawing: str, name: str) -> Element:
    """A drawing of the chart library as elements: shapes and words, nothing that runs or loads.

    The library counts gradients and clips over its lifetime; here they are counted within `name`.
    """
    own: dict[str, str] = {}
    return _drawn(ET.fromstring(drawing), name, own)


def written(*content: Content) -> str:
    """The HTML of elements and text."""
    return "".join(part for node in _spread(content) for part in _parts(node))


def page(
    title: str,
    head: Content,
    body: Content,
    *,
    attributes: Mapping[str, str] | None = None,
    policy: Policy | None = None,
) -> str:
    """A whole page with its Content-Security-Policy; `policy` is what it may do beyond that.

    What its scripts import bears a number of its own, the hash of the whole page: nobody who writes
    a part of the page can know it.
    """
    inner = [
        h("title", None, title),
        h("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        h("link", {"rel": "icon", "href": "data:,"}),
    ]
    nodes = [*inner, *_spread([head]), *_spread([body])]
    number = _hash(written(nodes))
    marked = [_numbered(node, number) for node in nodes]
    allowed = content_policy(marked, policy or {})
    equivalent = {"http-equiv": "Content-Security-Policy", "content": allowed}
    whole = h(
        "html",
        {"lang": "en", **(attributes or {})},
        h("meta", {"charset": "utf-8"}),
        h("meta", equivalent),
        marked,
    )
    return f"<!DOCTYPE html>\n{written(whole)}\n"


def content_policy(content: Content, more: Policy) -> str:
    """What these elements may do: run and apply themselves, and what `more` says."""
    allowed: dict[str, list[str]] = {"default-src": ["'none'"], "img-src": ["data:"]}
    for element in _elements(content):
        attributes = dict(element.attributes)
        runs = element.name == "script" and attributes["type"] not in HANDED_OVER
        kind = "script-src" if runs else "style-src"
        if "nonce" in attributes:
            allowed.setdefault(kind, []).append(f"'nonce-{attributes['nonce']}'")
        elif (runs and "src" not in attributes) or element.name == "style":
            inside = "".join(map(str, element.children))
            allowed.setdefault(kind, []).append(f"'sha256-{_hash(inside)}'")
    for kind, source in {**more, "base-uri": "'none'", "form-action": "'none'"}.items():
        allowed.setdefault(kind, []).append(source)
    return "; ".join(f"{kind} {' '.join(dict.fromkeys(said))}" for kind, said in allowed.items())


def _spread(content: Content) -> Iterator[Node]:
    if content is None:
        return
    if isinstance(content, (Element, str)):
        yield content
    elif isinstance(content, int):
        yield str(content)
    else:
        for part in content:
            yield from _spread(part)


def _elements(content: Content) -> Iterator[Element]:
    for node in _spread(content):
        if isinstance(node, Element):
            yield node
            yield from _elements(node.children)


def _numbered(node: Node, number: str) -> Node:
    """The same, its scripts from an address with a number that the policy knows."""
    if isinstance(node, str):
        return node
    attributes = node.attributes
    if node.name == "script" and "src" in dict(attributes):
        attributes = (*attributes, ("nonce", number))
    return Element(
        node.name, attributes, tuple(_numbered(child, number) for child in node.children)
    )


def _parts(node: Node) -> Iterator[str]:
    """What an element is written as: the only function that puts `<` and `>` around a name."""
    if isinstance(node, str):
        yield escape(visible(node, lines=True), quote=False)
        return
    yield f"<{node.name}"
    for key, value in node.attributes:
        yield f' {key}="{escape(visible(value, lines=True))}"'
    if node.name in DRAWN and not node.children:
        yield "/>"
        return
    yield ">"
    if node.name in EMPTY:
        return
    for child in node.children:
        if node.name in ("script", "style"):
            if not isinstance(child, str) or CLOSES.search(child):
                raise AssertionError(f"what is inside would end its {node.name}")
            yield child
        else:
            yield from _parts(child)
    yield f"</{node.name}>"


def _drawn(found: ET.Element, name: str, own: dict[str, str]) -> Element:
    kind = found.tag.rpartition("}")[2]
    if kind != "svg" and kind not in DRAWN:
        raise AssertionError(f"the chart library draws a {kind!r}, which is unknown")
    attributes: dict[str, str] = {}
    for key, value in found.attrib.items():
        if key == "id":
            value = own.setdefault(value, f"{name}-{len(own)}")
        elif value.startswith("url(#"):
            shared = value[5:-1]
            value = f"url(#{own.setdefault(shared, f'{name}-{len(own)}')})"
        attributes[key] = value
    children: list[Content] = [found.text]
    for child in found:
        children += [_drawn(child, name, own), child.tail]
    return h(kind, attributes, children)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
    return base64.b64encode(digest).decode()
