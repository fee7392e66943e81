"""The only place that touches attention inside transformers.

Every family on transformers' attention interface asks `AttentionInterface.get_interface` for its
attention function at each call. While a capture is open, that lookup hands out the very same
function with an observer around it, in the thread that opened the capture and nowhere else. The
model, its config and its masks stay as they are, so there is nothing to put back. A few families
compute attention on their own; there a hook on the output projection sees the head vectors.
"""

import inspect
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface, PreTrainedModel

from headscope.errors import CannotObserve

Seam = Literal["interface", "projection"]

# Families outside the attention interface whose heads are joined, side by side, in the input of
# one linear module: where that module is, as a pattern of its path.
PROJECTIONS = {
    "big_bird": r"attention\.output\.dense$",
    "bloom": r"self_attention\.dense$",
    "codegen": r"attn\.out_proj$",
    "deberta": r"attention\.output\.dense$",
    "deberta-v2": r"attention\.output\.dense$",
    "falcon": r"self_attention\.dense$",
    "flaubert": r"attentions\.\d+\.out_lin$",
    "gpt_neo": r"attn\.attention\.out_proj$",
    "gptj": r"attn\.out_proj$",
    "longformer": r"attention\.output\.dense$",
    "megatron-bert": r"attention\.output\.dense$",
    "mpnet": r"attention\.attn\.o$",
    "mpt": r"attn\.out_proj$",
    "openai-gpt": r"attn\.c_proj$",
    "rembert": r"attention\.output\.dense$",
    "roformer": r"attention\.output\.dense$",
    "t5": r"Attention\.o$",  # on the interface in newer versions of transformers
    "xlm": r"attentions\.\d+\.out_lin$",
}
CAUSAL = {"bloom", "codegen", "falcon", "gpt_neo", "gptj", "mpt", "openai-gpt"}


@dataclass(frozen=True, slots=True)
class Site:
    """Where in a model an attention call stands."""

    stack: str  # "encoder", "decoder", "cross" or "vision"
    layer: int  # 0-based, counted in the order of the calls within the stack
    path: str  # of the module that made the call (ALBERT makes every call from one module)


@dataclass(frozen=True, slots=True, eq=False)
class HeadOutputs:
    """What one attention call computed, for every head.

    `q`, `k`, `v` and `mask` are None where the family is seen through its output projection.
    """

    site: Site
    z: Tensor  # (batch, heads, tokens, head size): the head vectors, before the output projection
    q: Tensor | None = None  # (batch, heads, tokens, head size)
    k: Tensor | None = None  # (batch, key heads, keys, head size); fewer heads where grouped
    v: Tensor | None = None  # (batch, key heads, keys, head size)
    mask: Tensor | None = None  # as the model made it; None where nothing is masked, or causal
    scaling: float | None = None
    attend: Callable[[Tensor, slice], Tensor] | None = None  # the model's own, given other v
    normaliser: Tensor | None = None  # (batch, heads, tokens) log Σ exp of the rows, if it was made

    def weigh(self, columns: Tensor) -> Tensor:
        """Σ_j A_ij columns_j by the model's own attention function, without making A.

        `columns` is (keys, c); the result is (batch, heads, tokens, c). An indicator column of a
        class of tokens gives the attention mass on that class; columns of the identity give A.
        """
        size = self._values().shape[-1]
        return torch.cat([self._weigh(block) for block in columns.split(size, dim=1)], dim=-1)

    def near(self) -> Tensor:
        """A_ij for the previous, the own and the next token j of each i: (batch, heads, tokens, 3).

        Blocks of rows, each weighing the columns of the identity around it: as much work as one
        attention call. Where there is no such token the mass is 0.
        """
        tokens, keys, size = self.z.shape[2], *self._values().shape[2:]
        step = size - 2
        found = []
        for start in range(0, tokens, step):
            rows = slice(start, min(start + step, tokens))
            count = rows.stop - start
            columns = torch.zeros(keys, count + 2)
            for c in range(count + 2):
                if 0 <= start - 1 + c < keys:
                    columns[start - 1 + c, c] = 1
            block = self._weigh(columns, rows)  # (batch, heads, rows, rows + 2)
            found.append(
                torch.stack([block.diagonal(offset, -2, -1) for offset in range(3)], dim=-1)
            )
        return torch.cat(found, dim=2)

    def _weigh(self, columns: Tensor, rows: slice = slice(None)) -> Tensor:
        """Weigh at most head-size columns, for some rows of attention or for all."""
        v = self._values()
        assert self.attend is not None
        values = torch.zeros(v.shape[-2:], dtype=v.dtype, device=v.device)
        values[:, : columns.shape[1]] = columns
        return self.attend(values.expand_as(v), rows)[..., : columns.shape[1]]

    def _values(self) -> Tensor:
        if self.attend is None or self.v is None:
            raise CannotObserve(
                f"The attention weights of {self.site.path} are out of sight: this family does not "
                "go through transformers' attention interface, so only head vectors can be seen."
            )
        return self.v


