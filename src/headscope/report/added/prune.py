"""What the report shows of pruning."""

from typing import TYPE_CHECKING

import altair as alt

from headscope.drawing import COLOURS, data, dressed
from headscope.report.added.section import AddedFigure, Section, read_for

if TYPE_CHECKING:
    from headscope.study.folder import Study

GREY = "#9AA3AA"


def pruning(study: "Study") -> alt.LayerChart:
    """The loss as heads are taken away, in several orders; random ones in grey."""
    rows = [
        row | {"line": row["order"] if row["seed"] is None else f"{row['order']} {row['seed']}"}
        for row in study.table("pruning").to_pylist()
    ]
    names = list(dict.fromkeys(row["order"] for row in rows))
    colours = {name: GREY if name == "random" else COLOURS[n % 7] for n, name in enumerate(names)}
    base = alt.Chart(data(rows)).encode(
        x=alt.X("removed:Q", title="share of heads taken away", axis=alt.Axis(format=".0%")),
        color=alt.Color(
            "order:N",
            scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
            legend=alt.Legend(title="first to go by", orient="right"),
        ),
        detail="line:N",
    )
    how = study.manifest.added["prune"].parameters
    title = f"loss ({how['loss']})"
    band = base.mark_area(opacity=0.12).encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    lines = base.mark_line(point=alt.OverlayMarkDef(size=18)).encode(
        y=alt.Y("loss:Q", title=title, scale=alt.Scale(zero=False))
    )
    about = read_for(study, "prune").replace("in the study", "shaded")
    return dressed(alt.layer(band, lines), study, "How far heads can be pruned", about=about)


SECTION = Section(
    "prune",
    "How far it can be pruned",
    "Heads are taken away together, more and more of them, in the order of what the study says of "
    "each, and the model is asked the same questions again. Noise: those with most unrelated high "
    "pairs go first. SNR, effect, gradient: the smallest first. Depth: the last layers first. An "
    "order says something if its line lies below the random ones, and something that depth does "
    "not say if it lies below that too.",
    {"pruning": AddedFigure(pruning, ("pruned_loss", "pruned_cost"))},
)
