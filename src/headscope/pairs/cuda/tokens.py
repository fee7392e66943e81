"""The tokens of a batch on a device, put there once; and what is counted of them over all pairs."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.compute.arrays import put
from headscope.pairs.batch import TokenBatch
from headscope.pairs.cuda.chance_kernels import count_pairs
from headscope.pairs.distances import DISTANCE_BINS, distance_bin
from headscope.pairs.statistics import ChancePairs
from headscope.pairs.tokens import WORD_CLASSES, Special

TILE = 64
NAMES = ("sentences", "ids", "words", "occurrences", "word_classes")
BEHIND = {"word_classes": 0}  # what padding holds; else -1


class TokenTensors:
    """Arrays (texts, tokens) of a batch, on a device."""

    def __init__(self, batch: TokenBatch, device: torch.device) -> None:
        self.device, self.size = device, max(int(max(batch.lengths, default=0)), 1)
        self.lengths = batch.lengths
        self._ordinary = np.array([int((~text.special).sum()) for text in batch.texts], np.int64)
        self.most_special = int((self.lengths - self._ordinary).max(initial=0))  # of a text
        every = np.full((len(NAMES) + 1, len(batch), self.size), -1, np.int32)
        every[[NAMES.index(name) for name in BEHIND]] = 0
        for number, name in enumerate(NAMES):
            for own, text in zip(every[number], batch.texts, strict=True):
                own[: len(text)] = getattr(text, name)
        for own, text in zip(every[-1], batch.texts, strict=True):
            own[: len(text)] = ~text.special
            own[len(text) :] = 0
        self.together = put(every, device)  # (arrays, texts, tokens)
        self.on_device = dict(zip((*NAMES, "ordinary"), self.together, strict=True))
        self.length = put(batch.lengths.astype(np.int32), device)
        place = torch.arange(self.size, dtype=torch.int32, device=device)
        self.there = place < self.length[:, None]  # (texts, tokens)
        for name in ("sentences", "words"):
            # What is in no sentence, or of no word, is like nothing else.
            own = self.on_device[name]
            torch.where(self.there & (own < 0), -2 - place, own, out=own)
        self.types = None  # (texts, kinds, tokens) where the type of each token first occurs
        if batch.type_numbers is not None:
            kinds = len(batch.type_numbers[0])
            numbers = np.full((len(batch), kinds, self.size), np.iinfo(np.int64).min)
            for row, types in zip(numbers, batch.type_numbers, strict=True):
                row[:, : types.shape[1]] = types
            self.types = first_places(put(numbers, device)).masked_fill(~self.there[:, None], -1)

    def taking_part(self, special: Special) -> NDArray[np.int64]:
        """How many tokens of each text take part, on the host."""
        return self._ordinary if special == "left_out" else self.lengths


def first_places(numbers: Tensor) -> Tensor:
    """Where each number of a row (…, tokens) first occurs."""
    order, place = numbers.sort(dim=-1, stable=True)
    new = torch.ones_like(order, dtype=torch.bool)
    new[..., 1:] = order[..., 1:] != order[..., :-1]
    at = torch.arange(numbers.shape[-1], device=numbers.device)
    start = torch.where(new, at, 0).cummax(-1).values  # of the run of equal numbers
    return torch.empty_like(place).scatter_(-1, place, place.gather(-1, start))


@dataclass(frozen=True, slots=True)
class AllPairs:
    """What is counted over all pairs of the texts of a batch, on a device; a setting at a time."""

    chance: ChancePairs  # of tensors (settings · texts, …)
    inside_share: Tensor  # (settings · texts, S) float64: of pairs at a distance, in one sentence


@lru_cache(maxsize=16)
def bins_of(size: int, device: torch.device) -> Tensor:
    """The bin of every distance below a number of tokens (S,), on a device."""
    return put(distance_bin(np.arange(size)).astype(np.int32), device)


def count_all_pairs(tokens: TokenTensors, kept: Tensor) -> AllPairs:
    """Count all pairs of every text: exactly what `pairs.chance` counts by groups.

    kept: (settings, B, S) bool, which tokens take part.
    """
    size, device = tokens.size, tokens.device
    rows, blocks = kept.shape[0] * kept.shape[1], -(-size // TILE)
    apart = torch.empty(rows, 2, 2, blocks * TILE, dtype=torch.int32, device=device)
    more = torch.empty(rows, blocks, 3 + WORD_CLASSES, dtype=torch.int32, device=device)
    count_pairs[(blocks, rows)](
        kept.int().contiguous(),
        *(tokens.on_device[name] for name in (*NAMES, "ordinary")),
        apart,
        more,
        kept.shape[1],
        size,
        blocks,
        T=TILE,
        CLASSES=WORD_CLASSES,
    )
    at, below = apart.long().unbind(2)  # (rows, 2, blocks · T)
    at[..., :-TILE] += below[..., TILE:]
    at = at[..., :size]
    by_bin = torch.zeros(rows, 2, DISTANCE_BINS, dtype=torch.int64, device=device)
    by_bin.index_add_(2, bins_of(size, device), at)  # nothing is at distance 0
    found = more.long().sum(1)  # (rows, 3 + classes)
    chance: dict[str, Any] = {
        "count": at[:, 0].sum(1),
        "by_distance": by_bin[:, 0],
        "same_sentence": at[:, 1].sum(1),
        "same_sentence_by_distance": by_bin[:, 1],
        "same_token": found[:, 0],
        "same_word": found[:, 3:].sum(1),
        "repeated": found[:, 3:],
        "special": found[:, 1],
        "unrelated": found[:, 2],
    }
    share = at[:, 1].double() / at[:, 0].clamp(min=1).double()
    return AllPairs(ChancePairs(**chance), share)
