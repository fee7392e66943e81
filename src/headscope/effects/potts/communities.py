"""The verb `communities`: tokens as the spins of a Potts model, a head's similarities between them.

Windows are read as the study read them; of each, the communities among its first tokens are looked
for, as many as Leiden can be asked about for every head. One head's matrix is there at a time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.effects.adding import Adding
from headscope.effects.potts.couplings import GAMMAS, communities, couplings
from headscope.effects.potts.thermal import TEMPERATURES
from headscope.effects.potts.window import (
    CURVES,
    FEWEST,
    RUNS,
    SWEPT,
    WARM_TOKENS,
    of_window,
    warmth,
)
from headscope.effects.sample import Reads
from headscope.effects.tables import quantity_table
from headscope.effects.verb import Verb
from headscope.errors import NotPossible
from headscope.measures.base import Definition, Quantity, Values, ratio
from headscope.observed import ObservedModel
from headscope.pairs import SimilarityReading
from headscope.pairs.tokens import READINGS
from headscope.study.folder import Study
from headscope.study.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

REORDERED = "the same couplings between the same tokens, in random order"
MOVED = "the same communities moved along the text by every number of tokens: sizes, distances stay"


def _definition(name: str, says: str, more: str, chance: str = "", unit: str = "") -> Definition:
    show: Any = "percent" if unit == "share of tokens" else "number"
    return Definition(name, f"{says}; mean over texts", unit, show, more, chance, "ours")


VERB = Verb(
    "communities",
    "the communities of tokens that each head's similarities make",
    {
        "communities": (
            _definition(
                "community_energy",
                "E / Σ_{i < j} |C_ij| of the communities of least energy, E = −Σ_{i < j} (C_ij − "
                "null_ij) δ(s_i, s_j), null_ij = k_i k_j / 2m of positive and negative couplings "
                "apart",
                "tokens are less clearly in communities",
                REORDERED,
                "of all couplings",
            ),
            _definition(
                "community_number", "communities of least energy", "more communities", REORDERED
            ),
            _definition(
                "largest_community",
                "share of the tokens in the largest community",
                "one community takes most tokens",
                REORDERED,
                "share of tokens",
            ),
            _definition(
                "communities_as_sentences",
                "adjusted mutual information of communities and sentences (Vinh et al., 2010): "
                "permuted tokens give 0",
                "communities are sentences",
                MOVED,
            ),
            _definition(
                "blocks_as_sentences",
                "the same of unbroken blocks as large as the communities, in random order",
                "blocks of these sizes are sentences",
            ),
            _definition(
                "communities_as_paragraphs",
                "adjusted mutual information of communities and paragraphs, of texts with several",
                "communities are paragraphs",
                MOVED,
            ),
            _definition(
                "blocks_as_paragraphs",
                "the same of unbroken blocks as large as the communities, in random order",
                "blocks of these sizes are paragraphs",
            ),
            _definition(
                "communities_as_word_classes",
                "adjusted mutual information of communities and classes of words: content, "
                "function, punctuation, unknown or markup",
                "communities are classes of words",
                MOVED,
            ),
            _definition(
                "shuffled_energy",
                "community_energy where the model reads the tokens of the text in random order",
                "tokens are less clearly in communities",
                unit="of all couplings",
            ),
            _definition(
                "shuffled_as_sentences",
                "communities_as_sentences where the model reads the tokens in random order",
                "communities are where sentences were",
            ),
            _definition(
                "transition",
                "temperature at which order is lost, in units of the mean over tokens of "
                f"Σ_j |J_ij|: where S var(m) / T is largest; ten states, {WARM_TOKENS} tokens "
                "(Blatt et al., 1996)",
                "communities hold together longer",
                REORDERED,
            ),
        ),
    },
    told=("community_number", "communities_as_sentences"),
    other_tables=("community_sweep", "community_warmth"),
)


def add_communities(
    scope: ObservedModel,
    source: str | Path | Iterable[Any],
    out: str | Path,
    reads: Reads | None = None,
    *,
    reading: SimilarityReading = "centred",
    gammas: Iterable[float] = GAMMAS,
    tokens: int = 128,
    warmed: int = 4,
    progress: Progress | None = None,
) -> Study:
    """Add to a study the communities of tokens of each head; `warmed` texts for temperatures."""
    if reading not in READINGS:
        raise NotPossible(f"a reading is one of {', '.join(READINGS)}, not {reading!r}")
    if not FEWEST <= tokens <= 2048:
        raise NotPossible(f"tokens is a number from {FEWEST} to 2,048, not {tokens}.")
    swept = tuple(sorted({1.0, *map(float, gammas)}))
    for gamma in swept:  # says what is wrong, or to install, before anything is read
        communities(couplings(np.zeros((2, 2)), gamma))
    adding = Adding(VERB, scope, source, out, reads, progress)
    sums = adding.sums()
    names, left, seed = dict[str, None](), warmed, adding.reads.seed
    for unit in (unit for units in adding.batches() for unit in units):
        found = of_window(scope, unit, reading, swept, tokens, seed)
        if left and (warm := warmth(scope, unit, reading, seed)):
            found, left = found | warm, left - 1
        names |= dict.fromkeys(found)
        for name, value in found.items():
            known = np.isfinite(value)
            sums.add([unit], **{name: np.where(known, value, 0)[None], f"{name}#": known[None]})
    means = {name: ratio(sums[name], sums[f"{name}#"]) for name in names}
    tables = {
        "communities": _table(means),
        "community_sweep": _sweep(means, swept),
        "community_warmth": _curves(means),
    }
    return adding.finish(
        tables, reading=reading, gammas=swept, tokens=tokens, warmed=warmed, runs=RUNS
    )


def _table(means: dict[str, Values]) -> "pa.Table":
    """Every quantity of heads, layers and the model."""
    import pyarrow as pa

    quantities = {
        one.name: Quantity(means[one.name], means.get(f"{one.name} null"))
        for one in VERB.tables["communities"]
        if one.name in means
    }
    return pa.concat_tables(quantity_table(level) for level in _levels(quantities))


def _levels(quantities: dict[str, Quantity]) -> Iterator[dict[str, Quantity]]:
    """Quantities of heads, their means over the heads of layers, and over all of them."""
    for axes in ((), (2,), (1, 2)):
        yield {
            name: Quantity(*(_mean(one, axes) for one in quantity))
            for name, quantity in quantities.items()
        }


def _mean(values: Values | None, axes: tuple[int, ...]) -> Any:
    """The mean of those that are known."""
    if values is None or not axes:
        return values
    known = np.isfinite(values)
    return ratio(np.where(known, values, 0).sum(axis=axes), known.sum(axis=axes))


def _sweep(means: dict[str, Values], gammas: tuple[float, ...]) -> "pa.Table":
    """The same at every resolution."""
    return _with(
        "gamma",
        {
            gamma: {
                name: Quantity(means[f"{name}@{gamma:g}"])
                for name in SWEPT
                if f"{name}@{gamma:g}" in means
            }
            for gamma in gammas
        },
    )


def _curves(means: dict[str, Values]) -> "pa.Table":
    """Energy, order and susceptibility at every temperature, beside couplings in random order."""
    return _with(
        "temperature",
        {
            temperature: {
                name: Quantity(means[f"{name}@{place}"], means[f"{name}@{place} null"])
                for name in CURVES
                if f"{name}@{place}" in means
            }
            for place, temperature in enumerate(TEMPERATURES)
        },
    )


def _with(column: str, by: dict[float, dict[str, Quantity]]) -> "pa.Table":
    """Tables of several values of something, below each other."""
    import pyarrow as pa

    return pa.concat_tables(
        table.append_column(column, pa.array([value] * len(table), pa.float64()))
        for value, quantities in by.items()
        for table in map(quantity_table, _levels(quantities))
    )
