"""Where the attention modules of a model stand: in which stack, and in which of its layers.

All of it is read from the tree of modules, so that a layer keeps its own number whatever a pass
runs: a hybrid whose layers 5 and 13 have heads has heads in layers 5 and 13.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from torch import nn
from transformers import PreTrainedModel
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

CROSS = re.compile(r"cross|encdec|encoder_attn|enc_dec")
VISION = re.compile(r"vision|visual|image|pixel")
AUDIO = re.compile(r"audio|speech|sound")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attention module stands."""

    stack: str
    layers: tuple[int, ...]  # 0-based, one for each path that leads to the module
    path: str
    depth: int  # layers that there are in its list, with heads or without
    every_call: bool  # each of its calls is another layer: one module serves them all (ALBERT)


def places_of(model: nn.Module, modules: Iterable[nn.Module]) -> dict[nn.Module, Place]:
    """The place of each of some modules, in the order in which the model holds them."""
    wanted = set(modules)
    paths: dict[nn.Module, list[str]] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        if module in wanted:
            paths.setdefault(module, []).append(path)
    owners = [(p, m) for p, m in model.named_modules() if isinstance(m, PreTrainedModel)]
    groups: dict[tuple[str, str], list[nn.Module]] = {}
    for module, found in paths.items():
        role = _role(found[0], module, model, _owner(found[0], owners))
        groups.setdefault((role, _pattern(found[0])), []).append(module)
    numbers = {key: _numbers([paths[module] for module in group]) for key, group in groups.items()}
    names = _names({key: {n for own in numbers[key] for n in own} for key in groups})
    where = {}
    for key, group in groups.items():
        last = max(n for own in numbers[key] for n in own)
        for module, layers in zip(group, numbers[key], strict=True):
            path = paths[module][0]
            lists = _lists(path, model)
            depth = next((size for size in lists if size > last), last + 1)
            shared = _serves_all_layers(lists, _owner(path, owners))
            where[module] = Place(names[key], layers, path, depth, shared)
    return {module: where[module] for module in paths}


def _owner(path: str, owners: Sequence[tuple[str, PreTrainedModel]]) -> Any:
    """The innermost model that holds a path; None where there is none."""
    inside = [(p, m) for p, m in owners if p == "" or f"{path}.".startswith(f"{p}.")]
    return max(inside, key=lambda one: len(one[0]))[1] if inside else None


def _role(path: str, module: nn.Module, model: nn.Module, owner: Any) -> str:
    """Tell encoder, decoder, cross, vision and audio attention apart by where the module stands."""
    name = path.lower().removeprefix(f"{getattr(model, 'base_model_prefix', '')}.")
    if getattr(module, "is_cross_attention", False) or CROSS.search(name):
        return "cross"
    if VISION.search(name):
        return "vision"
    if AUDIO.search(name):
        return "audio"
    configs = [getattr(one, "config", None) for one in (owner, model)]
    if any(getattr(config, "is_encoder_decoder", False) for config in configs):
        # An encoder taken out of its model has no "encoder" in its paths, but is no decoder.
        inside_decoder = "decoder" in name or "Decoder" in type(model).__name__
        return "decoder" if inside_decoder else "encoder"
    family = getattr(configs[0], "model_type", "")
    only_causal = (
        family in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and family not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )
    return "decoder" if getattr(module, "is_causal", False) or only_causal else "encoder"


def _pattern(path: str) -> str:
    return ".".join("#" if part.isdigit() else part for part in path.split("."))


def _numbers(paths: Sequence[Sequence[str]]) -> list[tuple[int, ...]]:
    """The layers of modules whose paths differ in their numbers only."""
    found = [[[int(n) for n in one.split(".") if n.isdigit()] for one in own] for own in paths]
    every = [numbers for own in found for numbers in own if len(numbers) == len(found[0][0])]
    differing = [at for at, values in enumerate(zip(*every, strict=True)) if len(set(values)) > 1]
    if len(differing) > 1:  # stages of blocks: counted through
        return [(place,) for place in range(len(paths))]
    at = differing[0] if differing else 0
    return [tuple(n[at] if at < len(n) else 0 for n in own) for own in found]


def _names(groups: dict[tuple[str, str], set[int]]) -> dict[tuple[str, str], str]:
    """A name for the stack of each group: its role, and its path where two of a role collide."""
    names: dict[tuple[str, str], str] = {}
    taken: dict[str, tuple[str, set[int]]] = {}
    for key in sorted(groups, key=lambda key: -len(groups[key])):
        (role, pattern), layers = key, groups[key]
        first = taken.get(role)
        if first is None:
            taken[role] = pattern, set(layers)
            names[key] = role
        elif _list_of(pattern) == _list_of(first[0]) and not layers & first[1]:
            first[1].update(layers)  # other layers of the same list, with attention of another kind
            names[key] = role
        else:
            names[key] = f"{role} ({_difference(pattern, first[0])})"
    return names


def _list_of(pattern: str) -> str:
    return pattern.split("#")[0]


def _difference(pattern: str, other: str) -> str:
    """What of a path another one does not share."""
    own, known = pattern.split("."), other.split(".")
    while own and known and own[0] == known[0]:
        own, known = own[1:], known[1:]
    while own and known and own[-1] == known[-1]:
        own, known = own[:-1], known[:-1]
    return ".".join(part for part in own if part != "#") or pattern


def _lists(path: str, model: nn.Module) -> list[int]:
    """The lengths of the lists of modules that hold a path, the outermost first."""
    parts = path.split(".")
    above = [model.get_submodule(".".join(parts[:end])) for end in range(len(parts))]
    return [len(one) for one in above if isinstance(one, nn.ModuleList)]


def _serves_all_layers(lists: Sequence[int], owner: Any) -> bool:
    """Whether a model has more layers than lists of modules hold, so that calls are the layers."""
    layers = getattr(getattr(owner, "config", None), "num_hidden_layers", None)
    return isinstance(layers, int) and prod(lists) < layers
