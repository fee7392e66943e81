"""The pair statistics on a CUDA device, by Triton kernels over tiles of C in registers."""

MOST_HEADS = 65_535  # as many programs as a launch can have beside each other
MEMORY = 4.0  # GiB that a device may need for statistics beyond a model's forward pass
VECTORS, LISTS = (
    3 / 16,
    5 / 32,
)  # of it: of layers that are looked at together; pairs listed at once


def bytes_of(share: float, memory: float) -> int:
    """A share of so many GiB."""
    return int(share * memory * 2**30)
