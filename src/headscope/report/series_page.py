"""The page of a series: what heads become over training, a chart for each finding, the verdicts.

The look is that of a study's report.
"""

from importlib.resources import files
from typing import TYPE_CHECKING

from headscope import over_training
from headscope.drawing import as_svg
from headscope.errors import CannotDraw
from headscope.markup import Element, h, page, style, svg
from headscope.measures.registry import DEFINITIONS
from headscope.report.findings import badge
from headscope.study.told import told_view

if TYPE_CHECKING:
    from headscope.study.series import Series


def series_page(series: "Series") -> str:
    """The whole page."""
    css = files("headscope").joinpath("report/study_page.css").read_text(encoding="utf-8")
    names, said = list(series.studies), series.last.manifest
    facts = {
        "checkpoints": f"{len(names)}: {', '.join(names)}",
        "model": f"{said.model.family}, {said.model.layers} layers × {said.model.heads} heads",
        "corpus": f"{said.corpus.name}: {said.corpus.documents:,} documents, "
        f"{said.corpus.tokens:,} tokens, the same for every checkpoint",
        "told": str(told_view(said.parameters)),
    }
    lines = [
        h("tr", None, h("th", {"scope": "row"}, name), h("td", None, value))
        for name, value in facts.items()
    ]
    body = h(
        "main",
        None,
        h("h1", None, "What heads become over training"),
        h("table", {"class": "facts"}, lines),
        h("div", {"class": "charts"}, [_chart(series, name) for name in over_training.FIGURES]),
        h("h2", None, "Verdicts"),
        _verdicts(series),
    )
    return page(f"headscope: {names[0]} to {names[-1]}", style(css), body)


def _chart(series: "Series", name: str) -> Element | None:
    draw = over_training.FIGURES[name]
    try:
        drawing = as_svg(draw(series))
    except CannotDraw:  # such as attention that the family does not show
        return None
    says = [h("p", None, DEFINITIONS[one].says) for one in getattr(draw, "quantities", ())]
    return h("figure", None, svg(drawing, name), h("figcaption", None, says))


def _verdicts(series: "Series") -> Element:
    names = list(series.studies)
    told = {(row["says"], row["checkpoint"]): row for row in series.findings.arrow.to_pylist()}
    claims = dict.fromkeys(says for says, _ in told)
    head = [h("th", {"scope": "col"}, name) for name in ("claim", *names)]
    lines = [
        h("tr", None, h("td", None, says), [_cell(told.get((says, name))) for name in names])
        for says in claims
    ]
    table = h("table", None, h("thead", None, h("tr", None, head)), h("tbody", None, lines))
    return h("div", {"class": "wide"}, table)


def _cell(row: dict[str, object] | None) -> Element:
    if row is None:
        return h("td", None, "–")
    value = row["value"]
    said = f" {value:.3g}" if isinstance(value, float) else " –"
    return h("td", None, badge(str(row["verdict"])), said)
