"""Charts of a series of studies: what becomes of each finding over training.

Steps lie on a scale that is logarithmic from the first one after 0 on; where a name says no step,
checkpoints stand side by side. A line a layer, in the colour of its depth, and the mean of all
heads in black with its interval; chance dashed.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import altair as alt
import pyarrow.compute as pc

from headscope.drawing import COLOURS, HEIGHT, INTERVALS, WIDTH, Rows, data, dressed
from headscope.errors import CannotDraw
from headscope.study.labels import NOTHING, RULES
from headscope.study.series import Series
from headscope.study.told import told_view

Figure = Callable[[Series], alt.LayerChart]
PERCENT = ".1~%"


@dataclass(frozen=True, slots=True)
class ByLayer:
    """A quantity by layer over training, as a figure."""

    measure: str
    quantity: str
    axis: str
    title: str
    percent: bool = False
    lift: bool = False  # as a multiple of chance
    quantities: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantities", (self.quantity,))

    def __call__(self, series: Series) -> alt.LayerChart:
        """Draw it."""
        rows = _rows(series, self.measure, self.quantity)
        if self.lift:
            ends = {"value": "lift", "low": "lift_low", "high": "lift_high"}
            rows = [
                row | {to: row[of] for to, of in ends.items()} | {"chance": 1.0} for row in rows
            ]
        if not any(row["value"] is not None for row in rows):
            raise CannotDraw(f"The series holds nothing for '{self.title}'.")
        base = _charted(series, rows)
        of_layer = base.transform_filter("datum.level === 'layer'")
        of_model = base.transform_filter("datum.level === 'model'")
        form = PERCENT if self.percent else ",.3~r"
        value = alt.Y("value:Q", title=self.axis, axis=alt.Axis(format=form))
        depth = alt.Color("layer:Q", scale=alt.Scale(scheme="viridis"), legend=_depth(rows))
        layers = of_layer.mark_line(strokeWidth=1.2).encode(y=value, color=depth, detail="layer:N")
        points = of_layer.mark_circle(size=14).encode(y=value, color=depth)
        band = of_model.mark_area(opacity=0.18).encode(y="low:Q", y2="high:Q")
        mean = of_model.mark_line(strokeWidth=2.5, color="black").encode(y=value)
        chance = of_model.mark_line(strokeWidth=1, strokeDash=[4, 3], color="black").encode(
            y="chance:Q"
        )
        about = "a line a layer; black: all heads, 95 % intervals; dashed: by chance"
        if rows[0]["reading"] is not None:
            about = f"{told_view(series.last.manifest.parameters)}; {about}"
        return _dressed(alt.layer(layers, points, band, chance, mean), series, self.title, about)


def heads(series: Series) -> alt.LayerChart:
    """How many heads have each label: a row a label, a column a checkpoint."""
    names = _names(series)
    counted = Counter(
        (kind_of(row["label"]), names[row["checkpoint"]]) for row in series.labels.arrow.to_pylist()
    )
    shape = series.last.manifest.model
    most = math.log(shape.layers * shape.heads + 1)
    rows = [
        {"label": label, "at": at, "heads": heads, "light": math.log(heads + 1) > 0.55 * most}
        for (label, at), heads in counted.items()
    ]
    there = {row["label"] for row in rows}
    kinds = [label for label in (*(rule.name for rule in RULES), NOTHING.name) if label in there]
    base = alt.Chart(data(rows)).encode(
        x=_side_by_side(names, overlap=False), y=alt.Y("label:N", sort=kinds, title=None)
    )
    colour = alt.Color("heads:Q", scale=alt.Scale(scheme="viridis", type="log"), legend=None)
    shade = alt.condition("datum.light", alt.value("black"), alt.value("white"))
    chart = alt.layer(
        base.mark_rect().encode(color=colour),
        base.mark_text(fontSize=8).encode(text="heads:Q", color=shade),
    )
    about = (
        f"heads with each label, of {shape.layers * shape.heads}: counted, without intervals; "
        "a head has every label that fits"
    )
    return _dressed(chart, series, "What heads become", about, alt.Step(24), alt.Step(17))


def focus(series: Series) -> alt.LayerChart:
    """Where attention goes, over all heads."""
    shown = {
        "first_token": "first token",
        "separator": "separator",
        "previous_token": "previous token",
        "next_token": "next token",
        "own_token": "own token",
    }
    rows = [
        row | {"series": shown[row["quantity"]]}
        for quantity in shown
        for row in _rows(series, "focus", quantity)
        if row["level"] == "model"
    ]
    if not rows:
        raise CannotDraw("The series holds nothing for 'focus': its family shows no attention.")
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=list(shown.values()), range=COLOURS[: len(shown)]),
        legend=alt.Legend(title=None, orient="bottom", columns=3, symbolOpacity=1),
    )
    base = _charted(series, rows).encode(color=colour)
    axis = alt.Y("value:Q", title="share of attention", axis=alt.Axis(format=PERCENT))
    chart = alt.layer(
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(strokeWidth=1, strokeDash=[4, 3]).encode(y="chance:Q"),
        base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(y=axis),
    )
    return _dressed(
        chart, series, "Where attention goes", f"all heads; {INTERVALS}; dashed: by chance"
    )


FIGURES: Mapping[str, Figure] = {
    "heads": heads,
    "focus": focus,
    "centralisation": ByLayer(
        "focus", "attended_columns", "tokens attended (effective)", "Attention centralises"
    ),
    "range": ByLayer("range", "mean_distance", "mean distance (tokens)", "Range of the high pairs"),
    "sentence": ByLayer(
        "sentence", "same_sentence", "same-sentence lift (× chance)", "Pairs within one sentence",
        lift=True,
    ),
    "repetition": ByLayer(
        "repetition", "same_content_word", "repeated content words (× chance)", "Repetition",
        lift=True,
    ),
    "uniqueness": ByLayer(
        "anchor", "word_uniqueness_in_layer", "distinct anchors / heads", "Each head its own token",
        percent=True,
    ),
    "noise": ByLayer("noise", "unrelated", "unrelated high pairs", "Noise", percent=True),
    "snr": ByLayer("noise", "snr", "SNR (standard deviations)", "Signal to noise"),
}  # fmt: skip


def kind_of(label: str) -> str:
    """A label without the word that an anchor is of."""
    return label.split(":")[0]


def _rows(series: Series, measure: str, quantity: str) -> Rows:
    """Rows of layers and of the model in the view that is told."""
    view = told_view(series.last.manifest.parameters)
    table = series.measures.arrow
    chosen = pc.and_(
        pc.and_(pc.equal(table["measure"], measure), pc.equal(table["quantity"], quantity)),
        pc.not_equal(table["level"], "head"),
    )
    return [row for row in table.filter(chosen).to_pylist() if view.has(row)]


def _names(series: Series) -> dict[str, str]:
    """What each checkpoint is called on an axis: its step, where its name says one of its own."""
    times = Counter(series.steps)
    return {
        name: name if step is None or times[step] > 1 else f"{step:,}"
        for name, step in zip(series.studies, series.steps, strict=True)
    }


def _charted(series: Series, rows: Rows) -> alt.Chart:
    """Rows over training, by their steps where every checkpoint has one of its own."""
    steps, names = series.steps, _names(series)
    if None in steps or len(set(steps)) < max(len(steps), 2):
        rows = [row | {"at": names[row["checkpoint"]]} for row in rows]
        return alt.Chart(data(rows)).encode(x=_side_by_side(names))
    known = [step for step in steps if step is not None]
    first = next(step for step in known if step > 0)  # from here on the scale is logarithmic
    scale = alt.Scale(type="symlog", constant=first, domain=[known[0], known[-1]], nice=False)
    axis = alt.Axis(values=known, format=",d", labelAngle=-40, labelOverlap="greedy")
    return alt.Chart(data(rows)).encode(
        x=alt.X("step:Q", title="step of training", scale=scale, axis=axis)
    )


def _side_by_side(names: Mapping[str, str], overlap: Literal["greedy"] | bool = "greedy") -> alt.X:
    axis = alt.Axis(labelAngle=-40, labelOverlap=overlap, labelLimit=120)
    return alt.X("at:O", sort=list(names.values()), title="checkpoint", axis=axis)


def _depth(rows: Rows) -> alt.Legend:
    most = max((row["layer"] or 1 for row in rows), default=1)
    return alt.Legend(title="layer", values=sorted({1, (most + 1) // 2, most}), format="d")


def _dressed(
    chart: Any,
    series: Series,
    title: str,
    about: str,
    width: Any = WIDTH,
    height: Any = HEIGHT,
) -> alt.LayerChart:
    names, corpus = list(series.studies), series.last.manifest.corpus
    named = (
        f"{len(names)} checkpoints, {names[0]} to {names[-1]}, on {corpus.name}: "
        f"{corpus.documents:,} documents, {corpus.tokens:,} tokens"
    )
    title = f"{title} over training"
    return dressed(chart, series.last, title, width, height, about, named=named)
