"""Labels: what a head does, in a few plain words, each with how strongly and on what evidence.

A head has every label that fits. The rules stand in `RULES`; each looks at one or two numbers. The
*strength* of a label says how far its number is from what chance and the nulls give, on the way to
the most there can be: 0 at chance, 1 where nothing else is left. So the strengths of different
labels mean the same, and the strongest label comes first.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headscope.study.bootstrap import Values
from headscope.study.estimates import estimate, measures_of, quantities
from headscope.study.evidence import CONTRAST, UNRESOLVED, Evidence
from headscope.study.modes import null_of

Numbers = Mapping[str, float]  # of one head: a quantity by its name, "…_lift", "…_low", "…_null", …


@dataclass(frozen=True, slots=True)
class Label:
    """What a head does, in words."""

    name: str
    strength: float
    evidence: str


@dataclass(frozen=True, slots=True)
class LabelRule:
    """When a label fits, how strongly, and what to say."""

    name: str
    fits: Callable[[Numbers], bool]
    strength: Callable[[Numbers], float]
    evidence: str  # with the numbers' names in braces
    of_pairs: bool = True  # says something of high pairs, which have to stand out for that


def _beyond(value: float, *floors: float) -> float:
    """How far a share is above the largest of some floors, on the way to 1."""
    floor = max((one for one in floors if np.isfinite(one)), default=0.0)
    return (value - floor) / (1 - floor) if floor < 1 else 0.0


def _mass(name: str, target: str, least: float, where: str) -> LabelRule:
    """Attention: at least so much of it, twice what evenly spread attention and the nulls give."""

    def floors(n: Numbers) -> tuple[float, float]:
        return n[f"{target}_chance"], n[f"{target}_null"]

    return LabelRule(
        name,
        lambda n: n[target] >= least and not any(n[target] < 2 * floor for floor in floors(n)),
        lambda n: _beyond(n[target], *floors(n)),
        f"{{{target}:.0%}} of its attention goes to {where} ({{{target}_chance:.0%}} by chance)",
        of_pairs=False,
    )


def _repeats(name: str, quantity: str, least: float, what: str) -> LabelRule:
    """Repetition of a class of words: surely five times chance, and more than the nulls."""

    def fits(n: Numbers) -> bool:
        surely = n[quantity] >= least and n[f"{quantity}_lift_low"] >= 5
        return surely and not n[f"{quantity}_low"] <= n[f"{quantity}_null"]

    return LabelRule(
        name,
        fits,
        lambda n: _beyond(n[quantity], n[f"{quantity}_chance"], n[f"{quantity}_null"]),
        f"{{{quantity}:.0%}} of its high pairs are {what} repeated "
        f"({{{quantity}_lift:.1f}} × chance)",
    )


def _near(unit: str) -> LabelRule:
    """High pairs half as far apart as all pairs, or nearer: of patches, or of frames."""
    name = f"{unit}_apart"
    return LabelRule(
        "short range",
        lambda n: n[f"{name}_lift"] <= 0.5,
        lambda n: 1 - n[f"{name}_lift"],
        f"its high pairs are {{{name}:.2g}} {unit} apart ({{{name}_lift:.2f}} × chance)",
    )


REPETITIONS = (  # labels, in the order of `words.WordClass`
    "repetition",
    "repeated function words",
    "repeated punctuation",
    "repeated markup",
)
REPEATED = (
    "same_content_word",
    "same_function_word",
    "same_punctuation",
    "same_unknown_or_markup",
)
RULES = (
    _mass("separator sink", "separator", 0.5, "separators"),
    _mass("first-token sink", "first_token", 0.5, "the first token"),
    _mass("previous token", "previous_token", 0.4, "the token before"),
    _mass("next token", "next_token", 0.4, "the token after"),
    _mass("own token", "own_token", 0.4, "the token itself"),
    _mass("punctuation", "punctuation", 0.4, "punctuation"),
    LabelRule(
        "broad",
        lambda n: n["entropy_lift"] >= 0.8,
        lambda n: (n["entropy_lift"] - 0.8) / 0.2,
        "the entropy of its attention is {entropy_lift:.0%} of that of even attention",
        of_pairs=False,
    ),
    LabelRule(
        "unresolved",
        lambda n: n["unresolved"] > UNRESOLVED,
        lambda n: n["unresolved"],
        "{unresolved:.0%} of its high pairs are within rounding of the threshold, so others would "
        "be as high",
        of_pairs=False,
    ),
    LabelRule(
        "alike",
        lambda n: n["contrast"] < CONTRAST,
        lambda n: 1 - n["contrast"] / CONTRAST,
        "all its similarities are alike (contrast {contrast:.3f}), so no pair stands out",
        of_pairs=False,
    ),
    _repeats(REPETITIONS[0], "same_content_word", 0.02, "content words"),
    _repeats(REPETITIONS[1], "same_function_word", 0.1, "function words"),
    _repeats(REPETITIONS[2], "same_punctuation", 0.2, "punctuation"),
    _repeats(REPETITIONS[3], "same_unknown_or_markup", 0.2, "unknown tokens and markup"),
    LabelRule(
        "anchor",
        lambda n: n["anchor"] >= 0.15 and n["anchor_lift"] >= 3 and n["word_share_lift_low"] >= 1.2,
        lambda n: _beyond(n["word_share"], n["word_share_chance"], n["word_share_null"]),
        "{anchor:.0%} of the ends of its high pairs are one word ({anchor_lift:.1f} × its "
        "frequency, {word_share_lift:.1f} × what permuted tokens give)",
    ),
    LabelRule(
        "sentence",
        lambda n: n["same_sentence_matched_lift_low"] >= 1.15,
        lambda n: _beyond(n["same_sentence"], n["same_sentence_matched_chance"]),
        "{same_sentence:.0%} of its high pairs stay in a sentence, "
        "{same_sentence_matched_lift:.2f} × what their distance explains",
    ),
    LabelRule(
        "short range",
        lambda n: n["mean_distance_lift"] <= 0.5,
        lambda n: 1 - n["mean_distance_lift"],
        "its high pairs are {mean_distance:.0f} tokens apart ({mean_distance_lift:.2f} × chance)",
    ),
    # Of pictures and sounds; in a study of texts these numbers are not there.
    _mass("special positions", "special_positions", 0.5, "special positions"),
    _mass("own patch", "own_patch", 0.4, "the patch itself"),
    _mass("touching patches", "touching_patches", 0.4, "the patches that touch it"),
    _mass("own row", "own_row", 0.4, "the row of the patch"),
    _mass("own column", "own_column", 0.4, "the column of the patch"),
    _mass("silence added", "silence_added", 0.5, "the silence that the model adds"),
    _mass("previous frame", "previous_frame", 0.4, "the frame before"),
    _mass("own frame", "own_frame", 0.4, "the frame itself"),
    _mass("next frame", "next_frame", 0.4, "the frame after"),
    _near("patches"),
    _near("seconds"),
)  # fmt: skip
NOTHING = Label("mixed", 0.0, "no single number stands out")
NULLS = {  # what a number of a head has to exceed, where it was run
    **dict.fromkeys(
        ("separator", "first_token", "previous_token", "next_token", "own_token", "punctuation"),
        ("random", "permuted"),
    ),
    **dict.fromkeys(REPEATED, ("random", "permuted", "identity")),
    "word_share": ("random", "permuted"),
    **dict.fromkeys(
        (
            "special_positions",
            "own_patch",
            "touching_patches",
            "own_row",
            "own_column",
            "silence_added",
            "previous_frame",
            "own_frame",
            "next_frame",
        ),
        ("random", "permuted"),
    ),
}


OF_PAIRS = (*REPEATED, "word_share")


def labels_of(numbers: Numbers, anchor: str) -> list[Label]:
    """Every label of one head, the strongest first. A number that is not there fits no rule."""
    numbers = defaultdict(lambda: np.nan, numbers)
    stands_out = not (numbers["contrast"] < CONTRAST or numbers["unresolved"] > UNRESOLVED)
    found = [
        Label(
            anchor_label(anchor) if rule.name == "anchor" else rule.name,
            round(float(np.clip(rule.strength(numbers), 0, 1)), 4),
            rule.evidence.format_map(numbers),
        )
        for rule in RULES
        if rule.fits(numbers) and (stands_out or not rule.of_pairs)
    ]
    return sorted(found, key=lambda label: -label.strength) or [NOTHING]


def anchor_label(word: str) -> str:
    """The label of a head whose pairs gather around a word."""
    return f"anchor: ‘{word}’"


def head_numbers(evidence: Evidence) -> dict[str, Values]:
    """Every number of every head, by name: (layers, heads)."""
    found: dict[str, Values] = {}
    for measure in measures_of(evidence.totals):
        if not evidence.has(measure):
            continue
        for name, quantity in quantities(evidence.totals, evidence.key(measure)).items():
            given = estimate(quantity)
            found[name] = given.value
            for part in ("low", "high", "chance", "lift", "lift_low"):
                found[f"{name}_{part}"] = getattr(given, part)
    return found


def head_labels(
    evidence: Evidence, nulls: Sequence[Evidence], anchors: pa.Table
) -> dict[tuple[int, int], list[Label]]:
    """The labels of every (layer, head), counted from 1; `anchors` is the table of that name."""
    numbers = _with_punctuation(head_numbers(evidence))
    numbers |= _of_nulls(nulls, numbers["contrast"].shape)
    leading = {
        (row["layer"], row["head"]): row
        for row in anchors.to_pylist()
        if row["kind"] == "word" and row["rank"] == 1 and evidence.view.has(row)
    }
    found = {}
    for layer, head in np.ndindex(numbers["contrast"].shape):
        place = (layer + 1, head + 1)
        own = {name: float(value[layer, head]) for name, value in numbers.items()}
        anchor = leading.get(place, {"type": "", "share": np.nan, "lift": np.nan})
        own["anchor"], own["anchor_lift"] = anchor["share"], anchor["lift"]
        found[place] = labels_of(own, anchor["type"])
    return found


def _with_punctuation(numbers: dict[str, Values]) -> dict[str, Values]:
    """The same, with attention on all punctuation together where attention was measured."""
    marks = ("sentence_end", "comma", "other_punctuation")
    if "comma" not in numbers:
        return numbers
    return numbers | {
        f"punctuation{part}": sum((numbers[f"{mark}{part}"] for mark in marks), np.zeros(()))
        for part in ("", "_chance")
    }


def _of_nulls(nulls: Sequence[Evidence], shape: tuple[int, ...]) -> dict[str, Values]:
    """For each number that has to exceed nulls, the largest that these give: "…_null".

    Of another model a head has no counterpart: the largest of its layer counts. Where pairs do not
    stand out there is no null to speak of.
    """
    found: dict[str, Values] = {}
    for null in nulls:
        numbers = _with_punctuation(head_numbers(null))
        for name, modes in NULLS.items():
            if null_of(null.mode) not in modes or name not in numbers:
                continue
            value = numbers[name]
            if name in OF_PAIRS:
                value = np.where(numbers["contrast"] >= CONTRAST, value, np.nan)
            if null.mode != "identity":
                most = np.fmax.reduce(value, axis=1, keepdims=True)
                value = np.broadcast_to(most, shape)
            found[f"{name}_null"] = np.fmax(found.get(f"{name}_null", value), value)
    return found
