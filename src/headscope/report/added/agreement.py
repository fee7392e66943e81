"""What the report shows of the agreement of heads."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from headscope.drawing import data, dressed
from headscope.errors import CannotDraw
from headscope.markup import Content, h
from headscope.report.added.section import AddedFigure, Section, read_for

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]
LISTED = 8  # clusters that the report lists


def head_map(study: "Study") -> alt.LayerChart:
    """Heads on a plane: near each other where they do the same."""
    rows = study.table("head_map").to_pylist()
    for row in rows:
        row["name"] = f"{row['layer']}–{row['head']}"
    _refuse_nothing(rows)
    (left, right), (below, above) = _ends(rows, "x"), _ends(rows, "y")
    base = alt.Chart(data(rows)).encode(
        x=alt.X("x:Q", scale=alt.Scale(domain=[left, right], nice=False), axis=None),
        y=alt.Y("y:Q", scale=alt.Scale(domain=[below, above], nice=False), axis=None),
    )
    points = base.mark_point(filled=True, size=150, opacity=0.9).encode(
        color=alt.Color(
            "layer:Q",
            scale=alt.Scale(scheme="viridis"),
            legend=alt.Legend(title="layer", format="d", tickMinStep=1),
        ),
        tooltip=["name:N"],
    )
    late = max(row["layer"] for row in rows) * 0.6
    words = base.mark_text(fontSize=6).encode(
        text="name:N",
        color=alt.condition(f"datum.layer > {late}", alt.value("black"), alt.value("white")),
    )
    about = f"the plane shows {rows[0]['shown']:.0%} of all differences; " + _read(study)
    width = 520  # and as much of the plane in a pixel upwards as across
    height = max(120, round(width * (above - below) / (right - left)))
    return dressed(alt.layer(points, words), study, "Heads that do the same", width, height, about)


def _ends(rows: list[Row], axis: str) -> tuple[float, float]:
    """Where an axis of the map begins and ends: a little beyond the outermost heads."""
    values = [row[axis] for row in rows]
    beyond = 0.05 * max(max(values) - min(values), 1e-6)
    return min(values) - beyond, max(values) + beyond


def layers(study: "Study") -> alt.LayerChart:
    """How much the heads of two layers agree."""
    pairs = defaultdict(list)
    for row in study.table("head_pairs").to_pylist():
        if row["agreement"] is not None:
            pairs[row["first_layer"], row["second_layer"]].append(row["agreement"])
    _refuse_nothing(list(pairs))
    cells = {}
    for (one, other), values in pairs.items():
        cells[one, other] = cells[other, one] = float(np.mean(values))
    most = max(cells.values())
    rows = [
        {
            "first": one,
            "second": other,
            "agreement": value,
            "text": f"{value:.2f}".removeprefix("0"),
            "light": value > 0.55 * most,
        }
        for (one, other), value in cells.items()
    ]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("first:O", title="layer", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("second:O", title="layer"),
    )
    colour = alt.Color(
        "agreement:Q",
        scale=alt.Scale(scheme="viridis"),
        legend=alt.Legend(title=["mean", "agreement"], format=".2~f"),
    )
    words = base.mark_text(fontSize=8).encode(
        text="text:N",
        color=alt.condition("datum.light", alt.value("black"), alt.value("white")),
    )
    drawn = alt.layer(base.mark_rect().encode(color=colour), words)
    title = "How much the heads of two layers agree"
    return dressed(drawn, study, title, alt.Step(25), alt.Step(17), _read(study))


def _read(study: "Study") -> str:
    return read_for(study, "agreement")


def _refuse_nothing(rows: list[Any]) -> None:
    if not rows:
        raise CannotDraw("No two heads could be compared: the model has one head.")


def _clusters(study: "Study") -> list[Content]:
    """The largest clusters, and how alone the other heads are."""
    members = defaultdict(list)
    for row in study.table("head_map").to_pylist():
        members[row["cluster"]].append(f"{row['layer']}–{row['head']}")
    joined = {number: own for number, own in members.items() if len(own) > 1}
    alone = len(members) - len(joined)
    said = (
        f"{len(joined)} clusters of heads that agree by ½ or more on average; {alone} heads are in "
        "none."
    )
    listed = [
        h("li", None, h("b", None, f"{len(own)} heads"), f": {', '.join(own)}")
        for _, own in sorted(joined.items())[:LISTED]
    ]
    return [h("p", None, said), h("ul", None, listed)] if listed else [h("p", None, said)]


SECTION = Section(
    "agreement",
    "Heads that do the same",
    "Two heads agree as far as their similarity matrices do: 1 where both bring the same tokens "
    "together, whatever directions their vectors take, 0 where they have no more to do with each "
    "other than if the tokens of one were permuted. On the map heads that agree are near each "
    "other; those in the middle differ in ways that a plane does not show. A click on a head leads "
    "to its card.",
    {
        "head_map": AddedFigure(head_map, ("agreement_with_closest",)),
        "layers_agree": AddedFigure(layers, ("agreement_with_model",)),
    },
    _clusters,
)
