"""Make the segmenters that come with the specimen, from the "choose" half of the data only.

    python benchmarks/segment_fit.py topics    --cache DIR   (after segment.py read --half choose)
    python benchmarks/segment_fit.py sentences --data ../shared/data

Topics: wiki300, enwiki_sections and openstax. Sentences: the train parts of UD English EWT and GUM,
as they are, with sentences joined by spaces, and without punctuation, capitals and line breaks.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import regex
import torch
from numpy.typing import NDArray

import headscope as hs
from headscope.segment.fitting import Example, fit
from headscope.segment.gaps import SURFACE, gaps, head_features, surface
from headscope.segment.segmenter import Segmenter
from headscope.segment.sentences import SentenceModel, Weights

sys.path.insert(0, str(Path(__file__).parent))
import segment

HERE = Path(hs.__file__).parent / "segment"
PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")
GAPS = {"ud_ewt": 40_000, "ud_gum": 25_000}  # to learn from, of each form
STRENGTH = {"punctuated": 3e-4, "bare": 3e-4}  # of the ridge on standardised features


def fit_topics(data: Path, cache: Path, model: str) -> Segmenter:
    scope = hs.load(None if model == "specimen" else model, device="cpu")
    name = Path(model).name
    examples = []
    for kind in segment.FITTED_ON:
        for document in segment.documents(data, kind, "choose", 1000, "plain"):
            path = segment.cached(cache, name, "plain", document)
            if path.exists():
                examples.append(Example(segment.load(path).z, document.lengths))
    print(f"{len(examples)} documents")
    return fit(examples, name, (scope.shape.layers, scope.shape.heads, scope.shape.head_size))


def joined(record: dict) -> tuple[str, list[int]]:
    """A text as its sentences with a space between them, and where each begins."""
    sentences = [" ".join(record["text"][a:b].split()) for a, b in record["sentences"]]
    starts = np.cumsum([0, *(len(s) + 1 for s in sentences)])[:-1].tolist()
    return " ".join(sentences), starts


def bare(record: dict) -> tuple[str, list[int]]:
    """The same without punctuation, capitals and line breaks."""
    sentences = [
        " ".join(PUNCTUATION.sub(" ", record["text"][a:b]).split()).lower()
        for a, b in record["sentences"]
    ]
    sentences = [sentence for sentence in sentences if sentence]
    starts = np.cumsum([0, *(len(s) + 1 for s in sentences)])[:-1].tolist()
    return " ".join(sentences), starts


def as_is(record: dict) -> tuple[str, list[int]]:
    return record["text"], [start for start, _ in record["sentences"]]


def sentence_texts(data: Path, part: str, corpus: str) -> Iterator[dict]:
    for line in (data / corpus / f"{part}.sents.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def rows(
    scope: hs.Scope, data: Path, form: str, at_most: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Features of the heads, kinds of gap, labels, and the document of each gap."""
    heads, kinds, labels, numbers = [], [], [], []
    number = 0
    for corpus, most in GAPS.items():
        count = 0
        for record in sentence_texts(data, "train", corpus):
            number += 1
            if form == "bare":
                text, starts = bare(record)
            else:
                text, starts = joined(record) if number % 2 else as_is(record)
            places = gaps(text)
            if not places:
                continue
            is_start = np.isin(places, starts)
            for owned, found in head_features(scope, text):
                heads.append(found)
                kinds += [surface(text, places[i]) for i in owned]
                labels.append(is_start[owned])
                numbers.append(np.full(len(owned), number))
                count += len(owned)
            if count > min(most, at_most):
                break
        print(f"{form} {corpus}: {count} gaps", flush=True)
    return (
        np.concatenate(heads),
        np.array(kinds),
        np.concatenate(labels).astype(np.float32),
        np.concatenate(numbers),
    )


def fit_sentences(scope: hs.Scope, data: Path, at_most: int) -> SentenceModel:
    shape = (scope.shape.layers, scope.shape.heads, scope.shape.head_size)
    forms = ("punctuated", "bare")
    found = {form: logistic(*rows(scope, data, form, at_most), form) for form in forms}
    return SentenceModel("specimen", shape, found["punctuated"], found["bare"])


def logistic(
    heads: NDArray[np.float32],
    kinds: NDArray[np.int64],
    labels: NDArray[np.float32],
    numbers: NDArray[np.int64],
    form: str,
) -> Weights:
    """Logistic regression; the constant is moved to where F1 is best on a tenth left out."""
    left_out = numbers % 10 == 0
    mean, spread = heads.mean(axis=0), heads.std(axis=0) + 1e-6
    x = torch.from_numpy((heads - mean) / spread)
    kind = torch.from_numpy(kinds if form == "punctuated" else np.zeros_like(kinds))
    y = torch.from_numpy(labels)
    train = torch.from_numpy(~left_out)
    weights = torch.zeros(x.shape[1], requires_grad=True)
    offsets = torch.full((SURFACE,), -2.0, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, offsets], max_iter=80, line_search_fn="strong_wolfe", history_size=10
    )
    xs, ks, ys = x[train], kind[train], y[train]

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        odds = xs @ weights + offsets[ks]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(odds, ys)
        loss = loss + STRENGTH[form] * (weights**2).sum() + 1e-5 * ((offsets + 2) ** 2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    with torch.no_grad():
        odds = (x @ weights + offsets[kind]).numpy()[left_out]
        w = weights.numpy() / spread
        o = offsets.numpy().copy()
    truth = labels[left_out] > 0
    scored = [
        (2 * (truth & (odds > t)).sum() / max(truth.sum() + (odds > t).sum(), 1), t)
        for t in np.linspace(-3, 1, 81)
    ]
    best, threshold = max(scored)
    print(f"{form}: F1 {best:.3f} on the tenth left out, at log odds {threshold:.2f}")
    surface_weights = o if form == "punctuated" else np.full(SURFACE, o[0])
    return Weights(
        w.astype(np.float32), (surface_weights - mean @ w - threshold).astype(np.float32)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["topics", "sentences"])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--model", default="specimen")
    parser.add_argument(
        "--gaps", type=int, default=max(GAPS.values()), help="of each corpus, at most"
    )
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.what == "topics":
        made = fit_topics(arguments.data, arguments.cache, arguments.model)
        made.save(arguments.out or HERE / "specimen.json")
        print(f"penalty {made.penalty:.2f}, heads {[head[:2] for head in made.kernel]}")
        return
    found = fit_sentences(hs.load(device="cpu"), arguments.data, arguments.gaps)
    out = arguments.out or HERE / "specimen_sentences.json"
    out.write_text(json.dumps(found.as_dict()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
