"""The parameters of a study: everything that decides what it says of a model and a corpus."""

import re
from dataclasses import dataclass, field
from typing import Any

from headscope.errors import CannotStudy
from headscope.pairs import Rule, nearest, peak, quantile, sigma
from headscope.pairs.tokens import READINGS, SPECIAL, SimilarityReading, Special
from headscope.study.bootstrap import GROUPS, REPLICATES, Group
from headscope.study.examples import TEXTS
from headscope.study.modes import NULLS, USUAL, Mode, Null, SimilarityKind, modes_of
from headscope.study.told import View

NULL_TOKENS = 2**12
SWEEP: tuple[Rule, ...] = (
    *(quantile(q) for q in (0.002, 0.005, 0.01, 0.02, 0.05)),
    peak(),
    sigma(),
    nearest(),
)


LIMITS = (
    ("replicates", 2, 100_000),
    ("seed", 0, 2**63 - 1),
    ("window", 1, 2**24),
    ("batch_tokens", 1, 2**40),
    ("padding", 0, 0.99),
    ("null_tokens", 1, 2**40),
    ("texts", 0, 10_000),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Everything that decides what a study says of a model and a corpus."""

    readings: tuple[SimilarityReading, ...] = ("raw", "cosine")
    special: tuple[Special, ...] = ("kept", "left_out")
    rule: Rule = field(default_factory=quantile)
    sweep: bool = False  # also the other rules of METHOD.md, section 2
    nulls: tuple[Null, ...] = USUAL
    null_tokens: int = NULL_TOKENS  # of the corpus, on which nulls are run
    group: Group = "document"  # what intervals are over: see `bootstrap.group_of`
    replicates: int = REPLICATES
    seed: int = 0
    window: int | None = None  # tokens read at once; the model's own by default
    language: str = "en"  # for finding sentences
    batch_tokens: int | None = None  # tokens read together; 32,768 on CUDA, else 2,048
    padding: float = 0.1  # most padding of a text, as a share of it
    texts: int = TEXTS  # windows whose text is kept, to be looked at beside the study

    def __post_init__(self) -> None:
        for name, given, known in (
            ("reading", self.readings, READINGS),
            ("special", self.special, SPECIAL),
            ("null", self.nulls, NULLS),
            ("group", (self.group,), GROUPS),
        ):
            for one in given:
                if one not in known:
                    raise CannotStudy(f"{name} is one of {', '.join(known)}, not {one!r}.")
            if len(set(given)) < len(given):
                raise CannotStudy(f"{name} is given twice: {', '.join(given)}.")
        if not self.readings or not self.special:
            raise CannotStudy("A study needs at least one reading and one setting of special.")
        for name, least, most in LIMITS:
            number = getattr(self, name)
            if number is not None and not least <= number <= most:
                raise CannotStudy(f"{name} has to be a number from {least} to {most:,}.")
        if not re.fullmatch(r"[\w-]{1,32}", self.language):
            raise CannotStudy(f"language has to be a code such as 'en', not {self.language!r:.60}.")

    @property
    def kinds(self) -> tuple[SimilarityKind, ...]:
        """Every way similarities are read."""
        return tuple(SimilarityKind(r, s) for r in self.readings for s in self.special)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule; the study's own comes first."""
        others = SWEEP if self.sweep else ()
        return (self.rule, *(rule for rule in others if rule != self.rule))

    @property
    def views(self) -> tuple[View, ...]:
        """Every way pairs are looked at."""
        return tuple(
            View(kind.reading, kind.special, str(rule))
            for rule in self.rules
            for kind in self.kinds
        )

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes of all nulls."""
        return modes_of(self.nulls)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {
            "rule": str(self.rule),
            "readings": list(self.readings),
            "special": list(self.special),
            "nulls": list(self.nulls),
        }
