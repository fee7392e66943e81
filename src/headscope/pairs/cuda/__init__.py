"""The pair statistics on a CUDA device, by Triton kernels over tiles of C in registers."""
