"""What the statistics cost on a GPU beside the model's own forward pass: prints Markdown tables.

    PYTHONPATH=src python3 benchmarks/pairs_gpu.py [steps short middle long growth] [--tokens 512]

BERT-base shape, random weights, bfloat16. Everything is measured in turn, several times over, in
one run, and medians are shown; times include bringing the results to the host, unless a row
says otherwise.
"""

import argparse
import statistics
import sys
import time
import types

import bare_machine  # noqa: F401
import numpy as np
import torch
import transformers
import triton
from transformers import BertConfig, BertModel

from headscope.attention.cuda import backend as attention_cuda
from headscope.attention.statistics import Scores
from headscope.capture import capture
from headscope.pairs import TokenBatch, plain_tokens, quantile
from headscope.pairs.cuda import MEMORY, VECTORS, bytes_of, launches
from headscope.pairs.cuda import backend as cuda

DEVICE, CLASSES = "cuda", 8
PEAK_FLOPS, PEAK_BYTES = 989e12, 4.8e12  # bfloat16 and memory, from the data sheet


def texts(count, size):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2000, (count, size))
    sentences = np.cumsum(rng.random((count, size)) < 0.05, 1)
    special = np.isin(np.arange(size), [0, size - 1])
    batch = TokenBatch(
        plain_tokens(*each, special=special) for each in zip(ids, sentences, strict=True)
    )
    classes = [np.minimum(rng.integers(0, 40, size), CLASSES - 1).astype(np.int32)] * count
    return batch, classes


class Observer:
    """Computes the statistics of every layer; takes results one layer behind, as a user would."""

    def __init__(self, batch, classes, pairs, attention, now):
        self.batch, self.classes, self.now = batch, classes, now
        self.pairs, self.attention, self.before = pairs, attention, []

    def see(self, outputs):
        found = []
        if self.pairs:
            found.append(cuda.start(outputs.z, self.batch, (quantile(0.01),)))
        if self.attention:
            scores = Scores(outputs.scaling)
            found.append(
                attention_cuda.start(
                    outputs.q,
                    outputs.k,
                    self.batch,
                    self.classes,
                    CLASSES,
                    scores,
                    normaliser=outputs.normaliser,
                )
            )
        self.finish()
        self.before = found

    def finish(self):
        if self.now:
            for pending in self.before:
                pending()


class Together:
    """Computes them for several layers at once, as a study does, and leaves them on the device."""

    def __init__(self, batch, classes):
        self.batch, self.classes = batch, classes
        self.layers, self.attention, self.found = [], [], []

    def see(self, outputs):
        scores = Scores(outputs.scaling)
        attention = (outputs.q, outputs.k, self.batch, self.classes, CLASSES, scores)
        self.attention.append(attention_cuda.start(*attention, normaliser=outputs.normaliser))
        self.layers.append(outputs.z)
        if (len(self.layers) + 1) * outputs.z.nbytes > bytes_of(VECTORS, MEMORY):
            self.launch()

    def launch(self):
        names, z = [str(n) for n in range(len(self.layers))], torch.cat(self.layers)
        options = {"reading": "raw", "settings": ("kept",), "layers": names}
        self.found.append(cuda.start_layers(z, self.batch, (quantile(0.01),), **options))
        self.layers = []

    def finish(self):
        if self.layers:
            self.launch()
        for pending in [attention_cuda.left_on_device(self.attention), *self.found]:
            pending()


def run(model, ids, observer):
    with torch.no_grad():
        if observer is None:
            return model(ids)
        with capture(model, observer.see):
            model(ids)
        return observer.finish()


