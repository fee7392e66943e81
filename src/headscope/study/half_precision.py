"""What half precision does to a study: said before it begins, and on its page."""

import warnings

HALF = ("bfloat16", "float16")
WHAT = (
    "half precision moves many numbers of heads, and rounding decides which pairs of many "
    "are high, so that they have no label of pairs (docs/method.md says by how much, measure "
    "by measure). Study in float32 where it fits"
)


def warn(dtype: str) -> None:
    """Say so before somebody waits for hours."""
    if dtype in HALF:
        warnings.warn(f"The model is in {dtype}: {WHAT}.", stacklevel=5)
