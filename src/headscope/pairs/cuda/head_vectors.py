"""What a device makes of head vectors without their pairs: sizes, common mode, rank; and couples.

One program a head; the vectors are read as they come, in any type, and never copied.
"""

# mypy: ignore-errors
# Inside a kernel the names are those of Triton's own language, which has no Python types.

import torch
import triton
import triton.language as tl
from torch import Tensor

from headscope.pairs.cuda.tiles import vectors
from headscope.pairs.effective_rank import LARGEST, effective_rank

BLOCK = 64  # tokens


@triton.jit(do_not_specialize=["S", "H", "texts"])
def add_up_vectors(
    Z,
    kept,  # (settings, B, S) int32, 1 for tokens that count
    lengths,  # (settings, heads, 3) float64 out: sums of lengths and of their squares, |sum|²
    gram,  # (settings, heads, d, d) float32 out: Zᵀ Z
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    texts,  # B: the texts of one layer come after those of the other
    T: tl.constexpr,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Sums over the tokens of one head, for one setting of special tokens."""
    own, setting = tl.program_id(0), tl.program_id(1)
    start = (own // H).to(tl.int64) * z_text + own % H * z_head
    members = kept + (setting * texts + own // H % texts) * S
    length = tl.zeros((T,), tl.float64)
    square = tl.zeros((T,), tl.float64)
    total = tl.zeros((D,), tl.float32)
    products = tl.zeros((D, D), tl.float32)
    for block in range(tl.cdiv(S, T)):
        i = block * T + tl.arange(0, T)
        counts = tl.load(members + i, mask=i < S, other=0) > 0
        z = vectors(Z, start, tl.where(counts, i, -1), S, z_token, d, D)  # (T, D)
        wide = z.to(tl.float32)
        size = tl.sqrt(tl.sum(wide * wide, 1)).to(tl.float64)
        length += size
        square += size * size
        total += tl.sum(wide, 0)
        products += tl.dot(tl.trans(z), z, input_precision=PRECISION, out_dtype=tl.float32)
    place = setting * tl.num_programs(0) + own
    tl.store(lengths + place * 3, tl.sum(length))
    tl.store(lengths + place * 3 + 1, tl.sum(square))
    wide_total = total.to(tl.float64)
    tl.store(lengths + place * 3 + 2, tl.sum(wide_total * wide_total))
    k = tl.arange(0, D)
    at = place.to(tl.int64) * d * d + k[:, None] * d + k[None, :]
    tl.store(gram + at, products, mask=(k[:, None] < d) & (k[None, :] < d))


def vector_statistics(z: Tensor, kept: Tensor) -> dict[str, Tensor]:
    """The statistics of `pairs.vector_statistics` as (settings · texts, layers, heads).

    z: (layers · texts, heads, tokens, d); kept: (settings, texts, tokens) int32.
    """
    settings, texts, _ = kept.shape
    rows, H, _, d = z.shape
    D, device = max(16, 1 << (d - 1).bit_length()), z.device
    z = z if z.stride(3) == 1 else z.contiguous()
    lengths = torch.empty(settings, rows * H, 3, dtype=torch.float64, device=device)
    gram = torch.empty(settings, rows * H, d, d, device=device)
    add_up_vectors[(rows * H, settings)](
        z,
        kept,
        lengths,
        gram,
        *z.stride()[:3],
        H,
        kept.shape[2],
        d,
        texts,
        T=BLOCK,
        D=D,
        PRECISION="tf32x3" if z.dtype == torch.float32 else "ieee",
        num_warps=4 if D <= 64 else 8,
        num_stages=1,
    )

    def by_text(values: Tensor) -> Tensor:
        """Values (settings, layers · texts · heads, …) as (settings · texts, layers, heads, …)."""
        return values.view(settings, -1, texts, H, *values.shape[2:]).transpose(1, 2).flatten(0, 1)

    count = kept.sum(-1).clamp(min=1).double().view(-1, 1, 1)  # (settings · texts, 1, 1)
    total, square, common = by_text(lengths).unbind(-1)
    norm = total / count
    variance = (square / count - norm.square()).clamp(min=0)
    length = norm.clamp(min=torch.finfo(torch.float64).tiny)
    return {
        "norm": norm,
        "norm_spread": variance.sqrt() / length,
        "common_mode": common.sqrt() / count / length,
        "effective_rank": by_text(effective_rank(gram)),
    }


def can_do(z: Tensor) -> bool:
    """Whether a program can hold the products of the vectors."""
    return z.shape[-1] <= LARGEST


@triton.jit
def _similar(first, second, COSINE: tl.constexpr):
    """The similarities of pairs of vectors (pairs, D)."""
    product = tl.sum(first * second, 1)
    if COSINE:
        lengths = tl.sqrt_rn(tl.sum(first * first, 1)) * tl.sqrt_rn(tl.sum(second * second, 1))
        product = tl.where(lengths > 0, product / lengths, 0.0)
    return product


@triton.jit(do_not_specialize=["S", "H", "texts"])
def count_wins(
    Z,
    places,  # (B, 4, C) int64, both ends of a repeated pair, both ends of another
    wins,  # (heads,) float64 out
    z_text,
    z_head,
    z_token,
    H,
    S,
    d,
    texts,  # B
    C: tl.constexpr,
    D: tl.constexpr,
    COSINE: tl.constexpr,
):
    """Count the couples of one head of which the repeated pair wins, ties half."""
    own, couple = tl.program_id(0), tl.arange(0, C)
    start = (own // H).to(tl.int64) * z_text + own % H * z_head
    ends = places + own // H % texts * 4 * C + couple
    first = vectors(Z, start, tl.load(ends), S, z_token, d, D).to(tl.float32)
    second = vectors(Z, start, tl.load(ends + C), S, z_token, d, D).to(tl.float32)
    repeated = _similar(first, second, COSINE)
    first = vectors(Z, start, tl.load(ends + 2 * C), S, z_token, d, D).to(tl.float32)
    second = vectors(Z, start, tl.load(ends + 3 * C), S, z_token, d, D).to(tl.float32)
    other = _similar(first, second, COSINE)
    won = tl.where(repeated > other, 1.0, tl.where(repeated == other, 0.5, 0.0))
    tl.store(wins + own, tl.sum(won).to(tl.float64))


def wins_of_repeated(z: Tensor, places: Tensor, *, cosine: bool = False) -> Tensor:
    """How many couples (texts, 4, couples) a repeated pair wins: (layers · texts, heads).

    z: vectors (layers · texts, heads, tokens, d), whose scalar products are C, or whose cosines.
    """
    rows, H, S, d = z.shape
    z = z if z.stride(3) == 1 else z.contiguous()
    wins = torch.empty(rows, H, dtype=torch.float64, device=z.device)
    D = max(16, 1 << (d - 1).bit_length())
    sizes = (*z.stride()[:3], H, S, d, len(places))
    count_wins[(rows * H,)](
        z, places, wins, *sizes, C=places.shape[2], D=D, COSINE=cosine, num_warps=8
    )
    return wins
