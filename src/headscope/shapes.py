"""What of a model can be observed: seen in one run over a short text, not guessed from its config.

The run is a batch of two texts that differ in one token: what changes before that token tells
causal stacks, and where values change tells which positions are the text's. It draws nothing from
any generator of random numbers and leaves the model as it was.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from headscope.capture import Attention, HeadOutputs, Seam, capture, find_attention
from headscope.errors import CannotObserve, HeadscopeError

TEXT = "The lamp is lit, and the keeper sleeps; the sea keeps no lamp."
Limit = Callable[[PreTrainedModel], int | None]

TOKENS = 24  # of it that are read, at most


@dataclass(frozen=True, slots=True)
class StackShape:
    """One stack of layers with heads, as a run has shown it."""

    name: str  # "encoder", "decoder", "cross", "vision", …
    numbers: tuple[int, ...]  # of its layers that have heads, from 1
    depth: int  # layers that there are, with heads or without
    heads: int  # in a layer; query heads where key heads are grouped
    head_size: int  # the largest of its layers
    causal: bool
    seam: Seam
    takes: str  # what the output projections take: "z", "normalised z" or "changed z"
    product: bool  # z is Σ_j A_ij v_j; else its heads are joined, but weigh in a way of their own
    before: int  # positions that the model puts before a text
    weighs: bool  # attention can be asked of, and falls on the tokens of a text one by one


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a model can be observed."""

    name: str  # as it was asked for
    family: str  # transformers' model_type
    stack: str  # of the heads that read a text: "encoder" or "decoder"
    layers: int  # that have heads
    heads: int  # in a layer; query heads where key heads are grouped
    head_size: int
    window: int | None  # most tokens read at once, special tokens included; None: no limit
    seam: Seam  # "interface": attention and head vectors; "projection": head vectors
    parameters: int
    causal: bool = False
    numbers: tuple[int, ...] = ()  # of the layers that have heads, from 1; in hybrids with gaps
    stacks: tuple[StackShape, ...] = ()  # all that a text runs through
    asleep: tuple[str, ...] = ()  # stacks that a text does not run: "vision", "audio", …
    unseen: tuple[tuple[str, str], ...] = ()  # attention that ran out of sight: path, why

    def __post_init__(self) -> None:
        if not self.numbers:
            object.__setattr__(self, "numbers", tuple(range(1, self.layers + 1)))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def has_gaps(self) -> bool:
        """Whether some layers have no heads."""
        return self.numbers != tuple(range(1, self.layers + 1))

    @property
    def own(self) -> StackShape:
        """The stack that reads a text."""
        return next(one for one in self.stacks if one.name == self.stack)

    def through(self, stack: str) -> "ModelShape":
        """The shape of the same model, read through another of its stacks."""
        own = next(one for one in self.stacks if one.name == stack)
        return replace(
            self,
            stack=stack,
            layers=len(own.numbers),
            heads=own.heads,
            head_size=own.head_size,
            seam=own.seam,
            causal=own.causal,
            numbers=own.numbers,
        )

    def place(self, layer: int) -> int:
        """Which of the layers with heads, from 0, the layer with a number (from 1) is."""
        return self.numbers.index(layer)

    @property
    def layers_in_words(self) -> str:
        """How many layers, and which have heads where some have none."""
        if not self.has_gaps:
            return f"{self.layers} layers"
        listed = ", ".join(map(str, self.numbers[:12])) + (", …" if self.layers > 12 else "")
        depth = self.own.depth if self.stacks else self.numbers[-1]
        return f"{self.layers} of {depth} layers with heads ({listed})"


@dataclass(slots=True, eq=False)
class _Seen:
    """What the calls of one stack have shown."""

    layers: list[int] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)  # of z
    seam: Seam = "interface"
    causal: bool | None = None
    first: int | None = None  # position where the changed token stands, told by the values
    taken: list[str] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def before(self, place: int, tokens: int) -> int | None:
        """Positions that the model puts before a text; None where that cannot be told."""
        if all(shape[2] == tokens for shape in self.shapes):
            return 0
        if any(shape[2] < tokens for shape in self.shapes):
            return None
        if self.first is None:  # off the interface; padding comes after a text
            return 0 if self.seam == "projection" else None
        return self.first - place


