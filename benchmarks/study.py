"""How long a whole study takes, beside a plain forward pass and beside what one would write today.

    python benchmarks/study.py [specimen|base] [--texts 24] [--tokens 256] [--rounds 3]

All ways read the same texts in the same batches (of 2,048 tokens, as a study on a CPU does), in
turn, and the ratios are of the medians.
"some of it" is what one writes in an hour: attention weights and head vectors from transformers
(`output_attentions=True`) or from TransformerLens (`run_with_cache`; pip install transformer_lens,
BERT-base shape only), every similarity matrix with numpy, and of it the top 1 %, its distances,
sentences, repetitions and anchors: no sums by distance, no chance levels, one setting of special
tokens. "All of it, dense" makes whole matrices and asks them every question that a study asks.

    python benchmarks/study.py memory [--documents 100000]

studies that many short made-up documents with a tiny model and prints the resident memory on the
way.
"""

import argparse
import copy
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec

import numpy as np
import psutil
import torch
import transformers
from windows import in_groups, studied, windows_of

import headscope as hs
from headscope.attention.statistics import attention_statistics
from headscope.capture import HeadOutputs, capture
from headscope.corpus import Corpus
from headscope.pairs import TokenBatch, pair_statistics, quantile
from headscope.specimen import FOLDER as SPECIMEN
from headscope.study.modes import SimilarityKind
from headscope.study.observe import CLASSES, Observer
from headscope.study.progress import Quiet
from headscope.study.sums import Totals
from headscope.units import Unit


def scope_of(name: str) -> hs.Scope:
    if name == "specimen":
        return hs.load(device="cpu")
    tokenizer = transformers.AutoTokenizer.from_pretrained(SPECIMEN)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer))
    return hs.load(transformers.BertModel(config, add_pooling_layer=False).eval(), tokenizer)


def ids_of(units: list[Unit]) -> torch.Tensor:
    return torch.from_numpy(np.stack([unit.tokens.ids for unit in units]))


def plain(scope: hs.Scope, groups: list[list[Unit]]) -> None:
    with torch.no_grad():
        for units in groups:
            scope.loaded.backbone(input_ids=ids_of(units))


def everyday(scope: hs.Scope, units: list[Unit]) -> Counter[str]:
    z: list[np.ndarray] = []
    backbone = scope.loaded.backbone
    with torch.no_grad(), capture(backbone, lambda seen: z.append(seen.z.numpy())):
        attentions = backbone(input_ids=ids_of(units), output_attentions=True).attentions
    return some_statistics(z, attentions, units)


def with_transformer_lens(scope: hs.Scope) -> Callable[[list[Unit]], Counter[str]]:
    from transformer_lens.model_bridge import TransformerBridge

    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForMaskedLM(scope.model.config).save_pretrained(folder)
        scope.tokenizer.save_pretrained(folder)
        model = TransformerBridge.boot_transformers(folder, device="cpu")

    def run(units: list[Unit]) -> Counter[str]:
        with torch.no_grad():
            _, cache = model.run_with_cache(ids_of(units))
        layers = range(scope.shape.layers)
        z = [cache[f"blocks.{n}.attn.hook_z"].transpose(1, 2).numpy() for n in layers]
        return some_statistics(z, [cache[f"blocks.{n}.attn.hook_pattern"] for n in layers], units)

    return run


def dense(scope: hs.Scope, units: list[Unit]) -> None:
    """Every statistic of a study, from whole matrices: the specification that we test against."""
    batch = TokenBatch(unit.marks for unit in units)
    classes = [unit.tokens.classes.astype(np.int32) for unit in units]

    def observe(seen: HeadOutputs) -> None:
        for special in ("kept", "left_out"):
            pair_statistics(seen.z, batch, quantile(), special=special, backend="reference")
        settings = {"number_of_classes": CLASSES, "scaling": seen.scaling, "backend": "reference"}
        attention_statistics(seen.q, seen.k, batch, classes, **settings)

    with torch.no_grad(), capture(scope.loaded.backbone, observe):
        scope.loaded.backbone(input_ids=ids_of(units))


