"""Bins of distance: every distance up to 64, then four bins an octave, the same for every text.

The bins do not depend on the length of a text, so that counts of texts of any length add up.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

EXACT_DISTANCES = 64

UPPER_DISTANCES: npt.NDArray[np.int64] = np.concatenate(
    [
        np.arange(1, EXACT_DISTANCES + 1),
        np.floor(EXACT_DISTANCES * 2 ** (np.arange(1, 14 * 4 + 1) / 4) + 1e-6).astype(np.int64),
    ]
)
"""The largest distance of each bin: 1, 2, …, 64, 76, 90, 107, 128, …, 2**20."""

LOWER_DISTANCES: npt.NDArray[np.int64] = np.concatenate([[1], UPPER_DISTANCES[:-1] + 1])
"""The smallest distance of each bin."""

DISTANCE_BINS = len(UPPER_DISTANCES)


def distance_bin(distance: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The number of the bin that a distance (at least 1) falls in."""
    found: npt.NDArray[np.int64] = np.searchsorted(UPPER_DISTANCES, np.asarray(distance))
    return found


def into_bins(by_distance: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Add up values by distance (…, S), entry D belonging to distance D, into bins (…, bins)."""
    size = by_distance.shape[-1]
    used = int(np.searchsorted(LOWER_DISTANCES, size))  # bins that start inside the array
    binned = np.zeros((*by_distance.shape[:-1], DISTANCE_BINS), by_distance.dtype)  # (…, bins)
    if size > 1:
        binned[..., :used] = np.add.reduceat(by_distance, LOWER_DISTANCES[:used], axis=-1)
    return binned