def find_shape(
    name: str, model: PreTrainedModel, tokenizer: Any, limit: Limit
) -> tuple[PreTrainedModel, ModelShape]:
    """The part of a model that reads a text, and what of it can be observed.

    `limit` says the longest input of a part of the model.
    """
    attention = find_attention(model)
    ids, place = _sample(tokenizer)
    said: list[str] = []
    for reader, run in _readers(model):
        window = limit(reader)
        size = min(ids.shape[1], window or TOKENS)
        at = min(place, size - 1)
        try:
            given = _of_text(run, _known(reader, ids[:, :size]))
            seen, unseen = _dry_run(model, run, attention, given, at)
        except HeadscopeError:
            raise
        except Exception as error:
            said.append(f"{type(run).__name__}: {_first_line(error)}")
            continue
        stacks = {key: _stack(key, one, attention, at, size) for key, one in seen.items()}
        own = _reads(model, {key: one for key, one in seen.items() if stacks[key].before >= 0})
        if own is None:
            reasons = [f"{path}: {reason}" for path, reason in unseen.items()]
            why = "; ".join(reasons[:3]) or "a text does not run through its heads token by token"
            said.append(f"{type(run).__name__}: {why}")
            continue
        _refuse_uneven(type(run).__name__, own, seen[own])
        family = getattr(config_of(reader, model).get_text_config(), "model_type", "")
        return reader, _shape(name, family, model, attention, own, stacks, unseen, window)
    family = getattr(model.config, "model_type", type(model).__name__)
    raise CannotObserve(
        f"{type(model).__name__} (family '{family}') cannot be observed reading a text. "
        + " ".join(f"{one}." for one in said[:3]),
        python="Its heads can be observed over inputs of its own with headscope.capture.capture.",
    )


def shape_of_input(
    name: str, model: PreTrainedModel, part: PreTrainedModel, given: dict[str, Tensor]
) -> ModelShape:
    """The shape of the part of a model that takes inputs other than text.

    `given` is two inputs in a batch, which differ at their end only.
    """
    attention = find_attention(model)
    seen, unseen = _dry_run(model, part, attention, given, -1)
    if not seen:
        why = "; ".join(f"{path}: {reason}" for path, reason in list(unseen.items())[:3])
        raise CannotObserve(f"{type(part).__name__}: {why or 'no heads were seen'}.")
    stacks = {k: _stack(k, one, attention, 0, one.shapes[0][2]) for k, one in seen.items()}
    own = max(seen, key=lambda key: len(seen[key].layers))
    _refuse_uneven(type(part).__name__, own, seen[own])
    family = getattr(part.config, "model_type", "")
    return _shape(name, family, model, attention, own, stacks, unseen, None)


def _shape(
    name: str,
    family: str,
    model: PreTrainedModel,
    attention: Attention,
    own: str,
    stacks: dict[str, StackShape],
    unseen: dict[str, str],
    window: int | None,
) -> ModelShape:
    return ModelShape(
        name=name,
        family=str(family),
        stack=own,
        layers=len(stacks[own].numbers),
        heads=stacks[own].heads,
        head_size=stacks[own].head_size,
        window=window,
        seam=stacks[own].seam,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        causal=stacks[own].causal,
        numbers=stacks[own].numbers,
        stacks=tuple(stacks.values()),
        asleep=tuple(sorted({p.stack for p in attention.places.values()} - set(stacks))),
        unseen=tuple(unseen.items()),
    )


def _sample(tokenizer: Any) -> tuple[Tensor, int]:
    """Two short texts (2, tokens) that differ in one token, and its place."""
    given = tokenizer(TEXT, return_special_tokens_mask=True)
    ids = list(given["input_ids"])
    plain = [n for n, special in enumerate(given["special_tokens_mask"]) if not special]
    if len(ids) > TOKENS:
        ids, plain = ids[:TOKENS], [n for n in plain if n < TOKENS]
    place = plain[-1] if plain else len(ids) - 1
    others = [ids[n] for n in plain if ids[n] != ids[place]]
    changed = [*ids]
    changed[place] = others[0] if others else ids[place]
    return torch.tensor([ids, changed]), place


