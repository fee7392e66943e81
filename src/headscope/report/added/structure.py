"""What the report shows of how heads find what people have annotated."""

from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.drawing import COLOURS, INTERVALS, data, dressed, map_of_heads
from headscope.errors import CannotDraw
from headscope.markup import Content, h
from headscope.report.added.section import AddedFigure, Section

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]
MOST = 24  # relations in the chart
SIGNALS = {
    "raw": "similarity",
    "cosine": "cosine",
    "centred": "centred",
    "attention_to": "attention",
    "attention_from": "attention back",
}
WORDS = 50  # asked in both halves; a relation with fewer is not drawn


def relations(study: "Study") -> alt.LayerChart:
    """The best head of each relation, beside its distances and the best rule without a head."""
    rows = _best(study)
    if not rows:
        raise CannotDraw(f"No relation in the gold of '{study.path}' has {WORDS} words.")
    series = {
        "value": "best head",
        "matched": "by its distances alone",
        "baseline_value": "best rule without a head",
    }
    points = [
        {"relation": row["name"], "share": row[name], "series": said, "order": place}
        for place, row in enumerate(rows)
        for name, said in series.items()
    ]
    names = list(series.values())
    wide = alt.Axis(labelLimit=320)
    where = alt.Y("relation:N", sort=[row["name"] for row in rows], title=None, axis=wide)
    share = alt.X("share:Q", title="words whose mate is found", axis=alt.Axis(format=".0%"))
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=280)
    dots = (
        alt.Chart(data(points))
        .mark_point(filled=True, size=55, opacity=1)
        .encode(
            x=share,
            y=where,
            color=alt.Color(
                "series:N", scale=alt.Scale(domain=names, range=COLOURS[:3]), legend=legend
            ),
            shape=alt.Shape(
                "series:N",
                scale=alt.Scale(domain=names, range=["circle", "diamond", "triangle-up"]),
                legend=legend,
            ),
        )
    )
    reach = [{"relation": row["name"], "low": row["low"], "high": row["high"]} for row in rows]
    lines = (
        alt.Chart(data(reach))
        .mark_rule(color=COLOURS[0])
        .encode(x=alt.X("low:Q", title="words whose mate is found"), x2="high:Q", y=where)
    )
    about = f"{_read(study)}; {INTERVALS}"
    title = "What the best heads find"
    drawn = dressed(alt.layer(lines, dots), study, title, height=alt.Step(17), about=about)
    # Names are longer in some fonts than in the one they are laid out in.
    return drawn.properties(padding={"left": 40, "top": 5, "right": 20, "bottom": 5})


def map_of_arcs(study: "Study") -> alt.LayerChart:
    """What each head's attention finds of all dependencies."""
    return _map(study, "arcs_by_attention", "dependencies found\n(attention to)")


def map_of_mentions(study: "Study") -> alt.LayerChart:
    """What each head's similarities find of mentions of the same."""
    return _map(study, "mentions_by_similarity", "mentions found\n(cosine)")


def _map(study: "Study", quantity: str, legend: str) -> alt.LayerChart:
    rows = [
        {"layer": row["layer"], "head": row["head"], "shown": row["value"], "text": ""}
        for row in study.table("structure_heads").to_pylist()
        if row["quantity"] == quantity
    ]
    if not rows:
        raise CannotDraw(f"The gold that '{study.path}' was given has no such marks ({quantity}).")
    about = f"{_read(study)}; 95 % intervals in the study"
    title = legend.replace("\n", " ").capitalize()
    return map_of_heads(study, rows, legend, title, percent=True, about=about, pairs=False)


def _read(study: "Study") -> str:
    """From how much gold."""
    how = study.manifest.added["structure"]
    return f"from {how.documents:,} documents, {how.tokens:,} tokens of {how.parameters['gold']}"


def _best(study: "Study") -> list[Row]:
    """The relations asked for most, each with its best head and how it did."""
    rows = [
        row
        for row in study.table("structure_best").to_pylist()
        if row["best"] and row["count"] >= WORDS
    ]
    rows.sort(key=lambda row: -row["count"])
    rows = sorted(rows[:MOST], key=lambda row: (row["kind"] != "dependency", -row["value"]))
    return [
        row | {"name": f"{_relation(row)}  {_head(row)}, {SIGNALS[row['signal']]}"} for row in rows
    ]


def _relation(row: Row) -> str:
    """A dependency by its name; of the other kinds there is one relation each."""
    return str(row["relation"] if row["kind"] == "dependency" else row["kind"])


def _head(row: Row) -> str:
    return f"{row['layer']}–{row['head']}"


def _table(study: "Study") -> list[Content]:
    """The best heads with all their numbers."""
    names = ("relation", "head", "finds", "rule", "dist.")
    head = h("tr", None, [h("th", None, name) for name in names])
    body = [
        h(
            "tr",
            None,
            _cell(_relation(row), f"{row['count']:,} words"),
            _cell(_head(row), SIGNALS[row["signal"]]),
            _cell(_share(row["value"]), f"{_bare(row['low'])} … {_bare(row['high'])}"),
            _cell(_share(row["baseline_value"]), str(row["baseline"])),
            _cell(_share(row["matched"]), ""),
        )
        for row in _best(study)
    ]
    how = study.manifest.added["structure"].parameters
    said = (
        f"Heads and rules were chosen on {how['documents chosen on']} documents of {how['gold']}, "
        f"and these numbers are from {how['documents judged on']} others. A rule is the word so "
        "many places further on (of mentions: the mention), or those of the same spelling; "
        "distances are those of the head's own picks."
    )
    return [h("p", None, said), h("table", {"class": "facts"}, head, body)]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{_bare(value)} %"


def _bare(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def _cell(said: str, more: str) -> Content:
    return h("td", None, said, h("br"), h("small", None, more))


SECTION = Section(
    "structure",
    "What people have annotated",
    "How often the candidate with a head's largest signal is the one that people marked: the word "
    "that a word hangs on, another mention of the same thing, a word of the same name. A head that "
    "looks at the next word finds many; what the distances of its own picks would find by "
    "themselves stands beside it.",
    {
        "relations": AddedFigure(relations),
        "arcs": AddedFigure(map_of_arcs, ("arcs_by_attention",)),
        "mentions": AddedFigure(map_of_mentions, ("mentions_by_similarity",)),
    },
    _table,
)
