"""The page of a comparison: verdicts and labels that changed, then where the numbers differ.

The look is that of a study's report.
"""

from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from headscope import figures
from headscope.markup import Element, h, page, style, svg
from headscope.measures.registry import DEFINITIONS
from headscope.report.findings import badge
from headscope.study.told import told_view

if TYPE_CHECKING:
    from headscope.study.compare import Comparison

Row = dict[str, Any]
MAPS = 6  # quantities that are drawn
LISTED = 100  # numbers that are listed


def comparison_page(comparison: "Comparison") -> str:
    """The whole page."""
    css = files("headscope").joinpath("report/study_page.css").read_text(encoding="utf-8")
    first, second = (figures.sample_of(study) for study in (comparison.first, comparison.second))
    body = h(
        "main",
        None,
        h("h1", None, "What differs between two studies"),
        _facts(comparison, first, second),
        h("h2", None, "Verdicts"),
        _verdicts(comparison),
        h("h2", None, "Labels"),
        _labels(comparison),
        h("h2", None, "Numbers"),
        _numbers(comparison),
    )
    return page(f"headscope: {first} and {second}", style(css), body)


def _facts(comparison: "Comparison", first: str, second: str) -> Element:
    numbers = comparison.numbers
    views = [
        str(told_view(study.manifest.parameters)) for study in (comparison.first, comparison.second)
    ]
    facts = {
        "first": f"{first} ({views[0]})",
        "second": f"{second} ({views[1]})",
        "differ": f"verdicts: {len(comparison.verdicts)}; heads in their labels: "
        f"{len(comparison.labels)}; numbers: {comparison.differing:,} of {len(numbers):,}",
        "a number differs": "when it passes the rule of Benjamini and Hochberg: of those that are "
        "said to differ, 5 % may do so by chance; intervals are 95 %",
    }
    rows = [
        h("tr", None, h("th", {"scope": "row"}, name), h("td", None, value))
        for name, value in facts.items()
    ]
    return h("table", {"class": "facts"}, rows)


def _verdicts(comparison: "Comparison") -> Element:
    rows = comparison.verdicts.to_pylist()
    if not rows:
        return h("p", None, "Both studies tell every claim with the same verdict.")
    lines = [
        (
            row["says"],
            [badge(row["first"]), f" {_number(row['first_value'])}"],
            [badge(row["second"]), f" {_number(row['second_value'])}"],
        )
        for row in rows
    ]
    return _table(("claim", "first", "second"), lines)


def _labels(comparison: "Comparison") -> Element:
    rows = comparison.labels.to_pylist()
    if not rows:
        return h("p", None, "Every head has the same labels in both studies.")
    lines = [
        (
            f"{row['layer']}–{row['head']}",
            *(", ".join(row[name]) for name in ("only_first", "only_second", "both")),
        )
        for row in rows
    ]
    return _table(("layer–head", "only in the first", "only in the second", "in both"), lines)


def _numbers(comparison: "Comparison") -> list[Element]:
    rows = comparison.numbers.to_pylist()
    view = told_view(comparison.first.manifest.parameters)
    differing = Counter(
        (row["measure"], row["quantity"]) for row in rows if row["differs"] and view.has(row)
    )
    if comparison.unsure:
        said = (
            "One of the studies is of one group, which has no interval: nobody knows what differs."
        )
        return [h("p", None, said)]
    if not differing:
        return [h("p", None, "No number differs by more than chance explains.")]
    maps = [
        h(
            "figure",
            None,
            svg(figures.as_svg(figures.difference(comparison, *which)), "-".join(which)),
            h("figcaption", None, h("p", None, DEFINITIONS[which[1]].says)),
        )
        for which, _ in differing.most_common(MAPS)
    ]
    lines = [
        (
            f"{row['layer']}–{row['head']}",
            row["quantity"].replace("_", " "),
            " ".join(filter(None, (row["reading"], (row["special"] or "").replace("_", " ")))),
            _number(row["first"]),
            _number(row["second"]),
            f"{_number(row['difference'])} [{_number(row['low'])}, {_number(row['high'])}]",
        )
        for row in rows[:LISTED]
        if row["differs"]
    ]
    names = ("layer–head", "quantity", "pairs", "first", "second", "second − first [95 %]")
    return [
        h("p", None, "The quantities that differ in most heads, and the surest differences."),
        h("div", {"class": "charts"}, maps),
        _table(names, lines),
    ]


def _table(names: tuple[str, ...], lines: list[tuple[Any, ...]]) -> Element:
    head = [h("th", {"scope": "col"}, name) for name in names]
    body = [h("tr", None, [h("td", None, cell) for cell in line]) for line in lines]
    table = h("table", None, h("thead", None, h("tr", None, head)), h("tbody", None, body))
    return h("div", {"class": "wide"}, table)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
