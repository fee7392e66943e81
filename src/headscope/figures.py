"""Charts of a study, each one function from its tables to an Altair chart.

What they look like and how they are written is in `drawing.py`.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
from numpy.typing import NDArray

from headscope.drawing import (
    INTERVALS,
    Rows,
    as_svg,
    data,
    dressed,
    lines_by_layer,
    map_of_heads,
    sample_of,
    save,
    short,
)
from headscope.effects.registry import DEFINITIONS
from headscope.errors import CannotDraw
from headscope.report.added import registry as added
from headscope.study.placed.measures import APART, TOWARDS
from headscope.study.told import SPECIAL, told_claims, told_view

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.study.compare import Comparison
    from headscope.study.folder import Study
    from headscope.study.told import View

__all__ = ["FIGURES", "QUANTITIES", "as_svg", "difference", "matrix", "sample_of", "save"]

VERDICTS = {"holds": "#009E73", "undecided": "#E69F00", "does not hold": "#D55E00"}


TARGETS = ("first_token", "separator", "sentence_end", "comma", "other_punctuation")


def focus(study: "Study") -> alt.LayerChart:
    """Where attention goes, by layer."""
    names = {name: name.replace("_", " ") for name in quantities(study, "focus")}
    rows = [
        row | {"series": names[row["quantity"]]}
        for row in _rows(study, "focus", "layer")
        if row["quantity"] in names and row["mode"] == "real"
    ]
    return lines_by_layer(study, rows, "share of attention", "Where attention goes", percent=True)


def centralisation(study: "Study") -> alt.LayerChart:
    """On how many tokens attention gathers, by layer."""
    rows = _by_mode(_rows(study, "focus", "layer", "attended_columns"))
    what = "tokens" if _of_texts(study) else "positions"
    return lines_by_layer(study, rows, f"{what} attended (effective)", "Attention centralises")


def range_by_layer(study: "Study") -> alt.LayerChart:
    """How far apart the tokens of high pairs are, by layer."""
    quantity = quantities(study, "range")[0]
    unit = DEFINITIONS[quantity].unit
    rows = _by_view(study, _rows(study, "range", "layer", quantity))
    return lines_by_layer(study, rows, f"mean distance ({unit})", "Range of the high pairs")


def sentence(study: "Study") -> alt.LayerChart:
    """How much more often than by chance a high pair stays within a sentence, by layer."""
    matched = {"same_sentence": "", "same_sentence_matched": ", distances matched"}
    rows = [
        row
        | {
            "series": row["series"] + matched[row["quantity"]],
            "value": row["lift"],
            "low": row["lift_low"],
            "high": row["lift_high"],
            "chance": 1.0,
        }
        for row in _by_view(study, _rows(study, "sentence", "layer"))
        if row["quantity"] in matched and row["special"] == _view(study).special
    ]
    return lines_by_layer(study, rows, "same-sentence lift (× chance)", "Pairs within one sentence")


def noise(study: "Study") -> alt.LayerChart:
    """How many high pairs are between unrelated tokens, by layer."""
    rows = _by_view(study, _rows(study, "noise", "layer", "unrelated"))
    return lines_by_layer(study, rows, "unrelated high pairs", "Noise", percent=True)


def snr(study: "Study") -> alt.LayerChart:
    """How far related pairs stand out from unrelated ones, by layer."""
    rows = _by_view(study, _rows(study, "noise", "layer", "snr"))
    return lines_by_layer(study, rows, "SNR (standard deviations)", "Signal to noise")


def selection(study: "Study") -> alt.LayerChart:
    """How many pairs are high because their vectors are long, by layer."""
    rows = [row for row in _rows(study, "selection", "layer") if row["reading"] == "raw"]
    named = [row for row in _by_view(study, rows) if row["quantity"] == "explained_by_size"]
    return lines_by_layer(
        study, named, "high pairs explained by size", "What size explains", percent=True
    )


def uniqueness(study: "Study") -> alt.LayerChart:
    """How many of the heads of a layer have an anchor of their own."""
    rows = _by_view(study, _rows(study, "anchor", "layer", "word_uniqueness_in_layer"))
    return lines_by_layer(
        study, rows, "distinct anchors / heads", "Each head its own token", percent=True
    )


def repetition(study: "Study") -> alt.LayerChart:
    """Which heads bring repeated words together."""
    rows = _heads(study, "repetition", "same_content_word")
    for row in rows:
        row["shown"] = row["lift"] or None  # none at all has no place in a scale of multiples
        row["text"] = f"{row['lift']:.0f}" if row["lift"] else ""
    return map_of_heads(study, rows, "content word (× chance)", "Repetition heads", scale="log")


def anchor(study: "Study") -> alt.LayerChart:
    """The word around which each head builds its pairs."""
    _rows(study, "anchor", "head")  # which a study of pictures or sounds has not
    first = {
        (row["layer"], row["head"]): row
        for row in study.table("anchors").to_pylist()
        if row["kind"] == "word" and row["rank"] == 1 and _view(study).has(row)
    }
    rows = [
        {"layer": layer, "head": head, "shown": row["share"], "text": short(row["type"])}
        for (layer, head), row in first.items()
    ]
    title, about = "The anchor of each head", "counted as a whole, without 95 % intervals"
    return map_of_heads(
        study, rows, "share of pair ends", title, percent=True, wide=True, about=about
    )


def findings(study: "Study") -> alt.LayerChart:
    """Every claim: its statistic over the threshold it has to pass."""
    rows = [
        {
            "claim": row["says"],
            "verdict": row["verdict"],
            **{part: _over(row[part], row["threshold"]) for part in ("value", "low", "high")},
        }
        for claim in told_claims(study.table("findings").to_pylist(), _view(study))
        if (row := claim.row)["value"] is not None
    ]
    base = alt.Chart(data(rows)).encode(
        y=alt.Y("claim:N", sort=None, title=None, axis=alt.Axis(labelLimit=400)),
        color=alt.Color(
            "verdict:N",
            scale=alt.Scale(domain=list(VERDICTS), range=list(VERDICTS.values())),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
    )
    axis = alt.X("value:Q", scale=alt.Scale(type="symlog"), title="statistic / its threshold")
    line = alt.Chart(data([{"at": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="at:Q")
    interval = base.mark_rule(strokeWidth=2).encode(x=axis, x2="high:Q")
    low = base.mark_rule(strokeWidth=2).encode(x=axis, x2="low:Q")
    points = base.mark_point(filled=True, size=60).encode(x=axis)
    drawn = alt.layer(line, interval, low, points)
    height = alt.Step(18)
    return dressed(
        drawn, study, "The claims, tested", height=height, about=f"{_view(study)}; {INTERVALS}"
    )


FIGURES: Mapping[str, Callable[["Study"], alt.LayerChart]] = {
    "focus": focus,
    "centralisation": centralisation,
    "range": range_by_layer,
    "sentence": sentence,
    "repetition": repetition,
    "anchor": anchor,
    "uniqueness": uniqueness,
    "selection": selection,
    "noise": noise,
    "snr": snr,
    "findings": findings,
    **added.FIGURES,
}


QUANTITIES: Mapping[str, tuple[str, ...]] = {
    "focus": TARGETS,
    "centralisation": ("attended_columns",),
    "range": ("mean_distance",),
    "sentence": ("same_sentence", "same_sentence_matched"),
    "repetition": ("same_content_word",),
    "anchor": ("word_share",),
    "uniqueness": ("word_uniqueness_in_layer",),
    "selection": ("explained_by_size",),
    "noise": ("unrelated",),
    "snr": ("snr",),
    **added.QUANTITIES,
}
"""What each figure shows of a study of texts, by the names that `effects.registry` defines."""


def quantities(study: "Study", figure: str) -> tuple[str, ...]:
    """What a figure shows of a study: of pictures or sounds what is there of these."""
    if _of_texts(study) or figure not in ("focus", "range"):
        return QUANTITIES[figure]
    there = {row["quantity"] for row in study.rows(figure)}
    if figure == "focus":
        return tuple(name for name in TOWARDS if name in there)
    return tuple(name for name in APART.values() if name in there)


def _of_texts(study: "Study") -> bool:
    return study.manifest.corpus.kind == "text"


# The viewer's colours (viewer/static/colours.js): the same head looks the same in both.
SEQUENTIAL = [
    "#f4fbf5",
    "#def5e5",
    "#8ad9b1",
    "#40b7ad",
    "#348fa7",
    "#37659e",
    "#413d7b",
    "#2e1e3c",
]
DIVERGING = [
    "#8a4a00",
    "#d98218",
    "#f6c88a",
    "#f6f6f4",
    "#a9c8ea",
    "#3f7fc4",
    "#12346b",
]


def _colours(C: NDArray[np.float64], special: NDArray[np.bool_], kind: str) -> alt.Scale:
    """Colours from the 1st to the 99th percentile of the pairs; special tokens do not set them."""
    plain = ~special if (~special).sum() > 1 else np.ones(len(C), dtype=bool)
    inner = C[plain][:, plain]
    values = np.sort(inner[np.triu_indices(len(inner), 1)])
    last = max(len(values) - 1, 0)
    beyond = max(int(0.01 * last + 0.5), int(last > 8))
    low, high = (float(values[beyond]), float(values[last - beyond])) if len(values) else (0.0, 1.0)
    if kind == "centred":
        reach = max(abs(low), abs(high)) or 1.0
        return alt.Scale(domain=[-reach, reach], range=DIVERGING, clamp=True)
    return alt.Scale(domain=[low, high if high > low else low + 1], range=SEQUENTIAL, clamp=True)


def matrix(
    reading: "Reading",
    layer: int,
    head: int,
    kind: str = "raw",
    tokens: slice = slice(None),
) -> alt.Chart:
    """The context similarity matrix of one head with its tokens, for a paper."""
    pieces = reading.tokens.pieces[tokens]
    if not pieces:
        raise CannotDraw(
            f"No token stands there: the text has {len(reading)}, from 0 to {len(reading) - 1}."
        )
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
        alt.Chart(data(rows), title=alt.TitleParams(name, subtitle=f"C = z·z, {kind}"))
        .mark_rect()
        .encode(
            x=alt.X("second:N", sort=None, axis=axis),
            y=alt.Y("first:N", sort=None, axis=axis),
            color=alt.Color(
                "similarity:Q",
                scale=_colours(C, reading.tokens.special[tokens], kind),
                legend=alt.Legend(title=["similarity,", "1st to 99th", "percentile"]),
            ),
        )
        .properties(width=step, height=step)
    )
    return drawn


def difference(comparison: "Comparison", measure: str, quantity: str) -> alt.LayerChart:
    """By how much a quantity of each head differs between two studies; a dot: it does differ."""
    view = told_view(comparison.first.manifest.parameters)
    rows = [
        {
            "layer": row["layer"],
            "head": row["head"],
            "difference": row["difference"],
            "differs": row["differs"],
        }
        for row in comparison.numbers.to_pylist()
        if (row["measure"], row["quantity"]) == (measure, quantity) and view.has(row)
    ]
    if not rows:
        raise CannotDraw(f"The studies do not share '{quantity}' of '{measure}' as they are told.")
    most = max(abs(row["difference"]) for row in rows) or 1.0
    base = alt.Chart(data(rows)).encode(
        x=alt.X("head:O", title="head", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("layer:O", title="layer"),
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "difference:Q",
            scale=alt.Scale(scheme="blueorange", domain=[-most, most]),
            legend=alt.Legend(title=["second", "− first"], format=",.2~r"),
        )
    )
    dots = base.transform_filter("datum.differs").mark_circle(size=14, color="black")
    return dressed(
        alt.layer(cells, dots),
        comparison.first,
        quantity.replace("_", " "),
        alt.Step(19),
        alt.Step(17),
        f"{view}; a dot: it differs",
        against=comparison.second,
    )


def _rows(study: "Study", table: str, level: str, quantity: str | None = None) -> Rows:
    """Rows of a measure under the rule that is told, in every reading and setting of special."""
    told = _view(study)
    if not _of_texts(study) and table not in study.tables:
        raise CannotDraw(
            f"A study of pictures or sounds has no '{table}': there are no words, sentences or "
            "separators. It has focus, centralisation, range, selection and findings."
        )
    return [
        row
        for row in study.table(table).to_pylist()
        if row["level"] == level
        and quantity in (None, row["quantity"])
        and told.has(row | {"special": None, "reading": None})
    ]


def _view(study: "Study") -> "View":
    return told_view(study.manifest.parameters)


def _over(value: float | None, threshold: float) -> float | None:
    return None if value is None else value / threshold


def _heads(study: "Study", table: str, quantity: str) -> Rows:
    return [
        row
        for row in _rows(study, table, "head", quantity)
        if row["mode"] == "real" and _view(study).has(row)
    ]


def _by_view(study: "Study", rows: Rows) -> Rows:
    """What is told, the other readings beside it, and the other setting of special tokens."""
    told = _view(study)
    own = [row for row in rows if row["mode"] == "real"]
    readings = [row | {"series": row["reading"]} for row in own if row["special"] == told.special]
    special = [
        row | {"series": f"{told.reading}, {SPECIAL[row['special']]}"}
        for row in own
        if row["reading"] == told.reading and row["special"] != told.special
    ]
    return [*sorted(readings, key=lambda row: row["reading"] != told.reading), *special]


def _by_mode(rows: Rows) -> Rows:
    """The model with its interval, and the nulls as lines; of random weights the first."""
    names = {
        "real": "the model",
        "random": "random weights",
        "permuted": "permuted weights",
        "shuffle": "shuffled text",
        "identity": "no attention",
        "uniform": "even attention",
    }
    bare = dict.fromkeys(("low", "high"))
    return [
        row | {"series": name} | ({} if mode == "real" else bare)
        for mode, name in names.items()
        for row in rows
        if row["mode"] == mode
    ]
