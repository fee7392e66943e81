"""What a study makes of head vectors beside the pair statistics: detection, clusters, their sizes.

And the head vectors that another attention would have made.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.compute.arrays import put
from headscope.measures import noise, repetition
from headscope.measures.base import Values
from headscope.pairs import TokenBatch
from headscope.pairs.tokens import Special
from headscope.pairs.vector_statistics import Members
from headscope.pairs.vectors import read_vectors
from headscope.study.modes import Mode, SimilarityKind
from headscope.units import Unit, padded


class TokensThere:
    """What the statistics of vectors need to know of the tokens of a batch, on a device."""

    def __init__(
        self,
        units: Sequence[Unit],
        batch: TokenBatch,
        settings: Sequence[Special],
        seed: int,
        device: torch.device,
        length: int,
    ):
        own = [padded(batch.kept(special), length, False) for special in settings]
        self.members = Members.of(own, device)
        self.kept = dict(zip(settings, put(np.stack(own), device), strict=True))
        self.couples = put(repetition.couples(units, seed), device)

    def detection(self, z: Tensor, kinds: Sequence[SimilarityKind]) -> dict[SimilarityKind, Tensor]:
        """How well similarity detects repeated words, by kind (texts, heads).

        z: (texts, heads, tokens, d) of one layer.
        """
        found: dict[SimilarityKind, Tensor] = {}
        for kind in kinds:
            # Special tokens are in no couple; they only move the mean that is taken away.
            like = kind if kind.reading == "centred" else SimilarityKind(kind.reading)
            if like not in found:
                vectors = z.float()
                if kind.reading != "raw":
                    members = self.kept[kind.special][:, None].expand(z.shape[:3])
                    vectors = read_vectors(z, kind.reading, members).vectors
                found[like] = repetition.detection(vectors, self.couples)
            found[kind] = found[like]
        return {kind: found[kind] for kind in kinds}


def clustered_pairs(
    z: Tensor, kind: SimilarityKind, batch: TokenBatch, threshold: NDArray[np.float64]
) -> Values:
    """High pairs inside clusters (texts, heads), where a rule has one threshold a head."""
    found = np.zeros(threshold.shape)
    for text, kept in enumerate(batch.kept(kind.special)):
        members = torch.from_numpy(kept)
        own = z[text, :, : len(kept)].float().cpu()  # (heads, tokens, d)
        if kind.reading != "raw":
            own = read_vectors(own, kind.reading, members.expand(own.shape[:2])).vectors
        for head, vectors in enumerate(own[:, members].numpy()):
            found[text, head] = noise.clustered_pairs(vectors, float(threshold[text, head]))
    return found


def head_vectors(
    outputs: HeadOutputs, mode: Mode, lengths: NDArray[np.int64], causal: bool
) -> Tensor:
    """z (texts, heads, tokens, d) as it is, or as another attention would have made it."""
    if mode not in ("uniform", "identity"):
        return outputs.z
    values = outputs.v
    assert values is not None
    values = values.repeat_interleave(outputs.z.shape[1] // values.shape[1], dim=1)
    if mode == "identity":
        return values
    place = torch.arange(values.shape[2], device=values.device)
    size = torch.as_tensor(lengths, device=values.device)
    there = (place < size[:, None])[:, None, :, None]  # (texts, 1, tokens, 1)
    summed = (values.double() * there).cumsum(2)
    if causal:
        return (summed / (place + 1)[:, None]).to(values.dtype)
    mean = summed[:, :, -1:] / size[:, None, None, None]
    return mean.to(values.dtype).expand_as(values)
