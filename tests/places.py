"""Where things that tests need are."""

from pathlib import Path

SHARED = Path(__file__).parent.parent.parent / "shared"
