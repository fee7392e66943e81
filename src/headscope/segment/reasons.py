"""Why a text is cut where it is, boundary by boundary, in words for a terminal and as numbers.

A boundary is worth what the segments beside it gain by being apart and what was learned of
beginnings and ends; it costs a price, of which the layout waives a part.
"""

import textwrap
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headscope.segment.segments import Explanation

TOLD_HEADS = 3
WIDTH = 88  # of a line in words
BEGINS = {
    "heading": "a heading, which belongs to what follows it",
    "rule": "a line that separates, which belongs to what follows it",
    "paragraph": "a new paragraph",
    "inside": "inside a paragraph",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why there is a boundary, or why there is none."""

    at: int  # the first character after it
    before: str  # what begins there, shortened
    turn: str | None  # what the layout has there; None where the text has no layout
    waived: float  # of the price of a boundary, because of the layout
    inside: tuple[float | None, float | None]  # mean similarity of the units on each side
    between: float  # mean similarity of the units of one side to those of the other
    unlike: float  # worth: what both sides gain by being apart
    learned: float  # worth: how much it looks like a beginning after an end
    price: float  # what a boundary costs here
    heads: tuple[tuple[int, int, float], ...]  # layer, head (from 1), share in what speaks for it

    @property
    def worth(self) -> float:
        """What the boundary is worth in all."""
        return self.unlike + self.learned

    @property
    def left_out(self) -> float:
        """What would be lost without it; below 0 it is there because as many were asked for."""
        return self.worth - self.price

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        found = {**asdict(self), "worth": self.worth, "left_out": self.left_out}
        return {name: _rounded(value) for name, value in found.items()}


def reasons(why: "Explanation") -> list[Reason]:
    """Why each boundary is where it is, first to last."""
    edges = [0, *why.cuts, len(why.spans)]
    price = why.price
    return [
        _reason(why, price, edges[number : number + 3], number) for number in range(len(why.cuts))
    ]


def runner_up(why: "Explanation") -> Reason | None:
    """The place without a boundary where one would cost least to have."""
    if why.layout is None or not len(why.layout):
        return None
    allowed = ~np.isneginf(why.layout)
    allowed[[0, *why.cuts]] = False
    if not allowed.any():
        return None
    unit = int(np.argmax(np.where(allowed, why.scores + why.layout, -np.inf)))
    edges = np.array([0, *why.cuts, len(why.spans)])
    around = int(np.searchsorted(edges, unit))
    return _reason(why, why.price, [int(edges[around - 1]), unit, int(edges[around])], None)


def _reason(why: "Explanation", price: float, edges: list[int], number: int | None) -> Reason:
    """Of the boundary before the middle of three units, the outer ones being its neighbours."""
    start, unit, end = edges
    left, right = (why.vectors[a:b].astype(np.float64) for a, b in ((start, unit), (unit, end)))
    waived = 0.0 if why.layout is None else float(why.layout[unit])
    heads = () if number is None or why.added is None else _heads(why.added[number])
    first, last = why.spans[unit]
    return Reason(
        at=first,
        before=textwrap.shorten(why.text[first : last + 60], 60, placeholder=" …"),
        turn=why.places[unit].turn if why.has_layout else None,
        waived=waived,
        inside=(_alike(left), _alike(right)),
        between=float(left.mean(axis=0) @ right.mean(axis=0)),
        unlike=float(why.similarity[unit]),
        learned=float(why.start[unit]),
        price=max(price - waived, 0.0),
        heads=heads,
    )


def _alike(vectors: "np.ndarray[Any, np.dtype[np.float64]]") -> float | None:
    """Mean similarity of every two of some units; None of one."""
    count, total = len(vectors), vectors.sum(axis=0)
    if count < 2:
        return None
    return float((total @ total - (vectors**2).sum()) / (count * (count - 1)))


def _heads(added: "np.ndarray[Any, Any]") -> tuple[tuple[int, int, float], ...]:
    """The heads that speak most for a boundary, and their shares in what does."""
    shares = np.maximum(added, 0) / max(float(np.maximum(added, 0).sum()), 1e-12)
    most = np.argsort(-shares, axis=None, kind="stable")[:TOLD_HEADS]
    places = [divmod(int(place), added.shape[1]) for place in most]
    return tuple(
        (layer + 1, head + 1, float(shares[layer, head]))
        for layer, head in places
        if shares[layer, head] > 0
    )


def in_words(why: "Explanation") -> str:
    """The whole explanation, to be read in a terminal."""
    if why.layout is None:
        return _sentences(why)
    if len(why.spans) < 2:
        return "One sentence cannot be cut into topics."
    said = [_summary(why)]
    for number, reason in enumerate(reasons(why), start=2):
        said.append("\n".join([f"Segment {number} begins with “{reason.before}”", *_told(reason)]))
    if other := runner_up(why):
        said.append(
            f"No boundary, but the next likeliest: “{other.before}”\n"
            f"  it would be worth {other.worth:.1f} and costs {other.price:.1f}"
        )
    return "\n\n".join(said)


def _summary(why: "Explanation") -> str:
    count = len(why.cuts) + 1
    said = f"{count} segment{'s' if count > 1 else ''} of {len(why.spans)} sentences, {why.asked}."
    if not why.has_layout:
        return f"{said} The text has no paragraphs: a boundary can be before any sentence."
    allowed = int((~np.isneginf(why.layout[1:])).sum()) if why.layout is not None else 0
    where = "inside paragraphs too" if why.inside_paragraphs else "never inside a paragraph"
    kept = "headings stay with what follows them, lists with what leads into them"
    return textwrap.fill(f"{said} Its layout has {allowed} places for one, {where}; {kept}.", WIDTH)


def _told(reason: Reason) -> list[str]:
    alike = " and ".join("–" if a is None else f"{a:+.2f}" for a in reason.inside)
    heads = ", ".join(
        f"layer {layer} head {head} {share:.0%}" for layer, head, share in reason.heads
    )
    similarity = f"similarity of sentences {alike} inside, {reason.between:+.2f} between"
    verb = "loses" if reason.left_out >= 0 else "gains"
    asked = "" if reason.left_out >= 0 else ": it is there because as many were asked for"
    waived = f", {reason.waived:.1f} less than elsewhere for the layout" if reason.waived else ""
    cost = f"{reason.price:.1f}{waived}" if reason.price else "nothing"
    lines = [
        ("layout", BEGINS.get(reason.turn or "", "")),
        ("unlike", f"{reason.unlike:+.1f}  {similarity}"),
        ("learned", f"{reason.learned:+.1f}  how much it looks like a beginning after an end"),
        ("worth", f"{reason.worth:+.1f}  where a boundary costs {cost}"),
        ("without", f"the cut {verb} {abs(reason.left_out):.1f}{asked}"),
        ("heads", heads),
    ]
    return [f"  {name:<8} {said}" for name, said in lines if said]


def _sentences(why: "Explanation") -> str:
    """At the level of sentences: log odds, and the heads that speak for the boundaries."""
    heads = ", ".join(
        f"layer {layer} head {head} {share:.0%}" for layer, head, share in why.heads[:6]
    )
    sentences = "1 sentence" if not why.cuts else f"{len(why.cuts) + 1} sentences"
    said = [f"{sentences}. A boundary is likelier than not where its log odds are above 0."]
    for cut in why.cuts:
        first, last = why.spans[cut]
        begins = textwrap.shorten(why.text[first : last + 60], 60, placeholder=" …")
        odds, alike = why.scores[cut], why.similarity[cut]
        said.append(f"  {odds:+6.1f}  “{begins}”  (similarity of both sides {alike:+.1f})")
    return "\n".join([*said, *([f"Heads that speak for them: {heads}"] if heads else [])])


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value