def _readers(model: PreTrainedModel) -> Iterator[tuple[PreTrainedModel, Any]]:
    """Parts of a model that may read a text, the likeliest first, and what to run for each."""
    base = cast(PreTrainedModel, model.base_model)
    if getattr(model.config, "is_encoder_decoder", False):
        try:
            encoder = cast(PreTrainedModel, model.get_encoder())
        except Exception:
            encoder = base
        if "input_ids" in signature(encoder.forward).parameters:
            yield encoder, base
            yield encoder, encoder
    else:
        yield base, base
    for part in model.modules():
        takes_text = "input_ids" in signature(part.forward).parameters
        if isinstance(part, PreTrainedModel) and part is not base and takes_text:
            yield part, part


def config_of(reader: PreTrainedModel, model: PreTrainedModel) -> Any:
    """The configuration of a part of a model; some parts keep none of their own."""
    return getattr(reader, "config", None) or model.config


def _known(reader: PreTrainedModel, ids: Tensor) -> Tensor:
    """Ids that the model knows; that its tokenizer gives others is told when a text is read."""
    known = _vocabulary(reader)
    return ids if known is None else ids % known


def _vocabulary(reader: PreTrainedModel) -> int | None:
    try:
        known = getattr(reader.get_input_embeddings(), "num_embeddings", None)
    except Exception:
        return None  # no embeddings of its own
    return known if isinstance(known, int) and known > 0 else None


def check_vocabulary(name: str, reader: PreTrainedModel, ids: Tensor) -> None:
    """Raise where a token has a number that the model does not know."""
    known = _vocabulary(reader)
    if known is not None and ids.numel() and int(ids.max()) >= known:
        raise CannotObserve(
            f"The tokenizer of {name} is not the model's: it gives token number "
            f"{int(ids.max()):,}, and the model knows {known:,}. Load the two that belong together."
        )


def _of_text(run: PreTrainedModel, ids: Tensor) -> dict[str, Tensor]:
    """What a part of a model is given, so that it reads two texts."""
    decodes = "decoder_input_ids" in signature(run.forward).parameters
    return {"input_ids": ids} | ({"decoder_input_ids": ids} if decodes else {})


def _dry_run(
    model: PreTrainedModel,
    run: PreTrainedModel,
    attention: Attention,
    given: dict[str, Tensor],
    place: int,
) -> tuple[dict[str, _Seen], dict[str, str]]:
    """What the stacks of a model show of themselves over a batch of two inputs.

    `place` is the position where they differ; -1 for the last.
    """
    found: dict[str, _Seen] = {}
    waiting: list[tuple[_Seen, int, Tensor]] = []  # z, until a linear map takes it
    exact = model.dtype in (torch.float32, torch.float64)

    def observe(outputs: HeadOutputs) -> None:
        own = found.setdefault(outputs.site.stack, _Seen())
        if outputs.v is None:
            own.seam = "projection"
        else:
            own.keys.append(outputs.v.shape[2])
        if not own.layers:
            own.causal = _causal(outputs.z, place % outputs.z.shape[2], exact)
            own.first = None if outputs.v is None else _changed(outputs.v)
        own.layers.append(outputs.site.layer)
        own.shapes.append(tuple(outputs.z.shape))
        own.taken.append("z" if outputs.v is None else "changed z")
        waiting.append((own, len(own.taken) - 1, outputs.z.transpose(1, 2).flatten()))

    def look(module: nn.Module, args: tuple[Any, ...]) -> None:
        given = args[0] if args else None
        if not waiting or not isinstance(given, Tensor):
            return
        own, at, z = waiting[-1]
        if given.numel() == z.numel() and torch.equal(given.flatten(), z):
            linear = isinstance(module, (nn.Linear, Conv1D))
            own.taken[at] = "z" if linear else "normalised z"
            if linear:
                waiting.pop()

    hooks = [m.register_forward_pre_hook(look) for m in run.modules() if _takes_vectors(m)]
    here = {key: value.to(model.device) for key, value in given.items()}
    try:
        with no_trace(model), torch.no_grad(), capture(model, observe) as opened:
            run(**here)
    finally:
        for hook in hooks:
            hook.remove()
    return found, opened.unseen


