"""How a study reads: the real thing and the nulls it is held against, and kinds of similarity."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from headscope.pairs.tokens import SimilarityReading, Special

Null: TypeAlias = Literal["shuffle", "random", "permuted", "uniform", "identity"]
Mode: TypeAlias = Literal[
    "real", "shuffle", "random", "random-2", "random-3", "permuted", "uniform", "identity"
]

NULLS: dict[Null, str] = {
    "shuffle": "the tokens of each text in random order",
    "random": "the same architecture with random weights, three times",
    "permuted": "the model's own weights, each in random order",
    "uniform": "attention spread evenly",
    "identity": "no attention at all: each token keeps its own value",
}
USUAL: tuple[Null, ...] = ("random", "permuted", "shuffle", "identity")
RANDOM: tuple[Mode, ...] = ("random", "random-2", "random-3")
OF_VALUES: tuple[Mode, ...] = ("uniform", "identity")  # need the values, which some models hide


def modes_of(nulls: Sequence[Null]) -> tuple[Mode, ...]:
    """The modes that some nulls are run in."""
    found: list[Mode] = []
    for null in nulls:
        found += RANDOM if null == "random" else (null,)
    return tuple(found)


def null_of(mode: str) -> str:
    """The null that a mode belongs to: `random-2` is of `random`."""
    return mode.partition("-")[0]


@dataclass(frozen=True, slots=True)
class SimilarityKind:
    """How similarities are read: which reading, and whether special tokens take part."""

    reading: SimilarityReading = "raw"
    special: Special = "kept"