def some_statistics(
    z: Sequence[np.ndarray], attentions: Sequence[torch.Tensor], units: list[Unit]
) -> Counter[str]:
    found: Counter[str] = Counter()
    for layer, weights in zip(z, attentions, strict=True):
        for b, unit in enumerate(units):
            sentences, words = unit.marks.sentences, unit.marks.words
            i, j = np.triu_indices(len(unit), 1)
            for head in range(layer.shape[1]):
                A = weights[b, head].numpy()
                for kind in range(6):
                    found["focus"] += A[:, unit.tokens.classes == kind].sum()
                found["entropy"] += -(A * np.log(A + 1e-12)).sum()
                found["columns"] += np.exp(-(A.mean(0) * np.log(A.mean(0) + 1e-12)).sum())
                values = (layer[b, head] @ layer[b, head].T)[i, j]
                high = values >= np.quantile(values, 0.99)
                found["distance"] += (j - i)[high].sum()
                found["sentence"] += (sentences[i] == sentences[j])[high].sum()
                found["word"] += (words[i] == words[j])[high].sum()
                ends = np.concatenate([i[high], j[high]])
                found["anchor"] += np.bincount(unit.tokens.ids[ends]).max()
    return found


class MadeUp:
    """Documents of words drawn from the sample text, made when they are asked for."""

    def __init__(self, number: int):
        self.number = number
        self.words = hs.sample_text().split()

    def __iter__(self) -> Iterator[str]:
        random = np.random.default_rng(0)
        for _ in range(self.number):
            yield " ".join(random.choice(self.words, int(random.integers(4, 24)))) + "."


class Watched(Quiet):
    """Notes the resident memory at 1,000, 2,000, 4,000, … documents and at the last."""

    def __init__(self, last: int) -> None:
        self.last = last

    def start(self, corpus: Corpus, documents: int, tokens: int) -> None:
        self.documents, self.next, self.process = 0, min(1000, self.last), psutil.Process()

    def advance(self, units: Sequence[Unit]) -> None:
        self.documents += len(units)
        if self.documents >= self.next:
            resident = self.process.memory_info().rss / 2**20
            print(f"{self.documents:>8,} documents {resident:8.0f} MiB", flush=True)
            self.next = (
                2 * self.next if self.documents >= self.last else min(2 * self.next, self.last)
            )


def memory(documents: int) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(SPECIMEN)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    scope = hs.load(transformers.BertModel(config).eval(), tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        scope.study(MadeUp(documents), folder, progress=Watched(documents), padding=0.3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", nargs="?", default="base", choices=("specimen", "base", "memory"))
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--texts", type=int, default=24)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    if given.model == "memory":
        memory(given.documents)
        return
    scope = scope_of(given.model)
    units = windows_of(scope, given.texts, given.tokens)
    slow = hs.load(_eager(scope), scope.tokenizer)
    both = [SimilarityKind("raw", "kept"), SimilarityKind("raw", "left_out")]
    watched = {
        "study, one setting of special tokens": Observer(scope, both[1:], [quantile()], 0),
        "study, special tokens kept and left out": Observer(scope, both, [quantile()], 0),
    }
    totals = {name: Totals(200, 0) for name in watched}
    together = max(1, 2**11 // given.tokens)  # as a study takes them on a CPU
    groups = in_groups(units, together)
    ways: dict[str, Callable[[], object]] = {"plain forward": lambda: plain(scope, groups)}
    for name, observer in watched.items():
        ways[name] = lambda o=observer, t=totals[name]: studied(o, t, units, together)
    ways["some of it, transformers + numpy"] = lambda: [everyday(slow, group) for group in groups]
    if given.model == "base" and find_spec("transformer_lens"):
        with_lens = with_transformer_lens(scope)
        ways["some of it, TransformerLens + numpy"] = lambda: [with_lens(each) for each in groups]
    ways["all of it, dense (our reference)"] = lambda: [dense(scope, group) for group in groups]
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    processor: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(given.rounds + 1):
        for name, way in ways.items():
            begun, used = time.perf_counter(), time.process_time()
            way()
            if round_number:  # the first compiles
                seconds[name].append(time.perf_counter() - begun)
                processor[name].append(time.process_time() - used)
    shape = scope.shape
    print(
        f"{given.model}: {shape.layers} × {shape.heads} × {shape.head_size}, {given.texts} × "
        f"{len(units[0])} tokens, {torch.get_num_threads()} threads, medians of {given.rounds}"
    )
    print("| | clock, s | multiple | processor, s | multiple |\n|---|---|---|---|---|")
    for name in ways:
        cells = []
        for taken in (seconds, processor):
            middle, one = statistics.median(taken[name]), statistics.median(taken["plain forward"])
            cells.append(f"{middle:.2f} | {middle / one:.2f}")
        print(f"| {name} | {' | '.join(cells)} |")


def _eager(scope: hs.Scope) -> transformers.PreTrainedModel:
    """The same weights with the attention implementation that shows its weights."""
    model = copy.deepcopy(scope.model)
    model.set_attn_implementation("eager")
    return model


if __name__ == "__main__":
    main()
