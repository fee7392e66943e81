"""Where the chunks of a study are read, if not in the process that adds them up.

An engine has workers, each with the model, and hands them runs of chunks; what comes back is put
together in the order of the corpus by `study.run`, so no engine knows what a sum is. All batches of
a chunk are read by one worker, and a worker that is lost has its run read again by another.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from headscope.errors import CannotStudy

if TYPE_CHECKING:
    from headscope.study.reader import Engine

EngineName = Literal["local", "processes", "ray"]
ENGINES: dict[EngineName, str] = {
    "local": "in this process",
    "processes": "in processes of its own on this machine",
    "ray": "in actors of Ray, on this machine or a cluster",
}


def engine_of(
    name: str | None,
    workers: int | None = None,
    devices: Sequence[str] = (),
    address: str | None = None,
    threads: int | None = None,
) -> "Engine | None":
    """The engine that was asked for; None for this process.

    Without a name it is Ray where an address is given, and processes where workers or devices are.
    """
    if name is None:
        name = "ray" if address else "processes" if workers is not None or devices else "local"
    if name not in ENGINES:
        raise CannotStudy(f"engine is one of {', '.join(ENGINES)}, not {name!r}.")
    for said, number in (("workers", workers), ("threads", threads)):
        if number is not None and not 1 <= number <= 4096:
            raise CannotStudy(f"{said} has to be a number from 1 to 4,096, not {number}.")
    if name == "local":
        if workers not in (None, 1) or devices or address:
            raise CannotStudy(
                "The engine 'local' reads in this process: it takes no workers, devices or address."
            )
        return None
    if address and name != "ray":
        raise CannotStudy(f"An address is of the engine 'ray', not of '{name}'.")
    if name == "ray":
        from headscope.engines.on_ray import Ray

        if devices:
            raise CannotStudy("The engine 'ray' finds devices by itself; give it workers.")
        return Ray(workers or 2, threads, address)
    from headscope.engines.processes import Processes

    if workers is not None and devices and workers < len(devices):
        raise CannotStudy(f"{workers} workers cannot use {len(devices)} devices.")
    return Processes(workers or len(devices) or 2, threads, _there(devices))


def _there(devices: Sequence[str]) -> tuple[str, ...]:
    from headscope.devices import find_device

    return tuple(str(find_device(device)) for device in devices)


def threads_of(threads: int | None, workers: int, cuda: bool) -> int:
    """Threads of torch for each worker, unless given.

    One on a CPU, so that it makes no difference to the rounding how many workers there are; beside
    a GPU a share of the machine's.
    """
    import torch

    return threads or (max(1, torch.get_num_threads() // workers) if cuda else 1)
