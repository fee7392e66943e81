"""Segmentation against everyone: Pk, WindowDiff, boundary F1 and boundary similarity.

    python benchmarks/segment.py read     --data ../shared/data --cache DIR [--model …] [--half …]
    python benchmarks/segment.py topics   --data ../shared/data --cache DIR [--model …]
    python benchmarks/segment.py whole    --data ../shared/data [--model …]

Documents fall into two halves by a hash of their name: everything is chosen and fitted on the one
called "choose", and the tables are of the other, "judge". Units (sentences, utterances) are given,
as in the literature; "bare" is the same documents without any punctuation and line break. "whole"
gives the product one bare string and no borders of units: a boundary it finds counts at the
nearest end of a sentence.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import headscope as hs
from headscope.segment.changes import cut_into, cut_with
from headscope.segment.consensus import agree_into
from headscope.segment.features import batches
from headscope.segment.fitting import PENALTIES, Example, fit
from headscope.segment.passages import passage_spans
from headscope.segment.scores import score
from headscope.segment.segmenter import (
    BoundaryEvidence,
    Segmenter,
    default_segmenter,
    kernel_vectors,
)
from headscope.segment.topics import cut_units
from headscope.segment.ways import Ways

sys.path.insert(0, str(Path(__file__).parent))
import segment_baselines as baselines

SETS = {
    "wiki300": ["wiki300/wiki300.ship.jsonl"],
    "openstax": ["openstax/biology.jsonl", "openstax/sociology.jsonl", "openstax/us-history.jsonl"],
    "enwiki": ["enwiki_sections/enwiki.ship.jsonl"],
    "qmsum": ["qmsum/val.jsonl"],
    "tinyrec": ["tinyrec/dev.jsonl"],
}
FITTED_ON = ("wiki300", "openstax", "enwiki")
NAMES = ("pk", "window_diff", "boundary_f1", "boundary_similarity")
REPLICATES = 2000
HIDDEN = "last hidden state, fitted alike"


@dataclass(frozen=True)
class Document:
    name: str
    units: list[str]
    lengths: tuple[int, ...]


def half(name: str) -> str:
    return "choose" if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else "judge"


def documents(data: Path, kind: str, which: str, most: int, form: str) -> list[Document]:
    """Up to `most` documents of one half, in an order given by a hash of their names."""
    found = []
    for file in SETS[kind]:
        for line in (data / file).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if half(record["id"]) == which:
                units = [unit for segment in record["segments"] for unit in segment]
                units = [bare(unit) for unit in units] if form == "bare" else units
                lengths = tuple(len(segment) for segment in record["segments"])
                found.append(Document(record["id"], units, lengths))
    return sorted(found, key=lambda d: hashlib.sha256(f"o{d.name}".encode()).hexdigest())[:most]


def bare(unit: str) -> str:
    """A unit without punctuation and line breaks; one that was nothing else is left as an x."""
    return " ".join(re.sub(r"[^\w\s]", " ", unit).split()) or "x"


@dataclass(frozen=True)
class Features:
    z: NDArray[np.float32]  # (units, layers × heads, head size)
    hidden: NDArray[np.float32]  # (units, hidden size): mean of the last layer over the unit
    embedding: NDArray[np.float32]  # the same over special tokens too: a sentence embedding


Pair = tuple[Document, Features]


def read(scope: hs.Scope, units: list[str]) -> Features:
    """What the product reads of each unit, and in the same pass the last hidden state."""
    shape = scope.shape
    z = np.zeros((len(units), shape.layers * shape.heads, shape.head_size), dtype=np.float32)
    hidden = np.zeros((len(units), scope.loaded.backbone.config.hidden_size), dtype=np.float32)
    embedding = np.zeros_like(hidden)
    own, every = np.zeros(len(units)), np.zeros(len(units))
    for batch in batches(scope, units):
        layers: list[torch.Tensor] = []
        mask = torch.ones_like(batch.ids) if batch.mask is None else batch.mask
        output = scope.observe_batch(
            batch.ids,
            batch.mask,
            lambda seen, b=batch, into=layers: into.append(
                torch.einsum("bhtd,bt->bhd", seen.z, b.own)
            ),
        ).last_hidden_state
        np.add.at(z, batch.units, torch.cat(layers, dim=1).numpy())
        np.add.at(hidden, batch.units, torch.einsum("btd,bt->bd", output, batch.own).numpy())
        np.add.at(embedding, batch.units, torch.einsum("btd,bt->bd", output, mask.float()).numpy())
        np.add.at(own, batch.units, batch.own.sum(1).numpy())
        np.add.at(every, batch.units, mask.sum(1).numpy())
    own, every = np.maximum(own, 1), np.maximum(every, 1)
    return Features(z / own[:, None, None], hidden / own[:, None], embedding / every[:, None])


def cached(cache: Path, model: str, form: str, document: Document) -> Path:
    return cache / model / form / (document.name.replace("/", "__") + ".npz")


def load(path: Path) -> Features:
    with np.load(path) as file:
        return Features(*(file[name].astype(np.float32) for name in ("z", "hidden", "embedding")))


def read_all(arguments: argparse.Namespace) -> None:
    scope = hs.load(None if arguments.model == "specimen" else arguments.model, device="cpu")
    name = Path(arguments.model).name
    for kind in arguments.sets:
        for document in documents(
            arguments.data, kind, arguments.half, arguments.documents, arguments.form
        ):
            path = cached(arguments.cache, name, arguments.form, document)
            if path.exists():
                continue
            begun = time.perf_counter()
            found = read(scope, document.units)
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part.npz")
            np.savez(
                part, z=found.z.astype(np.float16), hidden=found.hidden, embedding=found.embedding
            )
            part.rename(path)
            seconds = time.perf_counter() - begun
            print(f"{document.name}: {len(document.units)} units, {seconds:.1f} s", flush=True)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A method that gives vectors and worths, cut by the dynamic programme all of them share."""

    name: str
    vectors: Callable[[Document, Features], tuple[NDArray[np.float32], NDArray[np.float64]]]
    penalty: float = 0.0
    shortest: int = 1
    sharpness: float | None = None  # of the consensus of all ways to cut, if it is taken

    def cut(self, document: Document, features: Features, count: int | None) -> list[int]:
        vectors, worth = self.vectors(document, features)
        if self.sharpness is None and count is None:
            return cut_with(self.penalty, vectors, worth, self.shortest)
        if self.sharpness is None:
            return cut_into(count, vectors, worth, self.shortest)
        ways = Ways(vectors, worth, self.penalty, self.sharpness, self.shortest)
        wanted = ways.segments(1.0) if count is None else count
        return agree_into(wanted, vectors, worth, self.shortest)