def naive(z):
    """What one writes without a library: the matrix, its mean and deviation, the top 1 %."""
    found = []
    for text in z:
        C = text.float() @ text.float().transpose(1, 2)  # (H, S, S)
        upper = torch.triu_indices(C.shape[1], C.shape[1], 1, device=C.device)
        values = C[:, upper[0], upper[1]]  # (H, pairs)
        reach = values.topk(max(1, values.shape[1] // 100)).values[:, -1]
        found.append((values.mean(1), values.std(1), torch.nonzero(values >= reach[:, None])))
    return found


def seconds(function, rounds, warm=2):
    for _ in range(warm):
        function()
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return times


def model_of(size):
    torch.manual_seed(0)
    config = BertConfig(max_position_embeddings=size, attn_implementation="sdpa")
    return BertModel(config, add_pooling_layer=False).to(DEVICE, torch.bfloat16).eval()


def beside_the_forward(count, size, rounds):
    model, (batch, classes) = model_of(size), texts(count, size)
    ids = torch.randint(1000, 30000, (count, size), device=DEVICE)

    def way(pairs, attention, now=True):
        return lambda: run(model, ids, Observer(batch, classes, pairs, attention, now))

    naive_observer = types.SimpleNamespace(see=lambda outputs: naive(outputs.z), finish=int)
    ways = {
        "plain forward": lambda: run(model, ids, None),
        "+ pairs": way(True, False),
        "+ attention": way(False, True),
        "+ both": way(True, True),
        "+ both, a layer at a time, left on the device": way(True, True, now=False),
        "+ both, layers together, left on the device": lambda: run(
            model, ids, Together(batch, classes)
        ),
    }
    if size <= 8192:
        ways["+ naive pairs"] = lambda: run(model, ids, naive_observer)
    memory, again, redo = {}, [], cuda._redo
    cuda._redo = lambda pending, n, which: (again.append(len(which)), redo(pending, n, which))
    ways["+ both"]()
    cuda._redo = redo
    for name, each in ways.items():
        each()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        each()
        torch.cuda.synchronize()
        memory[name] = torch.cuda.max_memory_allocated() / 2**30
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, each in ways.items():
            times[name] += seconds(each, 1, warm=1 if name == "+ naive pairs" else 0)
    plain = statistics.median(times["plain forward"])
    print(f"\n### {count} x {size:,} tokens; {sum(again)} of {144 * count} heads done again\n")
    print("| | ms | multiple of the forward | peak memory, GiB |\n|---|---|---|---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| {name} | {middle * 1e3:.2f} | {middle / plain:.2f} | {memory[name]:.2f} |")
    sys.stdout.flush()


def gpu_time(function, rounds=5):
    """Milliseconds on the device alone: launches are recorded once and replayed."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    found = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def launch_time(function, rounds=5):
    """Milliseconds that the host spends on launching."""
    function()
    found = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        function()
        found.append(time.perf_counter() - begun)
    return statistics.median(found) * 1e3


def a_layer(count, size):
    """What the seventh layer of a BERT with random weights makes of random tokens."""
    seen = []
    with torch.no_grad(), capture(model_of(size), seen.append) as opened:
        opened.model(torch.randint(1000, 30000, (count, size), device=DEVICE))
    return seen[6]


def where_the_time_goes(count, size):
    (batch, classes), layer = texts(count, size), a_layer(count, size)
    z, heads, d = layer.z, layer.z.shape[1], layer.z.shape[3]
    pending = cuda.start(z, batch, (quantile(0.01),))
    seen, text, ranks = pending.layer, pending.layer.text, pending.ranks[0]
    capacity = 5 * int(ranks.max()) // 2 + 4096
    edges = launches.place_edges(seen, ranks, capacity)
    lists = launches.Lists(seen, capacity)
    lists.collect(edges.value)
    select = (edges, ranks, pending.high[0].reach, pending.checks[1])
    scores, attention = Scores(layer.scaling), (layer.q, layer.k, batch, classes, CLASSES)
    steps = {
        "measure": (lambda: launches.measure(z, text), 0),
        "add_up": (lambda: launches.add_up(seen), 1),
        "place_edges": (lambda: launches.place_edges(seen, ranks, capacity), 0),
        "collect": (lambda: lists.collect(edges.value), 1),
        "select": (lambda: lists.select(*select), 0),
        "count_high": (lambda: pending.high[0].add(lists), 0),
        "all pairs": (lambda: cuda.start(z, batch, (quantile(0.01),)), 2),
        "attention": (
            lambda: attention_cuda.start(*attention, scores, normaliser=layer.normaliser),
            2,
        ),
        "attention, normaliser too": (lambda: attention_cuda.start(*attention, scores), 4),
    }
    pairs = count * heads * size * (size - 1) / 2
    print(f"\n### One layer, {count} x {size:,} tokens, {heads} heads of {d}: {pairs:.3g} pairs\n")
    print(f"listed {int(lists.found.sum()) / pairs:.2%} of the pairs, {lists.number} lists a head,")
    print(f"{int(pending.checks[1:].sum())} heads to do again")
    print("| | device, ms | ps a pair | products, TFLOP/s | of the peak | host, ms |")
    print("|---|---|---|---|---|---|")
    for name, (step, products) in steps.items():
        took = gpu_time(step)
        flops = products * pairs * 2 * d / (took * 1e-3)
        print(
            f"| {name} | {took:.3f} | {took * 1e9 / pairs:.2f} | {flops / 1e12:.0f} "
            f"| {flops / PEAK_FLOPS:.1%} | {launch_time(step):.3f} |",
            flush=True,
        )
    seen_attention = attention_cuda.start(*attention, scores)
    print(f"results of pairs on the host: {launch_time(pending):.2f} ms,", end=" ")
    print(f"of attention: {launch_time(seen_attention):.2f} ms")
    read = z.numel() * z.element_size()
    print(f"reading z once takes {read / PEAK_BYTES * 1e3:.3f} ms at the memory's peak")


def growth():
    print("\n### Growth, one layer, 32,768 tokens in all, statistics only\n")
    print("| texts x tokens | heads | d | pairs, ms | ps a pair | attention, ms | ps a weight |")
    print("|---|---|---|---|---|---|---|")
    shapes = [(n, 12, 64) for n in (128, 256, 512, 1024, 2048, 4096, 8192)]
    shapes += [(512, h, 64) for h in (3, 6, 24)] + [(512, 12, d) for d in (32, 128)]
    for size, heads, d in shapes:
        count = 32768 // size
        batch, classes = texts(count, size)
        z = torch.randn(count, heads, size, d, device=DEVICE, dtype=torch.bfloat16)
        scores, pairs = Scores(d**-0.5), count * heads * size * (size - 1) / 2
        one = gpu_time(lambda b=batch, z=z: cuda.start(z, b, (quantile(0.01),)), 5)
        two = gpu_time(
            lambda b=batch, c=classes, z=z, s=scores: attention_cuda.start(z, z, b, c, CLASSES, s),
            5,
        )
        print(
            f"| {count} x {size} | {heads} | {d} | {one:.2f} | {one * 1e9 / pairs:.2f} "
            f"| {two:.2f} | {two * 1e9 / pairs / 2:.2f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help="all unless named")
    parser.add_argument("--texts", type=int, help="of every part but growth, instead of its own")
    parser.add_argument("--tokens", type=int, help="of a text, likewise")
    parser.add_argument("--rounds", type=int, help="beside the forward pass, likewise")
    given = parser.parse_args()

    def shape(count, size):
        return given.texts or count, given.tokens or size

    def forward(count, size, rounds):
        return lambda: beside_the_forward(*shape(count, size), given.rounds or rounds)

    parts = {
        "steps": lambda: [where_the_time_goes(*shape(*each)) for each in ((64, 512), (8, 4096))],
        "short": forward(64, 512, 7),
        "middle": forward(8, 4096, 5),
        "long": forward(1, 32768, 2),
        "growth": growth,
    }
    if unknown := set(given.parts) - set(parts):
        parser.error(
            f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(parts)}"
        )
    name = torch.cuda.get_device_name()
    print(
        f"{name}, torch {torch.__version__}, triton {triton.__version__}, "
        f"transformers {transformers.__version__}, {time.strftime('%Y-%m-%d')}"
    )
    begun, failed = time.perf_counter(), 0
    for part in given.parts or parts:
        try:
            parts[part]()
        except Exception as error:
            failed += 1
            print(f"FAILED: {type(error).__name__}: {str(error)[:500]}", flush=True)
        print(f"({time.perf_counter() - begun:.0f} s so far)", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
