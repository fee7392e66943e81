"""Arrays from a device to the host, together and through memory that the device can write to."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_staging = torch.empty(0, dtype=torch.uint8)


def to_host(arrays: Sequence[Tensor]) -> list[npt.NDArray[Any]]:
    """Wait for all arrays and bring them over."""
    global _staging
    if not arrays or not arrays[0].is_cuda:
        return [array.numpy() for array in arrays]
    sizes = [-(-array.nbytes // 16) * 16 for array in arrays]
    if _staging.numel() < sum(sizes):
        _staging = torch.empty(sum(sizes), dtype=torch.uint8, pin_memory=True)
    there = []
    for array, part in zip(arrays, _staging[: sum(sizes)].split(sizes), strict=True):
        place = part[: array.nbytes].view(array.dtype).view(array.shape)
        there.append(place.copy_(array, non_blocking=True))
    torch.cuda.current_stream(arrays[0].device).synchronize()
    return [np.array(place.numpy()) for place in there]


def start_to_host(array: Tensor) -> Callable[[], npt.NDArray[Any]]:
    """Begin to bring an array over; the function that is returned waits for it, and nothing else.

    It may wait in another thread, while the device goes on with what came after.
    """
    if not array.is_cuda:
        return lambda: array.numpy()
    there = torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
    there.copy_(array, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(array.device))

    def wait() -> npt.NDArray[Any]:
        arrived.synchronize()
        found: npt.NDArray[Any] = there.numpy()
        return found

    return wait
