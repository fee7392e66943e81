"""Draws masked training batches from the token stream, entirely on the device.

A batch is one flat stream of fixed size, laid out in slots of 32 to 512 tokens. A slot holds one
text `[CLS] A [SEP]`, a pair `[CLS] A [SEP] B [SEP]` or two texts `[CLS] A [SEP] [CLS] B [SEP]`, so
that short whole sentences are seen too. A ends at a sentence end where a B follows it.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from prepare import read_stream
from torch import Tensor

CLS, SEP, MASK, FIRST_WORD = 2, 3, 4, 5
SHORTEST, LONGEST = 32, 512
LONGER_AFTER = 0.6
# Shares of the slots: pairs, those of them whose B comes from elsewhere, slots of two texts, and
# slots that begin inside a sentence rather than with one.
PAIRS, PAIRS_FROM_ELSEWHERE, SPLIT, BEGIN_INSIDE = 0.4, 0.12, 0.25, 0.2


class Batch(NamedTuple):
    ids: Tensor  # T, with masks put in
    positions: Tensor  # T, place inside the text
    kinds: Tensor  # T, 0 in segment A and 1 in segment B
    bounds: Tensor  # texts + 1, int32: where each text begins, and the end; a text may be empty
    where: Tensor  # M masked places in the stream
    labels: Tensor  # M true ids there
    counted: Tensor  # M, 1 where the place counts in the loss, else 0


@dataclass(frozen=True)
class Stream:
    ids: Tensor  # N
    sentence_starts: Tensor  # sentences
    document_ends: Tensor  # sentences: where the document of that sentence ends

    @staticmethod
    def read(path: Path, device: str) -> "Stream":
        arrays = read_stream(path)
        sentence_ends = np.cumsum(arrays["sentence_lengths"], dtype=np.int64)
        starts = sentence_ends - arrays["sentence_lengths"]
        ends = np.cumsum(arrays["document_lengths"], dtype=np.int64)
        document_ends = ends[np.searchsorted(ends, starts, side="right")]
        ids = torch.from_numpy(arrays["ids"].astype(np.int16)).to(device)
        return Stream(ids, *(torch.from_numpy(a).to(device) for a in (starts, document_ends)))


@dataclass(frozen=True)
class Layout:
    """How slots lie in the stream: `slot` and `place` say for each token in which, and where."""

    lengths: Tensor  # slots
    begins: Tensor  # slots
    slot: Tensor  # T
    place: Tensor  # T
    splits: bool  # whether a slot may hold two texts

    @staticmethod
    def of(lengths: list[int], slots: int, device: str, splits: bool) -> "Layout":
        padded = torch.tensor(lengths + [0] * (slots - len(lengths)))
        begins = padded.cumsum(0) - padded
        slot = torch.arange(slots).repeat_interleave(padded)
        place = torch.arange(len(slot)) - begins[slot]
        return Layout(*(x.to(device) for x in (padded, begins, slot, place)), splits)

    def bounds(self, first_text: Tensor | None = None) -> Tensor:
        """Where texts begin, and the end; `first_text` is how long the first text of a slot is."""
        if first_text is None:
            first_text = self.lengths
        both = torch.stack([self.begins, self.begins + first_text], dim=1).flatten()
        end = torch.full((1,), len(self.slot), device=both.device)
        return torch.cat([both, end]).to(torch.int32)


def groups_of(size: int) -> tuple[tuple[int, int], ...]:
    """(texts, length) for five lengths filling the stream, for attention by groups."""
    part, rest = divmod(size, 8192)
    if rest:
        raise ValueError(f"the stream's size must be a multiple of 8,192, not {size}")
    return tuple((n * part, s) for n, s in ((8, 32), (8, 64), (10, 128), (10, 256), (7, 512)))


def random_lengths(size: int, usual: list[int], longest: int, random: np.random.Generator):
    """Slot lengths that sum to `size`: half of the slots a usual length, the others log-uniform."""
    lengths, left = [], size
    while left:
        length = int(random.choice(usual))
        if random.random() < 0.5:
            length = int(math.exp(random.uniform(math.log(SHORTEST), math.log(longest + 1))))
        if left - length < SHORTEST:
            length = left if left <= longest else left // 2
        lengths.append(length)
        left -= length
    return lengths


@dataclass(frozen=True)
class Plan:
    """Which layout a step uses. Long texts cost most of the time in attention, so they are one
    step in six until `LONGER_AFTER` of a run, and two in three from then on."""

    short: list[Layout]
    long: list[Layout]

    def at(self, step: int, used: float) -> Layout:
        long = step % 6 == 0 if used < LONGER_AFTER else step % 3 != 0
        choice = self.long if long else self.short
        return choice[step // 6 % len(choice)]

    @staticmethod
    def grouped(size: int, device: str) -> "Plan":
        lengths = [s for texts, s in groups_of(size) for _ in range(texts)]
        same = [Layout.of(lengths, len(lengths), device, splits=False)]
        return Plan(same, same)

    @staticmethod
    def varied(size: int, device: str, count: int = 48) -> "Plan":
        random = np.random.default_rng(0)
        kinds = (([128], 128), ([128, 256, 384, 512], LONGEST))
        drawn = [[random_lengths(size, *kind, random) for _ in range(count)] for kind in kinds]
        slots = max(len(lengths) for kind in drawn for lengths in kind)
        return Plan(*([Layout.of(each, slots, device, True) for each in kind] for kind in drawn))


def draw_starts(stream: Stream, room: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """For each slot a sentence start with `room` tokens left in its document, if four tries find
    one, and what is left."""
    device = stream.ids.device
    tries = torch.randint(
        len(stream.sentence_starts), (4, len(room)), device=device, generator=generator
    )
    begin = stream.sentence_starts[tries]
    left = stream.document_ends[tries] - begin
    first = (left >= room).int().argmax(0, keepdim=True)
    return begin.gather(0, first)[0], left.gather(0, first)[0]


def draw(
    stream: Stream, layout: Layout, most_masked: int, rate: float, generator: torch.Generator
) -> Batch:
    """One batch with a share `rate` of its tokens masked, `most_masked` places or fewer."""
    lengths, slot, place = layout.lengths, layout.slot, layout.place
    device, slots, size = stream.ids.device, len(lengths), len(slot)

    def uniform(n: int) -> Tensor:
        return torch.rand(n, device=device, generator=generator)

    inside = ((uniform(slots) < BEGIN_INSIDE) * 40 * uniform(slots)).long()
    begin, left = draw_starts(stream, lengths - 2 + inside, generator)
    begin, left = begin + inside, left - inside
    elsewhere, _ = draw_starts(stream, lengths, generator)

    # Where A ends: at a sentence end somewhere in the middle, or where the document ends.
    wish = begin + ((0.15 + 0.7 * uniform(slots)) * lengths).long()
    cut = torch.searchsorted(stream.sentence_starts, wish).clamp(
        max=len(stream.sentence_starts) - 1
    )
    cut = torch.minimum(stream.sentence_starts[cut] - begin, left)
    chance = uniform(slots)
    short = left < lengths - 2
    cut = torch.where(short & (chance >= PAIRS + SPLIT), left, cut)
    possible = (cut >= 4) & (cut <= lengths - 8)
    split = possible & (chance >= PAIRS) & (chance < PAIRS + SPLIT) & layout.splits
    pair = possible & ((chance < PAIRS) | short) & ~split
    cut = torch.where(pair | split, cut, LONGEST)
    begin_b = torch.where(pair & (chance < PAIRS_FROM_ELSEWHERE), elsewhere, begin + cut)

    cut_t, pair_t, split_t = cut[slot], pair[slot], split[slot]  # T
    in_b = place > cut_t + 1
    shift = torch.where(in_b, begin_b[slot] - cut_t - 2 - split_t.long(), begin[slot] - 1)
    ids = stream.ids[(place + shift).clamp(0, len(stream.ids) - 1)].long()
    positions = torch.where(in_b & split_t, place - cut_t - 2, place)
    ids = torch.where(positions == 0, CLS, ids)
    ids = torch.where((place == lengths[slot] - 1) | (place == cut_t + 1), SEP, ids)
    kinds = (in_b & pair_t).long()
    bounds = layout.bounds(torch.where(split, cut + 2, lengths))

    special = (ids == CLS) | (ids == SEP)
    where = (uniform(size) + 2 * special).topk(most_masked, largest=False).indices
    labels = ids[where]
    counted = torch.arange(most_masked, device=device) < rate * size
    fate = torch.where(counted, uniform(most_masked), 1.0)
    anything = torch.randint(FIRST_WORD, 8192, (most_masked,), device=device, generator=generator)
    new = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, anything, labels))
    return Batch(
        ids.scatter(0, where, new), positions, kinds, bounds, where, labels, counted.float()
    )
