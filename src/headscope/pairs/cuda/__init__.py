"""The pair statistics on a CUDA device, by Triton kernels over tiles of C in registers."""

MOST_HEADS = 65_535  # as many programs as a launch can have beside each other
