"""Intervals over documents: a Poisson bootstrap whose weights belong to the documents.

In replicate r a document counts w times, w drawn from Poisson(1) by a hash of the seed and of the
document's own text. So weights need no storing, do not depend on order, batches or resuming, and
sums of several parts of a corpus add up replicate by replicate.
"""

from collections.abc import Sequence
from hashlib import shake_256
from math import exp, factorial
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headscope.units import Unit

Values = NDArray[np.float64]

Group: TypeAlias = Literal["document", "file", "window"]
GROUPS: dict[Group, str] = {
    "document": "documents",
    "file": "files",
    "window": "windows, as blocks of their documents",
}
REPLICATES = 200
LEVEL = 0.95
# P(Poisson(1) <= n); a 32-bit number below the first has weight 0, and so on.
_REACHED = np.cumsum([exp(-1) / factorial(n) for n in range(13)])


def document_weights(identity: bytes, seed: int, replicates: int = REPLICATES) -> Values:
    """How often a document counts in each replicate (replicates + 1,); the first is 1: the data."""
    digest = shake_256(f"{seed} ".encode() + identity).digest(4 * replicates)
    uniform = (np.frombuffer(digest, "<u4") + 0.5) / 2**32
    return np.concatenate([[1.0], np.searchsorted(_REACHED, uniform).astype(np.float64)])


def weights(identities: Sequence[bytes], seed: int, replicates: int = REPLICATES) -> Values:
    """Weights of several documents: (documents, replicates + 1)."""
    known = {one: document_weights(one, seed, replicates) for one in set(identities)}
    return np.stack([known[one] for one in identities])


def group_of(unit: Unit, group: Group) -> bytes:
    """What weighs alike: the document of a unit, the file it is from, or the unit alone.

    Paragraphs of one file are alike, so a new file varies more than they do. Windows are blocks of
    a long document: intervals over them speak of other parts of it, and of no other document.
    """
    if group == "file":
        return f"file {unit.source}".encode()
    if group == "window":
        return unit.identity + f" {unit.part} {unit.window}".encode()
    return unit.identity


def standard_error(values: Values) -> Values:
    """The standard deviation of the replicates among values (replicates + 1, …).

    A replicate without a value (nothing to divide by) is left out; with fewer than half of them
    there is no error to speak of: NaN.
    """
    replicates = values[1:]
    known = np.isfinite(replicates)
    number = known.sum(axis=0)
    mean = np.where(known, replicates, 0).sum(axis=0) / np.maximum(number, 1)
    square = np.where(known, (replicates - mean) ** 2, 0).sum(axis=0) / np.maximum(number - 1, 1)
    return np.where(2 * number > len(replicates), np.sqrt(square), np.nan)


def interval(values: Values, level: float = LEVEL) -> tuple[Values, Values]:
    """Lower and upper end from values (replicates + 1, …), whose first entry is the data's own.

    The ends are value ± the normal quantile × the standard error: with 200 replicates steadier
    than their percentiles, and it covers as stated (tests/study); but never beyond the outermost
    replicate, so that a share stays a share.
    """
    centre, replicates = values[0], values[1:]
    known = np.isfinite(replicates)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * standard_error(values)
    least = np.minimum(np.where(known, replicates, np.inf).min(axis=0, initial=np.inf), centre)
    most = np.maximum(np.where(known, replicates, -np.inf).max(axis=0, initial=-np.inf), centre)
    return np.maximum(centre - reach, least), np.minimum(centre + reach, most)
