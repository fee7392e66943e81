"""How a chart of headscope looks, and how it is written: as PNG, SVG, PDF or a page of its own.

Intervals are drawn, chance levels dashed and in the legend, and the sample is named under the
title. Nothing needs a network.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import altair as alt

from headscope.errors import CannotDraw
from headscope.markup import page, style, svg
from headscope.output import check_out, write_out
from headscope.study.told import SPECIAL, told_view
from headscope.visible import visible

if TYPE_CHECKING:
    from headscope.study.folder import Study

Rows = list[dict[str, Any]]
WIDTH, HEIGHT = 340, 190  # pixels at 96 to the inch: the column of a paper
# Okabe and Ito's colours, which colour-blind people tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
INTERVALS = "95 % intervals"


def save(chart: alt.LayerChart | alt.Chart, path: str | Path) -> Path:
    """Write a chart as .png (at print resolution), .svg, .pdf or .html."""
    import vl_convert

    path = check_out(path, ".svg", ".png", ".pdf", ".html")
    match path.suffix.lower():
        case ".svg":
            made: str | bytes = as_svg(chart)
        case ".png":
            made = vl_convert.vegalite_to_png(_as_spec(chart), scale=3)
        case ".pdf":
            made = vl_convert.vegalite_to_pdf(_as_spec(chart))
        case _:
            made = _as_page(chart)
    return write_out(path, made)


def as_svg(chart: alt.LayerChart | alt.Chart) -> str:
    """A chart as SVG."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(_as_spec(chart))
    return drawn


def _as_page(chart: alt.LayerChart | alt.Chart) -> str:
    """A chart as a page of its own, in which nothing runs."""
    spec = _as_spec(chart)
    said = spec["title"] if isinstance(spec["title"], str) else spec["title"]["text"]
    css = "body { margin: 1rem; background: #fff; } svg { max-width: 100%; height: auto; }"
    return page(f"headscope: {said}", style(css), svg(as_svg(chart), "chart"))


def _as_spec(chart: alt.LayerChart | alt.Chart) -> dict[str, Any]:
    """What the chart library draws. A control character would end the whole interpreter."""
    spec: dict[str, Any] = _shown(chart.to_dict())
    return spec


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value, lines=True)
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    return [_shown(inner) for inner in value] if isinstance(value, list) else value


def lines_by_layer(
    study: "Study", rows: Rows, axis: str, title: str, *, percent: bool = False
) -> alt.LayerChart:
    """A line by layer for each series, with its interval and its chance level."""
    if not rows:
        raise CannotDraw(f"The study holds nothing for '{title}': its family shows no attention.")
    form = ".0%" if percent else ",.3~r"
    names = list(dict.fromkeys(row["series"] for row in rows))
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
        legend=_legend(2) if len(names) > 1 else None,
    )
    shown = [row | {"dash": "by chance"} for row in rows]
    base = alt.Chart(data(shown)).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0)), color=colour
    )
    value = alt.Y("value:Q", title=axis, axis=alt.Axis(format=form), scale=alt.Scale(zero=True))
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=axis), y2="high:Q")
    # Lines that lie on each other stay apart: the later ones are thinner, the first shows beneath.
    widths = [5 - 3 * number / max(len(names) - 1, 1) for number in range(len(names))]
    line = base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(
        y=value,
        strokeWidth=alt.StrokeWidth(
            "series:N", scale=alt.Scale(domain=names, range=widths), legend=None
        ),
    )
    dashes = alt.Scale(domain=["by chance"], range=[[4, 3]])
    chance = base.mark_line(strokeWidth=1).encode(
        y="chance:Q",
        strokeDash=alt.StrokeDash("dash:N", scale=dashes, legend=_legend(1, "top")),
    )
    view = told_view(study.manifest.parameters)
    about = INTERVALS
    if rows[0].get("reading") is not None:  # attention needs no view; the legend names the reading
        several = len({row.get("reading") for row in rows}) > 1
        told = f"{view.rule}, {SPECIAL[view.special]}" if several else str(view)
        about = f"{told}; {INTERVALS}"
    return dressed(alt.layer(band, chance, line), study, title, about=about)


