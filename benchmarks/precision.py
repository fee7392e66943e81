"""What half precision does to the numbers of heads, for docs/method.md.

    python benchmarks/precision.py ../shared/data [--model FOLDER] [--passages 24]

The same passages are studied in float32, bfloat16 and float16, and every number of a head is held
against that of float32, measure by measure. Below it stands of how many heads rounding decides more
high pairs than a label allows.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from findings import wikitext

import headscope as hs
from headscope.measures.registry import MEASURES
from headscope.study.evidence import UNRESOLVED
from headscope.study.folder import Study

MOVED = 1e-3
EXACT, HALVES = "float32", ("bfloat16", "float16")


def numbers(study: Study, measure: str) -> dict[tuple[object, ...], float]:
    """Every number of a head, by where it stands."""
    return {
        tuple(row[name] for name in ("reading", "layer", "head", "quantity")): row["value"]
        for row in study.table(measure).to_pylist()
        if row["mode"] == "real" and row["level"] == "head" and row["value"] is not None
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--passages", type=int, default=24)
    parser.add_argument("--characters", type=int, default=700, help="of each passage")
    given = parser.parse_args()
    texts = [" ".join(text.split())[: given.characters] for text in wikitext(given.data)]
    studies = {}
    with tempfile.TemporaryDirectory() as folder:
        for dtype in (EXACT, *HALVES):
            scope = hs.load(given.model, device="cpu", dtype=dtype)
            studies[dtype] = scope.study(
                texts[: given.passages], Path(folder) / dtype, nulls=(), special=("left_out",)
            )
        table(studies)


def table(studies: dict[str, Study]) -> None:
    """A row for each measure."""
    said = studies[EXACT].manifest
    print(f"{said.model.name}: {said.corpus.documents} passages, {said.corpus.tokens:,} tokens")
    heads = [f"{half}: moved by more than {MOVED} | median, 95th percentile" for half in HALVES]
    print(f"| measure | {' | '.join(heads)} |")
    print("|---|" + "---|---|" * len(HALVES))
    for measure in MEASURES:
        exact, cells = numbers(studies[EXACT], measure), []
        for half in HALVES:
            found = numbers(studies[half], measure)
            both = [where for where in exact if where in found]
            first = np.array([exact[where] for where in both])
            apart = np.abs(first - [found[where] for where in both])
            relative = apart[first != 0] / np.abs(first[first != 0])
            typical = (f"{np.quantile(relative, q):.2%}" for q in (0.5, 0.95))
            cells += [f"{np.mean(apart > MOVED):.0%}", ", ".join(typical)]
        print(f"| {measure} | {' | '.join(cells)} |")
    for dtype, study in studies.items():
        found = numbers(study, "selection")
        for reading in study.manifest.parameters.readings:
            heads = [
                share
                for (of, *_, quantity), share in found.items()
                if (of, quantity) == (reading, "unresolved")
            ]
            print(
                f"{dtype}, {reading}: {np.mean(np.array(heads) > UNRESOLVED):.0%} of heads are "
                f"unresolved; of their high pairs on average {np.mean(heads):.2%}"
            )


if __name__ == "__main__":
    main()
