"""A model without some of its heads, as an ordinary folder that plain transformers loads.

Where a family's config can say how many heads a layer has without changing their size, and every
layer loses as many, the matrices get smaller. Else the columns of W_O that read the heads are zero:
the same outputs, the same size. Which it is, is tried: the pruned model has to give the outputs of
the model with these heads silenced.
"""

import copy
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headscope.capture import HeadOutputs, capture, silence
from headscope.errors import CannotObserve
from headscope.models import quiet
from headscope.observed import ObservedModel
from headscope.output import check_new_folder
from headscope.units import Unit

SMALLER, ZEROED = "smaller matrices", "zeroed columns of the output projections"
CLOSE = 1e-4  # of the largest logit
NOTE = "headscope_pruned.json"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was written, and how it compares with the whole model."""

    how: str
    parameters: int
    parameters_before: int
    size: int  # bytes of the weights
    size_before: int
    speed: float  # of the whole model's
    apart: float  # largest difference of its outputs from those of the silenced model


def write_pruned(
    scope: ObservedModel,
    heads: Iterable[tuple[int, int]],
    folder: str | Path,
    units: Sequence[Unit],
) -> Pruned:
    """Write the model without the heads (layer, head), from 1, tried on some windows."""
    path, given = check_new_folder(folder), sorted({*heads, *scope.silenced})
    ids = torch.as_tensor(units[0].tokens.ids.astype("int64"))[None].to(scope.model.device)
    numbers = [(layer - 1, head - 1) for layer, head in given]
    with torch.no_grad(), capture(scope.model, change=silence(numbers, scope.shape.stack)):
        expected = _output(scope.model, ids)
    for how, make in ((SMALLER, _smaller), (ZEROED, _zeroed)):  # noqa: B007 - told below
        model = _made(make, scope, given, ids)
        if model is None:
            continue
        with torch.no_grad():
            found = _output(model, ids)
        apart = float((found - expected).abs().max())
        if apart <= CLOSE * float(expected.abs().max()):
            break
    else:
        raise CannotObserve(
            f"The heads of {scope.shape.name} ({scope.shape.family}) cannot be taken out of its "
            "weights: what reads them serves other layers too, or is no linear map of them. They "
            "can be silenced: scope.ablate(heads), headscope read --ablate."
        )
    speed = _speed(scope.model, model, ids)
    with quiet():
        model.save_pretrained(path)
        scope.tokenizer.save_pretrained(path)
    before, after = _numbers(scope.model), _numbers(model)
    pruned = Pruned(how, after[0], before[0], after[1], before[1], speed, apart)
    note = {"model": scope.shape.name, "heads": [list(one) for one in given], **asdict(pruned)}
    (path / NOTE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    return pruned


def _made(
    make: Callable[..., PreTrainedModel | None],
    scope: ObservedModel,
    heads: Sequence[tuple[int, int]],
    ids: Tensor,
) -> PreTrainedModel | None:
    """A pruned copy, if it can be made this way."""
    try:
        return make(scope, heads, ids)
    except (AttributeError, CannotObserve, KeyError, RuntimeError, TypeError, ValueError):
        return None  # another family than this way is for


def _zeroed(
    scope: ObservedModel, heads: Sequence[tuple[int, int]], ids: Tensor
) -> PreTrainedModel | None:
    """The same model with the columns of W_O zero that read these heads."""
    projections = output_projections(scope, ids)
    names = {module: name for name, module in scope.model.named_modules()}
    model = copy.deepcopy(scope.model)
    with torch.no_grad():
        for layer, head in heads:
            module: Any = model.get_submodule(names[projections[layer]])
            inputs = module.weight if isinstance(module, Conv1D) else module.weight.T
            size = inputs.shape[0] // scope.shape.heads
            inputs[(head - 1) * size : head * size] = 0
    return model


def _smaller(
    scope: ObservedModel, heads: Sequence[tuple[int, int]], ids: Tensor
) -> PreTrainedModel | None:
    """A model of fewer heads in every layer, where config and layers allow it."""
    model, shape = scope.model, scope.shape
    kept = {
        number: [head for head in range(shape.heads) if (number, head + 1) not in set(heads)]
        for number in shape.numbers
    }
    fewer = {len(own) for own in kept.values()}
    config = copy.deepcopy(model.config)
    if len(fewer) > 1 or shape.has_gaps or not 0 < min(fewer) < shape.heads:
        return None
    if not hasattr(config, "head_dim") or not hasattr(config, "num_key_value_heads"):
        return None
    groups = shape.heads // (config.num_key_value_heads or shape.heads)
    config.num_attention_heads = config.num_key_value_heads = min(fewer)
    config.head_dim = shape.head_size
    other: Any = type(model)(config)
    other = other.to(model.device, model.dtype).eval()
    projections = output_projections(scope, ids)
    names = {module: name for name, module in model.named_modules()}
    state = dict(model.state_dict())
    for number, own in kept.items():
        name, _ = names[projections[number]].rsplit(".", 1)
        for part, of in (
            ("q_proj", own),
            ("k_proj", [h // groups for h in own]),
            ("v_proj", [h // groups for h in own]),
        ):
            for kind in ("weight", "bias"):
                key = f"{name}.{part}.{kind}"
                if key in state:
                    state[key] = _rows(state[key], of, shape.head_size)
        key = f"{names[projections[number]]}.weight"
        state[key] = _rows(state[key].T, own, shape.head_size).T.contiguous()
    other.load_state_dict(state)
    other.tie_weights()
    return other if _numbers(other)[0] < _numbers(model)[0] else None


def _rows(weight: Tensor, heads: Sequence[int], size: int) -> Tensor:
    """The rows of a matrix that belong to some heads."""
    return torch.cat([weight[head * size : (head + 1) * size] for head in heads])


def output_projections(scope: ObservedModel, ids: Tensor) -> dict[int, nn.Module]:
    """By the number of a layer, the linear module that is given z of all its heads, as it is."""
    found: dict[int, nn.Module] = {}
    waiting: list[tuple[int, Tensor]] = []

    def seen(outputs: HeadOutputs) -> None:
        if outputs.site.stack == scope.shape.stack:
            waiting.append((outputs.site.layer + 1, outputs.z.transpose(1, 2).flatten()))

    def look(module: nn.Module, args: tuple[Any, ...]) -> None:
        given = args[0] if args else None
        if waiting and isinstance(given, Tensor) and given.numel() == waiting[-1][1].numel():
            layer, z = waiting[-1]
            if torch.equal(given.flatten(), z):
                found[layer] = module
                waiting.pop()

    linear = [one for one in scope.model.modules() if isinstance(one, (nn.Linear, Conv1D))]
    hooks = [module.register_forward_pre_hook(look) for module in linear]
    try:
        scope.observe_batch(ids, None, seen)
    finally:
        for hook in hooks:
            hook.remove()
    if len(set(found.values())) < len(scope.shape.numbers):
        raise CannotObserve("an output projection serves several layers, or none was seen")
    return found


def _output(model: PreTrainedModel, ids: Tensor) -> Tensor:
    output = model(input_ids=ids)
    logits = getattr(output, "logits", None)
    found: Tensor = output[0] if logits is None else logits
    return found


def _numbers(model: PreTrainedModel) -> tuple[int, int]:
    """Parameters, and the bytes they take."""
    every = list(model.parameters())
    return sum(one.numel() for one in every), sum(one.numel() * one.element_size() for one in every)


def _speed(one: PreTrainedModel, other: PreTrainedModel, ids: Tensor) -> float:
    """How many times as fast the second model is: medians of runs that take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    batch = ids.repeat(max(1, 2**10 // ids.numel()), 1)
    with torch.no_grad():
        for _ in range(7):
            for model, own in zip((one, other), times, strict=True):
                begun = time.perf_counter()
                model(input_ids=batch)
                own.append(time.perf_counter() - begun)
    return statistics.median(times[0]) / statistics.median(times[1])
