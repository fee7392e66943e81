"""What the layout adds to the worth of a boundary at each place between units.

Where there are paragraphs a topic turns between them, never inside: as many boundaries as would be
expected among all places are expected among fewer, so each is likelier, by the ratio of the two.
Where a heading stands, somebody has said that a topic turns.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headscope.segment.changes import LONGEST
from headscope.segment.layout import Place

LOWER = 0.15  # of the penalty: what a heading of each lower level is worth less than one above it
LEAST = 0.4  # of the penalty: what any heading is worth


def worth_of_layout(
    places: Sequence[Place], penalty: float, sharpness: float, inside: bool = False
) -> NDArray[np.float64]:
    """The worth of each place before a unit by the layout; −∞ where no boundary may be.

    A boundary costs `penalty`, less what its place is worth: a heading of the highest level costs
    nothing. With `inside`, or where no paragraph breaks, boundaries may be inside paragraphs.
    """
    turns = np.array([place.turn for place in places])
    breaks = np.isin(turns, ("paragraph", "heading", "rule"))
    breaks[0] = False
    allowed = breaks | (turns == "inside") if inside or not breaks.any() else breaks.copy()
    for last, following in pairwise([0, *np.flatnonzero(allowed), len(turns)]):
        if following - last > LONGEST:  # longer than a segment can be
            allowed[last:following] |= turns[last:following] == "inside"
    worth = np.zeros(len(turns))
    if breaks.any():
        worth[breaks] = np.log((len(turns) - 1) / breaks.sum()) / sharpness
        for unit in map(int, np.flatnonzero(np.isin(turns, ("heading", "rule")))):
            share = max(1 - LOWER * (places[unit].level - 1), LEAST)
            worth[unit] = max(worth[unit], share * penalty)
    worth[~allowed] = -np.inf
    worth[0] = 0.0
    return worth
