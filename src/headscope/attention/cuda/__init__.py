"""The attention statistics on a CUDA device: one Triton pass over tiles of scores."""
