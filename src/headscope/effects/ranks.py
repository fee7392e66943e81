"""Rank correlations over heads, in every replicate: as they are, and within layers.

Depth goes along with nearly everything, so beside each correlation stands the one that is left when
heads are compared with heads of their own layer only.
"""

import numpy as np

from headscope.measures.base import Values, ratio


def ranks(values: Values) -> Values:
    """Ranks along the last axis, from 0; equals share their mean rank, and NaN has none."""
    found = np.full(values.shape, np.nan)
    for row, own in zip(found.reshape(-1, values.shape[-1]), _rows(values), strict=True):
        known = np.isfinite(own)
        _, place, count = np.unique(own[known], return_inverse=True, return_counts=True)
        row[known] = (np.cumsum(count) - (count + 1) / 2)[place]
    return found


def rank_correlation(one: Values, other: Values) -> Values:
    """Spearman's ρ along the last axis, of the entries that both have: (…,)."""
    known = np.isfinite(one) & np.isfinite(other)
    first, second = (ranks(np.where(known, values, np.nan)) for values in (one, other))
    return _correlation(_centred(first), _centred(second))


def within_layers(one: Values, other: Values) -> Values:
    """The same of (…, layers, heads), of what is left when each layer's mean rank is taken away."""
    known = np.isfinite(one) & np.isfinite(other)
    both = []
    for values in (one, other):
        flat = np.where(known, values, np.nan).reshape(*values.shape[:-2], -1)
        both.append(_centred(ranks(flat).reshape(values.shape)).reshape(flat.shape))
    return _correlation(*both)


def _centred(values: Values) -> Values:
    known = np.isfinite(values)
    summed = np.where(known, values, 0.0).sum(-1, keepdims=True)
    return values - ratio(summed, known.sum(-1, keepdims=True))


def _correlation(one: Values, other: Values) -> Values:
    """Of centred values that are NaN at the same places."""
    first, second = (np.nan_to_num(values) for values in (one, other))
    scale = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return ratio((first * second).sum(-1), scale)


def _rows(values: Values) -> Values:
    return values.reshape(-1, values.shape[-1])
