"""Heads off transformers' attention interface, found by how modules are built, and proven.

The rule: an innermost attention module that knows its number of heads, and the linear map among
its children, or beside it below an attention module, that takes the heads' vectors side by side.
What the rule names is believed only once a pass has shown it: that the input of the map is the
batched product of attention weights and values, head by head, or at least was put together from
heads; and that the map adds up what the heads write.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.pytorch_utils import Conv1D

HEADS = (
    "num_heads",
    "num_attention_heads",
    "n_heads",
    "n_head",
    "num_attn_heads",
    "heads",
    "nhead",
)
PROJECTIONS = (
    "output.dense",
    "out_proj",
    "o_proj",
    "c_proj",
    "proj",
    "dense",
    "out_lin",
    "Wo",
    "wo",
    "to_out",
    "to_out.0",
    "post",
    "post_proj",
    "attention_out",
    "o",
    "output_proj",
    "projection",
    "linear_out",
    "dense_out",
    "output_layer",
    "out",
    "output",
)


@dataclass(frozen=True, slots=True)
class Joined:
    """An attention module and the linear map that takes its heads' vectors side by side."""

    heads: int
    projection: nn.Module


@dataclass(frozen=True, slots=True)
class Proof:
    """What a pass has shown of the input of an output projection."""

    kind: Literal["product", "joined"]  # A v itself; or put together from heads in another way
    batch_first: bool


def is_attention(module: nn.Module) -> bool:
    """Whether a module calls itself attention."""
    name = type(module).__name__.lower()
    return "att" in name and not name.endswith(("output", "mask", "bias", "norm"))


def innermost(model: nn.Module, known: set[nn.Module]) -> dict[nn.Module, str]:
    """Attention modules that hold no other, and hold or are held by none of the `known` ones."""
    named = dict(model.named_modules())
    around: set[nn.Module] = set()
    for path, module in named.items():
        if module in known:
            around.update(_above(path, named))
    found = {}
    for path, module in named.items():
        if not is_attention(module) or module in known or module in around:
            continue
        inside = [one for one in module.modules() if one is not module and is_attention(one)]
        held = any(one in known for one in _above(path, named))
        if not inside and not held and next(module.parameters(), None) is not None:
            found[module] = path
    return found


def joined(path: str, module: nn.Module, model: nn.Module) -> Joined | None:
    """The heads and the output projection of an attention module, by the rule; None without."""
    heads = next((n for name in HEADS if isinstance(n := getattr(module, name, None), int)), 0)
    if heads < 1 or "deformable" in type(module).__name__.lower():
        return None
    named = dict(model.named_modules())
    held = [module, *(one for one in _above(path, named) if is_attention(one))]
    for holder in held:
        for name in PROJECTIONS:
            found = _at(holder, name)
            width = _width(found)
            if found is not None and width and width % heads == 0:
                return Joined(heads, found)
    return None


def _above(path: str, named: dict[str, nn.Module]) -> Iterator[nn.Module]:
    """The modules that hold a path, the nearest first; the model itself is none of them."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        yield named[".".join(parts[:end])]


def _at(module: nn.Module, name: str) -> nn.Module | None:
    for part in name.split("."):
        if part not in module._modules or module._modules[part] is None:
            return None
        module = module._modules[part]  # type: ignore[assignment]
    return module


def _width(module: nn.Module | None) -> int:
    """What a linear map takes; 0 where it is none."""
    if isinstance(module, Conv1D):
        return int(module.weight.shape[0])
    return int(module.in_features) if isinstance(module, nn.Linear) else 0


class Products(TorchDispatchMode):
    """Keeps what the products inside an attention module gave, until its heads are joined."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products: list[Tensor] = []
        self.merged: list[tuple[torch.Size, Tensor]] = []  # a shape, and what became of it
        self.closed = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        if self.closed:
            return out
        name = func.overloadpacket.__name__
        if name in ("bmm", "baddbmm", "matmul", "einsum") or "scaled_dot_product" in name:
            self.products.append(out if isinstance(out, Tensor) else out[0])
        elif name in ("view", "reshape", "_unsafe_view", "flatten", "_reshape_alias"):
            self.merged.append((args[0].shape, out))
        return out


def prove(given: Tensor, kept: Products, site: Joined) -> Proof | str:
    """What a pass has shown of `given`, the input of an output projection; else what it has not."""
    heads, size = site.heads, given.shape[-1] // site.heads
    if not _adds_up(given, site):
        return "what its heads write does not add up to what the block writes"
    parts = given.unflatten(-1, (heads, size))  # (…, heads, size)
    for product in kept.products:
        found = _same(product, parts)
        if found is not None:
            return Proof("product", found)
    for shape, out in kept.merged:
        if shape[-2:] == (heads, size) and _holds(out, given):
            return Proof("joined", True)
    return "what its output projection takes was not seen to come from its heads"


def _holds(out: Tensor, given: Tensor) -> bool:
    """Whether a tensor is another, or begins with it: some families read padded blocks."""
    if out.numel() == given.numel():
        return _equal(out, given)
    if out.ndim != given.ndim or any(a < b for a, b in zip(out.shape, given.shape, strict=True)):
        return False
    return torch.equal(out[tuple(slice(0, size) for size in given.shape)], given)


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.data_ptr() == other.data_ptr() or torch.equal(one.reshape(-1), other.reshape(-1))


def _same(product: Tensor, parts: Tensor) -> bool | None:
    """Whether a product is the heads' vectors, batch first (True) or tokens first (False)."""
    if product.numel() != parts.numel() or product.shape[-1] != parts.shape[-1]:
        return None
    if product.shape[-2:] == parts.shape[-2:] and _equal(product, parts):
        return True
    rows = parts.reshape(parts.shape[0], -1, *parts.shape[-2:])  # (batch, tokens, heads, size)
    for batch_first, order in ((True, rows), (False, rows.transpose(0, 1))):
        if torch.equal(product.reshape(-1), order.transpose(1, 2).reshape(-1)):
            return batch_first
    return None


def _adds_up(given: Tensor, site: Joined) -> bool:
    """Whether Σ_h z_h W_O + b is what the projection makes of its input."""
    module: Any = site.projection
    weight = module.weight
    weight = weight if isinstance(module, Conv1D) else weight.T  # (in, out)
    by_head = weight.unflatten(0, (site.heads, -1))  # (heads, size, out)
    z = given.unflatten(-1, (site.heads, -1))  # (…, heads, size)
    total = torch.einsum("...hd,hdo->...o", z, by_head)
    if module.bias is not None:
        total = total + module.bias
    whole = module.forward(given)
    scale = float(whole.abs().max()) if whole.numel() else 0.0
    tolerance = 1e-4 if given.dtype in (torch.float32, torch.float64) else 5e-2
    return bool(((total - whole).abs() <= tolerance * max(scale, 1e-6)).all())
