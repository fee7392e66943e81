"""What the report shows of cleaned head vectors."""

from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.drawing import COLOURS, data, dressed
from headscope.markup import Content, h
from headscope.report.added.section import AddedFigure, Section, read_for

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]
BEFORE = "nothing taken away"
SERIES = ("cleaned", "as much at random")


def loss(study: "Study") -> alt.LayerChart:
    """What the model loses when cleaned vectors are put back."""
    unit = study.manifest.added["denoise"].parameters["loss"]
    title = "Cleaned vectors put back into the model"
    return _dots(study, "cleaned_loss", f"loss ({unit})", title)


def snr(study: "Study") -> alt.LayerChart:
    """What cleaning does to the signal-to-noise ratio."""
    axis = "SNR (standard deviations)"
    return _dots(study, "cleaned_snr", axis, "Signal to noise of cleaned vectors")


def _dots(study: "Study", quantity: str, axis: str, title: str) -> alt.LayerChart:
    """A row for each cleaning: its value with its interval, and that of its null."""
    rows = [row for row in _of_model(study) if row["quantity"] == quantity]
    before = [{"before": rows[0]["before"], "dash": BEFORE}]
    points = [row | {"series": SERIES[0]} for row in rows]
    points += [
        {"cleaning": row["cleaning"], "value": row["chance"], "series": SERIES[1]} for row in rows
    ]
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(SERIES), range=COLOURS[:2]),
        legend=alt.Legend(title=None, orient="bottom"),
    )
    lines = alt.Axis(labelLimit=240, labelExpr="split(datum.label, ', ')")
    y = alt.Y("cleaning:N", sort=None, title=None, axis=lines)
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=False))
    base = alt.Chart(data(points)).encode(y=y, color=colour)
    rule = alt.Chart(data(before)).mark_rule(strokeDash=[4, 3])
    line = rule.encode(
        x=alt.X("before:Q", title=axis),
        strokeDash=alt.StrokeDash(
            "dash:N",
            scale=alt.Scale(domain=[BEFORE], range=[[4, 3]]),
            legend=alt.Legend(title=None, orient="top"),
        ),
    )
    interval = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=axis), x2="high:Q")
    dots = base.mark_point(filled=True, size=60).encode(x=x)
    about = read_for(study, "denoise")
    return dressed(alt.layer(line, interval, dots), study, title, height=alt.Step(30), about=about)


def _of_model(study: "Study") -> list[Row]:
    return [row for row in study.table("denoise").to_pylist() if row["level"] == "model"]


def _findings(study: "Study") -> list[Content]:
    """One table: every number and claim, under every cleaning."""
    rows = _of_model(study)
    cleanings = list(dict.fromkeys(row["cleaning"] for row in rows))
    names = list(dict.fromkeys(row["quantity"] for row in rows))
    found = {(row["cleaning"], row["quantity"]): row for row in rows}
    head = [h("th", None, _broken(name)) for name in ("", BEFORE, *cleanings)]
    body = [
        h(
            "tr",
            None,
            h("th", {"scope": "row"}, name.removeprefix("cleaned_").replace("_", " ")),
            h("td", None, _number(found[cleanings[0], name]["before"])),
            [_cell(found[cleaning, name]) for cleaning in cleanings],
        )
        for name in names
    ]
    return [
        h(
            "p",
            None,
            "Each number, and the statistic of each claim about pairs, on cleaned vectors; in bold "
            "where its interval over documents leaves out both what it was and what as much taken "
            "away at random gives, which stands below.",
        ),
        h(
            "div",
            {"class": "wide"},
            h("table", {"class": "facts"}, h("tr", None, head), body),
        ),
    ]


def _broken(name: str) -> Content:
    """A name on two lines where it has two parts."""
    first, *rest = name.split(", ")
    return [first, [(h("br", None), part) for part in rest]]


def _cell(row: Row) -> Content:
    value = _number(row["value"])
    sure = _apart(row, "change") and _apart(row, "beyond_random")
    random = f"{_number(row['chance'])} at random"
    told = h("b", None, value) if sure else value
    return h("td", None, told, h("br", None), h("small", None, random))


def _apart(row: Row, of: str) -> bool:
    low, high = row[f"{of}_low"], row[f"{of}_high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


SECTION = Section(
    "denoise",
    "Noise taken away",
    "Head vectors without the mean vector of each text, without the mean vector of each position, "
    "or with their first singular directions alone. The measures look at what is left of the model "
    "as it is; the loss is that of the model when what is left is put back, layer after layer. "
    "Less loss than nothing taken away would mean that the model is better off without it.",
    {
        "denoise_loss": AddedFigure(loss, ("cleaned_loss",)),
        "denoise_snr": AddedFigure(snr, ("cleaned_snr",)),
    },
    _findings,
    wide=True,
)
