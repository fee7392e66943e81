"""Size: how long head vectors are, how much they have in common, how many directions they use.

Each is computed for one text and averaged over texts; Z are the vectors of the tokens that count.

    norm            mean ‖z‖                        norm_spread    std ‖z‖ / mean ‖z‖
    common_mode     ‖mean z‖ / mean ‖z‖             effective_rank exp(H(σ² / Σσ²)), σ of Z
    similarity      mean of C off the diagonal      similarity_std its standard deviation
    contrast        std C / √(mean C² + var C), 0 where all pairs are alike, 1 where C averages to 0
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio
from headscope.pairs.workers import in_parallel

WITHOUT_UNIT = ("norm_spread", "common_mode", "effective_rank")


def vector_statistics(z: Tensor, kept: Sequence[Tensor]) -> list[dict[str, Values]]:
    """Statistics (texts, heads) of head vectors z (texts, heads, tokens, d).

    kept: for each way of counting tokens, which of them count (texts, tokens); padding does not.
    """
    always = torch.stack(list(kept)).all(0)  # (texts, tokens)
    z = z.float().contiguous()
    vectors = z if bool(always.all()) else torch.where(always[:, None, :, None], z, 0.0)
    lengths = z.norm(dim=-1)  # (texts, heads, tokens)
    total, gram = vectors.sum(2), vectors.mT @ vectors  # (texts, heads, d), (texts, heads, d, d)
    return [_statistics(z, lengths, total, gram, each, each & ~always) for each in kept]


def _statistics(
    z: Tensor, lengths: Tensor, total: Tensor, gram: Tensor, kept: Tensor, more: Tensor
) -> dict[str, Values]:
    """The statistics of the tokens that are kept, from sums over all of them but a few more."""
    count = kept.sum(1).clamp(min=1)[:, None].double()  # (texts, 1)
    most = int(more.sum(1).max())
    if most:
        place = more.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # (texts, most)
        index = place[:, None, :, None].expand(-1, z.shape[1], -1, z.shape[3])
        real = more.gather(1, place)[:, None, :, None]
        others = torch.where(real, z.gather(2, index), 0.0)  # (texts, heads, most, d)
        total, gram = total + others.sum(2), gram + others.mT @ others
    lengths = torch.where(kept[:, None], lengths, 0.0)
    norm = lengths.sum(-1, dtype=torch.float64) / count
    variance = (lengths.double().square().sum(-1) / count - norm.square()).clamp(min=0)
    common = (total.double() / count[..., None]).norm(dim=-1)
    energy = _eigenvalues(gram.cpu()).double().clamp(min=0)  # (texts, heads, d)
    tiny = torch.finfo(torch.float64).tiny
    shares = energy / energy.sum(-1, keepdim=True).clamp(min=tiny)
    entropy = -torch.special.xlogy(shares, shares).sum(-1)
    length = norm.clamp(min=tiny)
    found = {
        "norm": norm,
        "norm_spread": variance.sqrt() / length,
        "common_mode": common / length,
        "effective_rank": entropy.exp(),
    }
    return {name: value.cpu().numpy() for name, value in found.items()}


def _eigenvalues(matrices: Tensor) -> Tensor:
    """Of symmetric matrices (texts, heads, d, d), a text at a time on every thread.

    On the host: a GPU takes four times as long for many small matrices.
    """
    found = matrices.new_empty(matrices.shape[:-1])

    def solve(text: int) -> None:
        found[text] = torch.linalg.eigvalsh(matrices[text])

    in_parallel(solve, ((text,) for text in range(len(matrices))))
    return found


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text. Lengths and similarities have no natural grid."""
    mean, variance = seen.pairs("mean"), seen.pairs("variance")
    some = np.isfinite(mean)
    mean, variance = np.where(some, mean, 0), np.where(some, variance, 0)
    std = np.sqrt(variance)
    return {
        "texts": np.ones_like(mean),
        "with_pairs": 1.0 * some,
        "norm": seen.vectors["norm"],
        "similarity": mean,
        "similarity_std": std,
        "contrast": on_grid(ratio(std, np.sqrt(mean**2 + variance), 0.0)),
        **{name: on_grid(seen.vectors[name]) for name in WITHOUT_UNIT},
    }


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    over = dict.fromkeys(("norm", *WITHOUT_UNIT), sums["texts"])
    over |= dict.fromkeys(("similarity", "similarity_std", "contrast"), sums["with_pairs"])
    return {name: Quantity(ratio(sums[name], below)) for name, below in over.items()}
