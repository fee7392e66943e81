"""What the heads make of each unit of a text: their mean vectors, with every unit read on its own.

A unit in the middle of a long window carries its position and the window's edges in its vectors,
and those show up as change points (Pk 48 instead of 25 in a first trial). Read alone, every unit
starts at the same position and knows nothing of its neighbours.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs

if TYPE_CHECKING:
    from headscope.observed import ObservedModel

LONGEST_READ = 128  # tokens; a longer unit is read in parts, whose vectors are averaged
TOKENS_AT_ONCE = 4096  # in a batch, padding included
UNITS_AT_ONCE = 1024  # tokenized and sorted by length together

Vectors = NDArray[np.float32]


def unit_vectors(
    scope: "ObservedModel", units: list[str], advance: Callable[[int], None] | None = None
) -> Iterator[Vectors]:
    """Mean z of every unit, in order and some units at a time: (units, layers × heads, head size).

    Special tokens are left out of the mean. A unit of which the tokenizer makes no token is 0.
    `advance` is told how many more units were read.
    """
    for begin in range(0, len(units), UNITS_AT_ONCE):
        some = units[begin : begin + UNITS_AT_ONCE]
        yield _read(scope, some)
        if advance is not None:
            advance(len(some))


def _read(scope: "ObservedModel", units: list[str]) -> Vectors:
    shape = scope.shape
    sums = np.zeros((len(units), shape.layers * shape.heads, shape.head_size), dtype=np.float32)
    counts = np.zeros(len(units), dtype=np.float32)
    for batch in batches(scope, units):
        layers: list[Tensor] = []

        def observe(seen: HeadOutputs, batch: Batch = batch, layers: list[Tensor] = layers) -> None:
            z = seen.z[:, :, : batch.ids.shape[1]].float()  # (parts, heads, tokens, head size)
            layers.append(torch.einsum("bhtd,bt->bhd", z, batch.own.to(z.device)).cpu())

        scope.observe_batch(batch.ids, batch.mask, observe)
        np.add.at(sums, batch.units, torch.cat(layers, dim=1).numpy())
        np.add.at(counts, batch.units, batch.own.sum(dim=1).numpy())
    sums /= np.maximum(counts, 1)[:, None, None]
    return sums


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Units, or parts of long ones, that are read at once."""

    units: list[int]  # the number of each part's unit
    ids: Tensor  # (parts, tokens), padded at the end
    mask: Tensor | None  # (parts, tokens): 0 where padded; None where nothing is
    own: Tensor  # (parts, tokens): 1 for tokens of the text, 0 for special tokens and padding


def batches(scope: "ObservedModel", units: list[str]) -> Iterator[Batch]:
    """Parts of similar length together; of equal length where the tokenizer cannot pad."""
    pads = scope.tokenizer.pad_token_id is not None
    some: list[Part] = []
    for part in sorted(_parts(scope, units), key=lambda part: len(part[1])):
        length = len(part[1])
        full = (len(some) + 1) * length > TOKENS_AT_ONCE
        if some and (full or (not pads and length > len(some[0][1]))):
            yield _padded(some, scope.tokenizer.pad_token_id or 0)
            some = []
        some.append(part)
    if some:
        yield _padded(some, scope.tokenizer.pad_token_id or 0)


Part = tuple[int, list[int], list[int]]  # number of the unit, token ids, which tokens are special


def _parts(scope: "ObservedModel", units: list[str]) -> list[Part]:
    encoded = scope.tokenizer(
        units,
        truncation=True,
        max_length=min(scope.shape.window or LONGEST_READ, LONGEST_READ),
        return_overflowing_tokens=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        split_special_tokens=True,  # a text that spells [SEP] is still only a text
        verbose=False,
    )
    every = zip(
        encoded["overflow_to_sample_mapping"],
        encoded["input_ids"],
        encoded["special_tokens_mask"],
        strict=True,
    )
    return [part for part in every if not all(part[2])]


def _padded(parts: list[Part], padding: int) -> Batch:
    longest = max(len(ids) for _, ids, _ in parts)
    ids = torch.full((len(parts), longest), padding)
    mask = torch.zeros((len(parts), longest), dtype=torch.long)
    own = torch.zeros((len(parts), longest))
    for row, (_, tokens, special) in enumerate(parts):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
        own[row, : len(tokens)] = 1 - torch.tensor(special, dtype=torch.float32)
    return Batch([unit for unit, _, _ in parts], ids, None if bool(mask.all()) else mask, own)
