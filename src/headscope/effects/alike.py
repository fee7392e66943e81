"""Agreement of heads: how alike the similarity matrices, high pairs and attention of two heads are.

Three numbers for every pair of heads, each a sum over texts, so that no vectors are kept: the
debiased linear CKA of Z, the overlap of high pairs, and the Jensen–Shannon distance of attention.
What two heads share beyond chance they share text by text: tokens of two texts are never compared.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.measures.base import ratio
from headscope.study.bootstrap import REPLICATES, Group, Values, group_of, weights
from headscope.units import Unit

Counts = NDArray[np.int64]
AT_ONCE = 2**24  # numbers of similarity matrices that are made at once
FEWEST = 4  # tokens without which the debiased estimate is not defined
ROWS = 16  # of attention that are compared in a text, at even distances from a random place
KEPT = 2**24  # numbers of replicates that are kept of a sum


def hsic(first: Sequence[Tensor], second: Sequence[Tensor] | None = None) -> Values:
    """How the similarities of two heads go together in one text: (first heads, second heads).

    Each is the vectors of some layers (heads, tokens, d). This is the unbiased estimate of HSIC
    with linear kernels (Song et al. 2012): the mean product of two similarity matrices off the
    diagonal, once each is centred so that its rows sum to 0 without the diagonal (Székely and Rizzo
    2014). Its mean over permutations of one's tokens is 0. Without `second`, of `first` with
    itself.
    """
    one = [_Centred(layer) for layer in first]
    other = one if second is None else [_Centred(layer) for layer in second]
    tokens = one[0].tokens
    scales = [torch.cat([layer.scale for layer in side]) for side in (one, other)]
    found = torch.zeros(len(scales[0]), len(scales[1]), dtype=torch.float64)
    step = max(1, AT_ONCE // (sum(len(scale) for scale in scales) * tokens))
    for start in range(0, tokens, step):
        rows = slice(start, min(start + step, tokens))
        mine = torch.cat([layer.similarities(rows) for layer in one])  # (heads, rows × tokens)
        theirs = mine
        if second is not None:
            theirs = torch.cat([layer.similarities(rows) for layer in other])
        found += (mine @ theirs.T).double().cpu()
    found *= (scales[0][:, None] * scales[1]).cpu() / (tokens * (tokens - 3))
    made: Values = found.numpy()
    return made


class _Centred:
    """The vectors of a layer in one text, about their mean and in units of their size."""

    def __init__(self, z: Tensor) -> None:
        wide = z.double()  # (heads, tokens, d)
        wide = wide - wide.mean(1, keepdim=True)
        self.tokens = z.shape[1]
        square = (wide**2).sum(-1).mean(-1)  # (heads,)
        unit = torch.where(square > 0, square, 1.0)
        self.scale = square  # of a similarity
        self.z = (wide / unit.sqrt()[:, None, None]).float()
        own = (self.z.double() ** 2).sum(-1)  # (heads, tokens)
        # About the mean, a row sums to 0 with the diagonal, so to −‖z_i‖² without it.
        self.of_row = (own / (self.tokens - 2)).float()
        of_all = own.sum(-1) / ((self.tokens - 1) * (self.tokens - 2))
        self.of_all = of_all.float()[:, None, None]

    def similarities(self, rows: slice) -> Tensor:
        """Some rows of the centred similarity matrices, without their diagonal: (heads, …)."""
        tile = self.z[:, rows] @ self.z.transpose(1, 2)  # (heads, rows, tokens)
        tile += self.of_row[:, rows, None] + self.of_row[:, None, :] - self.of_all
        tile[:, torch.arange(rows.stop - rows.start), torch.arange(rows.start, rows.stop)] = 0
        return tile.flatten(1)


def shared_pairs(first: Counts, second: Counts, tokens: int) -> Values:
    """How many high pairs two heads share, from both ends of each pair (heads, pairs)."""
    codes = torch.from_numpy(first * tokens + second)
    distinct, places = torch.unique(codes, return_inverse=True)  # places: (heads, pairs)
    heads = len(codes)
    found = torch.zeros(heads, heads)
    step = max(1, AT_ONCE // heads)
    for start in range(0, len(distinct), step):
        inside = (places >= start) & (places < start + step)
        member = torch.zeros(heads, min(step, len(distinct) - start))
        member[inside.nonzero()[:, 0], places[inside] - start] = 1
        found += member @ member.T
    made: Values = found.double().numpy()
    return made


def attention_distances(one: Tensor, other: Tensor) -> Values:
    """The Jensen–Shannon distance of attention rows, mean over rows: (heads, heads), for a < b.

    Both are rows (heads, rows, tokens), of which head a's in `one` are held against head b's in
    `other`. The distance is the root of the divergence in bits, so from 0 to 1.
    """
    heads = len(one)
    found = torch.zeros(heads, heads, dtype=torch.float64)
    entropy, others = (torch.special.entr(rows).sum(-1) for rows in (one, other))  # (heads, rows)
    for head in range(heads - 1):
        later = slice(head + 1, None)
        mixed = torch.special.entr((one[head] + other[later]) / 2).sum(-1)  # (later heads, rows)
        bits = (mixed - (entropy[head] + others[later]) / 2) / math.log(2)
        found[head, later] = bits.clamp(0, 1).sqrt().mean(-1).double()
    made: Values = found.numpy()
    return made


def compared_rows(tokens: int, start: float) -> slice:
    """The rows of attention that are compared: at even distances, from a random place in [0, 1)."""
    step = max(1, tokens // ROWS)
    return slice(int(start * step), tokens, step)


@dataclass(eq=False)
class AgreementSums:
    """What every pair of heads shares, added up over documents with the bootstrap's replicates.

    Pairs are those of a ≤ b, row by row, as in `numpy.triu_indices`.
    """

    heads: int  # of the whole model
    seed: int = 0
    replicates: int = REPLICATES
    group: Group = "document"
    sums: dict[str, Values] = field(default_factory=dict)  # (replicates + 1, …)

    def add(self, unit: Unit, seen: Mapping[str, Values]) -> None:
        """Take in one text: matrices (heads, heads), of which a ≤ b counts, and numbers."""
        weight = weights([group_of(unit, self.group)], self.seed, self.replicates)[0]
        for name, value in seen.items():
            flat = value[self.pairs] if value.ndim else value[None]  # (pairs,) or (1,)
            added = weight[:, None] * flat
            self.sums[name] = self.sums[name] + added if name in self.sums else added

    @property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both heads of each pair."""
        first, second = np.triu_indices(self.heads)
        return first, second

    def square(self, values: Values) -> Values:
        """Numbers of pairs (…, pairs) as symmetric matrices (…, heads, heads)."""
        found = np.full((*values.shape[:-1], self.heads, self.heads), np.nan)
        first, second = self.pairs
        found[..., first, second] = found[..., second, first] = values
        return found

    def similarity(self) -> Values:
        """The debiased linear CKA of each pair: (replicates + 1, pairs)."""
        together = self.sums["hsic"]
        first, second = self.pairs
        own = together[:, first == second]  # (replicates + 1, heads)
        own = np.sqrt(np.where(own > 0, own, np.nan))
        return ratio(together, own[:, first] * own[:, second])

    def overlap(self) -> tuple[Values, Values]:
        """Shared high pairs / all of both heads (Jaccard), and by chance: (replicates + 1, …)."""
        both, own, chance = (self.sums[name] for name in ("shared", "own", "shared_chance"))
        return ratio(both, 2 * own - both), ratio(chance, 2 * own - chance)

    def distance(self) -> tuple[Values, Values] | None:
        """The distance of attention and its chance level; None where attention is out of sight."""
        if "distance" not in self.sums:
            return None
        texts = self.sums["texts"]
        found = (ratio(self.sums[name], texts) for name in ("distance", "distance_chance"))
        return next(found), next(found)


def replicates_for(heads: int, most: int = REPLICATES) -> int:
    """How many replicates there is room for: fewer where a model has very many heads."""
    return max(20, min(most, KEPT // (heads * (heads + 1) // 2)))
