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
from headscope.pairs.distances import DISTANCE_BINS, distance_bin
from headscope.pairs.statistics import ChancePairs
from headscope.pairs.tokens import UNRELATED_DISTANCE, WORD_CLASSES, Special

TOGETHER = 2**25  # pairs that are compared at once
NAMES = ("sentences", "ids", "words", "occurrences", "word_classes")
BEHIND = {"word_classes": 0}  # what padding holds; else -1


class TokenTensors:
    """Arrays (texts, tokens) of a batch, on the host and on a device."""

    def __init__(self, batch: TokenBatch, device: torch.device) -> None:
        self.device, self.size = device, max(int(max(batch.lengths, default=0)), 1)
        self.lengths = batch.lengths
        place = np.arange(self.size)
        self.there = place < batch.lengths[:, None]
        every = np.empty((len(NAMES) + 1, len(batch), self.size), np.int32)
        for own, name in zip(every, NAMES, strict=False):
            own[:] = BEHIND.get(name, -1)
            own[self.there] = np.concatenate([getattr(text, name) for text in batch.texts])
        for own in (every[NAMES.index("sentences")], every[NAMES.index("words")]):
            # What is in no sentence, or of no word, is like nothing else.
            np.copyto(own, (-2 - place).astype(np.int32), where=self.there & (own < 0))
        every[-1] = 0
        every[-1][self.there] = np.concatenate([~text.special for text in batch.texts])
        self.host = dict(zip((*NAMES, "ordinary"), every, strict=True))
        self.together = put(every, device)  # (arrays, texts, tokens)
        self.on_device = dict(zip(self.host, self.together, strict=True))
        self.types = None  # (texts, kinds, tokens) where the type of each token first occurs
        if batch.type_numbers is not None:
            kinds = len(batch.type_numbers[0])
            numbers = np.full((len(batch), kinds, self.size), np.iinfo(np.int64).min)
            for row, types in zip(numbers, batch.type_numbers, strict=True):
                row[:, : types.shape[1]] = types
            there = put(self.there, device)[:, None]
            self.types = first_places(put(numbers, device)).masked_fill(~there, -1)

    def kept(self, special: Special) -> NDArray[np.bool_]:
        """Which tokens take part (texts, tokens)."""
        return self.there & (self.host["ordinary"] > 0) if special == "left_out" else self.there


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
    own = tokens.on_device
    ordinary = own["ordinary"] > 0
    settings, texts, _ = kept.shape
    at, inside = torch.zeros(2, settings, texts, size, dtype=torch.int64, device=device)
    # same token, special, unrelated, and repeated words by class
    more = torch.zeros(3 + WORD_CLASSES, settings, texts, dtype=torch.int64, device=device)
    step = max(1, TOGETHER // (settings * texts * size))
    for first in range(1, size, step):
        distances = slice(first, min(first + step, size))

        def equal(name: str, distances: slice = distances) -> Tensor:
            one, other = _ends(own[name], -1, distances)
            return one == other

        both = torch.logical_and(*_ends(kept, 0, distances))  # (settings, B, distances, S)
        plain = torch.logical_and(*_ends(kept & ordinary, 0, distances))
        same_sentence, same_word = equal("sentences") & both, equal("words") & both
        at[..., distances], inside[..., distances] = both.sum(-1), same_sentence.sum(-1)
        far = torch.arange(distances.start, distances.stop, device=device) > UNRELATED_DISTANCE
        apart = plain & ~same_sentence & ~same_word & far[:, None]
        same_word &= ~equal("occurrences")
        kind = torch.maximum(*_ends(own["word_classes"], 0, distances))
        for n, which in enumerate((both & equal("ids"), both & ~plain, apart)):
            more[n] += which.sum((2, 3))
        for n in range(WORD_CLASSES):
            more[3 + n] += (same_word & (kind == n)).sum((2, 3))
    by_bin = torch.zeros(2, settings, texts, DISTANCE_BINS, dtype=torch.int64, device=device)
    # Nothing is at distance 0.
    by_bin.index_add_(3, bins_of(size, device), torch.stack([at, inside]))
    at, inside, more = at.flatten(0, 1), inside.flatten(0, 1), more.flatten(1)
    by_bin = by_bin.flatten(1, 2)
    chance: dict[str, Any] = {
        "count": at.sum(1),
        "by_distance": by_bin[0],
        "same_sentence": inside.sum(1),
        "same_sentence_by_distance": by_bin[1],
        "same_token": more[0],
        "same_word": more[3:].sum(0),
        "repeated": more[3:].T,
        "special": more[1],
        "unrelated": more[2],
    }
    return AllPairs(ChancePairs(**chance), inside.double() / at.clamp(min=1).double())


def _ends(values: Tensor, behind: int, distances: slice) -> tuple[Tensor, Tensor]:
    """Of values (…, S) those of a token and of another so far behind it: (…, distances, S)."""
    size = values.shape[-1]
    later = torch.nn.functional.pad(values, (0, size), value=behind)
    return values[..., None, :], later.unfold(-1, size, 1)[..., distances, :]
