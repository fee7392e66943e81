"""Sentence boundaries on the dev parts of UD English EWT and GUM, against four libraries.

    python benchmarks/segment_sentences.py --data ../shared/data

Three forms: as the corpus has it, sentences joined by spaces (line breaks do not help), and without
punctuation, capitals and line breaks. F1 is over the inner boundaries of all documents, with a 95 %
interval over documents. The weights were learned on the train parts.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch

import headscope as hs

sys.path.insert(0, str(Path(__file__).parent))
import segment_fit

FORMS = {
    "as it is": segment_fit.as_is,
    "joined by spaces": segment_fit.joined,
    "bare": segment_fit.bare,
}
Splitter = Callable[[str], Iterable[str]]


def splitters(scope: hs.Scope) -> dict[str, Splitter]:
    import blingfire
    import pysbd
    import sentencex
    from syntok import segmenter

    pragmatic = pysbd.Segmenter(language="en", clean=False)

    def syntok(text: str) -> list[str]:
        # Its offsets count from the paragraph.
        starts = [
            paragraph.start() + sentence[0].offset
            for paragraph in re.finditer(r"(?:.+\n?)+", text)
            for part in segmenter.process(paragraph.group())
            for sentence in part
            if sentence
        ]
        return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]

    return {
        "sentencex": lambda text: sentencex.segment("en", text),
        "pysbd": pragmatic.segment,
        "syntok": syntok,
        "blingfire": lambda text: blingfire.text_to_sentences(text).split("\n"),
        "every 16 words": every_16_words,
        "headscope": lambda text: scope.segment(text, level="sentence"),
    }


def every_16_words(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[i : i + 16]) for i in range(0, len(words), 16)]


def boundaries(sentences: Iterable[str]) -> set[int]:
    """Inner boundaries by the characters before them, white space not counted."""
    sizes = [len("".join(sentence.split())) for sentence in sentences]
    return set(np.cumsum([size for size in sizes if size])[:-1].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--documents", type=int, help="of each corpus, at most; all unless given")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    methods = splitters(hs.load(device="cpu"))
    for corpus in ("ud_ewt", "ud_gum"):
        records = list(segment_fit.sentence_texts(arguments.data, "dev", corpus))
        records = records[: arguments.documents]
        print(f"\n### {corpus} dev: {len(records)} documents\n")
        print(f"| | {' | '.join(FORMS)} |\n|---|{'---|' * len(FORMS)}")
        for name, split in methods.items():
            cells = [f1([form(record) for record in records], split) for form in FORMS.values()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def f1(texts: list[tuple[str, list[int]]], split: Splitter) -> str:
    counts = []
    for text, starts in texts:
        true = boundaries(text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))
        found = boundaries(split(text))
        counts.append((len(true & found), len(true) + len(found)))
    array = np.array(counts)
    rng = np.random.default_rng(0)
    sums = array[rng.integers(len(array), size=(2000, len(array)))].sum(axis=1)
    low, high = np.percentile(200 * sums[:, 0] / np.maximum(sums[:, 1], 1), [2.5, 97.5])
    right, total = array.sum(axis=0)
    return f"{200 * right / max(total, 1):.1f} ({low:.1f}–{high:.1f})"


if __name__ == "__main__":
    main()
