"""Charts of a study, each one function from its tables to an Altair chart.

Intervals are drawn, chance levels dashed, and the sample is named under the title. `save` writes
PNG, SVG, PDF or a page of its own, without a network.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.store import Study

Rows = list[dict[str, Any]]
WIDTH, HEIGHT = 340, 190  # pixels at 96 to the inch: the column of a paper
# Okabe and Ito's colours, which colour-blind people tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
INTERVALS = "; 95 % intervals over documents"
SPECIAL = {"kept": "special tokens kept", "left_out": "special tokens left out"}
VERDICTS = {"holds": "#009E73", "undecided": "#E69F00", "does not hold": "#D55E00"}


class CannotDraw(HeadscopeError):  # noqa: N818 - reads as a sentence
    """A figure cannot be drawn or saved."""


def focus(study: "Study") -> alt.LayerChart:
    """Where attention goes, by layer."""
    names = {
        "first_token": "first token",
        "separator": "separator",
        "sentence_end": "sentence end",
        "comma": "comma",
        "other_punctuation": "other punctuation",
    }
    rows = [
        row | {"series": names[row["quantity"]]}
        for row in _rows(study, "focus", "layer")
        if row["quantity"] in names and row["mode"] == "real"
    ]
    return _lines(study, rows, "share of attention", "Where attention goes", percent=True)


def centralisation(study: "Study") -> alt.LayerChart:
    """On how many tokens attention gathers, by layer."""
    rows = _by_mode(_rows(study, "focus", "layer", "attended_columns"))
    return _lines(study, rows, "tokens attended (effective)", "Attention centralises")


def range_by_layer(study: "Study") -> alt.LayerChart:
    """How far apart the tokens of high pairs are, by layer."""
    rows = _by_special(_rows(study, "range", "layer", "mean_distance"))
    return _lines(study, rows, "mean distance (tokens)", "Range of the high pairs")


def sentence(study: "Study") -> alt.LayerChart:
    """How much more often than by chance a high pair stays within a sentence, by layer."""
    matched = {"same_sentence": "", "same_sentence_matched": ", distances matched"}
    rows = [
        row
        | {
            "series": SPECIAL[row["special"]] + matched[row["quantity"]],
            "value": row["lift"],
            "low": row["lift_low"],
            "high": row["lift_high"],
            "chance": 1.0,
        }
        for row in _rows(study, "sentence", "layer")
        if row["quantity"] in matched and row["mode"] == "real"
    ]
    return _lines(study, rows, "same-sentence lift (× chance)", "Pairs within one sentence")


def noise(study: "Study") -> alt.LayerChart:
    """How many high pairs are between unrelated tokens, by layer."""
    rows = _by_special(_rows(study, "noise", "layer", "unrelated"))
    return _lines(study, rows, "unrelated high pairs", "Noise", percent=True)


def snr(study: "Study") -> alt.LayerChart:
    """How far related pairs stand out from unrelated ones, by layer."""
    rows = _by_special(_rows(study, "noise", "layer", "snr"))
    return _lines(study, rows, "SNR (standard deviations)", "Signal to noise")


def uniqueness(study: "Study") -> alt.LayerChart:
    """How many of the heads of a layer have an anchor of their own."""
    rows = _by_special(_rows(study, "anchor", "layer", "word_uniqueness_in_layer"))
    return _lines(study, rows, "distinct anchors / heads", "Each head its own token", percent=True)


def repetition(study: "Study") -> alt.LayerChart:
    """Which heads bring repeated words together."""
    rows = _heads(study, "repetition", "same_word")
    for row in rows:
        row["shown"], row["text"] = row["lift"], f"{row['lift']:.0f}" if row["lift"] else ""
    return _map(study, rows, "same word (× chance)", "Repetition heads", scale="log")


def anchor(study: "Study") -> alt.LayerChart:
    """The word around which each head builds its pairs."""
    first = {
        (row["layer"], row["head"]): row
        for row in _chosen(study, study.table("anchors").to_pylist())
        if row["kind"] == "word" and row["rank"] == 1 and row["special"] == without_special(study)
    }
    rows = [
        {"layer": layer, "head": head, "shown": row["share"], "text": row["type"][:7]}
        for (layer, head), row in first.items()
    ]
    title, about = "The anchor of each head", "; counted as a whole, without 95 % intervals"
    return _map(study, rows, "share of pair ends", title, percent=True, wide=True, about=about)


def findings(study: "Study") -> alt.LayerChart:
    """Every claim: its statistic over the threshold it has to pass."""
    rows = [
        {
            "claim": row["says"],
            "verdict": row["verdict"],
            **{part: row[part] / row["threshold"] for part in ("value", "low", "high")},
        }
        for row in study.table("findings").to_pylist()
        if row["mode"] == "real" and row["value"] is not None and row["special"] in (None, "kept")
    ]
    base = alt.Chart(_data(rows)).encode(
        y=alt.Y("claim:N", sort=None, title=None, axis=alt.Axis(labelLimit=400)),
        color=alt.Color(
            "verdict:N",
            scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
    )
    axis = alt.X("value:Q", scale=alt.Scale(type="symlog"), title="statistic / its threshold")
    line = alt.Chart(_data([{"at": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="at:Q")
    interval = base.mark_rule(strokeWidth=2).encode(x=axis, x2="high:Q")
    low = base.mark_rule(strokeWidth=2).encode(x=axis, x2="low:Q")
    points = base.mark_point(filled=True, size=60).encode(x=axis)
    drawn = alt.layer(line, interval, low, points)
    height = alt.Step(18)
    return _dressed(drawn, study, "The claims, tested", height=height, about=INTERVALS)


FIGURES: Mapping[str, Callable[["Study"], alt.LayerChart]] = {
    "focus": focus,
    "centralisation": centralisation,
    "range": range_by_layer,
    "sentence": sentence,
    "repetition": repetition,
    "anchor": anchor,
    "uniqueness": uniqueness,
    "noise": noise,
    "snr": snr,
    "findings": findings,
}


def matrix(
    reading: "Reading",
    layer: int,
    head: int,
    kind: str = "raw",
    tokens: slice = slice(None),
) -> alt.Chart:
    """The context similarity matrix of one head with its tokens, for a paper."""
    pieces = reading.tokens.pieces[tokens]
    if len(pieces) > 80:
        raise CannotDraw(
            f"{len(pieces)} tokens cannot be read on a printed matrix; 80 can. Choose some with "
            "--tokens 0:80, or save the reading and look at it in the viewer."
        )
    C = reading.similarity(layer, head, kind)[tokens, tokens]  # type: ignore[arg-type]
    labels = [f"{piece}\u200b{i}" for i, piece in enumerate(pieces)]  # equal words stay apart
    rows = [
        {"first": labels[i], "second": labels[j], "similarity": float(C[i, j])}
        for i in range(len(labels))
        for j in range(len(labels))
    ]
    axis = alt.Axis(labelExpr="split(datum.label, '\u200b')[0]", title=None, labelFontSize=8)
    name = f"Layer {layer}, head {head} of {reading.scope.shape.name}"
    step = alt.Step(9)
    drawn: alt.Chart = (
        alt.Chart(_data(rows), title=alt.TitleParams(name, subtitle=f"C = z·z, {kind}"))
        .mark_rect()
        .encode(
            x=alt.X("second:N", sort=None, axis=axis),
            y=alt.Y("first:N", sort=None, axis=axis),
            color=alt.Color("similarity:Q", scale=alt.Scale(scheme="viridis")),
        )
        .properties(width=step, height=step)
    )
    return drawn


def save(chart: alt.LayerChart | alt.Chart, path: str | Path) -> Path:
    """Write a chart as .png (at print resolution), .svg, .pdf or .html."""
    import vl_convert

    path = Path(path)
    spec = chart.to_dict()
    kind = path.suffix.lower()
    if kind == ".svg":
        path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    elif kind == ".png":
        path.write_bytes(vl_convert.vegalite_to_png(spec, scale=3))
    elif kind == ".pdf":
        path.write_bytes(vl_convert.vegalite_to_pdf(spec))
    elif kind == ".html":
        path.write_text(vl_convert.vegalite_to_html(spec, bundle=True), encoding="utf-8")
    else:
        raise CannotDraw(f"'{path}' must end in .png, .svg, .pdf or .html to say what to write.")
    return path


def _rows(study: "Study", table: str, level: str, quantity: str | None = None) -> Rows:
    """Rows of a measure under the study's own rule and first reading."""
    return [
        row
        for row in _chosen(study, study.table(table).to_pylist())
        if row["level"] == level and quantity in (None, row["quantity"])
    ]


