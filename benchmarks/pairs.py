"""What the statistics cost on a CPU beside the model's own forward pass: prints Markdown tables.

    python benchmarks/pairs.py [forward|growth|steps|long] [--plot benchmarks/pairs.svg]

BERT-base shape, random weights, float32. Everything is measured in turn, several times over, in one
run, and medians are shown, with the processor time of all threads beside the time on the clock:
where other programs want the processor too, only the former means much. The longest text is read
by a process of its own, so that the memory is what it alone takes.
"""

import argparse
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface, BertConfig, BertModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from headscope.attention.cpu.passes import add_rows
from headscope.attention.statistics import attention_statistics
from headscope.pairs import TokenBatch, pair_statistics, plain_tokens, quantile
from headscope.pairs.cpu import backend as cpu
from headscope.pairs.cpu import passes, short_texts
from headscope.pairs.cpu.panels import Panels

CLASSES, Q = 8, (0.002, 0.005, 0.01, 0.02, 0.05)


def texts(count, size):
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2000, (count, size))
    sentences = np.cumsum(rng.random((count, size)) < 0.05, 1)
    special = np.isin(np.arange(size), [0, size - 1])
    batch = TokenBatch(
        plain_tokens(*each, special=special) for each in zip(ids, sentences, strict=True)
    )
    kinds = [np.minimum(rng.integers(0, 40, size), CLASSES - 1).astype(np.int32)] * count
    return batch, kinds


OBSERVER = [None]


def observed(module, query, key, value, attention_mask, **settings):
    out, weights = sdpa_attention_forward(module, query, key, value, attention_mask, **settings)
    if OBSERVER[0] is not None:
        OBSERVER[0](query, key, out.transpose(1, 2))
    return out, weights


AttentionInterface.register("observed", observed)
AttentionMaskInterface.register("observed", sdpa_mask)


def naive(z):
    """What one writes without a library: the matrix, its mean and deviation, the top 1 %."""
    C = z @ z.transpose(2, 3)  # (B, H, S, S)
    upper = torch.triu_indices(C.shape[2], C.shape[2], 1)
    values = C[:, :, upper[0], upper[1]]  # (B, H, pairs)
    reach = values.topk(max(1, values.shape[2] // 100)).values[..., -1:]
    return values.mean(2), values.std(2), torch.nonzero(values >= reach)


def ways(batch, kinds):
    """What may be done in every layer, by name."""

    def pairs(q, k, z, shares=(0.01,), reading="raw"):
        pair_statistics(z, batch, [quantile(share) for share in shares], reading=reading)

    def attention(q, k, z):
        attention_statistics(q, k, batch, kinds, number_of_classes=CLASSES)

    def both(q, k, z):
        pairs(q, k, z)
        attention(q, k, z)

    return {
        "plain forward": None,
        "+ pairs": pairs,
        "+ attention": attention,
        "+ both": both,
        "+ pairs, five quantiles": lambda q, k, z: pairs(q, k, z, Q),
        "+ pairs, cosine": lambda q, k, z: pairs(q, k, z, reading="cosine"),
        "+ naive pairs": lambda q, k, z: naive(z),
    }


def model_of(size, layers=12):
    torch.manual_seed(0)
    config = BertConfig(
        max_position_embeddings=size, num_hidden_layers=layers, attn_implementation="observed"
    )
    return BertModel(config, add_pooling_layer=False).eval()


def took(function):
    clock, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - processor


def beside_the_forward(count, size, rounds, layers):
    model, (batch, kinds) = model_of(size, layers), texts(count, size)
    ids = torch.randint(1000, 30000, (count, size))

    def forward(observer):
        OBSERVER[0] = observer
        with torch.inference_mode():
            model(ids)

    chosen, times = ways(batch, kinds), {}
    for observer in chosen.values():
        forward(observer)
    for _ in range(rounds):
        for name, observer in chosen.items():
            times.setdefault(name, []).append(took(lambda o=observer: forward(o)))
    OBSERVER[0] = None
    print(f"\n### {count} x {size:,} tokens, {layers} layers, median of {rounds} rounds\n")
    print("| | clock, s | multiple | processor, s | multiple |\n|---|---|---|---|---|")
    plain = [statistics.median(each) for each in zip(*times["plain forward"], strict=True)]
    for name, found in times.items():
        clock, processor = (statistics.median(each) for each in zip(*found, strict=True))
        print(
            f"| {name} | {clock:.2f} | {clock / plain[0]:.2f} "
            f"| {processor:.2f} | {processor / plain[1]:.2f} |",
            flush=True,
        )


def longest(size, layers):
    """One text through the whole model with all statistics, and the memory that took."""
    model, (batch, kinds) = model_of(size, layers), texts(1, size)
    OBSERVER[0] = ways(batch, kinds)["+ both"]
    with torch.inference_mode():
        clock, processor = took(lambda: model(torch.randint(1000, 30000, (1, size))))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n1 x {size:,} tokens with all statistics: {clock:.0f} s on the clock, "
          f"{processor:.0f} s of processor, {peak:.2f} GiB at most")  # fmt: skip


def processor_time(function, rounds=7):
    function()
    return statistics.median(took(function)[1] for _ in range(rounds))


def growth(tokens):
    print(f"\n### Growth, one layer, {tokens:,} tokens in all, statistics only, processor time\n")
    print("| texts x tokens | heads | d | pairs, s | ns a pair | attention, s | ns a weight |")
    print("|---|---|---|---|---|---|---|")
    size = min(512, tokens)
    shapes = [(2**n, 12, 64) for n in range(7, tokens.bit_length())]
    shapes += [(size, heads, 64) for heads in (3, 6, 24)] + [(size, 12, d) for d in (16, 32, 128)]
    rows = []
    for size, heads, d in shapes:
        count = tokens // size
        batch, kinds = texts(count, size)
        z = torch.randn(count, heads, size, d)
        pairs = count * heads * size * (size - 1) / 2
        done = ways(batch, kinds)
        one = processor_time(lambda f=done["+ pairs"], z=z: f(z, z, z), 3)
        two = processor_time(lambda f=done["+ attention"], z=z: f(z, z, z), 3)
        rows.append((size, heads, d, one, two))
        print(
            f"| {count} x {size} | {heads} | {d} | {one:.2f} | {one * 1e9 / pairs:.2f} "
            f"| {two:.2f} | {two * 1e9 / pairs / 2:.2f} |",
            flush=True,
        )
    return rows


def where_the_time_goes(size=512, d=64):
    """One head in one text, step by step, on one thread, against the peak of that thread."""
    torch.set_num_threads(1)
    batch, kinds = texts(1, size)
    z, text = torch.randn(size, d), cpu._texts(batch, ("kept", "left_out"))[0]
    square = torch.randn(1500, 1500)
    peak = 2 * 1500**3 / processor_time(lambda: square @ square)
    pairs = size * (size - 1) / 2
    panels = Panels(z, text.left_out[0])
    panel, _ = next(iter(panels))
    totals, two, listed = np.zeros(size), np.zeros(2), np.empty((size * size, 2), np.int32)
    values = np.empty(len(listed), np.float32)
    edge = short_texts._edge(panel, 0.01)
    sizes = torch.ones(1, size).numpy()
    both = (text, slice(0, 2), text.ranks([quantile(0.01)], 0))

    def all_of_it():
        numbers = cpu.Numbers((1, 1, 2), size, 1, len(text.types), 0)
        cpu._together(panel[None], sizes, sizes, *both, numbers, (0, slice(0, 1)))

    scores = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)
    labels = text.labels[passes.SENTENCES]
    whole = (labels, kinds[0], np.empty(0, np.int64), np.zeros(CLASSES + 1, np.int64), 7)
    sent = (np.zeros((CLASSES, CLASSES)), np.zeros((6, CLASSES)), np.zeros(size))
    steps = {
        "product, upper panels": (lambda: Panels(z, text.left_out[0]), pairs, 2 * d),
        "sums (_add_up)": (lambda: short_texts._add_up(panel, 0.0, totals, two), pairs, 0),
        "sample (_edge)": (lambda: short_texts._edge(panel, 0.01), pairs, 0),
        "candidates (_collect)": (
            lambda: short_texts._collect(panel, edge, text.ordinary, listed, values), pairs, 0,
        ),
        "all passes, special tokens kept and left out": (all_of_it, pairs, 0),
        "scores, whole": (lambda: torch.mm(z, z.T), size * size, 2 * d),
        "softmax and sums (add_rows)": (
            lambda: add_rows(scores.copy(), 0, False, size, np.float32(-1e30), *whole, *sent),
            size * size, 0,
        ),
    }  # fmt: skip
    print(f"\n### One head, {size} tokens, d = {d}, one thread; peak {peak / 1e9:.0f} GFLOP/s\n")
    print("| | µs | ns a pair or weight | GFLOP/s | of the peak |\n|---|---|---|---|---|")
    for name, (step, entries, flops) in steps.items():
        time_taken = processor_time(step, 41)
        rate = entries * flops / time_taken
        print(
            f"| {name} | {time_taken * 1e6:.0f} | {time_taken * 1e9 / entries:.2f} "
            f"| {rate / 1e9:.0f} | {rate / peak:.0%} |",
            flush=True,
        )


