"""A stand-in for a device like Apple's: its tensors are no arrays, and never float64.

They keep their numbers on the CPU, but say they are on the device and behave so: they meet no
tensor of another device, and refuse float64. What is shown with it is where tensors go, not that
Apple's kernels work. The device is registered with torch, so all of this is a process of its own:
a tiny model of a family is read and studied on the CPU and on the device, and has to show the same.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as t
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import headscope as hs
from headscope.specimen import FOLDER as SPECIMEN
from tiny import tiny_bert

_setup_privateuseone_for_python_backend("elsewhere")
DEVICE = torch.device("elsewhere", 0)
aten = torch.ops.aten
MOVES = (aten._to_copy.default, aten.copy_.default, aten.index.Tensor)  # from any device to another


class Elsewhere(Tensor):
    """A tensor on the device."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> "Elsewhere":
        if here.dtype == torch.float64:
            raise TypeError("there is no float64 on this device")
        made = Tensor._make_wrapper_subclass(
            cls, here.shape, here.stride(), here.storage_offset(), dtype=here.dtype, device=DEVICE
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class _Device(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do what the device would, or refuse what it would refuse."""
    given = [value for value in tree_flatten((args, kwargs))[0] if isinstance(value, Tensor)]
    there = any(isinstance(value, Elsewhere) for value in given)
    if there and func not in MOVES:
        foreign = [v for v in given if not isinstance(v, Elsewhere) and v.ndim]
        assert not foreign, f"{func}: tensors of two devices"
    target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
    if target is not None:
        there, kwargs = target.type == DEVICE.type, {**kwargs, "device": torch.device("cpu")}
    plain_args, plain_kwargs = tree_map(
        lambda value: value.here if isinstance(value, Elsewhere) else value, (args, kwargs)
    )
    out = func(*plain_args, **plain_kwargs)
    if func is aten.copy_.default or func._schema.name.endswith("_"):
        return args[0]
    if not there or func is aten._local_scalar_dense.default:
        return out
    return tree_map(lambda value: Elsewhere(value) if isinstance(value, Tensor) else value, out)


@contextmanager
def another_device(model: nn.Module) -> Iterator[None]:
    """With the weights of a model on the device, and whatever is made from them."""
    with _Device():  # type: ignore[no-untyped-call]
        for module in model.modules():
            for name, weight in module._parameters.items():
                if weight is not None:
                    moved = Elsewhere(weight.detach())
                    module._parameters[name] = nn.Parameter(moved, requires_grad=False)
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else Elsewhere(buffer)
        yield


TEXTS = ["The sea is the sea. The fog is not.", "The lamp is gone, and the keeper is gone."]


def everything(scope: hs.Scope, folder: Path) -> list[Any]:
    """Every number that a reading and a study of a few texts have."""
    reading = scope.read(TEXTS[0])
    found: list[Any] = [reading.similarity(2, 1), reading.attention(2, 1), reading.focus().mass]
    nulls = ("shuffle", *(("uniform", "identity") if scope.shape.seam == "interface" else ()))
    study = scope.study(TEXTS, folder, replicates=5, nulls=nulls, rule=hs.quantile(0.2))
    for name in study.tables:
        table = study.table(name)
        for column in table.column_names:
            if str(table.schema.field(column).type) == "double":
                found.append(np.array(table.column(column).to_pylist(), np.float64))
    return [*found, *map(len, scope.segment(" ".join(TEXTS * 3)))]


def model_of(family: str, words: int) -> t.PreTrainedModel:
    if family == "bert":
        return tiny_bert(words).eval()
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = t.MPNetConfig(
        vocab_size=words, **size, intermediate_size=48, max_position_embeddings=66
    )
    return t.MPNetModel(config).eval()


def main(family: str, folder: str) -> None:
    tokenizer = t.AutoTokenizer.from_pretrained(SPECIMEN)
    model = model_of(family, len(tokenizer))
    # As the device attends: by other kernels, a pair at a threshold may fall to either side.
    with sdpa_kernel(SDPBackend.MATH):
        on_cpu = everything(hs.load(model, tokenizer), Path(folder) / "cpu")
    with another_device(model):
        scope = hs.load(model, tokenizer)
        assert scope.model.device.type == DEVICE.type
        there = everything(scope, Path(folder) / "elsewhere")
    assert len(on_cpu) > 50
    for one, other in zip(on_cpu, there, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    print("the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
