"""Which view of a study is told, and what the other views say about each claim.

A *view* is one way of looking at pairs: a reading, a setting of special tokens and a rule. A study
has one or many. The terminal, the report, the figures, the viewer and the cards tell the one that
is chosen here, and name it; beside a verdict they say how many of the other views agree.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headscope.errors import CannotStudy

if TYPE_CHECKING:
    from headscope.study.manifest import Manifest

Row = Mapping[str, Any]

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
SPECIAL = {"kept": "special tokens kept", "left_out": "special tokens left out"}


def over(manifest: "Manifest") -> str:
    """What the intervals of a study are over, by the name a person knows it by."""
    corpus, group = manifest.corpus, manifest.parameters.group
    if group == "window":
        return f"windows, as blocks of {corpus.documents:,} documents"
    if group == "file" or corpus.document == "file":
        return "files" if group == "file" else "documents"
    return f"{corpus.document}s of {corpus.name}"


@dataclass(frozen=True, slots=True, order=True)
class View:
    """One way of looking at pairs."""

    reading: str
    special: str
    rule: str

    def __str__(self) -> str:
        return f"{self.reading}, {self.rule}, {SPECIAL[self.special]}"

    def has(self, row: Row) -> bool:
        """Whether a row of a table belongs to it; what needs no view belongs to every one."""
        return all(
            row.get(name) in (None, value)
            for name, value in (
                ("reading", self.reading),
                ("special", self.special),
                ("rule", self.rule),
            )
        )

    @classmethod
    def of(cls, row: Row) -> "View | None":
        """The view of a row; None for what needs no view, such as attention."""
        if row["reading"] is None:
            return None
        return cls(row["reading"], row["special"], row["rule"])


class Chosen(Protocol):
    """How pairs were looked at: the parameters of a study, or what its manifest says of them."""

    @property
    def readings(self) -> Sequence[str]:
        """Which readings, the first of them told."""

    @property
    def special(self) -> Sequence[str]:
        """With special tokens, without them, or both."""

    @property
    def rule(self) -> object:
        """The rule; spelled out by `str`."""


def told_view(parameters: Chosen) -> View:
    """The view that is told of a study, from its parameters, or those in its manifest.

    The study's own rule and first reading. Special tokens are left out where the study did that: a
    separator is every head's most frequent partner, and would hide what heads do with the words.
    """
    special = parameters.special
    return View(
        parameters.readings[0],
        "left_out" if "left_out" in special else special[0],
        str(parameters.rule),
    )


def strongest_null(row: Row) -> str:
    """Of the nulls that a claim has to exceed the one that comes closest; else why there is none.

    In other models the same number is often undefined, since all pairs are alike there.
    """
    needed = [null for null in row["nulls"] if null["needed"]]
    run = [null for null in needed if null["value"] is not None]
    if run:
        closest = min(run, key=lambda null: float(null["difference"]))
        return f"{closest['value']:.3g} ({closest['null']})"
    return "undefined" if needed else ""


@dataclass(frozen=True, slots=True)
class ToldClaim:
    """A claim as it is told: its row in the told view, and its rows in all views."""

    row: Row
    views: Mapping[View, Row]  # empty where the claim needs no view

    @property
    def agreeing(self) -> int:
        """In how many views the verdict is the one that is told."""
        return sum(row["verdict"] == self.row["verdict"] for row in self.views.values())

    @property
    def robust(self) -> bool:
        """Whether several views were looked at, and all say the same."""
        return len(self.views) > 1 and self.agreeing == len(self.views)

    @property
    def by_reading(self) -> Mapping[str, Row]:
        """Its rows in the readings that were taken, else looked at as it is told."""
        own = self.row
        return {
            view.reading: row
            for view, row in self.views.items()
            if (view.special, view.rule) == (own["special"], own["rule"])
        }

    @property
    def holding(self) -> list[View]:
        """The views in which it holds."""
        return [view for view, row in self.views.items() if row["verdict"] == HOLDS]

    @property
    def agreement(self) -> str:
        """How many views agree, and what those where it holds have in common."""
        if not self.views:
            return "needs no view: it is about attention"
        if len(self.views) == 1:
            return "looked at in this view only"
        if self.agreeing == len(self.views):
            both = "both" if self.agreeing == 2 else f"all {self.agreeing}"
            firm = "" if self.row["verdict"] == OPEN else "robust: "  # that all are unsure is not
            return f"{firm}{both} views agree"
        agree = "agrees" if self.agreeing == 1 else "agree"
        told = f"{self.agreeing} of {len(self.views)} views {agree}"
        if self.row["verdict"] == HOLDS:
            return told + self._only()
        return f"{told}; it holds in {len(self.holding) or 'none'}{self._only()}"

    @property
    def brief(self) -> str:
        """The same in a few characters, for a narrow column."""
        return f"{self.agreeing} of {len(self.views)}{self._only()}" if self.views else ""

    def _only(self) -> str:
        """What the views where the claim holds share, and not all views do."""
        shared = []
        for part in ("rule", "reading", "special"):
            where = {getattr(view, part) for view in self.holding}
            if len(where) == 1 and len({getattr(view, part) for view in self.views}) > 1:
                (one,) = where
                shared.append(SPECIAL.get(one, one))
        return f", {' and '.join(shared)} only" if shared else ""


def told_claims(findings: Iterable[Row], view: View, mode: str = "real") -> list[ToldClaim]:
    """Every claim, in the order of the table, from the rows of the table of findings."""
    by_claim: dict[str, list[Row]] = {}
    for row in findings:
        if row["mode"] == mode:
            by_claim.setdefault(row["claim"], []).append(row)
    return [_told_claim(rows, view) for rows in by_claim.values()]


def _told_claim(rows: Sequence[Row], view: View) -> ToldClaim:
    views = {found: row for row in rows if (found := View.of(row)) is not None}
    ordered = sorted(views, key=lambda one: one != view)  # the told one first, else as they stand
    own = next((row for row in rows if view.has(row)), None)
    if own is None:
        raise CannotStudy(
            f"The table of findings says nothing of the claim {rows[0]['claim']!r} as it is told "
            f"({view}): it is not whole. Make the study again."
        )
    return ToldClaim(own, {one: views[one] for one in ordered})
