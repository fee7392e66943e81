"""Draws what became of the heads along two trainings, for docs/how-heads-come-to-be.md.

    python training/draw.py docs/how-heads-come-to-be

From the tables beside this file: `checkpoints.json` and `log.jsonl` of the training that made the
specimen, and in `again/` those of the second, with `heads.json`, which `series.py` wrote. Needs
headscope for the look of its charts only.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt

from headscope.drawing import COLOURS, HEIGHT, WIDTH, data, save

HERE = Path(__file__).parent
TRAININGS = {"first training": HERE, "second training": HERE / "again"}
MEASURED = {
    name: json.loads((folder / "checkpoints.json").read_text())
    for name, folder in TRAININGS.items()
}
SERIES = json.loads((HERE / "again" / "heads.json").read_text())
KINDS = {  # what the chart calls each label
    "previous token": "token before",
    "next token": "token after",
    "punctuation": "punctuation",
    "repetition": "repetition",
    "sentence": "sentence",
    "first-token sink": "first token",
    "separator sink": "separators",
}
EVEN = 1 / 128  # attention on one token of 128 by chance
PAIRS = "64 held-out pairs of 128 tokens"
ARTICLES = "40 WikiText articles"
Row = dict[str, Any]


def training(first: int = 100) -> alt.X:
    """Steps, close together at the end and apart at the beginning."""
    last = max(rows[-1]["step"] for rows in MEASURED.values())
    scale = alt.Scale(type="symlog", constant=first, domain=[0, last], nice=False)
    marked = [0, 100, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 10000, 20000, 30000]
    axis = alt.Axis(values=marked, format=",d", labelAngle=-40)
    return alt.X("step:Q", scale=scale, axis=axis, title="step of training")


def legend(columns: int) -> alt.Legend:
    return alt.Legend(title=None, orient="bottom", columns=columns, labelLimit=280, symbolOpacity=1)


def dressed(chart: Any, title: str, sample: str) -> Any:
    words = alt.TitleParams(title, subtitle=sample, subtitleFontSize=9, anchor="start", offset=8)
    return (
        chart.properties(title=words)
        .configure(font="Helvetica, Arial, sans-serif")
        .configure_axis(labelFontSize=10, titleFontSize=11, titleFontWeight="normal", grid=False)
        .configure_title(fontSize=13, subtitleColor="#555")
        .configure_view(stroke=None)
    )


def both(rows: list[Row], axis: str, title: str, sample: str, chance: float | None = None) -> Any:
    """A colour for each quantity; the second training dashed."""
    names = list(dict.fromkeys(row["series"] for row in rows))
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=COLOURS),
        legend=legend(2) if len(names) > 1 else None,
    )
    dash = alt.StrokeDash(
        "training:N",
        scale=alt.Scale(domain=list(TRAININGS), range=[[1, 0], [5, 3]]),
        legend=alt.Legend(title=None, orient="top", columns=2),
    )
    form = alt.Axis(format=",.3~r" if chance is None else ".0%")
    value = alt.Y("value:Q", title=axis, axis=form, scale=alt.Scale(zero=True))
    base = alt.Chart(data(rows)).encode(x=training(), y=value, color=colour)
    lines = [base.mark_line(strokeWidth=1.6).encode(strokeDash=dash, detail="training:N")]
    if chance is not None:
        lines.append(base.mark_circle(size=22))
        even = alt.Chart(data([{"chance": chance}])).mark_rule(strokeDash=[1, 2])
        lines.append(even.encode(y="chance:Q"))
        sample = f"{sample}; dotted: by chance, of one token"
    return dressed(alt.layer(*lines).properties(width=WIDTH, height=HEIGHT), title, sample)


def loss() -> Any:
    def rows() -> Iterator[Row]:
        for name, folder in TRAININGS.items():
            log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
            for row in log:
                if row.get("run") == "main":
                    of = {"training": name, "series": "loss"}
                    yield of | {"step": row["step"], "value": row["held_out"]}

    sample = "held-out text, training's mixture of lengths"
    return both(list(rows()), "masked loss (nats)", "The loss", sample)


def strongest(names: dict[str, str]) -> list[Row]:
    """The head, or for the first token the layer, with most of each kind of attention."""
    return [
        {
            "training": training_name,
            "step": row["step"],
            "series": words,
            "value": row[name][2] if name.startswith("best") else max(row[name]),
        }
        for name, words in names.items()
        for training_name, rows in MEASURED.items()
        for row in rows
    ]


def positional() -> Any:
    names = {"best_previous": "on the token before", "best_next": "on the token after"}
    rows = strongest(names)
    return both(rows, "attention, strongest head", "Positional heads", PAIRS, EVEN)


def sinks() -> Any:
    names = {
        "best_separator": "on the two separators, strongest head",
        "first_token_by_layer": "on the first token, strongest layer",
    }
    return both(strongest(names), "attention", "Separators and the first token", PAIRS, EVEN)


def surest(quantity: str, axis: str, title: str, threshold: float) -> Any:
    """Of pairs: all heads together and the surest head, with intervals."""
    rows = []
    for row in SERIES:
        found = row[quantity]
        told = {"the surest head": found["surest"][2:], "all heads": found["all"]}
        if "identity" in found:
            told["all heads, attention on itself alone"] = [found["identity"], None, None]
        for name, (value, low, high) in told.items():
            ends = {"value": value, "low": low, "high": high}
            rows.append({"step": row["step"], "series": name} | ends)
    names = list(dict.fromkeys(row["series"] for row in rows))
    colours = [COLOURS[1], "#000000", COLOURS[0]][: len(names)]
    colour = alt.Color("series:N", scale=alt.Scale(domain=names, range=colours), legend=legend(2))
    base = alt.Chart(data(rows)).encode(x=training(), color=colour)
    scale = alt.Scale(zero=threshold > 2, nice=False)
    value = alt.Y("value:Q", title=axis, axis=alt.Axis(format=",.3~r"), scale=scale)
    rules = [
        alt.Chart(data([{"at": at}])).mark_rule(strokeDash=dash).encode(y="at:Q")
        for at, dash in ((1.0, [1, 2]), (threshold, [5, 3]))
    ]
    chart = alt.layer(
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=axis), y2="high:Q"),
        *rules,
        base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(y=value),
    )
    sample = [
        f"second training; {ARTICLES}; 95 % intervals",
        f"dotted: by chance; dashed: what a label needs ({threshold:.3g}), by its interval",
    ]
    return dressed(chart.properties(width=WIDTH, height=HEIGHT), title, sample)


def focus() -> Any:
    """Where the attention of all heads goes, with intervals."""
    told = {
        "comma": "commas",
        "sentence_end": "ends of sentences",
        "separator": "the separator",
        "first_token": "the first token",
    }
    rows = []
    for row in SERIES:
        for name, words in told.items():
            ends = dict(zip(("value", "low", "high"), row[name]["all"], strict=True))
            rows.append({"step": row["step"], "series": words} | ends)
    colour = alt.Color(
        "series:N", scale=alt.Scale(domain=list(told.values()), range=COLOURS), legend=legend(4)
    )
    base = alt.Chart(data(rows)).encode(x=training(), color=colour)
    axis = "attention of all heads"
    value = alt.Y("value:Q", title=axis, axis=alt.Axis(format=".0%"))
    chart = alt.layer(
        base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=axis), y2="high:Q"),
        base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(y=value),
    )
    chance = [f"{words} {SERIES[0][name]['chance']:.1%}" for name, words in told.items()]
    sample = [
        f"second training; {ARTICLES}; 95 % intervals",
        f"by chance: {', '.join(chance)}",
    ]
    return dressed(chart.properties(width=WIDTH, height=HEIGHT), "Where attention goes", sample)


def order() -> Any:
    """The loss above, and below it how many heads of each kind there are at each checkpoint."""
    at = alt.X(
        "at:O",
        scale=alt.Scale(domain=[f"{row['step']:,}" for row in SERIES]),
        title="step of training",
        axis=alt.Axis(labelAngle=-40),
    )
    losses = [
        {"at": f"{row['step']:,}", "loss": row["masked_loss_128"]}
        for row in MEASURED["second training"]
    ]
    base = alt.Chart(data(losses)).encode(
        x=at.copy().title(None).axis(None), y=alt.Y("loss:Q", title="masked loss (nats)")
    )
    words = base.mark_text(dy=-9, fontSize=8).encode(text=alt.Text("loss:Q", format=".2f"))
    step = alt.Step(26)
    above = alt.layer(base.mark_line(point=True), words).properties(width=step, height=100)
    counts = [
        {"at": f"{row['step']:,}", "kind": kind, "heads": row["labels"][label]}
        for row in SERIES
        for label, kind in KINDS.items()
        if label in row["labels"]
    ]
    kinds = alt.Y("kind:N", scale=alt.Scale(domain=list(KINDS.values())), title=None)
    base = alt.Chart(data(counts)).encode(x=at, y=kinds)
    most = max(row["heads"] for row in counts)
    paler = alt.Scale(type="symlog", scheme="blues", domain=[0, 20 * most])
    cells = base.mark_rect().encode(color=alt.Color("heads:Q", scale=paler, legend=None))
    numbers = base.mark_text(fontSize=9).encode(text="heads:Q")
    below = alt.layer(cells, numbers).properties(width=step, height=alt.Step(18))
    sample = [
        f"second training: loss at 128 tokens of held-out text, and heads with each label, of 144,"
        f" on {ARTICLES}",
        "checkpoints side by side, not to scale",
    ]
    return dressed(alt.vconcat(above, below, spacing=6), "In which order", sample)


FIGURES = {
    "order": order,
    "loss": loss,
    "positional": positional,
    "focus": focus,
    "sinks": sinks,
    "repetition": lambda: surest(
        "same_content_word", "repeated content words (× chance)", "Repetition", 5
    ),
    "sentence": lambda: surest(
        "same_sentence_matched",
        "in one sentence (× what distance explains)",
        "Pairs within one sentence",
        1.15,
    ),
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
