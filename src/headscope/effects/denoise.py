"""The verb `denoise`: what comes of taking noise away from head vectors, for better or worse."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.effects.adding import Adding
from headscope.effects.change import run
from headscope.effects.cleaned import OF_PAIRS, Measured
from headscope.effects.cleaning import (
    Cleaning,
    PositionMeans,
    common_mode,
    directions,
    positions,
)
from headscope.effects.loss import Loss, LossKind, Metric
from headscope.effects.sample import Reads
from headscope.effects.sums import ReplicateSums
from headscope.effects.tables import quantity_table
from headscope.effects.verb import Verb
from headscope.measures.base import Definition, Quantity, Values, ratio
from headscope.measures.registry import DEFINITIONS
from headscope.observed import ObservedModel
from headscope.study.evidence import CONTRAST
from headscope.study.folder import Study
from headscope.study.progress import Progress
from headscope.study.told import told_view
from headscope.units import Unit

AT_RANDOM = "the same where as much is taken away at random"
SEEN = "seen on cleaned z of the model as it is"


def _cleaned(name: str, more: str) -> Definition:
    of = DEFINITIONS[name]
    says = f"{name} of the model, {SEEN}"
    return Definition(f"cleaned_{name}", says, of.unit, of.show, more, AT_RANDOM, "ours")


VERB = Verb(
    "denoise",
    "what comes of taking noise away from head vectors: the common mode of each text, the mean "
    "vector of each position, or all but the first singular directions of Z",
    {
        "denoise": (
            Definition(
                "cleaned_loss",
                "the model's loss when cleaned z of every head is put back, layer after layer, so "
                "that later layers read what is left",
                "nats per answer",
                "number",
                "what was taken away was worth more to the model",
                AT_RANDOM,
                "ours",
            ),
            _cleaned("snr", "related pairs stand out more"),
            _cleaned("unrelated", "more noise"),
            _cleaned("contrast", "high pairs stand out more"),
            _cleaned("common_mode", "vectors are more alike"),
            _cleaned("effective_rank", "vectors spread in more directions"),
            Definition(
                "cleaned_standing_out",
                "share of the heads whose raw similarities differ "
                f"(contrast ≥ {CONTRAST:g}), {SEEN}",
                "share of heads",
                "percent",
                "more heads have high pairs that stand out",
                AT_RANDOM,
                "ours",
            ),
            *(
                Definition(
                    f"cleaned_{claim.name}",
                    f"the statistic of the claim that {claim.says} ({claim.statistic}), {SEEN}",
                    "",
                    "number",
                    "more of what is claimed",
                    AT_RANDOM,
                    "ours",
                )
                for claim in OF_PAIRS
            ),
        ),
        "denoise_heads": (
            Definition(
                "snr_without_common_mode",
                f"snr of each head once the mean vector of each text is taken away, {SEEN}",
                "standard deviations",
                "number",
                "related pairs stand out more",
                AT_RANDOM,
                "ours",
            ),
        ),
    },
)


def denoise(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    loss: LossKind | Metric | None = None,
    progress: Progress | None = None,
) -> Study:
    """Add to a study what its measures and its model's loss make of cleaned head vectors."""
    asking = Loss(scope, loss, seed=(reads or Reads()).seed)
    adding = Adding(VERB, scope, source, out, reads, progress)
    means = PositionMeans(scope, adding.window)
    reading = Loss(scope, "embedding")  # asks nothing: the text as it is
    for units in adding.batches():
        asked = reading.ask(units, adding.length(units))
        means.add(units, asked.ids, asked.mask)
    plain = _Tried(adding, asking, None)
    tried = [
        tuple(_Tried(adding, asking, one) for one in both)
        for both in _cleanings(means, scope.shape.head_size, adding.reads.seed)
    ]
    for units in adding.batches():
        for one in (plain, *(one for both in tried for one in both)):
            one.add(units, adding.length(units))
    tables = {
        "denoise": pa.concat_tables([denoise_table(plain, own, random) for own, random in tried]),
        "denoise_heads": _head_table(*tried[0]),
    }
    return adding.finish(tables, loss=asking.kind, view=str(told_view(adding.manifest.parameters)))


