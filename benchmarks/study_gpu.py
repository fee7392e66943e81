"""What seeing every measure of a study costs on a GPU, and whether it sees what a CPU sees.

    PYTHONPATH=src python3 benchmarks/study_gpu.py [--texts 64] [--tokens 512] [--batches 4]

BERT-base shape, random weights, bfloat16; the specimen in float32 for the comparison with the CPU.
Everything is measured in turn in one run, and medians are shown. "everyday" asks transformers for
attention weights, makes every similarity matrix with torch on the GPU and takes the top 1 % of it.
"""

import argparse
import statistics
import time

import bare_machine  # noqa: F401
import numpy as np
import torch
import transformers
from windows import in_groups, studied, windows_of

import headscope as hs
from headscope.attention.statistics import attention_statistics
from headscope.capture import capture
from headscope.measures import anchor, repetition
from headscope.pairs import TokenBatch, pair_statistics, quantile, start_pair_statistics
from headscope.pairs.vector_statistics import Members, start_vector_statistics
from headscope.specimen import FOLDER
from headscope.study.modes import SimilarityKind
from headscope.study.observe import CLASSES, Observer
from headscope.study.sums import Totals

KINDS = [SimilarityKind("raw", "kept"), SimilarityKind("raw", "left_out")]


def base(device):
    tokenizer = transformers.AutoTokenizer.from_pretrained(FOLDER)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(tokenizer))
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    return hs.load(model.to(device, torch.bfloat16), tokenizer)


def ids_of(scope, units):
    return torch.from_numpy(np.stack([unit.tokens.ids for unit in units])).to(scope.model.device)


def agree():
    """The specimen sees the same on both devices, to rounding."""
    seen = {}
    for device in ("cpu", "cuda"):
        scope = hs.load(device=device)
        units = windows_of(scope, 2, 40)
        seen[device] = Observer(scope, KINDS, [quantile(0.05)], 0).see(units, "real")
    worst = {}
    for one, other in zip(seen["cpu"][1], seen["cuda"][1], strict=True):
        for name in ("mean", "variance", "maximum", "related_sum"):
            left, right = one.pairs(name), other.pairs(name)
            off = np.abs(left - right) / np.abs(left).max()
            worst[name] = max(worst.get(name, 0), float(off.max()))
        for name in ("count", "same_sentence", "same_token"):
            off = np.abs(one.high(name) - other.high(name)).max()
            worst[name] = max(worst.get(name, 0), float(off))
        for name, values in one.vectors.items():
            off = np.abs(values - other.vectors[name]) / np.abs(values).max()
            worst[name] = max(worst.get(name, 0), float(off.max()))
    print("largest differences, GPU - CPU, in parts of the largest value; counts in pairs:")
    print({name: f"{value:.1e}" for name, value in worst.items()}, flush=True)


def everyday(model, ids):
    z = []
    with torch.no_grad(), capture(model, lambda outputs: z.append(outputs.z)):
        attentions = model(input_ids=ids, output_attentions=True).attentions
    for layer, weights in zip(z, attentions, strict=True):
        A = weights.float()
        found = [-(A * (A + 1e-12).log()).sum((2, 3)), A.mean(2)]
        for text in layer:
            C = text.float() @ text.float().transpose(1, 2)  # (H, S, S)
            upper = torch.triu_indices(C.shape[1], C.shape[1], 1, device=C.device)
            values = C[:, upper[0], upper[1]]
            reach = values.topk(max(1, values.shape[1] // 100)).values[:, -1:]
            head, pair = torch.nonzero(values >= reach, as_tuple=True)
            distance = upper[1][pair] - upper[0][pair]
            found.append(torch.bincount(head * C.shape[1] + distance).cpu())
        del found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--batches", type=int, default=4)
    given = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__, transformers.__version__, flush=True)
    agree()
    scope = base("cuda")
    units = windows_of(scope, given.texts, given.tokens)
    units, together = [*units] * given.batches, len(units)
    ids = [ids_of(scope, group) for group in in_groups(units, together)]
    backbone, total = scope.loaded.backbone, Totals(200, 0)
    observers = {kinds: Observer(scope, KINDS[:kinds], [quantile()], 0) for kinds in (1, 2)}

    def plain():
        with torch.no_grad():
            for each in ids:
                backbone(input_ids=each)

    def only_seen(kinds):
        for group in in_groups(units, together):
            observers[kinds].see(group, "real")

    eager = base("cuda").model
    eager.set_attn_implementation("eager")
    ways = {
        "plain forward": plain,
        "seen, one setting of special tokens": lambda: only_seen(1),
        "seen, special tokens kept and left out": lambda: only_seen(2),
        "whole study, one setting": lambda: studied(observers[1], total, units, together),
        "whole study, both": lambda: studied(observers[2], total, units, together),
        "everyday (transformers + torch)": lambda: [everyday(eager, each) for each in ids],
    }
    times = {name: [] for name in ways}
    for number in range(4):
        for name, way in ways.items():
            torch.cuda.synchronize()
            begun = time.perf_counter()
            way()
            torch.cuda.synchronize()
            if number:
                times[name].append(time.perf_counter() - begun)
    one = statistics.median(times["plain forward"])
    print(f"{given.batches} x {given.texts} x {len(units[0])} tokens")
    print("| | ms | multiple |\n|---|---|---|")
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"| {name} | {middle * 1e3:.1f} | {middle / one:.2f} |", flush=True)
    parts(scope, units[:together])


def parts(scope, units):
    """Where the time of one layer goes, with waiting for each part."""
    seen = []
    with torch.no_grad(), capture(scope.loaded.backbone, seen.append):
        scope.loaded.backbone(input_ids=ids_of(scope, units))
    z = seen[6].z
    plain = TokenBatch(unit.marks for unit in units)
    batch = TokenBatch(plain.texts, [anchor.types_of(unit) for unit in units])
    kept = [np.stack(batch.kept(s)) for s in ("kept", "left_out")]
    members = Members.of(kept, z.device)
    places = torch.from_numpy(np.stack([repetition.couples(unit, 0) for unit in units])).cuda()
    classes = [unit.tokens.classes.astype(np.int32) for unit in units]
    attention = {"number_of_classes": CLASSES, "normaliser": seen[6].normaliser}
    steps = {
        "vector statistics, both settings": lambda: start_vector_statistics(z, members)(),
        "detection": lambda: repetition.detection(z.float(), places),
        "attention": lambda: attention_statistics(
            seen[6].q, seen[6].k, batch, classes, **attention
        ),
        "pairs": lambda: pair_statistics(z, plain, quantile()),
        "pairs and anchors": lambda: pair_statistics(z, batch, quantile()),
        "pairs and anchors, launched only": lambda: start_pair_statistics(z, batch, quantile()),
    }
    for name, step in steps.items():
        step()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        launched = (time.perf_counter() - begun) * 1e3
        torch.cuda.synchronize()
        whole = (time.perf_counter() - begun) * 1e3
        print(f"one layer, {name}: {whole:.1f} ms, {launched:.1f} of them the host's", flush=True)


if __name__ == "__main__":
    main()