def plain(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    return vectors, np.zeros(len(vectors))


def one_vector(name: str) -> Callable[[Document, Features], Any]:
    """The hidden state or the embedding of each unit, centred and of length 1."""
    return lambda _, f: plain(kernel_vectors(getattr(f, name)[:, None, :], np.ones(1)))


def by_segmenter(
    made: Segmenter, field: str = "z", *, worth: bool = True
) -> Callable[[Document, Features], Any]:
    """What the product does with a segmenter, from features that were read before."""

    def vectors(_: Document, features: Features) -> Any:
        z = getattr(features, field)
        evidence = made.evidence(z if z.ndim == 3 else z[:, None, :])
        return evidence.vectors, evidence.worth * worth

    return vectors


def read_half(arguments: argparse.Namespace, kind: str, which: str, form: str) -> list[Pair]:
    """The documents of a half whose features are in the cache."""
    name = Path(arguments.model).name
    found = []
    most = arguments.documents if which == "judge" else 1000
    for document in documents(arguments.data, kind, which, most, form):
        path = cached(arguments.cache, name, form, document)
        if path.exists():
            found.append((document, load(path)))
    return found


def calibrated(kernel: Kernel, examples: list[Pair]) -> Kernel:
    """The same with the penalty that gives the best F1 − Pk on the half for choosing."""
    made = [(kernel.vectors(d, f), d.lengths) for d, f in examples]

    def merit(penalty: float) -> float:
        scores = [
            score(lengths_of(cut_with(penalty, *v, kernel.shortest), sum(ls)), ls) for v, ls in made
        ]
        return float(np.mean([s.boundary_f1 - s.pk for s in scores]))

    return replace(kernel, penalty=float(max(PENALTIES, key=merit)))


def lengths_of(cuts: list[int], units: int) -> list[int]:
    return [int(length) for length in np.diff([0, *cuts, units])]


def methods(arguments: argparse.Namespace, examples: list[Pair]) -> dict[str, Kernel]:
    """Every method on the shared dynamic programme, fitted and calibrated for choosing only."""
    made = Segmenter.load(arguments.segmenter) if arguments.segmenter else None
    if made is None:
        made = default_segmenter(hs.load(device="cpu"))
    free = [
        Kernel("TF-IDF", lambda d, _: plain(baselines.tfidf(d.units))),
        Kernel("LSA", lambda d, _: plain(baselines.lsa(d.units))),
        Kernel("last hidden state", one_vector("hidden")),
        Kernel("sentence embedding", one_vector("embedding")),
        Kernel("kernel of late heads alone", by_segmenter(made, worth=False), 0.0, made.shortest),
    ]
    sharpness = made.sharpness if made.learned else None
    fitted = [Kernel("headscope", by_segmenter(made), made.penalty, made.shortest, sharpness)]
    if asked(arguments, HIDDEN):
        hidden = fit(
            [Example(f.hidden[:, None, :], d.lengths) for d, f in examples],
            HIDDEN,
            (1, 1, examples[0][1].hidden.shape[1]),
        )
        alike = by_segmenter(hidden, "hidden")
        fitted.insert(0, Kernel(HIDDEN, alike, hidden.penalty, hidden.shortest, hidden.sharpness))
    wanted = [k for k in free if asked(arguments, k.name)]
    kept = [k for k in fitted if asked(arguments, k.name)]
    return {kernel.name: kernel for kernel in [*(calibrated(k, examples) for k in wanted), *kept]}


def asked(arguments: argparse.Namespace, name: str) -> bool:
    return not arguments.methods or name in arguments.methods


def topics(arguments: argparse.Namespace) -> None:
    """The tables, of the half for judging."""
    examples = [
        pair for kind in FITTED_ON for pair in read_half(arguments, kind, "choose", "plain")
    ]
    kernels = methods(arguments, examples)
    lexical = {
        "no boundaries": (baselines.none, "both"),
        "even": (baselines.even, "given"),
        "random": (baselines.random, "given"),
        "TextTiling, nltk": (baselines.nltk_texttiling, "chosen"),
        "TextTiling on sentences": (baselines.texttiling, "given"),
        "C99": (baselines.c99, "both"),
    }
    for kind in arguments.sets:
        judged = read_half(arguments, kind, "judge", arguments.form)
        if not judged:
            continue
        units = sum(len(document.units) for document, _ in judged)
        print(f"\n### {kind}, {arguments.form}: {len(judged)} documents, {units:,} units\n")
        print("| | number | Pk | WindowDiff | F1 | similarity | boundaries found / true |")
        print("|---|---|---|---|---|---|---|")
        for given in (True, False):
            for name, (method, when) in lexical.items():
                now = when in ("both", "given" if given else "chosen")
                if now and asked(arguments, name):
                    row(name, given, judged, lambda d, _, n, m=method: m(d.units, n))
            for name, kernel in kernels.items():
                row(name, given, judged, kernel.cut)


def whole(arguments: argparse.Namespace) -> None:
    """From one string without punctuation to boundaries, of the half for judging."""
    scope = hs.load(None if arguments.model == "specimen" else arguments.model, device="cpu")
    made = Segmenter.load(arguments.segmenter) if arguments.segmenter else default_segmenter(scope)
    for kind in arguments.sets:
        judged = []
        for document in documents(arguments.data, kind, "judge", arguments.documents, "bare"):
            text = " ".join(document.units)
            spans = passage_spans(text)
            evidence = made.evidence(made.read(scope, [text[a:b] for a, b in spans]))
            judged.append((document, (spans, evidence)))
        print(f"\n### {kind}, whole bare texts: {len(judged)} documents\n")
        for given in (True, False):
            row(
                "headscope, even parts as units",
                given,
                judged,
                lambda d, parts, n: cut_whole(d, *parts, made, n),
            )


def cut_whole(
    document: Document,
    spans: list[tuple[int, int]],
    evidence: BoundaryEvidence,
    made: Segmenter,
    count: int | None,
) -> list[int]:
    """The sentences nearest to where the product cuts the bare text."""
    starts = np.cumsum([0, *(len(unit) + 1 for unit in document.units)])[:-1]
    cuts = cut_units(evidence, made, count)
    return sorted({int(np.abs(starts - spans[cut][0]).argmin()) for cut in cuts} - {0})


def row(name: str, given: bool, judged: list[Any], cut: Callable[..., list[int]]) -> None:
    """One line of a table: means over documents, Pk and F1 with a 95 % interval over documents."""
    found = [
        lengths_of(cut(d, f, len(d.lengths) if given else None), len(d.units)) for d, f in judged
    ]
    scores = np.array(
        [
            [100 * score(lengths, d.lengths).as_dict()[n] for n in NAMES]
            for lengths, (d, _) in zip(found, judged, strict=True)
        ]
    )
    rng = np.random.default_rng(0)
    means = scores[rng.integers(len(scores), size=(REPLICATES, len(scores)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    mean = scores.mean(axis=0)
    cells = [
        f"{mean[i]:.1f} ({low[i]:.1f}–{high[i]:.1f})" if i in (0, 2) else f"{mean[i]:.1f}"
        for i in range(4)
    ]
    count = f"{sum(map(len, found)) - len(found)} / {sum(len(d.lengths) - 1 for d, _ in judged)}"
    number = "given" if given else "chosen"
    print(f"| {name} | {number} | {' | '.join(cells)} | {count} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["read", "topics", "whole"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, help="where features of documents are kept")
    parser.add_argument("--model", default="specimen", help="a folder, or the specimen")
    parser.add_argument("--segmenter", type=Path, help="a fitted one, for another model")
    parser.add_argument("--half", choices=["choose", "judge"], default="judge")
    parser.add_argument("--form", choices=["plain", "bare"], default="plain")
    parser.add_argument("--documents", type=int, default=1000, help="of each set, at most")
    parser.add_argument("--methods", nargs="+", help="names of rows; all unless given")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    arguments = parser.parse_args()
    if arguments.what != "read" and arguments.model != "specimen" and not arguments.segmenter:
        parser.error("another model needs --segmenter, made by benchmarks/segment_fit.py")
    torch.set_num_threads(1)
    {"read": read_all, "topics": topics, "whole": whole}[arguments.what](arguments)


if __name__ == "__main__":
    main()
