"""The shape of a curve over the layers: whether it goes one way, and where it turns.

Layers are neighbours: each passes on what the one before it wrote, so a curve without any trend
still wanders. A trend is therefore held against curves that wander as much, and not against the
layers in random order, which finds a trend in a fifth of those.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headscope.measures.base import ratio
from headscope.study.bootstrap import Values, interval

WANDERING = 9999
STICKY = 0.5  # least correlation of neighbouring layers that is taken for granted
STICKIEST = 0.9
STEP = 0.05


@dataclass(frozen=True, slots=True)
class Trend:
    """Spearman's ρ of a curve with the layer number."""

    rho: float
    p: float  # share of wandering curves that go as far in the direction of the claim
    low: float  # over groups
    high: float


@dataclass(frozen=True, slots=True)
class Shape:
    """Two straight lines that meet at a layer, fitted to a curve."""

    words: str
    turn: float  # layer, from 1; NaN where the curve goes one way
    low: float
    high: float


def trend(curve: Values, rising: bool) -> Trend:
    """The trend of a curve (replicates + 1, layers) in a direction."""
    rho = spearman(curve)
    low, high = interval(rho)
    if not np.isfinite(rho[0]):
        return Trend(float(rho[0]), 1.0, float(low), float(high))
    steps = int(np.ceil((stickiness(curve[0]) - STICKY) / STEP - 1e-9))
    by_chance = _wandering(curve.shape[1], min(STICKY + steps * STEP, STICKIEST))
    towards = rho[0] if rising else -rho[0]
    as_far = WANDERING - int(np.searchsorted(by_chance, towards - 1e-12))
    return Trend(float(rho[0]), (1 + as_far) / (1 + WANDERING), float(low), float(high))


def spearman(curve: Values) -> Values:
    """Spearman's ρ of curves (…, layers) with the layer number; NaN for a constant curve."""
    ranks = _ranks(curve)
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    order = np.arange(curve.shape[-1]) - (curve.shape[-1] - 1) / 2
    scale = np.sqrt((ranks**2).sum(-1) * (order**2).sum())
    found = ratio((ranks * order).sum(-1), scale)
    return np.where(np.isfinite(curve).all(-1), found, np.nan)


def _ranks(values: Values) -> Values:
    """Ranks along the last axis; equals share their mean rank."""
    below = (values[..., :, None] > values[..., None, :]).sum(-1)
    equal = (values[..., :, None] == values[..., None, :]).sum(-1)
    ranks: Values = below + (equal - 1) / 2
    return ranks


def stickiness(curve: Values) -> float:
    """Correlation of neighbours about the straight line of a curve, at least `STICKY`."""
    size = len(curve)
    order = np.arange(size) - (size - 1) / 2
    rest = curve - curve.mean()
    rest = rest - order * (rest @ order) / (order @ order)
    found = float(ratio(rest[1:] @ rest[:-1], rest @ rest, 0.0))
    # About a fitted line the correlation comes out too small by this much.
    return float(np.clip(found + (2 + 4 * found) / size, STICKY, STICKIEST))


@lru_cache(maxsize=64)
def _wandering(layers: int, sticky: float) -> Values:
    """ρ of curves that wander without a trend, sorted."""
    random = np.random.Generator(np.random.Philox(layers))
    curves = random.normal(size=(WANDERING, layers))
    for layer in range(1, layers):
        curves[:, layer] *= np.sqrt(1 - sticky**2)
        curves[:, layer] += sticky * curves[:, layer - 1]
    return np.sort(spearman(curves))


def shape(curve: Values) -> Shape:
    """Where a curve (replicates + 1, layers) turns, and how it goes before and after."""
    layers = curve.shape[1]
    if layers < 5 or not np.isfinite(curve[0]).all():
        return Shape("", *[float("nan")] * 3)
    known = curve[np.isfinite(curve).all(axis=1)]
    turns, before, after = _bent(known)
    low, high = np.quantile(turns[1:], [0.025, 0.975]) if len(turns) > 1 else (turns[0], turns[0])
    if high - low > layers / 2:  # it turns nowhere in particular
        line = (known - known.mean(1, keepdims=True)) @ (np.arange(layers) - (layers - 1) / 2)
        before, after = line, line
    ways = [_way(*(float(end[()]) for end in interval(slopes))) for slopes in (before, after)]
    if ways[0] == ways[1]:
        return Shape(f"{ways[0]} throughout", *[float("nan")] * 3)
    where = f"{turns[0]:.0f}" if low == high else f"{turns[0]:.0f} ({low:.0f} … {high:.0f})"
    words = f"{ways[0]} up to layer {where}, then {ways[1]}"
    return Shape(words, float(turns[0]), float(low), float(high))


def _way(low: float, high: float) -> str:
    if low > 0:
        return "rises"
    return "falls" if high < 0 else "is level"


def _bent(curves: Values) -> tuple[Values, Values, Values]:
    """Of curves (n, layers): where the two lines meet that fit best, and their slopes (n,)."""
    layers = curves.shape[1]
    at = np.arange(1.0, layers + 1)
    places = np.arange(3, layers - 1)  # both lines span two steps at least
    errors, slopes = [], []
    for place in places:
        given = np.stack([np.ones(layers), np.minimum(at - place, 0), np.maximum(at - place, 0)], 1)
        fitted = np.linalg.pinv(given) @ curves.T  # (3, n)
        errors.append(((curves.T - given @ fitted) ** 2).sum(0))
        slopes.append(fitted[1:])
    best = np.argmin(errors, axis=0)
    own = np.stack(slopes)[best, :, np.arange(len(curves))]  # (n, 2)
    return places[best].astype(np.float64), own[:, 0], own[:, 1]


def passes_half(curve: Values) -> tuple[float, float, float]:
    """The first layer, from 1, where a curve has half of its most; with its interval."""
    reached = curve >= curve.max(axis=1, keepdims=True) / 2
    layer = np.where(np.isfinite(curve).all(axis=1), reached.argmax(axis=1) + 1.0, np.nan)
    low, high = np.nanquantile(layer[1:], [0.025, 0.975])
    return float(layer[0]), float(low), float(high)
