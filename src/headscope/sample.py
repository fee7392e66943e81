"""The sample text: ordinary prose on three topics, written for headscope.

It repeats names and words, quotes speech, abbreviates and lists, so that every measure has
something to find; and it is short enough for the specimen to read at once.
"""

from pathlib import Path

SAMPLE = Path(__file__).parent / "data" / "sample.txt"


def sample_text() -> str:
    """The sample text that comes with headscope."""
    return SAMPLE.read_text(encoding="utf-8")
