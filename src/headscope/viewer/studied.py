"""A study as the viewer receives it: what every head is like over a corpus, as plain JSON.

Labels, words and contexts come from the corpus; they are data all the way, and the viewer shows
them as text. docs/server-api.md describes the fields.
"""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.figures import without_special
from headscope.study.sums import MEASURES
from headscope.viewer.packed import CannotShow, label

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.scope import Scope
    from headscope.store import Study

NUMBERS = ("value", "low", "high", "chance", "lift")
ANCHORS = 5  # words listed on a card
EXAMPLE = (
    "similarity",
    "first",
    "second",
    "first_context",
    "second_context",
    "distance",
    "source",
    "line",
)

Row = dict[str, Any]


def packed_study(study: "Study", missing: str = "") -> dict[str, Any]:
    """Its cards, and every measure of every head, as they are told in its report.

    `missing` says why there is no reading beside it.
    """
    said = study.manifest
    model, corpus, chosen = said["model"], said["corpus"], said["parameters"]
    told = {
        "reading": chosen["readings"][0],
        "special": without_special(study),
        "rule": chosen["rule"],
    }
    return {
        "model": {**model, "name": label(model["name"])},
        "corpus": {name: corpus[name] for name in ("name", "documents", "tokens")},
        **told,
        "missing": missing,
        "measures": _measures(study, told),
        "cards": _cards(study, told),
    }


def scope_of(study: "Study", model: str | None = None, device: str = "auto") -> "Scope":
    """The model that was studied, if it is at hand: as it was named then, or at `model`."""
    from headscope.scope import load

    said = study.manifest
    name = model or said["model"]["name"]
    scope = load(None if name == "specimen" else name, device=device)
    _check_same(study, scope)
    return scope.ablate([(layer, head) for layer, head in said["silenced"]])


def _check_same(study: "Study", scope: "Scope") -> None:
    """Raise unless this is the model that was studied."""
    said, shape = study.manifest["model"], scope.shape
    same = (shape.layers, shape.heads) == (said["layers"], said["heads"])
    if same and str(scope.model.dtype) == f"torch.{study.manifest['dtype']}":  # else bytes differ
        from headscope.study.run import weight_hash

        same = weight_hash(scope.model) == said["weights"]
    if not same:
        raise CannotShow(
            f"{label(shape.name)} is not the model of this study, {label(said['name'])} with "
            f"{said['layers']} layers × {said['heads']} heads, or its weights have changed since."
        )


def reading_beside(study: "Study", reading: "Reading | None") -> "tuple[Reading | None, str]":
    """The reading to show with a study, the sample text unless given; else why there is none."""
    if reading is not None:
        _check_same(study, reading.scope)
        return reading, ""
    from headscope.sample import sample_text

    try:
        return scope_of(study).read(sample_text()), ""
    except HeadscopeError as error:
        return None, without_model(study, error)


def without_model(study: "Study", error: HeadscopeError) -> str:
    """What to tell a person who sees a study without its model; no path goes with a page."""
    why = (
        str(error)
        if isinstance(error, CannotShow)
        else f"The model {label(study.manifest['model']['name'])} is not at hand."
    )
    return (
        f"{why} This is what the study alone holds: the label, the measures and five pairs of "
        "every head. To look at heads on a text: headscope view STUDY --model FOLDER."
    )


def _measures(study: "Study", told: dict[str, str]) -> list[Row]:
    """Every quantity of heads: its measure, name, and lists of numbers, a place for each head."""
    heads = study.manifest["model"]["heads"]
    places = study.manifest["model"]["layers"] * heads
    found: dict[tuple[str, str], Row] = {}
    for measure in MEASURES:
        if measure not in study.tables:
            continue
        for row in study.table(measure).to_pylist():
            if row["level"] != "head" or row["mode"] != "real" or not _is_told(row, told):
                continue
            name = row["quantity"]
            if (measure, name) not in found:
                empty: Row = {number: [None] * places for number in NUMBERS}
                found[measure, name] = {"measure": measure, "name": name, **empty}
            at = (row["layer"] - 1) * heads + row["head"] - 1
            for number in NUMBERS:
                found[measure, name][number][at] = _short(row[number])
    # Uniqueness is one number for all heads of a layer: it puts none before another.
    return [
        {name: value for name, value in one.items() if name not in NUMBERS or any(_known(value))}
        for (_, name), one in found.items()
        if any(_known(one["value"])) and "uniqueness" not in name
    ]


def _cards(study: "Study", told: dict[str, str]) -> list[Row]:
    """A card for each head, layer after layer."""
    words, pairs = defaultdict(list), defaultdict(list)
    for row in study.table("anchors").to_pylist():
        if row["kind"] == "word" and row["rank"] <= ANCHORS and _is_told(row, told):
            words[row["layer"], row["head"]].append([row["type"], _short(row["share"])])
    for row in study.table("examples").to_pylist():
        if _is_told(row, told):
            example = {name: row[name] for name in EXAMPLE}
            example["similarity"] = _short(row["similarity"])
            pairs[row["layer"], row["head"]].append(example)
    return [
        {
            "label": row["label"],
            "strength": row["strength"],
            "evidence": row["evidence"],
            "anchors": words[row["layer"], row["head"]],
            "examples": pairs[row["layer"], row["head"]],
        }
        for row in study.table("heads").to_pylist()
    ]


def _is_told(row: Row, told: dict[str, str]) -> bool:
    return all(row.get(name) in (None, value) for name, value in told.items())


def _known(values: list[float | None]) -> list[bool]:
    return [value is not None for value in values]


def _short(value: float | None) -> float | None:
    """Four significant digits: more than any interval here supports."""
    return None if value is None else float(f"{value:.4g}")
