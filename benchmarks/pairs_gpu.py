"""What the statistics cost on a GPU beside the model's own forward pass: prints Markdown tables.

    PYTHONPATH=src python3 benchmarks/pairs_gpu.py

BERT-base shape, random weights, bfloat16. Everything is measured in turn, several times over, in
one run, and medians are shown; times with "results" include bringing the numbers to the host.
"""

import statistics
import sys
import time
import types

import numpy as np
import torch

try:
    import numba  # noqa: F401
except (
    ImportError
):  # a machine with a GPU but no numba: what little is not a kernel runs uncompiled
    sys.modules["numba"] = types.SimpleNamespace(njit=lambda **_: lambda function: function)

import transformers
import triton
from transformers import AttentionInterface, AttentionMaskInterface, BertConfig, BertModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from headscope.pairs import TokenBatch, attention_cuda, cuda, launches, plain_tokens, quantile
from headscope.pairs.attention import Scores
from headscope.pairs.layer import prepare

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
    """Stands where the capture of headscope stands: sees q, k and z of every layer."""

    def __init__(self, batch, classes, pairs, attention, now):
        self.batch, self.classes, self.now = batch, classes, now
        self.pairs, self.attention, self.pending = pairs, attention, []

    def see(self, query, key, z):
        if self.pairs:
            self.add(cuda.start(z, self.batch, (quantile(0.01),)))
        if self.attention:
            scores = Scores(query.shape[-1] ** -0.5)
            self.add(attention_cuda.start(query, key, self.batch, self.classes, CLASSES, scores))

    def add(self, pending):
        self.pending.append(pending.result() if self.now else pending)


OBSERVER = [None]


def observed(module, query, key, value, attention_mask, **settings):
    out, weights = sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    if OBSERVER[0] is not None:
        OBSERVER[0].see(query, key, out.transpose(1, 2))
    return out, weights


AttentionInterface.register("observed", observed)
AttentionMaskInterface.register("observed", sdpa_mask)


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
    config = BertConfig(max_position_embeddings=size, attn_implementation="observed")
    return BertModel(config, add_pooling_layer=False).to(DEVICE, torch.bfloat16).eval()


def beside_the_forward(count, size, rounds):
    model, (batch, classes) = model_of(size), texts(count, size)
    ids = torch.randint(1000, 30000, (count, size), device=DEVICE)

    def forward(pairs=False, attention=False, results=False, now=False, also=None):
        OBSERVER[0] = (
            Observer(batch, classes, pairs, attention, now) if pairs or attention else None
        )
        if also:
            OBSERVER[0] = types.SimpleNamespace(see=lambda q, k, z: also(z))
        with torch.inference_mode():
            model(ids)
        if results:
            for pending in OBSERVER[0].pending:
                pending.result()

    long = size > 8192
    ways = {
        "plain forward": forward,
        "+ pairs": lambda: forward(pairs=True, now=long),
        "+ attention": lambda: forward(attention=True, now=long),
        "+ both": lambda: forward(True, True, now=long),
        "+ both, with results": lambda: forward(True, True, results=not long, now=long),
    }
    if not long:
        ways["+ naive pairs"] = lambda: forward(also=naive)
    memory = {}
    for name, way in ways.items():
        way()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        way()
        torch.cuda.synchronize()
        memory[name] = torch.cuda.max_memory_allocated() / 2**30
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name] += seconds(way, 1, warm=1 if name == "+ naive pairs" else 0)
    plain = statistics.median(times["plain forward"])
    print(f"\n### {count} x {size:,} tokens\n")
    print("| | ms | multiple of the forward | peak memory, GiB |\n|---|---|---|---|")
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"| {name} | {middle * 1e3:.2f} | {middle / plain:.2f} | {memory[name]:.2f} |")
    sys.stdout.flush()
    OBSERVER[0] = None


