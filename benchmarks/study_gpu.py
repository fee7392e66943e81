"""What seeing every measure of a study costs on a GPU, and whether it sees what a CPU sees.

    PYTHONPATH=src python3 benchmarks/study_gpu.py [--texts 64] [--tokens 512] [--batches 4]

BERT-base shape, random weights, bfloat16; the specimen in float32 for the comparison with the CPU.
Everything is measured in turn in one run, and medians are shown. "everyday" asks transformers for
attention weights, makes every similarity matrix with torch on the GPU and takes the top 1 % of it.
"""

import argparse
import statistics
import sys
import time
from functools import partial

import bare_machine  # noqa: F401
import numpy as np
import torch
import transformers
from windows import in_groups, studied, windows_of

import headscope as hs
from headscope.capture import capture
from headscope.compute.arrays import to_host
from headscope.corpus import Corpus
from headscope.engines.readers import readers_of
from headscope.measures import anchor, focus, repetition
from headscope.measures.type_counts import word_places
from headscope.pairs import TokenBatch, quantile
from headscope.pairs.cuda.layer import TextTensors
from headscope.pairs.cuda.tokens import TokenTensors
from headscope.specimen import FOLDER
from headscope.study.modes import SimilarityKind
from headscope.study.observe import Observer
from headscope.study.parameters import Parameters
from headscope.study.prepare import prepare
from headscope.study.reader import CHUNK_BATCHES, Job, Reader, totals_of
from headscope.study.sums import Chunked, Totals
from headscope.units import Padding, ahead, chunks, in_turn

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
    """The specimen sees the same on both devices, to rounding, and where everything stays there."""
    seen = {}
    for device in ("cpu", "cuda"):
        scope = hs.load(device=device)
        units = windows_of(scope, 2, 40)
        observer = Observer(scope, KINDS, [quantile(0.05)], 0)
        seen[device] = observer.see(units, "real")
        seen[f"{device}, left there"] = observer.start(units, "real")()
    for other_way in ("cuda", "cuda, left there"):
        worst = {}
        apart = [own for found in seen[other_way][1] for own in found.apart()]
        for one, other in zip(seen["cpu"][1], apart, strict=True):
            for name in ("mean", "variance", "maximum", "related_sum", "unrelated_square"):
                left, right = one.pairs(name), to_host(other.pairs(name))
                off = np.abs(left - right) / np.abs(left).max()
                worst[name] = max(worst.get(name, 0), float(off.max()))
            for name in ("count", "same_sentence", "same_token", "unrelated", "taking_part"):
                off = np.abs(one.high(name) - to_host(other.high(name))).max()
                worst[name] = max(worst.get(name, 0), float(off))
            for name, values in one.vectors.items():
                off = np.abs(values - to_host(other.vectors[name])) / np.abs(values).max()
                worst[name] = max(worst.get(name, 0), float(off.max()))
        mass = [to_host(seen[way][0].sums("mass")) for way in ("cpu", other_way)]
        worst["attention mass"] = float(np.abs(mass[0] - mass[1]).max())
        print(f"largest differences, {other_way} - CPU, in parts of the largest; counts in pairs:")
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
            observers[kinds].start(group, "real")()

    eager = base("cuda").model
    eager.set_attn_implementation("eager")
    ways = {
        "plain forward": plain,
        "seen and left there, one setting of special tokens": lambda: only_seen(1),
        "seen and left there, both settings": lambda: only_seen(2),
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
    torch.cuda.reset_peak_memory_stats()
    plain()
    forward = torch.cuda.max_memory_allocated()
    studied(observers[2], Totals(200, 0), units, together)
    beyond = (torch.cuda.max_memory_allocated() - forward) / 2**30
    print(f"memory of the device beyond the forward pass: {beyond:.2f} GiB", flush=True)
    where_the_time_goes(observers[2], units, together)
    on_the_host(scope, units[:together])
    each = given.batches * given.texts * given.tokens / one
    print(f"plain forward: {each:,.0f} tokens/s; a study from text (once the first chunk is read):")
    for readings in (("raw",), ("raw", "cosine")):
        for readers in (0, 6, None):
            rate, number = from_text(scope, readings, readers, given.tokens, given.texts)
            print(
                f"{' and '.join(readings)}, {number} readers: {rate:,.0f} tokens/s, "
                f"{each / rate:.2f} x the plain forward",
                flush=True,
            )


def from_text(scope, readings, readers, tokens, texts, chunks_read=8):
    """Tokens a second of a study of documents, as a run of it reads them; and its readers."""
    parameters = Parameters(readings=readings, window=tokens, batch_tokens=texts * tokens)
    sample = hs.sample_text().replace("\n", " ")
    enough = 5 * tokens * texts * CHUNK_BATCHES * chunks_read // len(sample)  # characters a token
    lines = (f"{n} {sample * 3}" for n in range(enough // 3))
    job = Job(scope.loaded, frozenset(), parameters, Padding(0, tokens), texts * tokens, 4)
    reader, totals, seen = Reader(job), totals_of(parameters), []
    with readers_of(readers, ["cuda"]) as found, reader.observer.behind() as behind:
        through = in_turn
        if found is not None:
            about = {"vocabulary": reader.vocabulary, "causal": scope.shape.causal}
            through = partial(found.through, prepare=partial(prepare, seed=0, **about))
        size = CHUNK_BATCHES * texts * tokens
        made = chunks(
            Corpus(lines), scope.tokenizer, window=tokens, chunk_tokens=size, through=through
        )
        for chunk in ahead(made):
            to = Chunked(len(chunk.units))
            for _ in reader.steps(chunk.units, to, behind):
                pass
            behind(totals.close, chunk.units, to, reader.vocabulary)
            seen.append((time.perf_counter(), chunk.tokens))
            if len(seen) > chunks_read:
                break
        behind.wait()
        torch.cuda.synchronize()
    taken = time.perf_counter() - seen[0][0]
    return sum(tokens for _, tokens in seen[1:]) / taken, 0 if found is None else found.number


def where_the_time_goes(observer, units, together):
    """What the device does in a study, by kernel, for all batches."""
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds) as profile:
        studied(observer, Totals(200, 0), units, together)
        torch.cuda.synchronize()
    found = [each for each in profile.key_averages() if each.self_device_time_total > 0]
    found = [each for each in found if each.device_type == torch.profiler.DeviceType.CUDA]
    found.sort(key=lambda each: -each.self_device_time_total)
    total = sum(each.self_device_time_total for each in found)
    print(f"the device works {total / 1e3:.1f} ms for {len(units) // together} batches:")
    print("| kernel | calls | ms | share |\n|---|---|---|---|")
    for each in found[:40]:
        took = each.self_device_time_total
        print(f"| {each.key[:70]} | {each.count} | {took / 1e3:.2f} | {took / total:.1%} |")
    sys.stdout.flush()


def on_the_host(scope, units):
    """What the host does for a batch, of the text alone."""
    batch = TokenBatch([unit.marks for unit in units], [anchor.types_of(u, 0) for u in units])
    device = scope.model.device
    tokens, settings = TokenTensors(batch, device), ("kept", "left_out")
    steps = {
        "types": lambda: [anchor.types_of(unit, 0) for unit in units],
        "couples": lambda: repetition.couples(units, 0),
        "chance of focus": lambda: [focus.focus_chance(u.tokens, causal=False) for u in units],
        "places of words": lambda: [word_places(unit, 30522) for unit in units],
        "tokens on the device": lambda: TokenTensors(batch, device),
        "what kernels read of them": lambda: TextTensors(tokens, settings, 64, 12),
    }
    for name, step in steps.items():
        step()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        step()
        took = (time.perf_counter() - begun) * 1e3
        torch.cuda.synchronize()
        whole = (time.perf_counter() - begun) * 1e3
        print(f"host, {name}: {took:.2f} ms, with the device {whole:.2f}", flush=True)


if __name__ == "__main__":
    main()
