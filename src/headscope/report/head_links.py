"""Marks of a chart that stand for a head lead to its card."""

import re
from collections.abc import Collection

from headscope.markup import Element, h

Head = tuple[int, int]  # layer and head, counted from 1
NAME = re.compile(r"(\d+)–(\d+)")


def card_name(head: Head) -> str:
    """What the card of a head is called within the page."""
    return f"head-{head[0]}-{head[1]}"


def with_links(drawn: Element, heads: Collection[Head]) -> Element:
    """A drawing in which a click on the mark of a head leads to it."""
    children = tuple(
        child if isinstance(child, str) else with_links(child, heads) for child in drawn.children
    )
    same = Element(drawn.name, drawn.attributes, children)
    head = _head_of(dict(drawn.attributes).get("aria-label", ""))
    if head is None or head not in heads:
        return same
    return h("a", {"href": f"#{card_name(head)}"}, same)


def _head_of(label: str) -> Head | None:
    """The head that the chart library says a mark is of: by its name, or by layer and head."""
    said = dict(part.split(": ", 1) for part in label.split("; ") if ": " in part)
    if found := NAME.fullmatch(said.get("name", "")):
        return int(found[1]), int(found[2])
    layer, head = said.get("layer", ""), said.get("head", "")
    return (int(layer), int(head)) if layer.isdecimal() and head.isdecimal() else None
