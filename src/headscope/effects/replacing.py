"""What the z of a head is put to: zero, its mean over the corpus or by position, another text's.

Means are over the tokens of the same texts, read as the loss reads them. The z of another text is
that of one of a few long windows, of another document, drawn by the seed; a longer text goes
through it again from the start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

import torch
from torch import Tensor

from headscope.effects.loss import Asked, Loss
from headscope.effects.rerun import Runner
from headscope.errors import NotPossible
from headscope.units import Unit

To = Literal["zero", "mean", "position", "resample"]
TO: dict[To, str] = {
    "zero": "zero",
    "mean": "its mean over all tokens of the corpus read here",
    "position": "its mean over the texts at each position",
    "resample": "that of another text of the corpus, at the same position",
}
DONORS = 8


@dataclass(eq=False)
class Replacing:
    """What is known of z over the corpus, as far as what is asked for needs it."""

    to: Sequence[To]
    seed: int
    sums: list[Tensor] = field(default_factory=list)  # (heads, positions, head size) of each layer
    tokens: Tensor = field(default_factory=lambda: torch.zeros(0))  # (positions,)
    donors: list[Unit] = field(default_factory=list)
    lent: list[list[Tensor]] = field(default_factory=list)  # by donor and layer: (heads, tokens, d)

    @property
    def needs_pass(self) -> bool:
        """Whether the corpus has to be read before."""
        return any(one != "zero" for one in self.to)

    def see(self, runner: Runner, asked: Asked) -> None:
        """Add up z of some texts that were read plainly, and look for long windows."""
        there = asked.there.cpu().double()  # (texts, tokens)
        length = there.shape[1]
        self.tokens = _longer(self.tokens, length)
        self.tokens[:length] += there.sum(0)
        for layer, z in enumerate(runner.z):
            added = torch.einsum("bhsd,bs->hsd", z.cpu().double(), there)
            if layer == len(self.sums):
                self.sums.append(added)
                continue
            self.sums[layer] = _longer(self.sums[layer].transpose(0, 1), length).transpose(0, 1)
            self.sums[layer][:, :length] += added
        if "resample" in self.to:
            self.donors = sorted([*self.donors, *asked.units], key=self._rank)[:DONORS]

    def read_donors(self, runner: Runner, loss: Loss) -> None:
        """Keep the z of the windows that lend theirs."""
        if "resample" in self.to and len({unit.identity for unit in self.donors}) < 2:
            raise NotPossible("The z of another text needs two documents, and there is one.")
        for unit in self.donors:
            runner.plain(loss.ask([unit]))
            self.lent.append([z[0].cpu() for z in runner.z])

    def values(self, to: To, runner: Runner, asked: Asked, layer: int) -> Tensor:
        """What the heads of a layer are put to: (heads, texts, tokens, d), or what broadcasts."""
        z = runner.z[layer]
        if to == "zero":
            return z.new_zeros(z.shape[1], 1, 1, z.shape[3])
        if to == "resample":
            return self._others(asked, layer, z.shape[2]).to(z)
        sums = self.sums[layer]
        if to == "mean":
            found = sums.sum(1, keepdim=True) / self.tokens.sum()
        else:
            found = sums[:, : z.shape[2]] / self.tokens[: z.shape[2], None].clamp(min=1)
        return found[:, None].to(z)

    def _others(self, asked: Asked, layer: int, length: int) -> Tensor:
        """For each text the z of a window of another document: (heads, texts, tokens, d)."""
        found = []
        for unit in asked.units:
            others = [
                z
                for donor, z in zip(self.donors, self.lent, strict=True)
                if donor.identity != unit.identity
            ]
            z = others[int(unit.random(self.seed, "donor").integers(len(others)))][layer]
            found.append(z[:, torch.arange(length) % z.shape[1]])
        return torch.stack(found, 1)

    def _rank(self, unit: Unit) -> tuple[int, bytes]:
        """Long windows first, those of one length as the seed has it."""
        key = blake2b(unit.identity, digest_size=16, key=f"{self.seed} donor".encode())
        key.update((unit.part << 32 | unit.window).to_bytes(8, "little"))
        return -len(unit), key.digest()


def _longer(values: Tensor, length: int) -> Tensor:
    """The same numbers, with zeros behind them as far as a length."""
    if len(values) >= length:
        return values
    more = values.new_zeros(length - len(values), *values.shape[1:], dtype=torch.float64)
    return torch.cat([values.double(), more])
