"""The findings of a report: a claim a row, and under it what every view says, as a small grid.

A row of the grid is a reading with a setting of special tokens, a column a rule. Closed it is a
few coloured squares, so that a claim which holds under one rule only is seen at a glance; open it
gives each verdict with its number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headscope.markup import PAPER, Content, Element, h
from headscope.study.told import FAILS, HOLDS, OPEN, SPECIAL, ToldClaim, View, strongest_null

Row = Mapping[str, Any]
COLUMNS = ("verdict", "claim", "value [95 %]", "must pass", "closest null", "trend", "why")
NUMBERS = COLUMNS[2:6]


def findings(claims: Sequence[ToldClaim], view: View) -> list[Element]:
    """All claims, and how to read them."""
    several: list[Content] = []
    if any(len(claim.views) > 1 for claim in claims):
        several = [
            " Under a claim are the verdicts of all views, a square each: ",
            *((_squares([[verdict]]), f" {verdict}, ") for verdict in (HOLDS, OPEN)),
            (_squares([[FAILS]]), f" {FAILS}; open them for the numbers."),
        ]
    return [
        h(
            "p",
            None,
            "Each claim of the paper, the number that tests it, and a verdict by a fixed rule: it "
            "holds when it is sure, after a correction for the number of claims, that the number "
            "is above its threshold and above every null, and that the trend over layers is there. "
            "It does not hold when an interval contradicts it; else it is undecided. The claims "
            "are those of the abstract of ",
            h("a", {"href": PAPER}, "Halevi et al. (2025), arXiv 2512.21956"),
            ", of which we have read no more; what tests them, and every threshold, is ours.",
        ),
        h("p", None, "Told in this report: ", h("b", None, str(view)), ".", several),
        claims_table(claims, view),
    ]


def claims_table(claims: Sequence[ToldClaim], view: View) -> Element:
    """A row for each claim, and under it what every view says."""
    head = [h("th", {"scope": "col"}, name) for name in COLUMNS]
    return h(
        "table",
        {"class": "claims"},
        h("thead", None, h("tr", None, head)),
        [_claim(claim, view) for claim in claims],
    )


def badge(verdict: str) -> Element:
    """A verdict as a coloured word."""
    return h("span", {"class": f"verdict {_kind(verdict)}"}, verdict)


def _claim(claim: ToldClaim, view: View) -> Element:
    row = claim.row
    cells: tuple[Content, ...] = (
        badge(row["verdict"]),
        [row["says"], h("br"), h("small", None, row["statistic"])],
        _value(row),
        f"{row['threshold']:g}",
        strongest_null(row),
        _trend(row),
        row["reason"],
    )
    named = [
        h("td", {"class": "n" if name in NUMBERS else "", "data-name": name}, cell)
        for name, cell in zip(COLUMNS, cells, strict=True)
    ]
    return h("tbody", None, h("tr", None, named), _beside(claim), _views(claim, view))


def _beside(claim: ToldClaim) -> Element | None:
    """What stands beside a verdict: readings, shape, every null, and where it would flip."""
    row = claim.row
    facts = []
    readings = claim.by_reading
    if len(readings) > 1:
        said = [f"{reading} {_number(one['value'])}" for reading, one in readings.items()]
        facts.append(("readings", ", ".join(said)))
    if row["shape"]:
        facts.append(("shape", row["shape"]))
    if row["nulls"]:
        facts.append(("nulls", ", ".join(_null(null) for null in row["nulls"])))
    if row["low"] is not None:
        flips = f"its interval lies above every threshold below {row['low']:.3g}"
        facts.append(("flips", f"{flips}; it is below every one above {row['high']:.3g}"))
    if not facts:
        return None
    listed = [(h("dt", None, name), h("dd", None, said)) for name, said in facts]
    inside = h("details", None, h("summary", None, "beside it"), h("dl", None, listed))
    return h("tr", {"class": "of-views"}, h("td", {"colspan": len(COLUMNS)}, inside))


def _null(null: Row) -> str:
    """A null with its value, or why it has none; in brackets where the claim need not exceed it."""
    said = null["why_not"] or _number(null["value"])
    return f"{null['null']} {said}" if null["needed"] else f"({null['null']} {said})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _views(claim: ToldClaim, view: View) -> Element | None:
    """The grid under a claim, closed; nothing where there is one view."""
    if len(claim.views) < 2:
        return None
    rules = list(dict.fromkeys(one.rule for one in claim.views))
    ways = list(dict.fromkeys((one.reading, one.special) for one in claim.views))
    grid = [[claim.views[View(*way, rule)] for rule in rules] for way in ways]
    verdicts = [[row["verdict"] for row in line] for line in grid]
    if len(rules) == 1:  # a line instead of a column
        verdicts = [[verdict for line in verdicts for verdict in line]]
    rows = [
        h(
            "tr",
            None,
            h("th", {"scope": "row"}, f"{reading}, {SPECIAL[special]}"),
            [_cell(row, view) for row in line],
        )
        for (reading, special), line in zip(ways, grid, strict=True)
    ]
    head = [h("th", {"scope": "col"}, rule) for rule in rules]
    opened = h(
        "table",
        {"class": "views"},
        h("thead", None, h("tr", None, h("td"), head)),
        h("tbody", None, rows),
    )
    inside = h(
        "details",
        None,
        h("summary", None, _squares(verdicts), " ", claim.agreement),
        h("div", {"class": "wide"}, opened),
    )
    return h("tr", {"class": "of-views"}, h("td", {"colspan": len(COLUMNS)}, inside))


def _cell(row: Row, view: View) -> Element:
    told = View.of(row) == view
    about = {"class": _kind(row["verdict"]) + " told" * told, "title": row["reason"]}
    return h("td", about, _number(row["value"]), h("small", None, row["verdict"], ", told" * told))


def _squares(verdicts: Sequence[Sequence[str]]) -> Element:
    lines = [[h("i", {"class": _kind(verdict)}) for verdict in line] for line in verdicts]
    return h(
        "span", {"class": "squares", "aria-hidden": "true"}, [h("span", None, x) for x in lines]
    )


def _value(row: Row) -> Content:
    if row["low"] is None:
        return _number(row["value"])
    return [f"{row['value']:.3g} ", h("small", None, f"[{row['low']:.3g}, {row['high']:.3g}]")]


def _trend(row: Row) -> Content:
    if row["trend"] is None:
        return None
    return [f"{row['trend']:+.2f} ", h("small", None, f"p {row['trend_p']:.2g}")]


def _kind(verdict: str) -> str:
    return verdict.replace(" ", "-")
