"""Draws what became of the heads along training, for docs/how-heads-come-to-be.md.

    python training/draw.py docs/how-heads-come-to-be

From `checkpoints.json`, which `heads.py` wrote, and `log.jsonl` beside this file. Needs headscope
for the look of its charts only.
"""

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt

from headscope.drawing import COLOURS, HEIGHT, WIDTH, data, save

HERE = Path(__file__).parent
ROWS = json.loads((HERE / "checkpoints.json").read_text())
LOG = [json.loads(line) for line in (HERE / "log.jsonl").read_text().splitlines()]
STEPS = [row["step"] for row in ROWS]
EVEN = 1 / 128  # attention on one token of 128 by chance
Row = dict[str, Any]


def training() -> alt.X:
    """Steps, close together at the end and apart at the beginning, marked where heads were seen."""
    scale = alt.Scale(type="symlog", constant=100, domain=[0, STEPS[-1]])
    labels = alt.Axis(values=STEPS[:-1], format=",d", labelAngle=-40)
    return alt.X("step:Q", scale=scale, axis=labels, title="step of training")


def lines(rows: list[Row], axis: str, title: str, percent: bool = False) -> Any:
    """A line for each series, chance dashed."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    legend = alt.Legend(title=None, orient="bottom", columns=2, labelLimit=280, symbolOpacity=1)
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=COLOURS), legend=legend)
    base = alt.Chart(data(rows)).encode(x=training(), color=colour)
    form = alt.Axis(format=".0%" if percent else ",.3~r")
    value = alt.Y("value:Q", title=axis, axis=form, scale=alt.Scale(zero=True))
    drawn = base.mark_line(point=alt.OverlayMarkDef(size=26)).encode(y=value)
    if "chance" not in rows[0]:
        return dressed(alt.layer(drawn), title, "held-out text")
    chance = base.mark_line(strokeDash=[4, 3], strokeWidth=1).encode(y="chance:Q")
    return dressed(alt.layer(chance, drawn), title)


def by_layer(name: str, axis: str, title: str, chance: float, percent: bool = False) -> Any:
    """A line a layer, in the colour of its depth, chance dashed."""
    rows = [
        {"step": row["step"], "layer": layer, "value": value, "chance": chance}
        for row in ROWS
        for layer, value in enumerate(row[name], 1)
    ]
    base = alt.Chart(data(rows)).encode(x=training())
    depth = alt.Color(
        "layer:Q",
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(title="layer", values=[1, 6, 12], format="d"),
    )
    form = alt.Axis(format=".0%" if percent else ",.3~r")
    value = alt.Y("value:Q", title=axis, axis=form, scale=alt.Scale(zero=True))
    drawn = base.mark_line(strokeWidth=1.5, point=alt.OverlayMarkDef(size=18)).encode(
        y=value, color=depth, detail="layer:N"
    )
    even = base.mark_line(strokeDash=[4, 3], strokeWidth=1, color="black").encode(y="chance:Q")
    return dressed(alt.layer(even, drawn), title)


PAIRS = f"{ROWS[0]['texts']} held-out pairs of 128 tokens; dashed: by chance"


def dressed(chart: Any, title: str, sample: str = PAIRS) -> Any:
    words = alt.TitleParams(
        title,
        subtitle=f"the specimen, {len(ROWS)} checkpoints; {sample}",
        subtitleFontSize=9,
        anchor="start",
        offset=8,
    )
    return (
        chart.properties(width=WIDTH, height=HEIGHT, title=words)
        .configure(font="Helvetica, Arial, sans-serif")
        .configure_axis(labelFontSize=10, titleFontSize=11, titleFontWeight="normal", grid=False)
        .configure_title(fontSize=13, subtitleColor="#555")
        .configure_view(stroke=None)
    )


def losses() -> Iterator[Row]:
    for row in LOG:
        if row.get("run") == "main" and "step" in row:
            series = "held-out, training's mixture of lengths"
            yield {"step": row["step"], "series": series, "value": row["held_out"]}
    for row in ROWS:
        series = "held-out, 128 tokens, at the checkpoints"
        yield {"step": row["step"], "series": series, "value": row["masked_loss_128"]}


def best(**names: str) -> list[Row]:
    """The head with most of each kind of attention."""
    return [
        {"step": row["step"], "series": words, "value": row[f"best_{name}"][2], "chance": EVEN}
        for name, words in names.items()
        for row in ROWS
    ]


def order() -> list[Row]:
    """How much of its way from the first to the last checkpoint each has come."""
    ways = {
        "loss at 128 tokens": [row["masked_loss_128"] for row in ROWS],
        "most on a neighbour, one head": [
            max(row["best_previous"][2], row["best_next"][2]) for row in ROWS
        ],
        "most on separators, one head": [row["best_separator"][2] for row in ROWS],
        "most on the first token, one layer": [max(row["first_token_by_layer"]) for row in ROWS],
    }
    return [
        {"step": step, "series": name, "value": (value - way[0]) / (way[-1] - way[0])}
        for name, way in ways.items()
        for step, value in zip(STEPS, way, strict=True)
    ]


FIGURES = {
    "loss": lambda: lines(list(losses()), "masked loss (nats)", "The loss"),
    "positional": lambda: lines(
        best(previous="on the token before", next="on the token after"),
        "attention, strongest head",
        "Positional heads",
        percent=True,
    ),
    "separators": lambda: by_layer(
        "separator_over_chance_by_layer", "on separators (× chance)", "Attention on separators", 1.0
    ),
    "first-token": lambda: by_layer(
        "first_token_by_layer",
        "attention on the first token",
        "The first token",
        EVEN,
        percent=True,
    ),
    "entropy": lambda: by_layer(
        "entropy_by_layer", "entropy of attention (nats)", "How spread attention is", math.log(128)
    ),
    "order": lambda: lines(order(), "share of the way to the end", "In which order", percent=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        save(draw(), args.out / f"{name}.svg")


if __name__ == "__main__":
    main()
