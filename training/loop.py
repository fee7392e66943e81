"""One training run: the loss, the loop with its guards, checkpoints, log and held-out evaluation.

The learning rate warms up by steps and decays to zero by the clock, so a run ends when its seconds
do. A run that meets a loss that is not finite goes back to its last good weights at half the rate.
"""

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from batches import Batch, Plan, Stream, draw
from flat_bert import Attention, Weights, hidden_states, to_transformers, word_logits
from optimiser import Optimiser
from safetensors.torch import save_file
from torch import Tensor
from transformers import BertConfig

WARM_UP = 300
# Close together where heads come to be, then evenly on a logarithmic scale.
CHECKPOINTS = (
    *(0, 100, 200, 300, 400, 500, 600, 700, 800, 1000, 1300, 1700, 2200, 3000),
    *(5000, 7000, 10000, 20000, 30000),
)
MOST_MASKED = 0.22  # of the stream, until RATE_FALLS of the run; then down to LEAST_MASKED
LEAST_MASKED, RATE_FALLS = 0.15, 0.6
Loss = Callable[[Weights, Batch], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Settings:
    config: BertConfig
    device: str
    size: int  # tokens a step
    evaluate_every: int
    out: Path
    dtype: torch.dtype
    compiled: bool

    @property
    def most_masked(self) -> int:
        return int(MOST_MASKED * self.size)


def masked_loss(settings: Settings, attention: Attention) -> Loss:
    """A function giving the mean loss over the counted masked places, and the share right."""

    def loss(weights: Weights, batch: Batch) -> tuple[Tensor, Tensor]:
        heads = settings.config.num_attention_heads
        states = hidden_states(weights, *batch[:4], attention, heads, settings.dtype)
        logits = word_logits(weights, states[batch.where]).float()
        each = F.cross_entropy(logits, batch.labels, reduction="none")
        total = batch.counted.sum()
        right = (logits.argmax(-1) == batch.labels).float()
        return (each * batch.counted).sum() / total, (right * batch.counted).sum() / total

    return torch.compile(loss, dynamic=False) if settings.compiled else loss


def save(weights: Weights, config: BertConfig, path: Path) -> None:
    """A float16 checkpoint of the standard model, written aside first: none is half there."""
    state = to_transformers(weights, config).half().state_dict()
    tied = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
    state = {k: v.contiguous() for k, v in state.items() if k not in tied and "_ids" not in k}
    aside = path.with_suffix(".aside")
    save_file(state, aside, metadata={"format": "pt"})
    os.replace(aside, path)


@dataclass(frozen=True)
class Run:
    name: str
    kind: str  # "muon" or "adamw"
    rate: float  # peak learning rate
    seconds: float


class Held:
    """A fixed set of masked held-out batches, of the same lengths and pairs as training."""

    def __init__(self, stream: Stream, plan: Plan, settings: Settings, count: int = 4):
        generator = torch.Generator(settings.device).manual_seed(7)
        self.batches = [
            draw(
                stream, plan.long[i % len(plan.long)], settings.most_masked, LEAST_MASKED, generator
            )
            for i in range(count)
        ]

    def evaluate(self, loss: Loss, weights: Weights) -> tuple[float, float]:
        # Gradients stay on: another mode would be another compilation.
        found = [loss(weights, batch) for batch in self.batches]
        pairs = torch.tensor([[float(a.detach()), float(b)] for a, b in found])
        return tuple(pairs.mean(0).tolist())


def train(
    run: Run,
    weights: Weights,
    settings: Settings,
    loss: Loss,
    stream: Stream,
    plan: Plan,
    held: Held,
    checkpoints: bool = False,
) -> dict:
    """Train `weights` in place for the run's seconds; returns what came of it."""
    optimiser = Optimiser(weights, run.kind, run.rate, settings.compiled)
    generator = torch.Generator(settings.device).manual_seed(1)
    begin = saved = time.time()
    good = {n: w.detach().clone() for n, w in weights.items()}
    step, losses, slowed = 0, [], 1.0
    while (used := (time.time() - begin) / run.seconds) < 1:
        if checkpoints and step in CHECKPOINTS:
            save(weights, settings.config, settings.out / f"step{step:06d}.safetensors")
        fall = max(0.0, used - RATE_FALLS) / (1 - RATE_FALLS)
        mask_rate = MOST_MASKED + (LEAST_MASKED - MOST_MASKED) * fall
        batch = draw(stream, plan.at(step, used), settings.most_masked, mask_rate, generator)
        value, _ = loss(weights, batch)
        value.backward()
        norm = optimiser.step(slowed * min(1.0, (step + 1) / WARM_UP) * (1 - used))
        losses.append(value.detach())
        step += 1
        if step % settings.evaluate_every and step not in CHECKPOINTS:
            continue
        held_loss, held_right = held.evaluate(loss, weights)
        elapsed = time.time() - begin
        record = {
            "run": run.name,
            "step": step,
            "tokens": step * settings.size,
            "seconds": round(elapsed, 1),
            "train": round(torch.stack(losses).mean().item(), 4),
            "held_out": round(held_loss, 4),
            "right": round(held_right, 4),
            "norm": round(norm.item(), 3),
            "mask_rate": round(mask_rate, 3),
            "tokens_a_second": round(step * settings.size / elapsed),
        }
        losses = []
        report(settings.out, record)
        if math.isfinite(held_loss):
            good = {n: w.detach().clone() for n, w in weights.items()}
            if checkpoints and time.time() - saved > 100:
                save(weights, settings.config, settings.out / "latest.safetensors")
                saved = time.time()
        else:  # go back to the last good weights, with fresh momentum and half the rate
            slowed /= 2
            with torch.no_grad():
                for n, w in weights.items():
                    w.copy_(good[n])
            optimiser = Optimiser(weights, run.kind, run.rate, settings.compiled)
    held_loss, held_right = held.evaluate(loss, weights)
    outcome = {
        "run": run.name,
        "optimiser": run.kind,
        "rate": run.rate,
        "seconds": round(time.time() - begin, 1),
        "steps": step,
        "tokens": step * settings.size,
        "held_out": round(held_loss, 4),
        "right": round(held_right, 4),
        "went_back": round(-math.log2(slowed)),
    }
    report(settings.out, {"finished": outcome})
    return outcome


def report(out: Path, record: dict) -> None:
    line = json.dumps(record)
    print(line, flush=True)
    with open(out / "log.jsonl", "a") as file:
        file.write(line + "\n")
