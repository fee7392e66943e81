"""Statistics of the head vectors of a text that need no pair of them: sizes, common mode, rank.

All are torch code for whichever device holds z; on a CPU the workers take a text at a time, so that
torch's own threads do not spin beside them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.compute.arrays import put
from headscope.compute.threads import start_in_parallel
from headscope.compute.underway import done
from headscope.pairs.effective_rank import effective_rank


@dataclass(frozen=True, slots=True)
class Members:
    """Which tokens count (texts, tokens), in each of several ways; made once for a batch."""

    always: Tensor | None  # in every way; none where all tokens do
    ways: tuple[tuple[Tensor, Tensor, Tensor | None, Tensor | None], ...]
    # for each way: which tokens; how many (texts, 1); those not always there (texts, few) and
    # which of these are real

    @staticmethod
    def of(kept: Sequence[NDArray[np.bool_]], device: torch.device) -> "Members":
        """From masks (texts, tokens); padding counts in none."""
        always = np.logical_and.reduce(list(kept))

        def there(values: NDArray[Any]) -> Tensor:
            return put(values, device)

        ways = []
        for each in kept:
            count, more = np.maximum(each.sum(1, keepdims=True), 1.0), each & ~always
            place = np.argsort(~more, axis=1, kind="stable")[:, : int(more.sum(1).max())]
            real = np.take_along_axis(more, place, 1)
            few = (there(place), there(real)) if place.size else (None, None)
            ways.append((there(each), there(count), *few))
        return Members(None if always.all() else there(always), tuple(ways))

    def times(self, layers: int) -> "Members":
        """The same texts for each of several layers, one layer after the other."""

        def again(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.repeat(layers, 1)

        ways = tuple(
            (kept.repeat(layers, 1), count.repeat(layers, 1), again(place), again(real))
            for kept, count, place, real in self.ways
        )
        return Members(again(self.always), ways)

    def of_text(self, text: int) -> "Members":
        """Those of one text."""
        own = slice(text, text + 1)

        def some(values: Tensor | None) -> Tensor | None:
            return None if values is None else values[own]

        ways = tuple((kept[own], count[own], some(p), some(r)) for kept, count, p, r in self.ways)
        return Members(some(self.always), ways)


def start_vector_statistics(z: Tensor, members: Members) -> Callable[[], list[dict[str, Tensor]]]:
    """Start the statistics (texts, heads) of head vectors z (texts, heads, tokens, d), by way."""
    if z.is_cuda:
        return done(vector_statistics(z, members))
    found: list[list[dict[str, Tensor]]] = [[] for _ in z]

    def look(text: int) -> None:
        found[text] = vector_statistics(z[text : text + 1], members.of_text(text))

    wait = start_in_parallel(look, ((text,) for text in range(len(z))))

    def result() -> list[dict[str, Tensor]]:
        wait()
        ways = zip(*found, strict=True)
        return [{name: torch.cat([t[name] for t in texts]) for name in texts[0]} for texts in ways]

    return result


def vector_statistics(z: Tensor, members: Members) -> list[dict[str, Tensor]]:
    """The statistics themselves, where z is."""
    z = z.float().contiguous()
    vectors = z
    if members.always is not None:
        vectors = torch.where(members.always[:, None, :, None], z, 0.0)
    lengths = z.norm(dim=-1)  # (texts, heads, tokens)
    total, gram = vectors.sum(2), vectors.mT @ vectors  # (texts, heads, d), (texts, heads, d, d)
    found = []
    for kept, count, place, real in members.ways:
        own_total, own_gram = total, gram
        if place is not None and real is not None:
            index = place[:, None, :, None].expand(-1, z.shape[1], -1, z.shape[3])
            others = torch.where(real[:, None, :, None], z.gather(2, index), 0.0)
            own_total, own_gram = total + others.sum(2), gram + others.mT @ others
        own_lengths = torch.where(kept[:, None], lengths, 0.0)
        norm = own_lengths.sum(-1, dtype=torch.float64) / count
        variance = (own_lengths.double().square().sum(-1) / count - norm.square()).clamp(min=0)
        common = (own_total.double() / count[..., None]).norm(dim=-1)
        length = norm.clamp(min=torch.finfo(torch.float64).tiny)
        found.append(
            {
                "norm": norm,
                "norm_spread": variance.sqrt() / length,
                "common_mode": common / length,
                "effective_rank": effective_rank(own_gram),
            }
        )
    return found