def _cleanings(means: PositionMeans, head_size: int, seed: int) -> list[tuple[Cleaning, Cleaning]]:
    """Every way to clean, each with what takes as much away at random."""
    kept = [number for number in (1, 2, 4, 8, 16) if 2 * number <= head_size]
    return [
        (common_mode(), common_mode(seed, random=True)),
        (common_mode(left=means), common_mode(seed, left=means, random=True)),
        (positions(means), positions(means, seed, random=True)),
        (positions(means, left=True), positions(means, seed, left=True, random=True)),
        *((directions(number), directions(number, seed, random=True)) for number in kept),
    ]


class _Tried:
    """One way to clean, and all that comes of it."""

    def __init__(self, adding: Adding, loss: Loss, cleaning: Cleaning | None) -> None:
        chosen = adding.manifest.parameters
        self.scope, self.loss, self.cleaning = adding.scope, loss, cleaning
        self.sums: ReplicateSums = adding.sums()
        self.measured = Measured(
            adding.scope,
            cleaning,
            told_view(chosen),
            adding.padding,
            chosen.seed,
            chosen.replicates,
            chosen.group,  # type: ignore[arg-type]
        )

    def add(self, units: Sequence[Unit], length: int) -> None:
        """Measure a batch, and ask the model with cleaned z put back."""
        self.measured.add(units)
        asked = self.loss.ask(units, length)
        change = None if self.cleaning is None else self.cleaning.change(units, self.stack)
        hidden = run(self.scope, asked, change)
        unchanged = run(self.scope, asked) if self.loss.metric is not None else None
        lost = self.loss.sums(hidden, asked, unchanged)
        self.sums.add(units, answers=asked.counts, loss=lost)

    @property
    def stack(self) -> str:
        return self.scope.shape.stack

    def numbers(self) -> dict[str, Values]:
        """The loss and all numbers of the model: (replicates + 1,)."""
        loss = ratio(self.sums["loss"], self.sums["answers"])
        return {"loss": loss, **self.measured.numbers()}


def denoise_table(plain: _Tried, own: _Tried, random: _Tried) -> pa.Table:
    """Every number of a cleaning, as it was before, and beside as much taken away at random."""
    assert own.cleaning is not None
    table = pa.concat_tables(
        [
            _compared(plain.numbers(), own.numbers(), random.numbers()),
            _compared(*(one.measured.by_layer() for one in (plain, own, random))),
        ]
    )
    name = pa.array([own.cleaning.name] * len(table), pa.string())
    return table.add_column(0, "cleaning", name)


def _compared(
    before: Mapping[str, Values], after: Mapping[str, Values], chance: Mapping[str, Values]
) -> pa.Table:
    """The numbers after cleaning, with their change and what they are beyond chance."""

    def table(of: Mapping[str, Quantity]) -> pa.Table:
        return quantity_table({f"cleaned_{name}": value for name, value in of.items()})

    found = table({name: Quantity(after[name], chance[name]) for name in after})
    found = found.drop_columns(["lift", "lift_low", "lift_high"])
    was = table({name: Quantity(before[name]) for name in after})
    found = found.append_column("before", was["value"])
    for column, other in (("change", before), ("beyond_random", chance)):
        apart = table({name: Quantity(after[name] - other[name]) for name in after})
        for part, end in (("value", ""), ("low", "_low"), ("high", "_high")):
            found = found.append_column(f"{column}{end}", apart[part])
    return found


def _head_table(own: _Tried, random: _Tried) -> pa.Table:
    value, chance = own.measured.by_head(), random.measured.by_head()
    return quantity_table(
        {"snr_without_common_mode": Quantity(value, np.broadcast_to(chance, value.shape))}
    )
