"""A small corpus for the studies under test."""

TEXTS = (
    "The king saw the old king. He rode home, and the unbelievably long road was empty.",
    "A cat sat. A cat ran! Another cat, which nobody knew, slept until the morning came.",
    "Rivers carry sand; rivers carry stones. The sand settles where the rivers slow down.",
    "Nothing repeats here except commas, commas, and the word nothing.",
    "One short line.",
    "The engine of the ship, said the captain, would hold. The captain was wrong. The ship sank.",
    "Yes.",
    " ".join(
        f"The {colour} boat left the {place} before the storm, and nobody in the {place} saw it."
        for colour in ("red", "green", "old")
        for place in ("harbour", "village", "island")
    ),
    "Kings ride. Kings fall. The thoroughly incomprehensible chronicle names seventeen kings.",
)
