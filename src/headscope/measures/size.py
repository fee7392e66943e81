"""Size: how long head vectors are, how much they have in common, how many directions they use.

Each is computed for one text and averaged over texts; Z are the vectors of the tokens that count.

    norm            mean ‖z‖                        norm_spread    std ‖z‖ / mean ‖z‖
    common_mode     ‖mean z‖ / mean ‖z‖             effective_rank exp(H(σ² / Σσ²)), σ of Z
    similarity      mean of C off the diagonal      similarity_std its standard deviation
    contrast        std C / √(mean C² + var C), 0 where all pairs are alike, 1 where C averages to 0
"""

import numpy as np
import torch
from torch import Tensor

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio

WITHOUT_UNIT = ("norm_spread", "common_mode", "effective_rank")


def vector_statistics(z: Tensor, kept: Tensor) -> dict[str, Values]:
    """Statistics (texts, heads) of head vectors z (texts, heads, tokens, d).

    kept (texts, tokens) says which tokens count; padding does not.
    """
    weight = kept[:, None, :, None].to(z.dtype)  # (texts, 1, tokens, 1)
    vectors = z * weight
    count = kept.sum(1).clamp(min=1)[:, None].double()  # (texts, 1)
    lengths = vectors.norm(dim=-1).double()  # (texts, heads, tokens)
    norm = lengths.sum(-1) / count
    variance = (lengths.square().sum(-1) / count - norm.square()).clamp(min=0)
    common = (vectors.double().sum(2) / count[..., None]).norm(dim=-1)
    gram = (vectors.mT @ vectors).double()  # (texts, heads, d, d)
    energy = torch.linalg.eigvalsh(gram).clamp(min=0)  # (texts, heads, d)
    shares = energy / energy.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)
    entropy = -torch.special.xlogy(shares, shares).sum(-1)
    length = norm.clamp(min=torch.finfo(torch.float64).tiny)
    found = {
        "norm": norm,
        "norm_spread": variance.sqrt() / length,
        "common_mode": common / length,
        "effective_rank": entropy.exp(),
    }
    return {name: value.cpu().numpy() for name, value in found.items()}


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