def _chosen(study: "Study", rows: Rows) -> Rows:
    said = study.manifest["parameters"]
    return [
        row
        for row in rows
        if row["reading"] in (None, said["readings"][0]) and row["rule"] in (None, said["rule"])
    ]


def without_special(study: "Study") -> str:
    """Special tokens left out, where the study did that too."""
    special = study.manifest["parameters"]["special"]
    return "left_out" if "left_out" in special else str(special[0])


def _heads(study: "Study", table: str, quantity: str) -> Rows:
    return [
        row
        for row in _rows(study, table, "head", quantity)
        if row["mode"] == "real" and row["special"] in (None, without_special(study))
    ]


def _by_special(rows: Rows) -> Rows:
    return [row | {"series": SPECIAL[row["special"]]} for row in rows if row["mode"] == "real"]


def _by_mode(rows: Rows) -> Rows:
    names = {"real": "the model", "shuffle": "shuffled text", "random": "random weights"}
    return [row | {"series": names.get(row["mode"], row["mode"])} for row in rows]


def _lines(
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
        legend=alt.Legend(
            title=None,
            orient="bottom",
            columns=2,
            columnPadding=40,  # labels are wider in some fonts than in the one they are laid out in
            labelLimit=280,
            symbolOpacity=1,
        )
        if len(names) > 1
        else None,
    )
    base = alt.Chart(_data(rows)).encode(
        x=alt.X("layer:O", title="layer", axis=alt.Axis(labelAngle=0)), color=colour
    )
    value = alt.Y("value:Q", title=axis, axis=alt.Axis(format=form), scale=alt.Scale(zero=True))
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=axis), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(y=value)
    chance = base.mark_line(strokeDash=[3, 3], strokeWidth=1).encode(y="chance:Q")
    return _dressed(alt.layer(band, chance, line), study, title, about=INTERVALS)


