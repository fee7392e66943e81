"""Head vectors made ready for products: checked, scaled, and read as raw, cosine or centred.

Here is where rounding happens. A reading turns z into *read vectors* in float32; the similarity of
a pair is their scalar product, accumulated in float32. Very large or small raw vectors are scaled
by a power of two, which rounds nothing and keeps products of any float32 input from overflowing
(products smaller than 2⁻¹²⁶ of the square of the largest entry become 0); results are scaled back
in float64. A device takes the cosine from the product of vectors as they came, and both lengths off
it, which rounds no more; vectors with entries below 2⁻⁴⁰ alone are read here first.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.errors import NotFiniteError, NotPossible
from headscope.pairs.reference import NO_DIRECTION
from headscope.pairs.tokens import READINGS, SimilarityReading


@dataclass(frozen=True, slots=True)
class ReadVectors:
    """Read vectors of some heads of one text; the true similarity is (product) · 4**exponent."""

    vectors: Tensor  # (…, S, d) float32
    exponent: Tensor  # (…,) int32
    finite: Tensor  # (…,) bool


def read_vectors(z: Tensor, reading: SimilarityReading, kept: Tensor) -> ReadVectors:
    """Read z (…, S, d), of any floating type; kept (…, S) says which tokens make the mean."""
    if reading not in READINGS:
        raise NotPossible(f"a reading is one of {', '.join(READINGS)}, not {reading!r}")
    z = z.float()  # (…, S, d)
    largest = z.abs().amax((-2, -1)) if z.numel() else z.sum((-2, -1))  # (…,)
    here = reading == "raw" and not z.is_cuda
    # Of a few heads, numbers of Python are compared faster than arrays.
    if here and all(2**-24 < size < 2**24 for size in largest.flatten().tolist()):
        exponent = torch.zeros_like(largest, dtype=torch.int32)
        return ReadVectors(z, exponent, torch.ones_like(largest, dtype=torch.bool))
    finite = torch.isfinite(largest)  # (…,)
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


ROUNDED = 4.0
"""What rounding changes C_ij by: units in the last place of z, times ‖z_i‖‖z_j‖ (method.md)."""


@dataclass(frozen=True, slots=True)
class VectorSizes:
    """How large the vectors behind some read vectors are, and how sure their products."""

    lengths: Tensor  # (…, S) float32, of the vectors as they came, in any unit
    rounding: Tensor  # (…, S) float32; C_ij of read vectors is sure to rounding_i · rounding_j


def vector_sizes(z: Tensor, read: Tensor, reading: SimilarityReading, kept: Tensor) -> VectorSizes:
    """Sizes of z (…, S, d), from which `read` was read; kept (…, S) made the mean."""
    if reading == "raw":
        lengths = torch.linalg.vector_norm(read.float(), dim=-1)
        return VectorSizes(lengths, lengths * last_place(z) ** 0.5)
    wide = z.float()
    wide = wide / wide.abs().amax((-2, -1), keepdim=True).clamp(min=2.0**-126)
    lengths = torch.linalg.vector_norm(wide, dim=-1)
    grown = torch.ones_like(lengths)  # by how much centring makes errors larger
    if reading == "centred":
        weight = kept[..., None].float()
        mean = (wide * weight).sum(-2, keepdim=True) / weight.sum(-2, keepdim=True).clamp(min=1)
        rest = torch.linalg.vector_norm(wide - mean, dim=-1)
        least = NO_DIRECTION * lengths.amax(-1, keepdim=True)
        grown = (lengths / rest.maximum(least).clamp(min=2.0**-126)).sqrt()
    return VectorSizes(lengths, grown * last_place(z) ** 0.5)


def last_place(z: Tensor) -> float:
    """What rounding changes C_ij by, in parts of ‖z_i‖‖z_j‖."""
    return ROUNDED * torch.finfo(z.dtype).eps


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
