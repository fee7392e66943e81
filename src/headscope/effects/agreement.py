"""The verb `agreement`: which heads of a model do the same, on the same texts."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headscope.effects.across import AcrossSums, blocks
from headscope.effects.adding import Adding
from headscope.effects.alike import AgreementSums, replicates_for
from headscope.effects.head_map import TOGETHER, clusters, plane
from headscope.effects.sample import Reads
from headscope.effects.tables import quantity_table, table_of
from headscope.effects.together import seen_together
from headscope.effects.verb import Verb
from headscope.errors import CannotStudy
from headscope.measures.base import Definition, Quantity, Values, ratio
from headscope.observed import ObservedModel
from headscope.study.bootstrap import interval
from headscope.study.folder import Study
from headscope.study.progress import Progress
from headscope.study.told import told_view
from headscope.units import Unit

CKA = (
    "debiased linear CKA: Σ HSIC(C_a, C_b) / √(Σ HSIC(C_a, C_a) · Σ HSIC(C_b, C_b)), HSIC the "
    "unbiased estimate within a text (Song et al., 2012), the sums over texts, weighed by tokens"
)
BY_CHANCE = "0, if the tokens of one of the two were permuted"

VERB = Verb(
    "agreement",
    "which heads do the same: how alike the similarities, high pairs and attention of two are",
    {
        "agreement": (
            Definition(
                "agreement_with_model",
                f"mean over all other heads of the agreement of their similarities; {CKA}",
                "",
                "number",
                "the head does what others do",
                BY_CHANCE,
                "ours",
            ),
            Definition(
                "agreement_with_layer",
                "the same over the other heads of its layer",
                "",
                "number",
                "the head does what the others of its layer do",
                BY_CHANCE,
                "ours",
            ),
            Definition(
                "agreement_with_closest",
                "agreement with the head that it agrees with most",
                "",
                "number",
                "another head does what it does",
                BY_CHANCE,
                "ours",
            ),
            Definition(
                "agreement_with_other_model",
                "agreement with the head of another model that it agrees with most, over words: "
                "the vector of a word is the mean over its tokens",
                "",
                "number",
                "a head of the other model does what it does",
                BY_CHANCE,
                "ours",
            ),
        ),
    },
    told=("agreement_with_closest",),
    other_tables=("head_pairs", "head_map", "heads_across"),
)

NUMBERS = ("agreement", "overlap", "attention_distance")
PAIR_COLUMNS = {
    **{name: pa.int32() for name in ("first_layer", "first_head", "second_layer", "second_head")},
    **{
        f"{name}{part}": pa.float64()
        for name in NUMBERS
        for part in ("", "_low", "_high", "_chance")
    },
}
MAP_COLUMNS = {
    **{name: pa.int32() for name in ("layer", "head", "cluster", "cluster_heads")},
    **{name: pa.float64() for name in ("x", "y", "shown")},
    **{name: pa.int32() for name in ("closest_layer", "closest_head")},
    "agreement": pa.float64(),
}
ACROSS_COLUMNS = {
    **{name: pa.int32() for name in ("layer", "head", "other_layer", "other_head")},
    **{f"agreement{part}": pa.float64() for part in ("", "_low", "_high")},
}


def agreement(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    beside: ObservedModel | None = None,
    progress: Progress | None = None,
) -> Study:
    """Add to a study how alike every two of its heads are; and each with those of another model."""
    adding = Adding(VERB, scope, source, out, reads, progress)
    chosen, shape = adding.manifest.parameters, scope.shape
    heads = shape.layers * shape.heads
    sums = AgreementSums(
        heads,
        chosen.seed,
        replicates_for(heads, chosen.replicates),
        chosen.group,  # type: ignore[arg-type]
    )
    view = told_view(chosen)
    across = None if beside is None else _Across(adding, beside)
    for units in adding.batches():
        for unit in units:
            seen = seen_together(scope, unit, view, adding.reads.seed)
            if seen is not None:
                sums.add(unit, seen)
            if across is not None:
                across.add(unit)
    if not sums.sums:
        raise CannotStudy("Every text is too short to compare heads on: four tokens are needed.")
    tables = {
        "agreement": head_table(sums, shape.heads),
        "head_pairs": pair_table(sums, shape.heads),
        "head_map": map_table(sums, shape.heads),
    }
    said = {"view": str(view), "replicates": sums.replicates}
    if across is not None:
        similar = across.sums.similarity()
        tables["heads_across"] = across_table(similar, shape.heads, across.other.shape.heads)
        tables["agreement"] = pa.concat_tables(
            [tables["agreement"], _closest_across(similar, shape.heads)]
        )
        said |= {"beside": across.other.shape.name, "words": across.sums.words}
    return adding.finish(tables, **said)


class _Across:
    """The heads of another model, held against those of the study's on the same texts."""

    def __init__(self, adding: Adding, other: ObservedModel) -> None:
        chosen, shape = adding.manifest.parameters, adding.scope.shape
        self.scope, self.other, self.language = adding.scope, other, chosen.language
        self.sums = AcrossSums(
            shape.layers * shape.heads,
            other.shape.layers * other.shape.heads,
            chosen.seed,
            chosen.replicates,
            chosen.group,  # type: ignore[arg-type]
        )

    def add(self, unit: Unit) -> None:
        for own, theirs in blocks(self.scope, unit, self.other, self.language):
            self.sums.add(unit, own, theirs)


