"""What one picture or sound shows of every head: contributions to the sums of a study.

An input is run alone, so that its numbers depend on nothing that is read beside it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.errors import CannotRead
from headscope.inputs.attended import ROWS, attention_rows, targets, where_targets_are
from headscope.inputs.positions import Bools, Floats, Positions
from headscope.measures import selection, size
from headscope.measures.base import ObservedPairs, Values, on_grid
from headscope.measures.focus import SINK
from headscope.observed import ObservedModel
from headscope.pairs import PairStatistics, Quantile, TokenBatch, plain_tokens, start_for_settings
from headscope.pairs.statistics import joined
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.pairs.vector_statistics import Members, start_vector_statistics
from headscope.study.parameters import Parameters
from headscope.study.placed.measures import APART
from headscope.study.sums import Key, key_of

Found: TypeAlias = dict[Key, dict[str, Values]]  # (layers, heads) each


def unit_of(positions: Positions) -> str:
    """What distances are in."""
    return "patches" if positions.grid is not None else "seconds"


class Placed:
    """What positions are like, whatever heads make of them."""

    def __init__(self, positions: Positions, parameters: Parameters, causal: bool):
        assert isinstance(parameters.rule, Quantile)
        self.positions, self.special = positions, parameters.special
        marks = plain_tokens(range(len(positions)), special=positions.special)
        self.batch = TokenBatch([marks])
        kept = [marks.kept(special) for special in self.special]
        if min(int(one.sum()) for one in kept) < 2:
            raise CannotRead("It has no two positions that could be a pair.")
        self.most = parameters.rule.number(len(positions) * (len(positions) - 1) // 2)
        self.kept = [one[None] for one in kept]
        apart = positions.distances()
        assert apart is not None
        self.apart: Floats = apart
        plain = np.flatnonzero(~positions.special)
        every = apart[np.ix_(plain, plain)][np.triu_indices(len(plain), 1)]
        self.usual = float(every.mean()) if len(every) else 0.0
        self.readers = np.zeros(positions.total, dtype=bool)
        self.readers[positions.places] = True
        self.names = [name.replace(" ", "_") for name in targets(positions)]
        keys = np.arange(positions.total)
        visible = (keys + 1 if causal else np.full(len(keys), len(keys))).astype(np.float64)
        self.visible: Values = visible[self.readers]  # positions that each row can see
        self.masks: dict[int, tuple[Tensor, Tensor]] = {}
        self.shares = np.zeros(len(self.names))  # Σ_i of the masses of evenly spread attention
        even = np.zeros(len(keys))
        for start in range(0, len(keys), ROWS):
            rows = keys[start : start + ROWS]
            own: Bools = self.readers[rows]
            masks = where_targets_are(positions, rows[own])  # (targets, readers, keys)
            spread = (keys < visible[rows[own], None]) / visible[rows[own], None]
            self.shares += (masks * spread).sum((1, 2))
            even += spread.sum(0)
            self.masks[start] = torch.from_numpy(own), torch.from_numpy(masks)
        self.even = float(_spread(even[None])[0])


class PlacedObserver:
    """Looks at pictures or sounds with one model."""

    def __init__(self, scope: ObservedModel, parameters: Parameters):
        self.scope, self.parameters = scope, parameters
        own = scope.shape.own
        self.no_focus = None
        if scope.shape.seam == "projection" or not own.weighs:
            self.no_focus = f"the attention weights of {scope.shape.family} are out of sight"
        self._before: Placed | None = None

    def see(self, given: dict[str, Tensor], positions: Positions, mode: str) -> Found:
        """What every head shows over one input."""
        placed = self._placed(positions)
        one = _Pass(placed, self.parameters, self.no_focus is None)
        self.scope.observe_inputs(given, one.observe)
        return one.found(mode)

    def _placed(self, positions: Positions) -> Placed:
        """What is known of positions; those of pictures are mostly the same as before."""
        before = self._before
        if before is None or not _same(before.positions, positions):
            self._before = before = Placed(positions, self.parameters, self.scope.shape.causal)
        return before


def _same(one: Positions, other: Positions) -> bool:
    return (one.kind, one.labels, one.total, one.grid) == (
        other.kind,
        other.labels,
        other.total,
        other.grid,
    ) and bool((one.places == other.places).all())


class _Pass:
    """One input going through a model, and what its layers have shown so far."""

    def __init__(self, placed: Placed, parameters: Parameters, attention: bool):
        self.placed, self.parameters, self.attention = placed, parameters, attention
        self.pairs: dict[tuple[SimilarityReading, Special], list[PairStatistics]] = {}
        self.vectors: list[list[dict[str, Tensor]]] = []
        self.focus: list[dict[str, Values]] = []

    def observe(self, outputs: HeadOutputs) -> None:
        """Take the statistics of a layer."""
        placed, parameters = self.placed, self.parameters
        if outputs.z.shape[2] != placed.positions.total:
            raise CannotRead(f"The model has {outputs.z.shape[2]:,} positions for it.")
        z = outputs.z[:, :, torch.from_numpy(placed.positions.places)].contiguous()
        name = f"{outputs.site.layer + 1}"
        for reading in parameters.readings:
            started = start_for_settings(
                z,
                placed.batch,
                (parameters.rule,),
                placed.special,
                reading=reading,
                top=placed.most,
                layer=name,
            )
            for special, wait in zip(placed.special, started, strict=True):
                self.pairs.setdefault((reading, special), []).append(wait())
        members = Members.of(placed.kept, z.device)
        self.vectors.append(start_vector_statistics(z, members)())
        if self.attention:
            self.focus.append(_attended(outputs, placed))

    def found(self, mode: str) -> Found:
        """Everything, as it is added up."""
        found: Found = {}
        rule = str(self.parameters.rule)
        for (reading, special), layers in self.pairs.items():
            seen = self._observed(layers, special)
            found[key_of(size.MEASURE, mode, reading, special, rule)] = _only(size.update(seen))
            at = key_of(selection.MEASURE, mode, reading, special, rule)
            found[at] = _only(selection.update(seen))
            if special == "left_out":  # what is special stands nowhere
                found[Key(mode, "range", reading, special, rule)] = self._range(layers)
        if self.focus:
            found[Key(mode, "focus")] = _stacked(self.focus)
        return found

    def _observed(self, layers: Sequence[PairStatistics], special: Special) -> ObservedPairs:
        """The pairs as the measures of texts take them."""
        number = self.placed.special.index(special)
        vectors = {
            name: torch.stack([layer[number][name] for layer in self.vectors], 1).cpu().numpy()
            for name in self.vectors[0][number]
        }
        nothing = np.zeros((1, len(layers), layers[0].mean.shape[1]))
        seed = self.parameters.seed
        every = joined(layers, lambda parts: np.stack(parts, 1))
        return ObservedPairs((), self.placed.batch, every, 0, vectors, nothing, seed)

    def _range(self, layers: Sequence[PairStatistics]) -> dict[str, Values]:
        """Σ of the distances of high pairs, which are the first of the most similar ones."""
        count = np.stack([layer.high[0].count[0] for layer in layers]).astype(np.float64)
        far = np.zeros_like(count)
        for layer, seen in enumerate(layers):
            top = seen.top
            assert top is not None
            high = np.arange(top.first.shape[2]) < count[layer][:, None]
            apart = self.placed.apart[top.first[0], top.second[0]]  # (heads, pairs)
            far[layer] = np.where(high, apart, 0.0).sum(axis=1)
        name = APART[unit_of(self.placed.positions)]
        sums = {"high": count, name: far, f"{name}_chance": count * self.placed.usual}
        return {name: on_grid(value) for name, value in sums.items()}


def _only(sums: Mapping[str, Values]) -> dict[str, Values]:
    """Contributions of the one input there is."""
    return {name: value[0] for name, value in sums.items()}


def _stacked(layers: Sequence[dict[str, Values]]) -> dict[str, Values]:
    return {name: on_grid(np.stack([layer[name] for layer in layers])) for name in layers[0]}


def _attended(outputs: HeadOutputs, placed: Placed) -> dict[str, Values]:
    """Where the attention of a layer goes, its sharpness, and how it gathers: (heads,) each."""
    heads = outputs.z.shape[1]
    mass = torch.zeros(heads, len(placed.names), dtype=torch.float64)
    entropy, largest = torch.zeros(2, heads, dtype=torch.float64)
    columns = torch.zeros(heads, placed.positions.total, dtype=torch.float64)
    for start, weights in attention_rows(outputs, placed.positions):
        own, masks = placed.masks[start]
        A = weights[:, own[: weights.shape[1]].to(weights.device)].float()  # (heads, readers, keys)
        mass += (A.flatten(1) @ masks.to(A).flatten(1).T).double().cpu()
        entropy += torch.special.entr(A.clamp(min=0)).sum((1, 2), dtype=torch.float64).cpu()
        largest += A.amax(-1).sum(-1, dtype=torch.float64).cpu()
        columns += A.sum(1, dtype=torch.float64).cpu()
    ones, visible = np.ones(heads), placed.visible
    found = {
        "texts": ones,
        "rows": ones * len(visible),
        "entropy": entropy.numpy(),
        "entropy_chance": ones * np.log(visible).sum(),
        "confidence": largest.numpy(),
        "confidence_chance": ones * (1 / visible).sum(),
        "attended_columns": _spread(columns.numpy()),
        "attended_columns_chance": ones * placed.even,
        "sink": 1.0 * (columns.numpy().max(axis=1) > SINK * len(visible)),
    }
    for place, name in enumerate(placed.names):
        found[name] = mass[:, place].numpy()
        found[f"{name}_chance"] = ones * placed.shares[place]
    return found


def _spread(columns: Values) -> Values:
    """The effective number of columns (heads, keys): exp of the entropy of their shares."""
    shares = columns / columns.sum(-1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1))
    spread: Values = np.exp(-(shares * logs).sum(-1))
    return spread
