"""The corpus of parts of docs/what-heads-are-for.md: beginnings of modules of three textbooks.

    python benchmarks/textbooks.py ../shared/data textbooks

writes a file for each of 60 modules, spread evenly over the books (OpenStax, CC BY 4.0).
"""

import argparse
import json
from pathlib import Path

MODULES, CHARACTERS = 60, 2000  # of each module


def main() -> None:
    """Write the beginnings."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("data", type=Path)
    asked.add_argument("out", type=Path)
    given = asked.parse_args()
    given.out.mkdir(parents=True)
    modules = [
        json.loads(line)["segments"]
        for book in sorted((given.data / "openstax").glob("*.jsonl"))
        for line in book.read_text(encoding="utf-8").splitlines()
    ]
    for number in range(MODULES):
        segments = modules[number * len(modules) // MODULES]
        text = " ".join(sentence for segment in segments for sentence in segment)[:CHARACTERS]
        (given.out / f"{number:02}.txt").write_text(text, encoding="utf-8")
    print(f"the beginnings of {MODULES} of {len(modules)} modules are in {given.out}")


if __name__ == "__main__":
    main()
