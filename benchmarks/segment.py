"""Segmentation against everyone: Pk, WindowDiff, boundary F1 and boundary similarity.

    python benchmarks/segment.py read     --data ../shared/data --cache DIR [--model …] [--half …]
    python benchmarks/segment.py topics   --data ../shared/data --cache DIR [--model …]
    python benchmarks/segment.py fit      --data ../shared/data --cache DIR --out FILE [--model …]

Documents fall into two halves by a hash of their name: everything is chosen and fitted on the one
called "choose", and the tables are of the other, "judge". Units (sentences, utterances) are given,
as in the literature; "bare" is the same documents without any punctuation and line break.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import headscope as hs
from headscope.segment.changes import cut_into, cut_with
from headscope.segment.features import batches
from headscope.segment.fitting import Example, fit
from headscope.segment.scores import score
from headscope.segment.segmenter import Segmenter, kernel_vectors, worth_of

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["read"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--model", default="specimen")
    parser.add_argument("--half", choices=["choose", "judge"], default="judge")
    parser.add_argument("--form", choices=["plain", "bare"], default="plain")
    parser.add_argument("--documents", type=int, default=1000, help="of each set, at most")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    read_all(arguments)


if __name__ == "__main__":
    main()
