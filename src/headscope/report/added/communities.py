"""What the report shows of the communities of tokens that heads make."""

from typing import TYPE_CHECKING, Any

import altair as alt

from headscope.drawing import COLOURS, data, dressed, lines_by_layer
from headscope.report.added.section import AddedFigure, Section, read_for

if TYPE_CHECKING:
    from headscope.study.folder import Study

Row = dict[str, Any]


def energies(study: "Study") -> alt.LayerChart:
    """How clearly tokens are in communities."""
    names = {"community_energy": "text", "shuffled_energy": "its tokens in random order"}
    title = "Energy of communities"
    return lines_by_layer(study, _layers(study, names), "E / Σ|C|", title)


def sentences(study: "Study") -> alt.LayerChart:
    """Whether communities keep to sentences, beside what their sizes and distances alone give."""
    names = {
        "communities_as_sentences": "communities",
        "blocks_as_sentences": "unbroken blocks of their sizes",
        "shuffled_as_sentences": "communities, tokens in random order",
    }
    title = "Do communities keep to sentences?"
    return lines_by_layer(study, _layers(study, names), "adjusted mutual information", title)


def word_classes(study: "Study") -> alt.LayerChart:
    """What else communities are: classes of words."""
    names = {
        "communities_as_word_classes": "content, function, punctuation",
        "communities_as_sentences": "sentences",
    }
    title = "What communities agree with"
    return lines_by_layer(study, _layers(study, names), "adjusted mutual information", title)


def transitions(study: "Study") -> alt.LayerChart:
    """Where heads lose their order, by layer."""
    rows = _layers(study, {"transition": "transition"})
    return lines_by_layer(study, rows, "temperature", "Where communities dissolve")


def resolutions(study: "Study") -> alt.LayerChart:
    """How many communities there are at every resolution, of some layers."""
    rows = [
        row | {"series": f"layer {row['layer']}"}
        for row in study.table("community_sweep").to_pylist()
        if row["quantity"] == "community_number"
        and row["level"] == "layer"
        and row["layer"] in _some(study.manifest.model.layers)
    ]
    names = list(dict.fromkeys(row["series"] for row in rows))
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=names, range=COLOURS[: len(names)]),
        legend=alt.Legend(title=None, orient="bottom", symbolOpacity=1),
    )
    gamma = alt.X("gamma:Q", title="resolution γ", scale=alt.Scale(type="log", nice=False))
    base = alt.Chart(data(rows)).encode(x=gamma, color=colour)
    band = base.mark_area(opacity=0.18).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=22)).encode(
        y=alt.Y("value:Q", title="communities", scale=alt.Scale(zero=True))
    )
    about = read_for(study, "communities")
    return dressed(alt.layer(band, line), study, "Communities by resolution", about=about)


def _layers(study: "Study", names: dict[str, str]) -> list[Row]:
    found = [
        row | {"series": names[row["quantity"]]}
        for row in study.table("communities").to_pylist()
        if row["quantity"] in names and row["level"] == "layer"
    ]
    return sorted(found, key=lambda row: (list(names).index(row["quantity"]), row["layer"]))


def _some(layers: int) -> set[int]:
    """The first layer, the last, and two between."""
    return {1 + round(part * (layers - 1) / 3) for part in range(4)}


SECTION = Section(
    "communities",
    "Communities of tokens",
    "A head's similarities taken as couplings between tokens: those that are more alike than the "
    "sums of their similarities let expect are paid for being together. The communities of least "
    "energy are what the head would cut the text into. There are some in couplings in random "
    "order, too, so that they are there says nothing: how much lower their energy is does, and "
    "whether they keep to sentences more than the same communities anywhere else in the text, and "
    "than those of the same tokens in random order, which know places but no sentences.",
    {
        "communities": AddedFigure(
            sentences, ("communities_as_sentences", "blocks_as_sentences", "shuffled_as_sentences")
        ),
        "word_classes": AddedFigure(word_classes, ("communities_as_word_classes",)),
        "community_energy": AddedFigure(energies, ("community_energy", "shuffled_energy")),
        "community_number": AddedFigure(resolutions, ("community_number",)),
        "transition": AddedFigure(transitions, ("transition",)),
    },
)
