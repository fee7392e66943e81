"""What the same numbers would be without what a claim speaks of: nulls, on a sample of the corpus.

A null is a mode of the same code: the text shuffled, another model of the same architecture, or
another attention. They run on windows that are drawn from the corpus, the same ones whatever its
order, since a bounded number of them says enough; a small corpus is read whole.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from headscope.corpus import Document
from headscope.models import load_model
from headscope.observed import ObservedModel
from headscope.study.modes import Mode
from headscope.study.prepare import NULL
from headscope.units import Unit, read_units

Kept = list[dict[str, Any]]


def keep_for_nulls(kept: Kept, units: Sequence[Unit], seed: int, tokens: int) -> Kept:
    """The windows with the smallest priorities, as many as have so many tokens; at least one."""
    found = list(kept)
    for unit in units:
        priority = unit.priority(seed, NULL)
        said = {"priority": priority, "tokens": len(unit), "text": unit.text}
        where = {"source": unit.source, "line": unit.line, "window": unit.window, "part": unit.part}
        found.append(said | where | {"identity": unit.identity.hex()})
    found.sort(key=lambda one: (one["priority"], one["text"]))
    total, within = 0, 0
    for one in found:
        total += one["tokens"]
        if within and total > tokens:
            break
        within += 1
    return found[:within]


def units_of(kept: Kept, tokenizer: Any, window: int | None, language: str) -> list[Unit]:
    """The windows as they were read, each with the document it is of."""
    units = []
    for number, one in enumerate(kept):
        document = Document(one["text"], one["source"], one["line"])
        unit = read_units(number, document, tokenizer, window, language)[0]
        identity = bytes.fromhex(one["identity"])
        units.append(replace(unit, identity=identity, window=one["window"], part=one["part"]))
    return units


def other_model(scope: ObservedModel, mode: Mode, seed: int) -> ObservedModel:
    """The same architecture with other weights: random ones, or its own in random order."""
    other = other_weights(scope.model, mode, seed)
    return ObservedModel(load_model(other, scope.tokenizer), scope.silenced)


def other_weights(model: Any, mode: Mode, seed: int) -> Any:
    """A model like another, with random weights or its own in random order."""
    name, _, number = mode.partition("-")
    with torch.random.fork_rng():
        torch.manual_seed(seed + int(number or 1) - 1)
        if name == "random":
            other: Any = type(model)(model.config)
            other = other.to(model.device, model.dtype)
        else:
            other = copy.deepcopy(model)
            _permute(other)
    return other.eval()


def _permute(model: Any) -> None:
    """Put the numbers of every weight in random order: the same numbers, nothing learned."""
    with torch.no_grad():
        for parameter in model.parameters():
            order = torch.randperm(parameter.numel()).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].reshape(parameter.shape))
