"""Observing a model while it runs: the attention interface, and hooks where a family is off it.

Every family on transformers' attention interface asks `AttentionInterface.get_interface` for its
attention function at each call. While a capture is open, that lookup hands out the very same
function with an observer around it, in the thread that opened the capture and nowhere else. The
model, its config and its masks stay as they are, so there is nothing to put back. Modules that
compute attention on their own are found by their structure; there a hook on the output projection
sees the head vectors, once they are proven to be that. A model may have both.
"""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface, PreTrainedModel

from headscope.capture.outputs import HeadOutputs, Site
from headscope.capture.places import Place, places_of
from headscope.capture.structure import Joined, Products, Proof, innermost, joined, prove
from headscope.errors import CannotObserve

Seam = Literal["interface", "projection"]
Observe = Callable[[HeadOutputs], None]
Change = Callable[[HeadOutputs], Tensor | None]
Instead = Callable[[Place], Tensor | None]


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """The attention modules of a model, by how their heads can be seen."""

    places: dict[nn.Module, Place]
    interface: tuple[nn.Module, ...]  # ask transformers' interface for their attention function
    joined: dict[nn.Module, Joined]  # join their heads in an output projection of their own
    others: tuple[nn.Module, ...]  # compute attention in another way, and cannot be seen

    def of(self, stack: str) -> list[nn.Module]:
        """The modules of a stack that can be seen."""
        seen = (*self.interface, *self.joined)
        return [module for module in seen if self.places[module].stack == stack]

    def depth(self, stack: str) -> int:
        """How many layers a stack has, with heads or without."""
        return max((self.places[module].depth for module in self.of(stack)), default=0)

    def is_product(self, stack: str) -> bool:
        """Whether a pass has proven that z is a product of weights and values in all of a stack.

        True on the interface; else heads were at least seen to be joined.
        """
        proofs = [_proven.get(module) for module in self.of(stack) if module in self.joined]
        return all(isinstance(proof, Proof) and proof.kind == "product" for proof in proofs)


@dataclass(slots=True, eq=False)
class Capture:
    """An open observation of one model; made by `capture`."""

    model: PreTrainedModel
    observe: Observe | None
    change: Change | None
    attention: Attention
    instead: Instead | None = None
    depth: int = 0  # of models inside each other that are running
    calls: Counter[nn.Module | str] = field(default_factory=Counter)  # within one forward pass
    unseen: dict[str, str] = field(default_factory=dict)  # what ran and was not seen: path to why
    waiting: dict[nn.Module, Products | None] = field(default_factory=dict)  # for W_O to be reached
    recording: list[Products] = field(default_factory=list)  # of what is inside it now
    ran: bool = False
    saw: set[nn.Module] = field(default_factory=set)

    def site(self, module: nn.Module) -> Site:
        """Where the call that is made now stands."""
        place = self.attention.places[module]
        if place.every_call:
            layer, call = self.calls[place.stack], 0
            self.calls[place.stack] += 1
        else:
            call, at = divmod(self.calls[module], len(place.layers))
            layer = place.layers[at]
            self.calls[module] += 1
        stack = place.stack if call == 0 else f"{place.stack}, call {call + 1}"
        return Site(stack, layer, place.path)

    def known(self, module: nn.Module) -> Tensor | None:
        """The z of a call that need not be made."""
        if self.instead is None or module not in self.attention.places:
            return None
        return self.instead(self.attention.places[module])

    def pass_on(self, outputs: "partial[HeadOutputs]", module: nn.Module, z: Tensor) -> Tensor:
        """Show one call to the observer, and return its z, changed or not."""
        self.saw.add(module)
        seen = outputs(self.site(module), z)
        if self.observe is not None:
            self.observe(seen)
        changed = self.change(seen) if self.change is not None else None
        return z if changed is None else changed


_open: ContextVar[tuple[Capture, ...]] = ContextVar("headscope_open_captures", default=())
_installing = threading.Lock()
_get_interface = AttentionInterface.get_interface


def _lookup(self: AttentionInterface, name: str, default: Callable[..., Any]) -> Callable[..., Any]:
    function = _get_interface(self, name, default)
    return partial(_observed, function) if _open.get() else function


def _observed(
    function: Callable[..., Any],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    **kwargs: Any,
) -> Any:
    """Call the model's attention function and show its result to every open capture."""
    rows = _Normaliser() if query.is_cuda else None  # type: ignore[no-untyped-call]
    known = next((z for one in _open.get() if (z := one.known(module)) is not None), None)
    if known is None:
        with rows or nullcontext():
            output, *rest = function(module, query, key, value, attention_mask, **kwargs)
    else:
        output, rest = known.transpose(1, 2), [None]

    def attend(values: Tensor, rows: slice) -> Tensor:
        some, mask, options = query, attention_mask, kwargs
        if rows != slice(None):
            some, mask, options = _some_rows(rows, module, query, key, attention_mask, kwargs)
        weighed: Tensor = function(module, some, key, values, mask, **options)[0]
        return weighed.transpose(1, 2)

    outputs = partial(
        HeadOutputs,
        q=query,
        k=key,
        v=value,
        mask=attention_mask,
        scaling=kwargs.get("scaling"),
        attend=attend,
        normaliser=None if rows is None else rows.found,
    )
    before = z = output.transpose(1, 2)  # (batch, heads, tokens, head size)
    for opened in _open.get():
        if module in opened.attention.places:
            z = opened.pass_on(outputs, module, z)
    return (output if z is before else z.transpose(1, 2).contiguous(), *rest)


