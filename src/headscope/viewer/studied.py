"""A study as the viewer receives it: what every head is like over a corpus, as plain JSON.

Labels, words and contexts come from the corpus; they are data all the way, and the viewer shows
them as text. docs/server-api.md describes the fields.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from headscope.effects.added import added_rows
from headscope.effects.registry import DEFINITIONS
from headscope.errors import CannotLoad, CannotShow, HeadscopeError
from headscope.measures.registry import MEASURES
from headscope.study.folder import reads_tables
from headscope.study.told import View, told_view
from headscope.viewer.packed import label

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.scope import Scope
    from headscope.study.folder import Study

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
    "text",
    "first_position",
    "second_position",
)

WITHOUT_INPUT = (
    "This is what the study alone holds: the label and the measures of every head. To look at "
    "heads on a picture or a sound, read one and save or show both: study.save('page.html', "
    "scope.read('photo.jpg'))."
)

Row = dict[str, Any]


@reads_tables
def packed_study(
    study: "Study", missing: str = "", *, saved: "Reading | None" = None
) -> dict[str, Any]:
    """Its cards, and every measure of every head, as they are told in its report.

    `missing` says why there is no reading beside it; `saved` is the one that goes into the same
    page, which then needs no other text.
    """
    said = study.manifest
    model, corpus, chosen = said.model, said.corpus, said.parameters
    told = told_view(chosen)
    return {
        "model": {**asdict(model), "name": label(model.name), "numbers": [*model.layer_numbers]},
        "corpus": {
            "name": corpus.name,
            "documents": corpus.documents,
            "tokens": corpus.tokens,
        },
        **asdict(told),
        "missing": missing,
        "measures": _measures(study, told),
        "map": _map(study),
        "texts": _texts(study, whole=saved is None and not missing),
        "shown": None if saved is None else _number(study, saved.tokens.text),
        "cards": _cards(study, told),
    }


def scope_of(study: "Study", model: str | None = None, device: str = "auto") -> "Scope":
    """The model that was studied, if it is at hand: as it was named then, or at `model`."""
    from headscope.scope import load

    said = study.manifest
    name = model or said.model.name
    # What a stranger's study names may be anything: only the person asks the hub, with --model.
    where = name if model is not None or name == "specimen" else _at_hand(name)
    scope = load(None if name == "specimen" else where, device=device)
    if where != name:
        named = replace(scope.loaded, shape=replace(scope.shape, name=name))
        scope = type(scope)(named, scope.silenced)
    _check_same(study, scope)
    return scope.ablate([(layer, head) for layer, head in said.silenced])


def _at_hand(name: str) -> str:
    """The folder of a model on this machine: its own, or where the hub's was kept before."""
    from huggingface_hub import try_to_load_from_cache

    if not name.startswith(("//", "\\\\")):  # which may be the folders of another machine
        if os.path.isdir(name):
            return name
        with suppress(ValueError):  # no name that a hub could have
            if isinstance(found := try_to_load_from_cache(name, "config.json"), str):
                return os.path.dirname(found)
    raise CannotLoad(f"The model '{label(name)}' is not on this machine.")


def _check_same(study: "Study", scope: "Scope") -> None:
    """Raise unless this is the model that was studied."""
    said, shape = study.manifest.model, scope.shape
    same = (shape.layers, shape.heads) == (said.layers, said.heads)
    if same and str(scope.model.dtype) == f"torch.{study.manifest.dtype}":  # else bytes differ
        from headscope.study.run import weight_hash

        same = weight_hash(scope.model) == said.weights
    if not same:
        raise CannotShow(
            f"{label(shape.name)} is not the model of this study, {label(said.name)} with "
            f"{said.layers} layers × {said.heads} heads, or its weights have changed since."
        )


def reading_beside(study: "Study", reading: "Reading | None") -> "tuple[Reading | None, str]":
    """The reading to show with a study, of its first text unless given; else why there is none."""
    if reading is not None:
        _check_same(study, reading.scope)
        return reading, ""
    if study.manifest.corpus.kind != "text":
        return None, WITHOUT_INPUT
    try:
        return scope_of(study).read(first_text(study)), ""
    except HeadscopeError as error:
        return None, without_model(study, error)


def _number(study: "Study", text: str) -> int | None:
    """The number of a kept text."""
    return next((row["number"] for row in _texts(study, whole=True) if row["text"] == text), None)


def first_text(study: "Study") -> str:
    """What to look at first: a window of the corpus, or the sample text where none was kept."""
    from headscope.sample import sample_text

    texts = _texts(study, whole=True)
    return str(texts[0]["text"]) if texts else sample_text()


