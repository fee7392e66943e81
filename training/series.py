"""Puts the few numbers of a series of studies that go onto a page into one small table.

    python training/series.py SERIES training/again/heads.json

A line a checkpoint: how many heads have each label, which have those of the page, and of some
quantities the number of all heads together and of the head that shows it most surely, with 95 %
intervals. SERIES is what `headscope study --checkpoints` made; every name in it has its step.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.study.folder import Study
from headscope.study.told import told_view

KINDS = (
    *("previous token", "next token", "separator sink", "first-token sink"),
    *("punctuation", "repetition", "sentence"),
)
QUANTITIES = {
    "focus": (
        *("previous_token", "next_token", "separator", "first_token"),
        *("sentence_end", "comma"),
    ),
    "repetition": ("same_content_word",),
    "sentence": ("same_sentence_matched",),
}
# Told as multiples of chance, and heads counted whose interval begins above so many.
LIFTED = {"same_content_word": 5, "same_sentence_matched": 1}
Row = dict[str, Any]


def numbers(row: Row, name: str) -> list[float]:
    """A value and its interval."""
    kind = ("lift", "lift_low", "lift_high") if name in LIFTED else ("value", "low", "high")
    return [round(row[one], 4) for one in kind]


def quantities(study: Study) -> Row:
    """Of each quantity what all heads give, and the head whose interval begins highest."""
    view, found = told_view(study.manifest.parameters), {}
    for measure, names in QUANTITIES.items():
        rows = [
            row
            for row in study.table(measure).to_pylist()
            if row["mode"] == "real" and view.has(row)
        ]
        for name in names:
            of_name = [row for row in rows if row["quantity"] == name]
            low = "lift_low" if name in LIFTED else "low"
            surest = max((row for row in of_name if row["level"] == "head"), key=lambda r: r[low])
            (whole,) = (row for row in of_name if row["level"] == "model")
            found[name] = {
                "all": numbers(whole, name),
                "surest": [surest["layer"], surest["head"], *numbers(surest, name)],
            }
            if name in LIFTED:
                least = LIFTED[name]
                heads = [row for row in of_name if row["level"] == "head"]
                found[name]["heads"] = sum((row["lift_low"] or 0) >= least for row in heads)
            else:
                found[name]["chance"] = round(whole["chance"], 4)
    return found


def without_attention(study: Study) -> float:
    """Repetition of content words, over chance, where every token keeps its own value vector."""
    view = told_view(study.manifest.parameters)
    (row,) = (
        row
        for row in study.table("repetition").to_pylist()
        if row["mode"] == "identity" and row["quantity"] == "same_content_word"
        if view.has(row) and row["level"] == "model"
    )
    return round(row["lift"], 4)


def labels(study: Study) -> Row:
    """How many heads have each label, and which those of the page."""
    heads = study.heads.to_pylist()
    every = Counter(label.split(":")[0] for row in heads for label in row["labels"])
    which = {
        kind: [[row["layer"], row["head"]] for row in heads if kind in row["labels"]]
        for kind in KINDS
    }
    return {"labels": dict(every.most_common()), "heads": which}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("series", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    series = hs.open_series(args.series)
    lines = []
    for study, step in zip(series.studies.values(), series.steps, strict=True):
        row = {"step": step} | labels(study) | quantities(study)
        row["same_content_word"]["identity"] = without_attention(study)
        lines.append(json.dumps(row))
    args.out.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