class _Normaliser(TorchDispatchMode):
    """Keeps what attention kernels on a GPU make besides the head vectors: log Σ exp of every row.

    Those of cuDNN and xFormers make it when asked to, and the same head vectors bit for bit.
    """

    found: Tensor | None = None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        aten = torch.ops.aten
        asked = (
            aten._scaled_dot_product_cudnn_attention.default,
            aten._scaled_dot_product_efficient_attention.default,
        )
        if func in asked:
            args = (*args[:4], True, *args[5:])
        out = func(*args, **(kwargs or {}))
        if func in (*asked, aten._scaled_dot_product_flash_attention.default):
            batch, heads, tokens = args[0].shape[:3]
            self.found = out[1].reshape(batch, heads, -1)[..., :tokens]
        return out


def _some_rows(
    rows: slice,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    kwargs: dict[str, Any],
) -> tuple[Tensor, Tensor | None, dict[str, Any]]:
    """The arguments of an attention call for some of its rows only."""
    if mask is not None and mask.ndim != 4:
        raise CannotObserve(
            "Single rows of attention cannot be asked of a flash kernel with packed masks. Load "
            "the model with attn_implementation='sdpa'."
        )
    causal = kwargs.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", False)
    if mask is None and causal and query.shape[2] > 1:
        places = torch.arange(key.shape[2], device=key.device)
        mask = (places[None, :] <= places[rows, None])[None, None]  # (1, 1, rows, keys)
    elif mask is not None and mask.shape[2] > 1:
        mask = mask[:, :, rows]
    options = dict(kwargs)
    for name, value in kwargs.items():
        by_row = isinstance(value, Tensor) and value.ndim > 2 and value.shape[-2] == query.shape[2]
        if by_row and name != "position_bias":
            raise CannotObserve(
                f"Single rows of attention cannot be asked of {type(module).__name__}: what to do "
                f"with its {name} is not known."
            )
    bias = options.get("position_bias")
    if bias is not None and bias.shape[2] > 1:
        options["position_bias"] = bias[:, :, rows]
    return query[:, :, rows], mask, options


_proven: "WeakKeyDictionary[nn.Module, Proof | str]" = WeakKeyDictionary()


