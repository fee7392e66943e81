"""The best head of each relation, chosen on one half of the documents and judged on the other.

Beside it stands what knows no head: always the word so many places further on (Clark et al., 2019),
or the candidates that are spelled alike; of these, too, the best on the first half.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headscope.effects.structure.scores import Asked
from headscope.effects.structure.signals import SIGNALS
from headscope.effects.structure.totals import Document, Key, Totals
from headscope.effects.sums import ReplicateSums
from headscope.measures.base import Values
from headscope.units import Unit

STEPS = range(-10, 11)
ALIKE = "the same spelling"
BASELINES = (*(f"{step:+d}" for step in STEPS), ALIKE)


@dataclass(slots=True)
class Offsets:
    """What each baseline finds, by relation: (baselines,)."""

    found: dict[Key, Values] = field(default_factory=dict)

    def look(self, asked: Sequence[Asked]) -> None:
        """Add a window."""
        for one in asked:
            alike = one.alike_found()
            for relation, steps in one.steps_found(STEPS).items():
                self._add((one.question.kind, relation), np.append(steps, alike[relation]))

    def add(self, other: "Offsets") -> None:
        """Add a document."""
        for key, found in other.found.items():
            self._add(key, found)

    def _add(self, key: Key, found: Values) -> None:
        self.found[key] = self.found.get(key, np.zeros(len(BASELINES))) + found


@dataclass(slots=True)
class Chosen:
    """On the first half: by relation the head of each signal with the largest share found."""

    heads: dict[Key, list[tuple[int, int]]]  # by signal (layer, head), from 0
    value: dict[Key, list[float]]  # what it found there
    baseline: dict[Key, int]

    @classmethod
    def on(cls, totals: Totals, offsets: Offsets) -> "Chosen":
        """Choose."""
        heads, value, baseline = {}, {}, {}
        for kind, relation, score in totals.sums:
            if score == "found":
                key = (kind, relation)
                own = totals.sums[kind, relation, score].numbers(score)["value"]
                places = [int(one.argmax()) for one in own]
                heads[key] = [divmod(place, own.shape[2]) for place in places]
                value[key] = [float(one.max()) for one in own]
                baseline[key] = int(offsets.found[key].argmax())
        return cls(heads, value, baseline)


class Judged:
    """On the second half: what was chosen, document by document, as replicates count them."""

    def __init__(self, chosen: Chosen, sums: ReplicateSums) -> None:
        self.chosen, self.sums = chosen, sums
        self.keys: dict[Key, int] = {}  # documents

    def add(self, unit: Unit, document: Document, offsets: Offsets) -> None:
        """Add a document."""
        for key, heads in self.chosen.heads.items():
            own = document.sums.get((*key, "found"))
            if own is None:
                continue
            self.keys[key] = self.keys.get(key, 0) + 1
            signals = range(len(SIGNALS))
            layers, places = np.array(heads).T
            baseline = offsets.found[key][self.chosen.baseline[key]]
            for name, values in {
                "found": own.value[signals, layers, places],
                "chance": own.chance[signals, layers, places],
                "matched": own.matched[signals, layers, places],
                "baseline": np.array([baseline]),
                "count": np.array([own.count]),
            }.items():
                self.sums.add([unit], **{self.name(key, name): values[None]})

    def name(self, key: Key, what: str) -> str:
        """What a sum is called."""
        return f"best {key[0]} / {key[1]} / {what}"

    def of(self, key: Key, what: str) -> Values:
        """A sum as each replicate counts it: (replicates + 1, signals or 1)."""
        return self.sums[self.name(key, what)]