def without_model(study: "Study", error: HeadscopeError) -> str:
    """What to tell a person who sees a study without its model; no path goes with a page."""
    why = (
        str(error)
        if isinstance(error, CannotShow)
        else f"The model {label(study.manifest.model.name)} is not at hand."
    )
    return (
        f"{why} This is what the study alone holds: the label, the measures and five pairs of "
        "every head. To look at heads on a text, name its model: headscope view STUDY --model "
        "FOLDER, or NAME to fetch it from the hub."
    )


def _measures(study: "Study", told: View) -> list[Row]:
    """Every quantity of heads: its measure, name, and lists of numbers, a place for each head."""
    heads = study.manifest.model.heads
    numbers = study.manifest.model.layer_numbers
    places = len(numbers) * heads
    found: dict[tuple[str, str], Row] = {}
    for measure, row, told_first in _of_heads(study, told):
        name = row["quantity"]
        if (measure, name) not in found:
            empty: Row = {number: [None] * places for number in NUMBERS}
            known = {"measure": measure, "name": name, "told": told_first}
            found[measure, name] = {**known, **_meaning(name), **empty}
        at = numbers.index(row["layer"]) * heads + row["head"] - 1
        for number in NUMBERS:
            found[measure, name][number][at] = _short(row[number])
    # Uniqueness is one number for all heads of a layer: it puts none before another.
    return [
        {name: value for name, value in one.items() if name not in NUMBERS or any(_known(value))}
        for (_, name), one in found.items()
        if any(_known(one["value"])) and "uniqueness" not in name
    ]


def _of_heads(study: "Study", told: View) -> Iterator[tuple[str, Row, bool]]:
    """Every number of every head: its measure or verb, and whether a card says it first."""
    for measure in MEASURES:
        for row in study.table(measure).to_pylist() if measure in study.tables else ():
            if row["level"] == "head" and row["mode"] == "real" and told.has(row):
                yield measure, row, False
    for verb, row in added_rows(study):
        yield verb.name, row, row["quantity"] in verb.told


def _map(study: "Study") -> Row | None:
    """Where heads stand on the map of those that do the same; None where none was added."""
    if "head_map" not in study.tables:
        return None
    rows = study.table("head_map").to_pylist()
    return {
        "x": [_short(row["x"]) for row in rows],
        "y": [_short(row["y"]) for row in rows],
        "shown": _short(rows[0]["shown"]),
        "closest": [[row["closest_layer"], row["closest_head"]] for row in rows],
        "agreement": [_short(row["agreement"]) for row in rows],
    }


def _texts(study: "Study", *, whole: bool) -> list[Row]:
    """The windows of the corpus that were kept, or none; where they are only named, not whole."""
    if "texts" not in study.tables:
        return []
    columns = ("number", "source", "line", "text")[: 4 if whole else 3]
    found: list[Row] = study.table("texts").select(columns).to_pylist()
    return found


def _meaning(name: str) -> Row:
    """What a quantity means, from the registry; another version's may not be there."""
    known = DEFINITIONS.get(name)
    if known is None:
        return {"definition": "", "unit": "", "by_chance": "", "shown": "number"}
    return {
        "definition": known.says,
        "unit": known.unit,
        "by_chance": known.chance,
        "shown": known.show,
    }


def _cards(study: "Study", told: View) -> list[Row]:
    """A card for each head, layer after layer."""
    words, pairs = defaultdict(list), defaultdict(list)
    for row in study.rows("anchors"):
        if row["kind"] == "word" and row["rank"] <= ANCHORS and told.has(row):
            words[row["layer"], row["head"]].append([row["type"], _short(row["share"])])
    for row in study.rows("examples"):
        if told.has(row):
            example = {name: row[name] for name in EXAMPLE} | {"shows": row.get("shows")}
            example["similarity"] = _short(row["similarity"])
            pairs[row["layer"], row["head"]].append(example)
    return [
        {
            "labels": [
                {"name": name, "strength": _short(strength), "evidence": evidence}
                for name, strength, evidence in zip(
                    row["labels"], row["strengths"], row["evidence"], strict=True
                )
            ],
            "anchors": words[row["layer"], row["head"]],
            "examples": pairs[row["layer"], row["head"]],
        }
        for row in study.table("heads").to_pylist()
    ]


def _known(values: list[float | None]) -> list[bool]:
    return [value is not None for value in values]


def _short(value: float | None) -> float | None:
    """Four significant digits: more than any interval here supports."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
