"""A picture or a sound that was read, as the viewer receives it: positions instead of tokens.

The header is that of a text with one part more, `place`, and without what only a text has: no
sentence, no word twice, no words that heads write. The picture travels as the model read it.
"""

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.inputs.picture import png
from headscope.inputs.positions import Positions
from headscope.inputs.sound import envelope, spectrogram
from headscope.viewer.text_measures import TEXT_MEASURES

if TYPE_CHECKING:
    from headscope.placed import PlacedReading

OF_ANY_INPUT = ("similarity", "size", "common_mode")
RANGE = {
    "name": "range",
    "title": "range",
    "definition": "mean distance of the high pairs, over the same of all pairs: 1 is chance",
    "shown": "times",
}


def placed_header(reading: "PlacedReading") -> dict[str, Any]:
    """What the viewer is told of positions, where a text has tokens."""
    positions, count = reading.positions, len(reading)
    names = [label.replace(", column", " col") for label in positions.labels]
    measures = [one.packed for one in TEXT_MEASURES if one.name in OF_ANY_INPUT]
    return {
        "windows": 1,
        "measures": [*measures, RANGE] if positions.points is not None else measures,
        "classes": ["position", "special"],
        "tokens": {
            "piece": names,
            "word": names,
            "word_number": list(range(count)),
            "word_type": [-1] * count,
            "place": [0] * count,
            "window": [0] * count,
            "unknown": [False] * count,
            "before": [""] * count,
            "shown": names,
            "sentence": [-1] * count,
            "special": positions.special.tolist(),
            "class": positions.special.astype(int).tolist(),
            "id": list(range(count)),
            **_points(positions),
        },
        "marks": [],
        "after": "",
        "place": _place(reading),
    }


def _points(positions: Positions) -> dict[str, Any]:
    """Where each position stands; rows and columns are 0 for what stands nowhere."""
    found: dict[str, Any] = {}
    if positions.rows is not None and positions.columns is not None:
        found |= {"row": positions.rows.tolist(), "column": positions.columns.tolist()}
    if positions.seconds is not None:
        found["seconds"] = [
            None if np.isnan(time) else round(time, 4) for time in positions.seconds.tolist()
        ]
    return found


def _place(reading: "PlacedReading") -> dict[str, Any]:
    """What is drawn, and on which grid."""
    grid = reading.positions.grid
    found: dict[str, Any] = {
        "kind": reading.positions.kind,
        "rows": grid[0] if grid else None,
        "columns": grid[1] if grid else None,
        "duration": None,
        "picture": None,
        "wave": None,
    }
    if reading.sound is not None:
        samples, rate = reading.sound
        found["duration"] = len(samples) / rate
        found["wave"] = envelope(samples)
    picture = reading.picture if reading.sound is None else spectrogram(*reading.sound)
    if picture is not None:
        found["picture"] = f"data:image/png;base64,{base64.b64encode(png(picture)).decode()}"
    return found