Observe = Callable[[HeadOutputs], None]
Change = Callable[[HeadOutputs], Tensor | None]


@dataclass(slots=True, eq=False)
class Capture:
    """An open observation of one model; made by `capture`."""

    model: PreTrainedModel
    observe: Observe | None
    change: Change | None
    paths: dict[nn.Module, str]
    calls: Counter[str] = field(default_factory=Counter)  # by stack, within one forward pass
    ran: bool = False
    saw: bool = False

    def pass_on(self, outputs: "partial[HeadOutputs]", module: nn.Module, z: Tensor) -> Tensor:
        """Show one call to the observer, and return its z, changed or not."""
        path = self.paths[module]
        stack = stack_of(path, module, self.model)
        site = Site(stack, self.calls[stack], path)
        self.calls[stack] += 1
        self.saw = True
        seen = outputs(site, z)
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
    with rows or nullcontext():
        output, *rest = function(module, query, key, value, attention_mask, **kwargs)

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
        if module in opened.paths:
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
    bias = options.get("position_bias")
    if bias is not None and bias.shape[2] > 1:
        options["position_bias"] = bias[:, :, rows]
    return query[:, :, rows], mask, options


def _watch_projection(opened: Capture, module: nn.Module) -> Any:
    """Hook a projection whose input holds the heads side by side."""

    def hook(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if opened not in _open.get():
            return None
        joined = args[0]
        heads: int = opened.model.config.num_attention_heads
        before = joined.unflatten(-1, (heads, -1)).transpose(1, 2)
        z = opened.pass_on(partial(HeadOutputs), module, before)
        if z is before:
            return None
        return (z.transpose(1, 2).flatten(-2), *args[1:])

    return module.register_forward_pre_hook(hook)


@contextmanager
def capture(
    model: PreTrainedModel, observe: Observe | None = None, *, change: Change | None = None
) -> Iterator[Capture]:
    """Show every attention call of `model` to `observe`, and let `change` replace z.

    Captures nest: one sees z as the captures opened before it have left it. They hold in the
    thread (or task) that opened them; the same model may run elsewhere at the same time.
    """
    seam, paths = attention_modules(model)
    opened = Capture(model, observe, change, paths)
    with _installing:
        AttentionInterface.get_interface = _lookup  # type: ignore[assignment, method-assign]

    def start(*_: Any) -> None:
        if opened in _open.get():
            opened.calls.clear()
            opened.ran = True

    hooks = [model.register_forward_pre_hook(start)]
    if seam == "projection":
        hooks += [_watch_projection(opened, module) for module in paths]
    token = _open.set((*_open.get(), opened))
    try:
        yield opened
    finally:
        _open.reset(token)
        for hook in hooks:
            hook.remove()
    if opened.ran and not opened.saw:
        raise CannotObserve(
            f"{type(model).__name__} ran, but none of its {len(paths)} attention modules was seen. "
            "A compiled or traced model hides them: pass the plain model."
        )


def attention_modules(model: PreTrainedModel) -> tuple[Seam, dict[nn.Module, str]]:
    """Find the modules that compute attention and how they can be seen, or say why none can."""
    named = dict(model.named_modules())
    paths = {
        module: path
        for path, module in named.items()
        if "get_interface" in inspect.unwrap(type(module).forward).__code__.co_names
    }
    if paths:
        return "interface", paths
    family = getattr(model.config, "model_type", type(model).__name__)
    if family in PROJECTIONS:
        where = re.compile(PROJECTIONS[family])
        paths = {module: path for path, module in named.items() if where.search(path)}
        if paths:
            return "projection", paths
    raise CannotObserve(
        f"The heads of {type(model).__name__} (family '{family}') cannot be seen: it neither uses "
        "transformers' attention interface nor joins its heads in a known output projection. "
        "Supported are all families on the attention interface (BERT, RoBERTa, ModernBERT, GPT-2, "
        f"Llama, Qwen, Gemma, T5, BART, ViT, Whisper, …) and {', '.join(sorted(PROJECTIONS))}."
    )


def stack_of(path: str, module: nn.Module, model: PreTrainedModel) -> str:
    """Tell encoder, decoder, cross and vision attention apart by where the module stands."""
    name = path.lower()
    if getattr(module, "is_cross_attention", False) or re.search(
        r"cross|encdec|encoder_attn|enc_dec", name
    ):
        return "cross"
    if "vision" in name:
        return "vision"
    if getattr(model.config, "is_encoder_decoder", False):
        # An encoder taken out of its model has no "encoder" in its paths, but is no decoder.
        inside_decoder = "decoder" in name or "Decoder" in type(model).__name__
        return "decoder" if inside_decoder else "encoder"
    family = getattr(model.config, "model_type", "")
    causal = getattr(module, "is_causal", False) or family in CAUSAL
    return "decoder" if causal else "encoder"


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
