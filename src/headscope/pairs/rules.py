"""Which pairs of a similarity matrix are *high*: four rules, as values that can be recorded.

A rule is frozen, prints as text (`str(quantile(0.01)) == "quantile(0.01)"`) and is read back by
`parse_rule`, so that a manifest, a table column and a command line all name it the same way.
Every rule gives each token a threshold, and a pair is high when its similarity reaches the
threshold of either end: similarities *equal* to a threshold are always high, so ties are never
broken by position.
"""

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

from headscope.errors import NotPossible


@dataclass(frozen=True, slots=True)
class Quantile:
    """The top share `q` of the pairs of a head in a text, exactly.

    With n pairs, k = max(1, ceil(q n)); the threshold is the k-th largest similarity. Pairs tied
    with the k-th are all high, so a head has k high pairs, or more when there are ties.
    """

    q: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", float(self.q))
        if not 0 < self.q <= 1:
            raise NotPossible(f"quantile(q) needs a share 0 < q <= 1 of the pairs, not {self.q!r}")

    def __str__(self) -> str:
        return f"quantile({self.q!r})"

    def number(self, pairs: int) -> int:
        """How many pairs the rule asks for among `pairs`."""
        # The share is meant in decimal: 0.07 * 100 is 7.000000000000001 in binary, and means 7.
        return min(pairs, max(1, math.ceil(round(self.q * pairs, 9))))


@dataclass(frozen=True, slots=True)
class Peak:
    """At least `f` times the largest similarity off the diagonal."""

    f: float = 0.3

    def __post_init__(self) -> None:
        object.__setattr__(self, "f", float(self.f))
        if not (math.isfinite(self.f) and self.f > 0):
            raise NotPossible(f"peak(f) needs a finite share f > 0 of the maximum, not {self.f!r}")

    def __str__(self) -> str:
        return f"peak({self.f!r})"


@dataclass(frozen=True, slots=True)
class Sigma:
    """At least the mean plus `k` standard deviations of the similarities off the diagonal."""

    k: float = 3.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", float(self.k))
        if not math.isfinite(self.k):
            raise NotPossible(f"sigma(k) needs a finite number of deviations, not {self.k!r}")

    def __str__(self) -> str:
        return f"sigma({self.k!r})"


@dataclass(frozen=True, slots=True)
class Nearest:
    """One end is among the `k` most similar tokens of the other, so that every token takes part.

    The default of 3 gives between 1.5 and 3 pairs a token; quantile(0.01) of 512 tokens is 2.6.
    """

    k: int = 3

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise NotPossible(f"nearest(k) needs a whole number of tokens k >= 1, not {self.k!r}")

    def __str__(self) -> str:
        return f"nearest({self.k})"


Rule: TypeAlias = Quantile | Peak | Sigma | Nearest

RULES: dict[str, type[Quantile] | type[Peak] | type[Sigma] | type[Nearest]] = {
    "quantile": Quantile,
    "peak": Peak,
    "sigma": Sigma,
    "nearest": Nearest,
}


def quantile(q: float = 0.01) -> Quantile:
    """Return the rule "among the top share `q` of the pairs"."""
    return Quantile(q)


def peak(f: float = 0.3) -> Peak:
    """Return the rule "at least `f` times the largest similarity"."""
    return Peak(f)


def sigma(k: float = 3.0) -> Sigma:
    """Return the rule "at least `k` standard deviations above the mean"."""
    return Sigma(k)


def nearest(k: int = 3) -> Nearest:
    """Return the rule "among the `k` most similar tokens of either end"."""
    return Nearest(k)


_WRITTEN = re.compile(r"\s*(?P<name>[A-Za-z]+)\s*(?:[(:]\s*(?P<number>[^()]*?)\s*\)?)?\s*")


def parse_rule(text: str) -> Rule:
    """Read a rule from text: "quantile(0.01)", "quantile:0.01", "quantile(1%)" or "quantile"."""
    written = _WRITTEN.fullmatch(text)
    name = written["name"].lower() if written else ""
    if written is None or name not in RULES:
        known = ", ".join(f"{known}(…)" for known in RULES)
        raise NotPossible(f"no such rule: {text!r}; write one of {known}, such as 'quantile(0.01)'")
    if not written["number"]:
        return RULES[name]()
    number = written["number"]
    percent = number.endswith("%")
    try:
        value = float(number.removesuffix("%")) / (100 if percent else 1)
        whole = int(number) if name == "nearest" else 0
    except ValueError:
        kind = "a whole number" if name == "nearest" else "a number"
        raise NotPossible(
            f"the rule {text!r} needs {kind} in brackets, such as '{RULES[name]()}', not {number!r}"
        ) from None
    match name:
        case "nearest":
            return Nearest(whole)
        case "quantile":
            return Quantile(value)
        case "peak":
            return Peak(value)
        case _:
            return Sigma(value)