def plot(rows, tokens, path):
    import altair

    shown = [
        {"tokens": size, "seconds": seconds, "statistics": name}
        for size, heads, d, *both in rows
        if (heads, d) == (12, 64)
        for name, seconds in zip(("pairs", "attention"), both, strict=True)
    ]
    chart = altair.Chart(altair.Data(values=shown)).mark_line(point=True)
    chart = chart.encode(
        x=altair.X("tokens:Q", scale=altair.Scale(type="log", base=2), title="tokens in a text"),
        y=altair.Y("seconds:Q", scale=altair.Scale(type="log"), title="processor seconds a layer"),
        color=altair.Color("statistics:N"),
    ).properties(width=420, height=260, title=f"{tokens:,} tokens, 12 heads of 64")
    chart.save(path)


def main():
    options = argparse.ArgumentParser()
    parts = ("all", "forward", "growth", "steps", "long")
    options.add_argument("part", nargs="?", default="all", choices=parts)
    options.add_argument("--rounds", type=int, default=5, help="beside the forward pass")
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--texts", type=int, default=8)
    options.add_argument("--tokens", type=int, default=512, help="of a text")
    options.add_argument("--longest", type=int, default=8192, help="tokens of the longest text")
    options.add_argument("--plot", type=Path, help="where to draw the growth")
    chosen = options.parse_args()
    if chosen.part == "long":
        return longest(chosen.longest, chosen.layers)
    print(
        f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"numba {numba.__version__}, transformers {transformers.__version__}, "
        f"{time.strftime('%Y-%m-%d')}"
    )
    if chosen.part in ("all", "forward"):
        beside_the_forward(chosen.texts, chosen.tokens, chosen.rounds, chosen.layers)
    if chosen.part in ("all", "growth"):
        rows = growth(chosen.longest)
        if chosen.plot:
            plot(rows, chosen.longest, chosen.plot)
    if chosen.part in ("all", "steps"):
        where_the_time_goes(chosen.tokens)
    if chosen.part == "all":
        shape = [f"--longest={chosen.longest}", f"--layers={chosen.layers}"]
        subprocess.run([sys.executable, __file__, "long", *shape], check=True)
    return None


if __name__ == "__main__":
    main()