def gpu_time(function, rounds=7):
    function()
    found = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def where_the_time_goes(count, size, heads=12, d=64):
    batch, classes = texts(count, size)
    z = torch.randn(count, heads, size, d, device=DEVICE, dtype=torch.bfloat16)
    pending = cuda.start(z, batch, (quantile(0.01),))
    layer, sums, text = pending.layer, pending.sums, pending.layer.text
    chosen = layer.some(
        slice(0, max(1, cuda.LIST_BYTES // (8 * (4 * (size * size // 200) + 4096))))
    )
    share = len(chosen.V) / len(layer.V)
    levels = cuda._levels(sums.some(slice(0, len(chosen.V))), 0.01)
    lists = launches.Lists(chosen, 4 * (size * size // 200) + 4096)
    k = torch.full((len(chosen.V),), size * size // 200, device=DEVICE)
    upwards = launches.count_levels(chosen, levels).flip(1).cumsum(1).flip(1)
    at = (upwards[:, 1:] >= k[:, None]).sum(1)
    edge = (levels[:, 0] + (at - 1.51) / levels[:, 1]).float()
    lists.collect(edge)
    counted = launches.Counted.nothing(chosen, sums.some(slice(0, len(chosen.V))), edge)
    scores = Scores(d**-0.5)
    steps = {
        "prepare": (lambda: prepare(z, text, "raw"), 1, 0),
        "add_up": (lambda: launches.add_up(layer), 1, 1),
        "count_levels": (lambda: launches.count_levels(chosen, levels), share, 1),
        "collect": (lambda: lists.collect(edge), share, 1),
        "select": (lambda: launches.select(lists, levels, at.int(), (k * 0 + 1).int()), share, 0),
        "count_high": (lambda: counted.add(lists), share, 0),
        "all pair kernels": (lambda: cuda.start(z, batch, (quantile(0.01),)), 1, 3),
        "both attention kernels": (
            lambda: attention_cuda.start(z, z, batch, classes, CLASSES, scores),
            1,
            4,
        ),
    }
    pairs = count * heads * size * (size - 1) / 2
    print(f"\n### One layer, {count} x {size:,} tokens, {heads} heads of {d}: {pairs:.3g} pairs\n")
    print(f"listed {int(lists.found.sum()) / pairs / share:.2%} of the pairs")
    print("| | ms | ps a pair | products, TFLOP/s | of the peak |\n|---|---|---|---|---|")
    for name, (step, part, products) in steps.items():
        took = gpu_time(step) / part
        flops = products * pairs * 2 * d / (took * 1e-3)
        print(
            f"| {name} | {took:.3f} | {took * 1e9 / pairs:.2f} | {flops / 1e12:.0f} "
            f"| {flops / PEAK_FLOPS:.1%} |",
            flush=True,
        )
    for options in ({"num_warps": 4}, {"num_warps": 8, "maxnreg": 128}, {"num_warps": 8}):
        usual = dict(launches.ADD_UP)
        launches.ADD_UP.update(options)
        print(
            f"add_up with {options}: {gpu_time(lambda: launches.add_up(layer)):.3f} ms", flush=True
        )
        launches.ADD_UP.clear()
        launches.ADD_UP.update(usual)
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
    name = torch.cuda.get_device_name()
    print(
        f"{name}, torch {torch.__version__}, triton {triton.__version__}, "
        f"transformers {transformers.__version__}, {time.strftime('%Y-%m-%d')}"
    )
    begun = time.perf_counter()
    parts = [
        lambda: where_the_time_goes(64, 512),
        lambda: beside_the_forward(64, 512, 7),
        lambda: beside_the_forward(8, 4096, 5),
        lambda: where_the_time_goes(8, 4096),
        lambda: beside_the_forward(1, 32768, 2),
        growth,
    ]
    for part in parts:
        try:
            part()
        except Exception as error:
            print(f"FAILED: {type(error).__name__}: {str(error)[:500]}", flush=True)
        print(f"({time.perf_counter() - begun:.0f} s so far)", flush=True)


if __name__ == "__main__":
    main()
