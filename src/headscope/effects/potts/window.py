"""What one window of a text shows: its communities under every head, and what chance would give.

One head's matrix is there at a time, between the first tokens of the window that are not special.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.effects.potts.couplings import States, communities, couplings, energy, strength
from headscope.effects.potts.partitions import agreement, as_blocks, shifted
from headscope.effects.potts.thermal import TEMPERATURES, warm
from headscope.measures.base import Values
from headscope.observed import ObservedModel
from headscope.pairs import SimilarityReading, reference
from headscope.text import Tokens
from headscope.units import Unit, shuffled

RUNS = 2  # of Leiden; more lower the energies of real heads in the fifth digit
FEWEST = 4  # tokens
WARM_TOKENS = 48
PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
NULLS = ("community_energy", "community_number", "largest_community")
SWEPT = (*NULLS, "communities_as_sentences", "communities_as_word_classes")
CURVES = ("energy", "order", "susceptibility")


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """The tokens of a window that are looked at, and every head's similarities between them."""

    z: list[Values]  # by layer (heads, tokens of the window, head size)
    kept: Any  # (tokens of the window,): not special
    places: Any  # of the tokens looked at, in the window
    sentences: States
    paragraphs: States
    word_classes: States
    reading: SimilarityReading

    def similarity(self, layer: int, head: int, most: int | None = None) -> Values:
        """C of one head between the tokens looked at."""
        C = reference.similarity(self.z[layer][head], self.reading, self.kept)
        places = self.places[:most]
        found: Values = C[np.ix_(places, places)]
        return found


def look(
    scope: ObservedModel, tokens: Tokens, reading: SimilarityReading, most: int
) -> Looked | None:
    """The first tokens of a window that are not special; None where they are too few."""
    places = np.flatnonzero(~tokens.special)[:most]
    if len(places) < FEWEST:
        return None
    z = [layer.double().numpy() for layer in scope.head_vectors(tokens)]
    breaks = np.array([match.end() for match in PARAGRAPH.finditer(tokens.text)], np.int64)
    paragraphs = np.searchsorted(breaks, tokens.starts, side="right")
    return Looked(
        z,
        ~tokens.special,
        places,
        tokens.sentences[places],
        paragraphs[places],
        tokens.word_classes[places],
        reading,
    )


def of_window(
    scope: ObservedModel,
    unit: Unit,
    reading: SimilarityReading,
    gammas: tuple[float, ...],
    tokens: int,
    seed: int,
) -> dict[str, Values]:
    """Every number of one window, each (layers, heads)."""
    shape = (scope.shape.layers, scope.shape.heads)
    found: dict[str, Values] = {}

    def put(layer: int, head: int, numbers: dict[str, float], gamma: float | None = None) -> None:
        for name, value in numbers.items():
            whole = name if gamma is None else f"{name}@{gamma:g}"
            found.setdefault(whole, np.full(shape, np.nan))[layer, head] = value

    random = unit.random(seed, "communities")
    if (looked := look(scope, unit.tokens, reading, tokens)) is not None:
        for layer, head in np.ndindex(shape):
            C = looked.similarity(layer, head)
            for gamma in gammas:
                J = couplings(C, gamma)
                states = communities(J, seed, RUNS)
                said = _said(J, C, states) | _agreements(states, looked)
                put(layer, head, {name: said[name] for name in SWEPT if name in said}, gamma)
                if gamma == 1:
                    put(layer, head, said | _chances(states, looked, random))
                    J = _reordered(J, random)
                    null = _said(J, C, communities(J, seed, RUNS))
                    put(layer, head, {f"{name} null": null[name] for name in NULLS})
    moved = look(scope, shuffled(unit, seed).tokens, reading, tokens)
    for layer, head in np.ndindex(shape) if moved is not None else ():
        assert moved is not None
        C = moved.similarity(layer, head)
        J = couplings(C)
        states = communities(J, seed, RUNS)
        share = _said(J, C, states)["community_energy"]
        put(layer, head, {"shuffled_energy": share})
        put(layer, head, {"shuffled_as_sentences": agreement(states, moved.sentences)})
    return found


def _said(J: Values, C: Values, states: States) -> dict[str, float]:
    """Energy, number and size of communities."""
    whole = strength(C)
    return {
        "community_energy": energy(J, states) / whole if whole > 0 else np.nan,
        "community_number": float(states.max() + 1),
        "largest_community": float((states == 0).mean()),
    }


def _agreements(states: States, looked: Looked) -> dict[str, float]:
    """How far communities are sentences, paragraphs or classes of words."""
    return {f"communities_as_{name}": agreement(states, parts) for name, parts in _parts(looked)}


def _chances(states: States, looked: Looked, random: np.random.Generator) -> dict[str, float]:
    """What sizes and distances of the communities give."""
    found = {}
    for name, parts in _parts(looked):
        found[f"communities_as_{name} null"] = shifted(states, parts)
        if name != "word_classes":  # which do not lie together
            found[f"blocks_as_{name}"] = as_blocks(states, parts, random)
    return found


def _parts(looked: Looked) -> Iterator[tuple[str, States]]:
    """The ways in which a text is cut, where it is."""
    for name in ("sentences", "paragraphs", "word_classes"):
        parts = getattr(looked, name)
        if len(np.unique(parts)) > 1:
            yield name, parts


def _reordered(J: Values, random: np.random.Generator) -> Values:
    """The same couplings, between other tokens."""
    first, second = np.triu_indices(len(J), 1)
    found = np.zeros_like(J)
    found[first, second] = random.permutation(J[first, second])
    return found + found.T


def warmth(
    scope: ObservedModel, unit: Unit, reading: SimilarityReading, seed: int
) -> dict[str, Values]:
    """Energy, order and susceptibility of heads at several temperatures, and their transition."""
    looked = look(scope, unit.tokens, reading, WARM_TOKENS)
    shape = (scope.shape.layers, scope.shape.heads)
    if looked is None or len(looked.places) < WARM_TOKENS:
        return {}  # where order is lost depends on how many there are
    random = unit.random(seed, "warmth")
    found: dict[str, Values] = {}
    for layer in range(shape[0]):
        J = np.stack([couplings(looked.similarity(layer, head)) for head in range(shape[1])])
        for null, own in (("", J), (" null", np.stack([_reordered(one, random) for one in J]))):
            warmed = warm(own, random)
            curves = {"transition": warmed.transition} | {
                f"{name}@{place}": getattr(warmed, name)[:, place]
                for name in CURVES
                for place in range(len(TEMPERATURES))
            }
            for name, values in curves.items():
                found.setdefault(f"{name}{null}", np.full(shape, np.nan))[layer] = values
    return found
