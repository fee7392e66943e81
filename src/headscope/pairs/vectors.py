"""Head vectors made ready for products: checked, scaled, and read as raw, cosine or centred.

Here is where rounding happens. A reading turns z into *read vectors* in float32; the similarity of
a pair is their scalar product, accumulated in float32. Very large or small raw vectors are scaled
by a power of two, which rounds nothing and keeps products of any float32 input from overflowing
(products smaller than 2⁻¹²⁶ of the square of the largest entry become 0); results are scaled back
in float64.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.pairs.reference import NO_DIRECTION
from headscope.pairs.tokens import READINGS, Reading


class NotFiniteError(ValueError):
    """Some head vectors hold NaN or infinity, so no statistic of them means anything."""


@dataclass(frozen=True, slots=True)
class ReadVectors:
    """Read vectors of some heads of one text; the true similarity is (product) · 4**exponent."""

    vectors: Tensor  # (…, S, d) float32
    exponent: Tensor  # (…,) int32
    finite: Tensor  # (…,) bool


def read_vectors(z: Tensor, reading: Reading, kept: Tensor) -> ReadVectors:
    """Read z (…, S, d), of any floating type; kept (…, S) says which tokens make the mean."""
    if reading not in READINGS:
        raise ValueError(f"a reading is one of {', '.join(READINGS)}, not {reading!r}")
    z = z.float()  # (…, S, d)
    largest = z.abs().amax((-2, -1)) if z.numel() else z.sum((-2, -1))  # (…,)
    finite = torch.isfinite(largest)  # (…,)
    if reading == "raw" and not z.is_cuda and bool(((largest < 2**24) & (largest > 2**-24)).all()):
        return ReadVectors(z, torch.zeros_like(largest, dtype=torch.int32), finite)
    exponent = torch.frexp(torch.where(finite, largest, 1.0)).exponent  # (…,) int32
    exponent = exponent.clamp(-126, 126)  # so that the factor is an ordinary float32
    z = z * torch.exp2(-exponent.float())[..., None, None]  # (…, S, d) entries up to about 1
    if reading == "raw":
        return ReadVectors(z, exponent, finite)
    shortest = torch.zeros(())
    if reading == "centred":
        members = kept.sum(-1).clamp(min=1)[..., None, None]  # (…, 1, 1)
        weight = kept[..., None].double()  # (…, S, 1)
        wide = z.double()  # (…, S, d)
        z = (wide - (wide * weight).sum(-2, keepdim=True) / members).float()  # (…, S, d)
        longest = wide.norm(dim=-1).amax(-1) if z.numel() else wide.new_zeros(z.shape[:-2])
        shortest = NO_DIRECTION * longest.float()[..., None, None]  # (…, 1, 1)
    size = z.abs().amax(-1, keepdim=True)  # (…, S, 1) so that no square underflows
    unit = z / torch.where(size > 0, size, 1.0)  # (…, S, d)
    length = unit.norm(dim=-1, keepdim=True)  # (…, S, 1)
    straight = (length * size > shortest) & (size > 0)  # (…, S, 1)
    unit = torch.where(straight, unit / torch.where(straight, length, 1.0), 0.0)  # (…, S, d)
    return ReadVectors(unit, torch.zeros_like(exponent), finite)


def refuse_not_finite(finite: Tensor, layer: str | None, what: str = "head vectors") -> None:
    """Raise with the names of layer, head and text where `finite` (B, H) is false."""
    if bool(finite.all()):
        return
    text, head = (int(n) for n in torch.nonzero(~finite)[0])
    others = int((~finite).sum()) - 1
    raise NotFiniteError(
        f"the {what} of {'layer ' + layer if layer else 'a layer'}, head {head + 1}, "
        f"text {text + 1} of the batch hold NaN or infinity"
        + (f" (and {others} more heads or texts)" if others else "")
        + "; if the model runs in float16, run it in bfloat16 or float32"
    )
