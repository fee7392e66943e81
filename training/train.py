"""Trains the specimen on one GPU inside a time budget: short probes, then the best one in full.

    python training/train.py PREPARED_FOLDER OUT_FOLDER --seconds 1300

Every probe is a whole little training (warm-up, decay to zero); the one with the lowest held-out
loss decides the optimiser and learning rate of the main run. Checkpoints lie on a logarithmic
scale of steps; `log.jsonl` has a line per evaluation and `runs.json` one per run.
"""

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import torch
import torch._inductor.config
from batches import Batch, Layout, Plan, Stream, draw, groups_of
from flat_bert import (
    Attention,
    Weights,
    configuration,
    hidden_states,
    new_weights,
    to_transformers,
    varlen_attn,
    word_logits,
)
from loop import MOST_MASKED, Held, Loss, Run, Settings, masked_loss, report, save, train
from optimiser import Optimiser

BEGAN = time.time()
# With this on, torch 2.11 left gradients of the norms unwritten (pytorch issue 193061). What the
# compiler makes is checked besides: `first_step` compares every gradient with the uncompiled one.
torch._inductor.config.triton.mix_order_reduction = False


def kernels_agree(settings: Settings) -> bool:
    """Whether the variable-length kernel works here and agrees with torch's usual attention."""
    if varlen_attn is None or settings.device != "cuda":
        return False
    heads = settings.config.num_attention_heads
    groups = groups_of(settings.size)
    lengths = [s for texts, s in groups for _ in range(texts)]
    bounds = Layout.of(lengths, len(lengths) + 9, "cuda", True).bounds()  # with empty texts
    shape = (3, settings.size, heads, settings.config.hidden_size // heads)
    qkv = torch.randn(shape, device="cuda", dtype=torch.bfloat16)
    results, milliseconds = [], []
    for attention in (Attention(), Attention(groups)):
        for _ in range(2):  # the second is timed
            x = qkv.clone().requires_grad_()
            torch.cuda.synchronize()
            begin = time.time()
            z = attention(*x, bounds)
            z.square().sum().backward()
            torch.cuda.synchronize()
        milliseconds.append(1000 * (time.time() - begin))
        results.append((z.detach().float(), x.grad.float()))
    gaps = [((a - b).norm() / b.norm()).item() for a, b in zip(*results, strict=True)]
    report(settings.out, {"variable_against_groups": gaps, "milliseconds": milliseconds})
    return max(gaps) < 0.02 and milliseconds[0] < 2 * milliseconds[1]


def gradient_gaps(loss: Loss, plain: Loss, batch: Batch, settings: Settings) -> dict[str, float]:
    """How far each weight's gradient is from the uncompiled one, after a step has been taken."""
    weights = new_weights(settings.config, settings.device)
    optimiser = Optimiser(weights, "muon", 1e-2, settings.compiled)
    loss(weights, batch)[0].backward()
    optimiser.step(1.0)
    gradients = []
    for function in (loss, plain):
        function(weights, batch)[0].backward()
        gradients.append({name: w.grad.clone() for name, w in weights.items()})
        for weight in weights.values():
            weight.grad = None
    ours, theirs = gradients
    return {n: ((ours[n] - theirs[n]).norm() / theirs[n].norm()).item() for n in ours}


def first_step(settings: Settings, stream: Stream) -> tuple[Loss, Plan]:
    """The kernel, layouts and compiled loss to use, tried out by one whole step."""
    try:
        choices = [False, True] if kernels_agree(settings) else [True]
    except Exception as problem:
        report(settings.out, {"variable_kernel_failed": repr(problem)[:500]})
        choices = [True]
    for grouped in choices:
        try:
            plan = (Plan.grouped if grouped else Plan.varied)(settings.size, settings.device)
            attention = Attention(groups_of(settings.size) if grouped else None)
            loss = masked_loss(settings, attention)
            plain = masked_loss(replace(settings, compiled=False), attention)
            generator = torch.Generator(settings.device).manual_seed(3)
            for layout in (plan.short[0], plan.long[-1]):
                batch = draw(stream, layout, settings.most_masked, MOST_MASKED, generator)
                gaps = gradient_gaps(loss, plain, batch, settings)
            if not max(gaps.values()) < 0.2:
                raise RuntimeError(f"compiled gradients are wrong: {gaps}")
        except Exception as problem:
            report(settings.out, {"grouped": grouped, "failed": repr(problem)[:1500]})
            continue
        worst = max(gaps, key=gaps.get)
        done = {
            "ready_after": round(time.time() - BEGAN, 1),
            "worst_gradient": [worst, gaps[worst]],
        }
        report(settings.out, {"grouped": grouped} | done)
        return loss, plan
    raise SystemExit("no way of attending works on this machine")


@torch.no_grad()
def agrees_with_transformers(weights: Weights, settings: Settings, stream: Stream) -> float:
    """The largest difference of a logit between our forward pass and transformers', in float32."""
    size, count = 64, 4
    ids = stream.ids[: size * count].long().cpu().view(count, size)
    kinds = (torch.arange(size) > 30).long().expand(count, size)
    here = {n: w.detach().cpu() for n, w in weights.items()}
    model = to_transformers(weights, settings.config)
    theirs = model(input_ids=ids, token_type_ids=kinds).logits.flatten(0, 1)
    ours = hidden_states(
        here,
        ids.flatten(),
        torch.arange(size).repeat(count),
        kinds.flatten(),
        torch.zeros(1, dtype=torch.int32),
        Attention(((count, size),)),
        settings.config.num_attention_heads,
        torch.float32,
    )
    return (word_logits(here, ours) - theirs).abs().max().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=1300, help="for everything together")
    parser.add_argument("--probes", default="muon:0.01,muon:0.03,adamw:0.001")
    parser.add_argument("--probe-seconds", type=float, default=15)
    parser.add_argument("--shrink", type=float, default=0.5, help="main rate over the probe's")
    parser.add_argument("--tokens", type=int, default=65536, help="tokens a step")
    parser.add_argument("--toy", action="store_true", help="two small layers on the CPU")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)

    toy = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 240} if args.toy else {}
    settings = Settings(
        config=configuration(**toy),
        device="cpu" if args.toy else "cuda",
        size=8192 if args.toy else args.tokens,
        evaluate_every=10 if args.toy else 500,
        out=args.out,
        dtype=torch.float32 if args.toy else torch.bfloat16,
        compiled=not args.toy,
    )
    settings.config.save_pretrained(args.out)
    stream = Stream.read(args.prepared / "train.stream.xz", settings.device)
    held_stream = Stream.read(args.prepared / "held_out.stream.xz", settings.device)
    report(args.out, {"tokens": len(stream.ids), "read_after": round(time.time() - BEGAN, 1)})
    loss, plan = first_step(settings, stream)
    held = Held(held_stream, plan, settings)

    outcomes = []
    for probe in args.probes.split(","):
        kind, rate = probe.split(":")
        weights = new_weights(settings.config, settings.device)
        run = Run(f"probe {probe}", kind, float(rate), args.probe_seconds)
        outcomes.append(train(run, weights, settings, loss, stream, plan, held))
        (args.out / "runs.json").write_text(json.dumps(outcomes, indent=1))
    # A loss that is not a number must lose.
    best = min(outcomes, key=lambda o: o["held_out"] if math.isfinite(o["held_out"]) else 99.0)

    weights = new_weights(settings.config, settings.device)
    left = args.seconds - (time.time() - BEGAN)
    if left <= 0:  # its schedule goes by the clock, so it would never end
        raise SystemExit("nothing of --seconds is left after the probes")
    run = Run("main", best["optimiser"], best["rate"] * args.shrink, left)
    outcomes.append(train(run, weights, settings, loss, stream, plan, held, checkpoints=True))
    save(weights, settings.config, args.out / "final.safetensors")
    (args.out / "runs.json").write_text(json.dumps(outcomes, indent=1))
    gap = agrees_with_transformers(weights, settings, held_stream)
    report(args.out, {"largest_difference_from_transformers": gap})
    report(args.out, {"done_after": round(time.time() - BEGAN, 1)})


if __name__ == "__main__":
    main()