def _takes_vectors(module: nn.Module) -> bool:
    return isinstance(module, (nn.Linear, Conv1D)) or "norm" in type(module).__name__.lower()


def _causal(z: Tensor, place: int, exact: bool) -> bool | None:
    """Whether what comes before a changed token stays the same; None where nothing changes."""
    if z.shape[0] != 2 or not 0 < place < z.shape[2]:
        return None
    apart = (z[0] - z[1]).abs().amax(dim=(0, 2))  # (tokens,)
    noise = (1e-4 if exact else 3e-2) * float(z.abs().max())
    if not float(apart.max()) > noise:
        return None
    return float(apart[:place].max()) <= noise


def _changed(v: Tensor) -> int | None:
    """The only position whose value changes with one token; None where there are more, or none."""
    if v.shape[0] != 2:
        return None
    places = (v[0] != v[1]).any(dim=-1).any(dim=0).nonzero().flatten().cpu().tolist()
    return int(places[0]) if len(places) == 1 else None


def _stack(name: str, seen: _Seen, attention: Attention, place: int, tokens: int) -> StackShape:
    layers = sorted(set(seen.layers))
    kind = name.split(", call")[0]
    taken = [how for how in ("changed z", "normalised z") if how in seen.taken]
    before = seen.before(place, tokens)
    return StackShape(
        name=name,
        numbers=tuple(layer + 1 for layer in layers),
        depth=max(layers[-1] + 1, attention.depth(kind)),
        heads=max(shape[1] for shape in seen.shapes),
        head_size=max(shape[3] for shape in seen.shapes),
        causal=kind == "decoder" if seen.causal is None else seen.causal,
        seam=seen.seam,
        takes=taken[0] if taken else "z",
        product=attention.is_product(kind),
        before=-1 if before is None else before,
        weighs=seen.seam == "interface" and (kind == "cross" or set(seen.keys) == {tokens}),
    )


def _reads(model: PreTrainedModel, seen: dict[str, _Seen]) -> str | None:
    """The stack that reads a text: of those that see its tokens, the one with most layers."""
    whole = {name: len(one.layers) for name, one in seen.items() if not name.startswith("cross")}
    if getattr(model.config, "is_encoder_decoder", False) and "encoder" in whole:
        return "encoder"
    return max(whole, key=lambda name: whole[name]) if whole else None


def _refuse_uneven(kind: str, stack: str, seen: _Seen) -> None:
    """Raise where layers differ in what makes heads comparable."""
    for what, at in (("heads in a layer", 1), ("positions in a layer", 2)):
        found = sorted({shape[at] for shape in seen.shapes})
        if len(found) > 1:
            raise CannotObserve(
                f"The layers of the {stack} of {kind} differ in their number of {what} "
                f"({', '.join(map(str, found))}), so that its heads cannot be told side by side.",
                python="Each can be observed with headscope.capture.capture.",
            )


@contextmanager
def no_trace(model: PreTrainedModel) -> Iterator[None]:
    """Put back what a pass changes in a model besides its output, and in the random generators.

    Some families choose another attention by the length of what they read, and stay with it.
    """
    parts = ("_parameters", "_buffers", "_modules")
    found = [vars(module).get("config") for module in model.modules()]
    configs = {id(one): one for one in found if hasattr(one, "__dict__")}
    holders = [*model.modules(), *configs.values()]
    kept = [
        (one, dict(vars(one)), {part: dict(vars(one)[part]) for part in parts if part in vars(one)})
        for one in holders
    ]
    states = random.getstate(), np.random.get_state()
    devices = [model.device] if model.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        for holder, own, held in kept:
            vars(holder).clear()
            vars(holder).update(own)
            for part, members in held.items():
                vars(holder)[part].clear()
                vars(holder)[part].update(members)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
