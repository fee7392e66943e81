"""Head cards: for every head one plain label, made from its numbers by the first rule that fits.

The rules stand in `RULES`, in their order; each looks at one or two numbers, and gives a strength
between 0 and 1 and the evidence in words.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headscope.study.bootstrap import Values
from headscope.study.estimates import estimate, quantities
from headscope.study.findings import CONTRAST, Evidence
from headscope.study.sums import MEASURES

Numbers = Mapping[str, float]  # of one head: a quantity by its name, "…_lift", "…_low", …


@dataclass(frozen=True, slots=True)
class Card:
    """What a head is like, in words."""

    label: str
    strength: float
    evidence: str


@dataclass(frozen=True, slots=True)
class CardRule:
    """When a label fits, how strongly, and what to say."""

    label: str
    fits: Callable[[Numbers], bool]
    strength: Callable[[Numbers], float]
    evidence: str  # with the numbers' names in braces


def _mass(label: str, target: str, least: float, where: str) -> CardRule:
    return CardRule(
        label,
        lambda n: n[target] >= least,
        lambda n: n[target],
        f"{{{target}:.0%}} of its attention goes to {where}",
    )


RULES = (
    _mass("separator sink", "separator", 0.5, "separators"),
    _mass("first-token sink", "first_token", 0.5, "the first token"),
    _mass("previous token", "previous_token", 0.4, "the token before"),
    _mass("next token", "next_token", 0.4, "the token after"),
    _mass("own token", "own_token", 0.4, "the token itself"),
    CardRule(
        "punctuation",
        lambda n: n["punctuation"] >= 0.4 and n["punctuation"] >= 2 * n["punctuation_chance"],
        lambda n: n["punctuation"],
        "{punctuation:.0%} of its attention goes to punctuation",
    ),
    CardRule(
        "broad",
        lambda n: n["contrast"] < CONTRAST,
        lambda n: 1 - n["contrast"],
        "all its similarities are alike (contrast {contrast:.3f})",
    ),
    CardRule(
        "repetition",
        lambda n: n["same_word_low"] >= 0.2 and n["same_word_lift"] >= 5,
        lambda n: n["same_word"],
        "{same_word:.0%} of its high pairs repeat a word ({same_word_lift:.1f} × chance)",
    ),
    CardRule(
        "anchor",
        lambda n: n["anchor"] >= 0.15 and n["anchor_lift"] >= 3,
        lambda n: n["anchor"],
        "{anchor:.0%} of the ends of its high pairs are one word ({anchor_lift:.1f} × chance)",
    ),
    CardRule(
        "sentence",
        lambda n: n["same_sentence_matched_lift_low"] >= 1.15,
        lambda n: n["same_sentence"],
        "{same_sentence:.0%} of its high pairs stay in a sentence, "
        "{same_sentence_matched_lift:.2f} × what their distance explains",
    ),
    CardRule(
        "short range",
        lambda n: n["mean_distance_lift"] <= 0.5,
        lambda n: 1 - n["mean_distance_lift"],
        "its high pairs are {mean_distance:.0f} tokens apart ({mean_distance_lift:.2f} × chance)",
    ),
    CardRule(
        "broad",
        lambda n: n["entropy_lift"] >= 0.8,
        lambda n: n["entropy_lift"],
        "the entropy of its attention is {entropy_lift:.0%} of that of even attention",
    ),
    CardRule(
        "mixed",
        lambda n: True,
        lambda n: 0.0,
        "no single number stands out",
    ),
)


def card(numbers: Numbers, anchor: str) -> Card:
    """The label of one head. A number that is not there fits no rule."""
    for rule in RULES:
        if rule.fits(numbers):
            label = f"anchor: ‘{anchor}’" if rule.label == "anchor" else rule.label
            strength = float(np.clip(rule.strength(numbers), 0, 1))
            return Card(label, round(strength, 4), rule.evidence.format_map(numbers))
    raise AssertionError("the last rule fits everything")


def head_numbers(evidence: Evidence) -> dict[str, Values]:
    """Every number of every head, by name: (layers, heads)."""
    found: dict[str, Values] = {}
    for measure in MEASURES:
        if not evidence.has(measure):
            continue
        for name, quantity in quantities(evidence.totals, evidence.key(measure)).items():
            given = estimate(quantity)
            found[name] = given.value
            for part in ("low", "high", "chance", "lift", "lift_low"):
                found[f"{name}_{part}"] = getattr(given, part)
    return found


def cards(evidence: Evidence, anchors: pa.Table) -> dict[tuple[int, int], Card]:
    """The card of every (layer, head), counted from 1; `anchors` is the table of that name."""
    numbers = head_numbers(evidence)
    leading = {
        (row["layer"], row["head"]): row
        for row in anchors.to_pylist()
        if row["kind"] == "word"
        and row["rank"] == 1
        and (row["reading"], row["special"], row["rule"])
        == (evidence.reading, evidence.special, evidence.rule)
    }
    found = {}
    for layer, head in np.ndindex(evidence.contrast.shape):
        place = (layer + 1, head + 1)
        own: dict[str, float] = defaultdict(lambda: np.nan)
        own |= {name: float(value[layer, head]) for name, value in numbers.items()}
        anchor = leading.get(place, {"type": "", "share": np.nan, "lift": np.nan})
        own["anchor"], own["anchor_lift"] = anchor["share"], anchor["lift"]
        marks = ("sentence_end", "comma", "other_punctuation")
        own["punctuation"] = sum(own[mark] for mark in marks)
        own["punctuation_chance"] = sum(own[f"{mark}_chance"] for mark in marks)
        found[place] = card(own, anchor["type"])
    return found
