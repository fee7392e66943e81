"""Sentence: whether high pairs stay inside one sentence.

same_sentence           high pairs in one sentence / high pairs
                        chance: the share among all pairs of the same texts
same_sentence_matched   the same value; chance: the share expected if only the distances of the
                        high pairs were kept, since short range alone keeps pairs in a sentence
"""

from headscope.measures.seen import Quantity, SeenPairs, Sums, Values, on_grid, ratio


def update(seen: SeenPairs) -> dict[str, Values]:
    """Contributions of each text."""
    return {
        "high": seen.high("count"),
        "same": seen.high("same_sentence"),
        "same_chance": seen.expected("same_sentence"),
        "same_matched": on_grid(seen.high("same_sentence_expected")),
    }


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    share = ratio(sums["same"], sums["high"])
    return {
        "same_sentence": Quantity(share, ratio(sums["same_chance"], sums["high"])),
        "same_sentence_matched": Quantity(share, ratio(sums["same_matched"], sums["high"])),
    }
