"""Where a model goes: the device, and whether it has room for the weights.

Both are asked before transformers begins, since what goes wrong later goes wrong without a reason.
"""

import json
import math
from pathlib import Path
from typing import Any

import psutil
import torch

from headscope.errors import CannotLoad


def find_device(device: str) -> torch.device:
    """The device of that name, CUDA or the CPU for "auto"; raise where it is not there.

    Apple's mps is taken where it is asked for: statistics are made on the CPU then, and nobody has
    run it yet.
    """
    there = ["cpu"]
    if torch.backends.mps.is_available():
        there.append("mps")
    if torch.cuda.is_available():
        there += ["cuda", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
    if device == "auto":
        return torch.device("cuda" if "cuda" in there else "cpu")
    if device not in there:
        raise CannotLoad(
            f"There is no device {device!r} here; there is {', '.join(there)}.",
            python="Leave device out to have the best one chosen.",
            command="Leave --device out to have the best one chosen.",
        )
    return torch.device(device)


def check_weights(where: str | Path, target: torch.device, dtype: torch.dtype | str) -> None:
    """Refuse half a file, and what would make the machine swap, where the files can be seen."""
    files = sorted(Path(where).glob("*.safetensors")) if Path(where).is_dir() else []
    needed = 0
    for file in files:
        try:
            needed += _weight_bytes(file, dtype)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise CannotLoad(
                f"The weights in '{where}' cannot be read: {file.name} is broken or cut short. "
                "Copy or download it again."
            ) from error
    free = (
        torch.cuda.mem_get_info(target)[0]
        if target.type == "cuda"
        else psutil.virtual_memory().available
    )
    if needed > free:
        gib = 2**30
        raise CannotLoad(
            f"The weights of '{where}' need {needed / gib:.1f} GiB as {dtype}, and "
            f"{free / gib:.1f} GiB are free on {target}.",
            python="Pass dtype='bfloat16' for half of float32's size, another device, or a "
            "smaller model.",
            command="Choose another device with --device, or a smaller model.",
        )


def _weight_bytes(file: Path, dtype: torch.dtype | str) -> int:
    """Size in memory of the weights in a safetensors file, from its header."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > size - 8:
            raise ValueError("the header is cut short")
        header = json.loads(stream.read(length))
    tensors: list[dict[str, Any]] = [
        tensor for key, tensor in header.items() if key != "__metadata__"
    ]
    spans = [(int(first), int(last)) for first, last in (one["data_offsets"] for one in tensors)]
    if 8 + length + max((last for _, last in spans), default=0) != size:
        raise ValueError("the weights are cut short")
    if isinstance(dtype, str):
        return sum(last - first for first, last in spans)
    return sum(math.prod(map(int, tensor["shape"])) for tensor in tensors) * dtype.itemsize