def head_table(sums: AgreementSums, heads: int) -> pa.Table:
    """How much each head agrees with the others."""
    similar = sums.square(sums.similarity())  # (replicates + 1, heads of the model, the same)
    count = sums.heads
    other = ~np.eye(count, dtype=bool)
    same_layer = np.equal.outer(np.arange(count) // heads, np.arange(count) // heads) & other
    closest = _closest(similar[0])
    quantities = {
        "agreement_with_model": _mean_where(similar, other),
        "agreement_with_layer": _mean_where(similar, same_layer),
        "agreement_with_closest": similar[:, np.arange(count), closest],
    }
    return quantity_table(
        {
            name: Quantity(
                value.reshape(len(value), -1, heads), np.zeros((len(value), count // heads, heads))
            )
            for name, value in quantities.items()
        }
    )


def pair_table(sums: AgreementSums, heads: int) -> pa.Table:
    """A row for each two heads: their agreement, the overlap of their high pairs, and how far
    apart their attention is."""
    similar, (overlap, by_chance), distance = sums.similarity(), sums.overlap(), sums.distance()
    missing = np.full_like(similar, np.nan)
    apart, apart_chance = (missing, missing) if distance is None else distance
    first, second = sums.pairs
    columns: dict[str, Any] = {
        "first_layer": first // heads + 1,
        "first_head": first % heads + 1,
        "second_layer": second // heads + 1,
        "second_head": second % heads + 1,
    }
    for name, value, chance in (
        ("agreement", similar, np.zeros(similar.shape[1])),
        ("overlap", overlap, np.broadcast_to(by_chance[0], similar.shape[1:])),
        ("attention_distance", apart, apart_chance[0]),
    ):
        low, high = interval(value)
        columns |= {name: value[0], f"{name}_low": low, f"{name}_high": high}
        columns[f"{name}_chance"] = chance
    two = first != second
    rows = zip(*(columns[name][two].tolist() for name in PAIR_COLUMNS), strict=True)
    return table_of([dict(zip(PAIR_COLUMNS, row, strict=True)) for row in rows], PAIR_COLUMNS)


def map_table(sums: AgreementSums, heads: int) -> pa.Table:
    """Where each head is on the map of heads, and in which cluster."""
    similar = sums.square(sums.similarity()[:1])[0]
    places, shown = plane(similar)
    cluster, closest = clusters(similar, TOGETHER), _closest(similar)
    sizes = np.bincount(cluster)
    rows = [
        {
            "layer": at // heads + 1,
            "head": at % heads + 1,
            "cluster": int(cluster[at]),
            "cluster_heads": int(sizes[cluster[at]]),
            "x": float(places[at, 0]),
            "y": float(places[at, 1]),
            "shown": shown,
            "closest_layer": int(closest[at]) // heads + 1,
            "closest_head": int(closest[at]) % heads + 1,
            "agreement": float(similar[at, closest[at]]),
        }
        for at in range(sums.heads)
    ]
    return table_of(rows, MAP_COLUMNS)


def across_table(similar: Values, heads: int, others: int) -> pa.Table:
    """A row for each head and each of the other model, from (replicates + 1, heads, others)."""
    low, high = interval(similar)
    rows = [
        {
            "layer": one // heads + 1,
            "head": one % heads + 1,
            "other_layer": other // others + 1,
            "other_head": other % others + 1,
            "agreement": float(similar[0, one, other]),
            "agreement_low": float(low[one, other]),
            "agreement_high": float(high[one, other]),
        }
        for one, other in np.ndindex(similar.shape[1:])
    ]
    return table_of(rows, ACROSS_COLUMNS)


def _closest_across(similar: Values, heads: int) -> pa.Table:
    """How much each head agrees with the head of the other model that it agrees with most."""
    closest = np.nan_to_num(similar[0], nan=-2).argmax(1)
    value = similar[:, np.arange(similar.shape[1]), closest].reshape(len(similar), -1, heads)
    return quantity_table({"agreement_with_other_model": Quantity(value, np.zeros_like(value))})


def _closest(similar: Values) -> Any:
    """The other head that each agrees with most (heads,)."""
    others = np.where(np.eye(len(similar), dtype=bool), -np.inf, np.nan_to_num(similar, nan=-2))
    return others.argmax(1)


def _mean_where(similar: Values, among: Any) -> Values:
    """The mean over some of the other heads: (replicates + 1, heads)."""
    known = np.isfinite(similar) & among
    summed: Values = np.where(known, similar, 0).sum(2)
    return ratio(summed, known.sum(2))
