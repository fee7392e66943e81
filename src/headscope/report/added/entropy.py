"""What the report shows of entropy by layer."""

import math
from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.drawing import lines_by_layer
from headscope.markup import Content, h
from headscope.report.added.section import AddedFigure, Section

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]
CONFUSED = 12  # pairs of types that the report lists
FEWEST = 3  # times that one was answered for the other


def uncertainty(study: "Study") -> alt.LayerChart:
    """How sure each layer is of its answers, and how far they are from the truth."""
    names = {"answer_loss": "loss", "answer_entropy": "entropy"}
    return lines_by_layer(study, _rows(study, names), "nats per answer", "Entropy by layer")


def accuracy(study: "Study") -> alt.LayerChart:
    """How often each layer is right, by what is asked for."""
    names = {
        "accuracy": "all",
        "accuracy_content": "content words",
        "accuracy_function": "function words",
        "accuracy_punctuation": "punctuation",
        "accuracy_per_type": "mean of types",
    }
    title = "Right answers by layer"
    return lines_by_layer(study, _rows(study, names), "right answers", title, percent=True)


def _rows(study: "Study", names: dict[str, str]) -> list[Row]:
    found = [
        row | {"series": names[row["quantity"]], "layer": row["layer"] or 0}
        for row in study.table("entropy").to_pylist()
        if row["quantity"] in names
    ]
    return sorted(found, key=lambda row: (list(names).index(row["quantity"]), row["layer"]))


def _confused(study: "Study") -> list[Content]:
    """Which types the last layer takes for which, those that stand out most."""
    rows = [row for row in study.table("confusions").to_pylist() if row["count"] >= FEWEST]
    rows.sort(key=lambda row: -row["count"] * math.log(row["lift"]))  # as a test of chance would
    if not rows:
        return []
    head = h("tr", None, [h("th", None, name) for name in ("asked for", "answered", "how often")])
    body = [
        h(
            "tr",
            None,
            h("td", None, row["type"]),
            h("td", None, row["answer"]),
            h(
                "td",
                None,
                f"{row['count']:,} of {row['asked']:,}",
                h("small", None, f" {row['lift']:.1f} × chance"),
            ),
        )
        for row in rows[:CONFUSED]
    ]
    return [
        h("p", None, "What the last layer takes for what, of the types asked for most:"),
        h("table", {"class": "facts"}, head, body),
    ]


SECTION = Section(
    "entropy",
    "Entropy by layer",
    "What each layer would answer if it were the last: its hidden state put through the model's "
    "own language head, which was never trained to read it. Layer 0 stands for the embeddings: "
    "they know of a masked token where it stands, and of a next token the one before. Where "
    "entropy is below loss, a layer is surer than it is right.",
    {
        "entropy": AddedFigure(uncertainty, ("answer_loss", "answer_entropy")),
        "accuracy": AddedFigure(accuracy, ("accuracy", "accuracy_per_type")),
    },
    _confused,
)
