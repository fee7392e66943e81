"""What was found as tables: every head, and the best of each relation. Both count from 1."""

from typing import Any

import numpy as np
import pyarrow as pa

from headscope.effects.structure.best import BASELINES, Judged
from headscope.effects.structure.signals import SIGNALS
from headscope.effects.structure.totals import Key, Totals
from headscope.measures.base import ratio
from headscope.study.bootstrap import interval

NUMBERS = ("value", "error", "low", "high", "chance", "matched")
OF = {"kind": pa.string(), "relation": pa.string(), "signal": pa.string()}
HEAD = {"layer": pa.int32(), "head": pa.int32()}


def heads_table(totals: Totals, least: int) -> pa.Table:
    """A row for each relation, signal, head and score; relations with too few words left out."""
    asked = _asked(totals)
    kinds = OF | HEAD | {"quantity": pa.string()} | dict.fromkeys(NUMBERS, pa.float64())
    kinds |= {"count": pa.int64(), "documents": pa.int64()}
    parts = []
    for (kind, relation, score), own in totals.sums.items():
        if asked[kind, relation] < least:
            continue
        numbers = own.numbers(score)
        shape = numbers["value"].shape
        signal, layer, head = (place.ravel() for place in np.indices(shape))
        rows = len(signal)
        columns: dict[str, Any] = {
            "kind": [kind] * rows,
            "relation": [relation] * rows,
            "signal": [SIGNALS[one] for one in signal],
            "layer": layer + 1,
            "head": head + 1,
            "quantity": [score] * rows,
            **{name: _known(np.broadcast_to(numbers[name], shape)) for name in NUMBERS},
            "count": [int(own.count)] * rows,
            "documents": [own.documents] * rows,
        }
        parts.append(pa.table({name: pa.array(columns[name], kinds[name]) for name in kinds}))
    if not parts:
        return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    return pa.concat_tables(parts)


def best_table(judged: Judged, totals: Totals, least: int) -> pa.Table:
    """A row for each relation and signal: its head, and how it did where it was not chosen."""
    asked = _asked(totals)
    rows: list[dict[str, Any]] = []
    for key, documents in judged.keys.items():
        if asked[key] < least:
            continue
        count = judged.of(key, "count")  # (replicates + 1, 1)
        found = ratio(judged.of(key, "found"), count)  # (replicates + 1, signals)
        baseline = ratio(judged.of(key, "baseline"), count)
        low, high = interval(found)
        apart_low, apart_high = interval(found - baseline)
        matched = ratio(judged.of(key, "matched"), count)
        beyond_low, beyond_high = interval(found - matched)
        first = judged.chosen.value[key]
        for place, signal in enumerate(SIGNALS):
            layer, head = judged.chosen.heads[key][place]
            rows.append(
                {
                    "kind": key[0],
                    "relation": key[1],
                    "signal": signal,
                    "best": place == int(np.argmax(first)),
                    "layer": layer + 1,
                    "head": head + 1,
                    "chosen_value": first[place],
                    "value": found[0, place],
                    "low": low[place],
                    "high": high[place],
                    "chance": ratio(judged.of(key, "chance"), count)[0, place],
                    "matched": matched[0, place],
                    "beyond": found[0, place] - matched[0, place],
                    "beyond_low": beyond_low[place],
                    "beyond_high": beyond_high[place],
                    "baseline": BASELINES[judged.chosen.baseline[key]],
                    "baseline_value": baseline[0, 0],
                    "difference": found[0, place] - baseline[0, 0],
                    "difference_low": apart_low[place],
                    "difference_high": apart_high[place],
                    "count": int(count[0, 0]),
                    "documents": documents,
                }
            )
    numbers = pa.float64()
    kinds = OF | {"best": pa.bool_()} | HEAD
    names = list(rows[0]) if rows else []
    for name in names:
        kinds.setdefault(name, pa.string() if name == "baseline" else numbers)
    kinds |= {"count": pa.int64(), "documents": pa.int64()}
    return pa.table(
        {name: pa.array([_plain(row[name]) for row in rows], kinds[name]) for name in names or OF}
    )


def _asked(totals: Totals) -> dict[Key, float]:
    """How many words were asked, by relation."""
    return {key[:2]: one.count for key, one in totals.sums.items() if key[2] == "found"}


def _plain(value: Any) -> Any:
    """A number that does not exist is a null."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _known(values: Any) -> pa.Array:
    flat = np.asarray(values, np.float64).ravel()
    return pa.array(flat, mask=~np.isfinite(flat))
