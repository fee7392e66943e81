"""What the report shows of head effects."""

from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.drawing import data, dressed, map_of_heads
from headscope.effects.replacing import TO
from headscope.errors import CannotDraw
from headscope.markup import Content, h
from headscope.report.added.section import AddedFigure, Section, read_for
from headscope.report.findings import claims_table
from headscope.study.told import told_claims, told_view

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]


def effect(study: "Study") -> alt.LayerChart:
    """What silencing each head costs; a star where its interval lies above or below 0."""
    name = _first(study)
    rows = [
        {"layer": row["layer"], "head": row["head"], "shown": row["value"], "text": _sure(row)}
        for row in _rows(study, name)
    ]
    about = f"{read_for(study, 'effects')}; + or −: surely so"
    title = f"What putting a head to {name.removesuffix('_effect')} costs"
    return map_of_heads(study, rows, _unit(study), title, about=about, pairs=False)


def effect_gradient(study: "Study") -> alt.LayerChart:
    """The effect of every head beside what the gradient says of it."""
    name = _first(study)
    gradient = {(row["layer"], row["head"]): row for row in _rows(study, "gradient")}
    if not gradient:
        raise CannotDraw("A loss of your own has no gradient beside its effects.")
    rows = [
        {**row, "gradient": gradient[row["layer"], row["head"]]["value"]}
        for row in _rows(study, name)
    ]
    base = alt.Chart(data(rows)).encode(
        x=alt.X("gradient:Q", title=["|z·∂loss/∂z|"], axis=alt.Axis(format=",.2~r")),
        color=alt.Color(
            "layer:Q", scale=alt.Scale(scheme="viridis"), legend=alt.Legend(title="layer")
        ),
    )
    title = f"{name.replace('_', ' ')}, {_unit(study)}"
    points = base.mark_circle(size=26, opacity=0.9).encode(y=alt.Y("value:Q", title=title))
    spans = base.mark_rule(opacity=0.5).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    (rho,) = [
        row for row in study.table("effects").to_pylist() if row["quantity"] == "gradient_agreement"
    ] or [None]
    said = (
        ""
        if rho is None
        else f"; Spearman's ρ {rho['value']:.2f} [{rho['low']:.2f}, {rho['high']:.2f}]"
    )
    about = f"{read_for(study, 'effects').replace('in the study', 'shown')}{said}"
    return dressed(alt.layer(spans, points), study, "The gradient beside silencing", about=about)


def _first(study: "Study") -> str:
    """The effect that is shown: of the first thing that z was put to."""
    there = set(study.table("effects")["quantity"].to_pylist())
    return next(f"{one}_effect" for one in TO if f"{one}_effect" in there)


def _rows(study: "Study", quantity: str) -> list[Row]:
    return [row for row in study.table("effects").to_pylist() if row["quantity"] == quantity]


def _unit(study: "Study") -> str:
    loss = study.manifest.added["effects"].parameters["loss"]
    return {"masked": "nats (per masked token)", "causal": "nats (per token)"}.get(loss, loss)


def _sure(row: Row) -> str:
    if row["low"] is None:
        return ""
    return "+" if row["low"] > 0 else "−" if row["high"] < 0 else ""


def _claims(study: "Study") -> list[Content]:
    """What goes along with the effect, as claims with verdicts."""
    if "effect_findings" not in study.manifest.added["effects"].tables:
        return []
    view = told_view(study.manifest.parameters)
    claims = told_claims(study.table("effect_findings").to_pylist(), view)
    return [
        h(
            "p",
            None,
            "Does what a head looks like say what it is worth? Heads are compared with heads of "
            "their own layer; a claim has to exceed what effects in random order within the "
            "layers give. Thresholds and statistics are ours.",
        ),
        claims_table(claims, view),
    ]


def effect_correlations(study: "Study") -> alt.LayerChart:
    """Which quantities go along with the effect: over all heads, and within layers."""
    view = told_view(study.manifest.parameters)
    rows = []
    for row in study.table("effect_correlations").to_pylist():
        if not view.has(row) or row["rho"] is None:
            continue
        name = row["quantity"].replace("_", " ")
        for series, keys in (
            ("all heads", ("rho", "low", "high")),
            ("within layers", ("within", "within_low", "within_high")),
        ):
            value, low, high = (row[key] for key in keys)
            if value is not None:
                rows.append(
                    {"quantity": name, "series": series, "value": value, "low": low, "high": high}
                )
    inside = {row["quantity"]: row["value"] for row in rows if row["series"] == "within layers"}
    order = sorted(inside, key=lambda name: inside[name])
    order += sorted({row["quantity"] for row in rows} - set(inside))
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("quantity:N", sort=order, title=None),
        color=alt.Color(
            "series:N",
            scale=alt.Scale(domain=["all heads", "within layers"], range=["#B0B7BD", "#0072B2"]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
    )
    rho = "Spearman's ρ with the effect of silencing"
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=rho), x2="high:Q")
    points = base.mark_point(filled=True, size=40).encode(x=alt.X("value:Q", title=rho))
    line = alt.Chart(data([{"at": 0}])).mark_rule(strokeDash=[4, 3]).encode(x="at:Q")
    about = f"{view}; {read_for(study, 'effects').replace('in the study', 'shown')}"
    title = "What goes along with what a head is worth"
    return dressed(alt.layer(line, spans, points), study, title, height=alt.Step(13), about=about)


SECTION = Section(
    "effects",
    "What heads are worth",
    "Each head was silenced in turn: its vectors were put to zero, or to what they are on average "
    "or in another text, and the model was asked the same questions about the same texts. The "
    "change of its loss is what the head is worth to it, alone: heads that can stand in for each "
    "other cost little one by one.",
    {
        "effects": AddedFigure(effect, ("zero_effect",)),
        "gradient": AddedFigure(effect_gradient, ("gradient", "gradient_agreement")),
        "predicts": AddedFigure(effect_correlations),
    },
    _claims,
    wide=True,
)
