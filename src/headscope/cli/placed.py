"""Pictures and sounds on the command line: what `headscope read` says of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.cli.texts import is_there
from headscope.errors import CannotRead
from headscope.terminal import say, write, write_csv, write_json

if TYPE_CHECKING:
    from headscope.placed import PlacedReading
    from headscope.scope import Scope


@dataclass(frozen=True, slots=True)
class PlacedAsked:
    """What was asked of the pictures or sounds."""

    layer: int | None
    head: int
    rule: str
    reading: str
    special: str
    rows: int
    out: Path | None
    as_json: bool
    as_csv: bool


def is_placed(source: str) -> bool:
    """Whether what was named is the file of a picture or a sound, by its ending."""
    from headscope.inputs.picture import IMAGES
    from headscope.inputs.sound import SOUNDS

    return Path(source).suffix.lower() in IMAGES | SOUNDS and is_there(Path(source))


def read_placed(scope: "Scope", sources: Sequence[str], asked: PlacedAsked) -> None:
    """Read them, and say where attention goes and which positions a head brings together."""
    if len(sources) > 1 and asked.out is not None:
        raise CannotRead("A page is of one picture or sound. Give one, or leave it out.")
    for number, source in enumerate(sources):
        result = scope.read(Path(source))
        layer = result.scope.shape.numbers[-1] if asked.layer is None else asked.layer
        pairs = result.high_pairs(
            layer,
            asked.head,
            asked.rule,
            reading=asked.reading,  # type: ignore[arg-type]
            special=asked.special,  # type: ignore[arg-type]
        )
        if asked.as_json:
            about = {"caption": pairs.caption, "pairs": [_plain(pair) for pair in pairs]}
            write_json({**_about(result), "high_pairs": about})
        elif asked.as_csv:
            named = [{"text": number + 1, **_plain(pair)} for pair in pairs]
            write_csv(named, ("text", *pairs.columns), head=number == 0)
        else:
            write(f"{result!r}\n\n{result.focus()!r}\n\n{pairs.told(asked.rows)}")
        if asked.out is not None:
            result.save(asked.out)
            say(f"A page about it: {asked.out}")


def _about(result: "PlacedReading") -> dict[str, Any]:
    """The model, the positions and where attention goes."""
    positions, focus = result.positions, result.focus()
    arrays = {"row": positions.rows, "column": positions.columns, "seconds": positions.seconds}
    given = {name: array for name, array in arrays.items() if array is not None}
    return {
        "model": result.scope.shape.as_dict(),
        "positions": [
            _plain(
                {"label": positions.labels[at], "special": bool(positions.special[at])}
                | {name: array[at].item() for name, array in given.items()}
            )
            for at in range(len(positions))
        ],
        "focus": {
            "targets": focus.targets,
            "mass": focus.mass.round(6).tolist(),
            "chance": focus.chance.round(6).tolist(),
        },
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """What has no value, as the distance of what stands nowhere, is null in JSON."""
    return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()}
