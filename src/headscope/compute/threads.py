"""Threads for the CPU backends: torch multiplies alone in each, numba works without the lock."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.compute.arrays import Array, on_device
from headscope.compute.underway import at_once

TOGETHER = 4  # heads multiplied at once, if they are long; see `heads_at_once`
SMALL = 2**18  # values of several heads that are done together: 1 MiB, near to the core

_own = threading.local()


@cache
def _workers(number: int) -> ThreadPoolExecutor:
    ready = threading.Barrier(number + 1)

    def alone() -> None:
        torch.get_num_threads()  # or the number below is taken over when the thread first works
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(number, "headscope-workers", initializer=alone)
    for _ in range(number):
        pool.submit(lambda: None)
    ready.wait()
    torch.set_num_threads(number)  # the number for threads started later, as it was
    return pool


def start_in_parallel(
    task: Callable[..., None], arguments: Iterable[tuple[Any, ...]]
) -> Callable[[], None]:
    """Begin a task for each of some arguments, on as many threads as torch uses.

    The function that is returned waits for them.
    """

    def work(*each: Any) -> None:
        with torch.inference_mode():  # which a thread does not take over from the one that asks
            task(*each)

    jobs = [_workers(torch.get_num_threads()).submit(work, *each) for each in arguments]

    def wait() -> None:
        for job in jobs:
            job.result()

    return wait


in_parallel = at_once(start_in_parallel)


def by_layer(
    task: Callable[[slice], tuple[Array, ...]], *, layers: int, axis: int, like: Array
) -> list[Array]:
    """What a task makes of some layers: of all at once on a device, one by one on the host.

    axis: of its results, which stands for layers.
    """
    if on_device(like):
        return list(task(slice(None)))
    found: list[tuple[Array, ...]] = [()] * layers

    def look(layer: int) -> None:
        found[layer] = task(slice(layer, layer + 1))

    in_parallel(look, ((layer,) for layer in range(layers)))
    return [np.concatenate(parts, axis) for parts in zip(*found, strict=True)]


def heads_at_once(size: int) -> int:
    """Heads of a text that a task takes; always as many, so that no result depends on the batch.

    More of a short text, for which what is done beside the products weighs most.
    """
    return 3 * TOGETHER if TOGETHER * size**2 <= SMALL else TOGETHER


def room(values: int, what: str = "products") -> Tensor:
    """Memory of this thread, the same each time: fresh memory would cost more than the product."""
    held: Tensor | None = getattr(_own, what, None)
    if held is None or held.numel() < values:
        held = torch.empty(values)
        setattr(_own, what, held)
    return held[:values]