def _map(
    study: "Study",
    rows: Rows,
    legend: str,
    title: str,
    *,
    percent: bool = False,
    scale: str = "linear",
    wide: bool = False,
    about: str = "; 95 % intervals are in the study",
) -> alt.LayerChart:
    """A cell for each head: colour for the number, words inside."""
    values = sorted(row["shown"] for row in rows if row["shown"] is not None)
    middle = values[len(values) * 3 // 5] if values else 0
    for row in rows:
        row["light"] = row["shown"] is not None and row["shown"] > middle
    base = alt.Chart(_data(rows)).encode(
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
    return _dressed(alt.layer(cells, words), study, title, width, height, about)


def _dressed(
    chart: Any,
    study: "Study",
    title: str,
    width: Any = WIDTH,
    height: Any = HEIGHT,
    about: str = "",
) -> alt.LayerChart:
    """Size, typography, and a caption with the sample."""
    corpus, said = study.manifest["corpus"], study.manifest["parameters"]
    sample = [
        f"{study.manifest['model']['name']} on {corpus['name']}: {corpus['documents']:,} "
        f"documents, {corpus['tokens']:,} tokens",
        f"{said['readings'][0]}, {said['rule']}" + about,
    ]
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


def _data(rows: Rows) -> alt.InlineData:
    """Plain values; NaN and infinity are left out of a chart, as null."""
    return alt.InlineData(values=json.loads(json.dumps(rows, default=str).replace("NaN", "null")))
