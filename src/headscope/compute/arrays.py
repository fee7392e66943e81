"""Array code that runs where the numbers are: numpy on the host, torch on a device.

Most of what measures ask for has one name in both libraries, which `library` gives; the rest is
here. Whole numbers and float64 have the same bits on either side.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array: TypeAlias = Any
"""An array of numpy, or of torch on a device."""


def on_device(value: Array) -> bool:
    """Whether an array is one of torch."""
    return isinstance(value, Tensor)


def library(*values: Array) -> Any:
    """The library that some arrays are of."""
    return torch if any(isinstance(value, Tensor) for value in values) else np


def real(value: Array) -> Array:
    """As float64."""
    return value.double() if isinstance(value, Tensor) else np.asarray(value, np.float64)


def whole(value: Array) -> Array:
    """As 64-bit whole numbers."""
    return value.long() if isinstance(value, Tensor) else value.astype(np.int64)


def beside(value: NDArray[Any] | Tensor, other: Array) -> Array:
    """An array where another one is."""
    if not isinstance(other, Tensor):
        return value.cpu().numpy() if isinstance(value, Tensor) else value
    return value.to(other.device) if isinstance(value, Tensor) else put(value, other.device)


def put(value: NDArray[Any], device: torch.device) -> Tensor:
    """An array of the host on a device, without waiting for what the device does."""
    there = torch.from_numpy(np.ascontiguousarray(value))
    if device.type != "cuda":
        return there.to(device)
    return there.pin_memory().to(device, non_blocking=True)


def constant(value: NDArray[Any], other: Array) -> Array:
    """An array that never changes where another one is; put there once."""
    if not isinstance(other, Tensor):
        return value
    key = (id(value), other.device)
    if key not in _constants:
        _constants[key] = (value, put(value, other.device))
    return _constants[key][1]


_constants: dict[tuple[int, torch.device], tuple[NDArray[Any], Tensor]] = {}  # by what they are of


def to_host(value: Array) -> NDArray[Any]:
    """An array on the host; waits for it."""
    found: NDArray[Any] = value.cpu().numpy() if isinstance(value, Tensor) else value
    return found


def stack(values: Sequence[Array], axis: int) -> Array:
    """Arrays side by side, along a new axis."""
    return torch.stack(list(values), axis) if on_device(values[0]) else np.stack(values, axis)


def zeros(shape: Sequence[int], like: Array, *, counts: bool = False) -> Array:
    """Zeros, float64 or whole numbers, where another array is."""
    if isinstance(like, Tensor):
        dtype = torch.int64 if counts else torch.float64
        return torch.zeros(tuple(shape), dtype=dtype, device=like.device)
    return np.zeros(tuple(shape), np.int64 if counts else np.float64)
