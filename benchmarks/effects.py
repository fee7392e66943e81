"""What the effects of all heads cost, in plain forward passes over the same documents.

    python benchmarks/effects.py ../shared/data [--model FOLDER] [--batches 6]
    python benchmarks/effects.py ../shared/data --write wiki.txt   # the documents, a paragraph each

Timed side by side, batch by batch, so that a machine that is busy is so for all of them: a plain
forward pass of the model with its language head everywhere, as anybody would make it; the part
that reads alone; silencing every head (a plain pass, every layer's heads from that layer on, the
language head where answers are asked); and the gradient estimate. Tokens × layers that were run
are counted besides.
"""

import argparse
import json
import re
import time
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from findings import wikitext

import headscope as hs
from headscope.effects.gradient import derivatives
from headscope.effects.heads import losses_without
from headscope.effects.loss import Loss
from headscope.effects.replacing import Replacing
from headscope.effects.rerun import runner_for
from headscope.effects.sample import Reads, draw, units_of
from headscope.units import Padding, batches

CHARACTERS, DOCUMENTS = 700, 200


def articles(data: Path) -> list[str]:
    """The beginnings of 200 articles of Wikipedia, cut at the ends of sentences."""
    lines = (data / "wiki300" / "wiki300.ship.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [" ".join(chain(*json.loads(line)["segments"])) for line in lines]
    texts += [" ".join(text.split()) for text in wikitext(data)]
    cut = (re.sub(r"(?s)([.!?]\s)(?!.*[.!?]\s).*", r"\1", text[:CHARACTERS]) for text in texts)
    return [text.strip() for text in cut][:DOCUMENTS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--batches", type=int, help="time so many only, spread evenly")
    parser.add_argument("--write", type=Path, help="write the documents here, and time nothing")
    given = parser.parse_args()
    if given.write is not None:
        texts = articles(given.data)
        given.write.write_text("\n\n".join(texts), encoding="utf-8")
        print(f"{len(texts)} documents are in {given.write}")
        return
    scope = hs.load(given.model, device="cpu")
    reads = Reads(limit=DOCUMENTS)
    sample = draw(reads.corpus(articles(given.data), None), reads.limit, reads.seed)
    window, padding = scope.shape.window, Padding(0.1, scope.shape.window)
    units = list(units_of(sample, scope.tokenizer, window, "en", reads.windows))
    loss = Loss(scope)
    runner, how = runner_for(scope, loss.ask(units[:2]))
    groups = batches(units, 2**11, padding)
    times = dict.fromkeys(("plain", "reading", "effects", "gradient"), 0.0)
    tokens = layers_run = 0
    step = max(1, len(groups) // (given.batches or len(groups)))
    for places in groups[::step]:
        some = [units[place] for place in places]
        asked = loss.ask(some, padding.length(len(some[0])))
        inputs = {"input_ids": asked.ids}
        if asked.mask is not None:
            inputs["attention_mask"] = asked.mask
        before = runner.layers_run
        works = {
            "plain": partial(scope.forward, **inputs),
            "reading": partial(scope.observe_batch, asked.ids, asked.mask, bool),
            "effects": partial(losses_without, loss, runner, Replacing(("zero",), 0), asked),
            "gradient": partial(derivatives, loss, asked),
        }
        for name in ("plain", "reading", "effects", "gradient", "reading", "plain"):
            begun = time.perf_counter()
            works[name]()
            halved = 0.5 if name in ("plain", "reading") else 1
            times[name] += halved * (time.perf_counter() - begun)
        tokens += asked.ids.numel()
        layers_run += runner.layers_run - before
    shape, plain, reading = scope.shape, times["plain"], times["reading"]
    print(f"{shape.name}: {shape.layers} layers × {shape.heads} heads; run {how}")
    print(f"{sample.number} documents, {len(units)} windows; timed: {tokens:,} tokens with padding")
    print(f"{torch.get_num_threads()} threads; a plain pass {tokens / plain:,.0f} tokens/s")
    print(f"effects of all heads: {times['effects'] / plain:.1f} plain passes of the whole model,")
    print(f"  {times['effects'] / reading:.1f} of the part that reads, without a language head,")
    print(f"  {layers_run / tokens / shape.layers:.1f} by count of tokens × layers run")
    print(f"gradient: {times['gradient'] / plain:.2f} plain passes")


if __name__ == "__main__":
    main()