def _watch_projection(opened: Capture, module: nn.Module, site: Joined) -> list[Any]:
    """Hook a module that joins its heads: its output projection is given them side by side.

    What it is given is proven the first time, in whatever pass that is.
    """

    def begin(*_: Any) -> None:
        if opened in _open.get():
            opened.waiting[module] = None
            if module not in _proven:
                kept = opened.waiting[module] = Products()
                opened.recording.append(kept)
                kept.__enter__()  # type: ignore[no-untyped-call]

    def end(*_: Any) -> None:
        if opened in _open.get() and opened.recording:
            opened.recording.pop().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def project(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if opened not in _open.get() or module not in opened.waiting:
            return None
        kept, given = opened.waiting.pop(module), args[0]
        if kept is not None:
            kept.closed = True
            proof = prove(given, kept, site)
            if isinstance(proof, Proof) or given.isfinite().all():
                _proven[module] = proof
        else:
            proof = _proven[module]
        if isinstance(proof, str):
            opened.unseen[opened.attention.places[module].path] = proof
            return None
        rows = given if given.ndim > 2 else given[None]
        rows = rows if proof.batch_first else rows.transpose(0, 1)
        parts = rows.unflatten(-1, (site.heads, -1))  # (batch, …, heads, size)
        before = parts.flatten(1, -3).transpose(1, 2)  # (batch, heads, tokens, size)
        z = opened.pass_on(partial(HeadOutputs), module, before)
        if z is before:
            return None
        changed = z.transpose(1, 2).reshape(rows.shape)
        changed = changed if proof.batch_first else changed.transpose(0, 1)
        return (changed.reshape(given.shape), *args[1:])

    return [
        module.register_forward_pre_hook(begin),
        module.register_forward_hook(end, always_call=True),
        site.projection.register_forward_pre_hook(project),
    ]


def _watch(opened: Capture, modules: Iterable[nn.Module]) -> list[Any]:
    """Every hook of a capture."""
    attention, hooks = opened.attention, []

    def start(*_: Any) -> None:
        if opened in _open.get():
            if opened.depth == 0:
                opened.calls.clear()
                opened.ran = True
            opened.depth += 1

    def end(*_: Any) -> None:
        if opened in _open.get():
            opened.depth -= 1
            if opened.depth == 0:
                bypassed()

    def bypassed() -> None:
        """Name the modules that ran while their output projections did not."""
        for module in opened.waiting:
            path, name = attention.places[module].path, type(module).__name__
            opened.unseen[path] = f"{name} does not run the output projection that it holds"
        opened.waiting.clear()

    def passed(why: str, module: nn.Module, *_: Any) -> None:
        if opened in _open.get() and module not in opened.saw:
            opened.unseen[attention.places[module].path] = f"{type(module).__name__} {why}"

    for one in modules:
        if isinstance(one, PreTrainedModel) or one is opened.model:
            hooks.append(one.register_forward_pre_hook(start))
            hooks.append(one.register_forward_hook(end, always_call=True))
    for module, site in attention.joined.items():
        hooks += _watch_projection(opened, module, site)
    for some, why in (
        (attention.interface, "computed attention without asking transformers' interface"),
        (
            attention.others,
            "computes attention in its own way, and joins no heads in a linear map",
        ),
    ):
        hooks += [module.register_forward_hook(partial(passed, why)) for module in some]
    return hooks


@contextmanager
def capture(
    model: PreTrainedModel,
    observe: Observe | None = None,
    *,
    change: Change | None = None,
    instead: Instead | None = None,
) -> Iterator[Capture]:
    """Show every attention call of `model` to `observe`, and let `change` replace z.

    A call whose z `instead` knows is not made, where a family goes through the interface.

    Captures nest: one sees z as the captures opened before it have left it. They hold in the
    thread (or task) that opened them; the same model may run elsewhere at the same time. What ran
    and could not be seen is in `unseen` of what is handed out, by its path.
    """
    modules = tuple(model.modules())
    opened = Capture(model, observe, change, _attention_of(model, modules), instead)
    with _installing:
        AttentionInterface.get_interface = _lookup  # type: ignore[assignment, method-assign]
    hooks = _watch(opened, modules)
    token = _open.set((*_open.get(), opened))
    try:
        yield opened
    finally:
        _open.reset(token)
        for hook in hooks:
            hook.remove()
    if opened.ran and not opened.saw:
        found = len(opened.attention.interface) + len(opened.attention.joined)
        why = "".join(f" {path}: {reason}." for path, reason in [*opened.unseen.items()][:3])
        why = why or " A compiled or traced model hides them: pass the plain model."
        raise CannotObserve(
            f"{type(model).__name__} ran, but none of its {found} attention modules was seen.{why}"
        )


_found: "WeakKeyDictionary[nn.Module, tuple[int, Attention]]" = WeakKeyDictionary()


def find_attention(model: PreTrainedModel) -> Attention:
    """Find the modules that compute attention and how they can be seen, or say why none can."""
    return _attention_of(model, tuple(model.modules()))


def _attention_of(model: PreTrainedModel, modules: tuple[nn.Module, ...]) -> Attention:
    """The same, found again where the modules are other ones."""
    parts = hash(tuple(map(id, modules)))
    if model not in _found or _found[model][0] != parts:
        _found[model] = parts, _find_attention(model)
    return _found[model][1]


def _find_attention(model: PreTrainedModel) -> Attention:
    interface = [module for module in model.modules() if _asks_interface(type(module))]
    rest = innermost(model, set(interface))
    by_structure = {m: site for m, path in rest.items() if (site := joined(path, m, model))}
    if not interface and not by_structure:
        family = getattr(model.config, "model_type", type(model).__name__)
        first = next((f" ({path}, a {type(m).__name__}, …)" for m, path in rest.items()), "")
        raise CannotObserve(
            f"The heads of {type(model).__name__} (family '{family}') cannot be seen: no module of "
            "it uses transformers' attention interface, and none is built as attention whose heads "
            f"are joined in a linear output projection{first}. `headscope models --check` lists "
            "every family that can be observed."
        )
    others = tuple(module for module in rest if module not in by_structure)
    # What cannot be seen is named apart, so that it takes no name from what can.
    places = places_of(model, [*interface, *by_structure]) | places_of(model, others)
    return Attention(places, tuple(interface), by_structure, others)


def _asks_interface(kind: type[nn.Module]) -> bool:
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)
    return code is not None and "get_interface" in code.co_names


def silence(heads: Iterable[tuple[int, int]], stack: str | None = None) -> Change:
    """Set z of the given (layer, head), 0-based, to zero: the same as zeroing its W_O columns.

    Only calls of `stack` are changed when it is given.
    """
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def change(outputs: HeadOutputs) -> Tensor | None:
        silent = by_layer.get(outputs.site.layer)
        if silent is None or stack not in (None, outputs.site.stack):
            return None
        z = outputs.z.clone()
        z[:, silent] = 0
        return z

    return change