def _legend(columns: int, orient: Literal["top", "bottom"] = "bottom") -> alt.Legend:
    return alt.Legend(
        title=None,
        orient=orient,  # two at the bottom would lie on each other
        columns=columns,
        columnPadding=40,  # labels are wider in some fonts than in the one they are laid out in
        labelLimit=280,
        symbolOpacity=1,
    )


def map_of_heads(
    study: "Study",
    rows: Rows,
    legend: str,
    title: str,
    *,
    percent: bool = False,
    scale: str = "linear",
    wide: bool = False,
    about: str = "95 % intervals are in the study",
    pairs: bool = True,
) -> alt.LayerChart:
    """A cell for each head: colour for the number, words inside."""
    places = _on_scale([row["shown"] for row in rows], scale)
    for row, place in zip(rows, places, strict=True):
        row["light"] = place > 0.55  # of viridis, which ends in yellow
    base = alt.Chart(data(rows)).encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layer:O", title="layer"),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "shown:Q",
            scale=alt.Scale(scheme="viridis", type=scale),  # type: ignore[arg-type]
            legend=alt.Legend(
                title=legend.replace(" (", "\n(").split("\n"),
                format=".0%" if percent else ",.2~r",
            ),
        )
    )
    words = base.mark_text(fontSize=8).encode(
        text="text:N",
        color=alt.condition("datum.light", alt.value("black"), alt.value("white")),
    )
    width, height = alt.Step(38 if wide else 25), alt.Step(17)
    if pairs:
        about = f"{told_view(study.manifest.parameters)}; {about}"
    return dressed(alt.layer(cells, words), study, title, width, height, about)


def _on_scale(values: list[float | None], scale: str) -> list[float]:
    """Where numbers lie on a scale of colours, from 0 to 1."""
    known = [value for value in values if value is not None and (value > 0 or scale != "log")]
    if not known:
        return [0.0] * len(values)
    form = math.log if scale == "log" else float
    low, high = form(min(known)), form(max(known))
    return [
        (form(value) - low) / ((high - low) or 1.0) if value in known and value is not None else 0.0
        for value in values
    ]


def short(word: str, most: int = 7) -> str:
    """A word that fits into a cell."""
    return word if len(word) <= most else f"{word[: most - 1]}…"


def dressed(
    chart: Any,
    study: "Study",
    title: str,
    width: Any = WIDTH,
    height: Any = HEIGHT,
    about: str = "",
    against: "Study | None" = None,
    named: str = "",
) -> alt.LayerChart:
    """Size, typography, and a caption with the sample, or with both that are compared."""
    second = [] if against is None else [f"against {sample_of(against)}"]
    sample = [named or sample_of(study), *second, about]
    dressed: alt.LayerChart = (
        chart.properties(
            width=width,
            height=height,
            padding={"left": 5, "top": 5, "right": 30, "bottom": 5},
            title=alt.TitleParams(
                title, subtitle=sample, subtitleFontSize=9, anchor="start", offset=8
            ),
        )
        .configure(font="Helvetica, Arial, sans-serif")
        .configure_axis(labelFontSize=10, titleFontSize=11, titleFontWeight="normal", grid=False)
        .configure_title(fontSize=13, subtitleColor="#555")
        .configure_legend(labelFontSize=10, titleFontSize=10, titleFontWeight="normal")
        .configure_view(stroke=None)
    )
    return dressed


def sample_of(study: "Study") -> str:
    """The model and the corpus of a study, in a line."""
    corpus = study.manifest.corpus
    return f"{study.manifest.model.name} on {corpus.name}: {corpus.in_words}"


def data(rows: Rows) -> alt.InlineData:
    """Plain values; NaN and infinity are left out of a chart, as null."""
    return alt.InlineData(
        values=[{name: _known(value) for name, value in row.items()} for row in rows]
    )


def _known(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
