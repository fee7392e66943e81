"""The parameters of a study: everything that decides what it says of a model and a corpus."""

from dataclasses import dataclass, field
from typing import Any

from headscope.pairs import Rule, nearest, peak, quantile, sigma
from headscope.pairs.tokens import READINGS, SPECIAL, Reading, Special
from headscope.store import CannotStudy
from headscope.study.bootstrap import REPLICATES
from headscope.study.observe import NULLS, Kind, Mode

SWEEP: tuple[Rule, ...] = (
    *(quantile(q) for q in (0.002, 0.005, 0.01, 0.02, 0.05)),
    peak(),
    sigma(),
    nearest(),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Everything that decides what a study says of a model and a corpus."""

    readings: tuple[Reading, ...] = ("raw",)
    special: tuple[Special, ...] = ("kept", "left_out")
    rule: Rule = field(default_factory=quantile)
    sweep: bool = False  # also the other rules of METHOD.md, section 2
    nulls: tuple[Mode, ...] = ()
    replicates: int = REPLICATES
    seed: int = 0
    window: int | None = None  # tokens read at once; the model's own by default
    language: str = "en"  # for finding sentences
    batch_tokens: int | None = None  # tokens read together; 2,048 on a CPU, 32,768 elsewhere
    padding: float = 0.05  # largest share of padding in a batch

    def __post_init__(self) -> None:
        for name, given, known in (
            ("reading", self.readings, READINGS),
            ("special", self.special, SPECIAL),
            ("null", self.nulls, NULLS),
        ):
            for one in given:
                if one not in known:
                    raise CannotStudy(f"{name} is one of {', '.join(known)}, not {one!r}.")
        if not self.readings or not self.special:
            raise CannotStudy("A study needs at least one reading and one setting of special.")

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every way similarities are read; the first is the one findings are told of."""
        return tuple(Kind(r, s) for r in self.readings for s in self.special)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule; the study's own comes first."""
        others = SWEEP if self.sweep else ()
        return (self.rule, *(rule for rule in others if rule != self.rule))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return plain | {
            "rule": str(self.rule),
            "readings": list(self.readings),
            "special": list(self.special),
            "nulls": list(self.nulls),
        }
