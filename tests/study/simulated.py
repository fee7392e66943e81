"""Studies whose truth is known: sums of documents that were drawn, for real thing and nulls."""

import numpy as np

from headscope.measures.focus import NAMES
from headscope.measures.registry import MEASURES
from headscope.measures.repetition import BY_CLASS
from headscope.study.bootstrap import weights
from headscope.study.modes import Mode
from headscope.study.sums import Totals, key_of
from headscope.study.told import View

LAYERS, HEADS = 12, 6
VIEW = View("raw", "left_out", "quantile(0.01)")
PAIRS = 20.0  # high pairs of a document and head
Lifts = dict[str, np.ndarray]
REPEATED = ("same_token", "same_word", *BY_CLASS)


def flat(value: float) -> np.ndarray:
    return np.full((LAYERS, HEADS), value)


def by_layer(curve: np.ndarray) -> np.ndarray:
    return np.repeat(curve[:, None], HEADS, axis=1)


def rising(first: float, last: float) -> np.ndarray:
    return by_layer(np.linspace(first, last, LAYERS))


def wandering(random: np.random.Generator, sticky: float = 0.5) -> np.ndarray:
    """A curve over layers without a trend, whose neighbours are alike: mean 0, deviation 1."""
    found = random.normal(size=LAYERS)
    for layer in range(1, LAYERS):
        found[layer] = sticky * found[layer - 1] + np.sqrt(1 - sticky**2) * found[layer]
    return found


NOTHING = {
    "separator": flat(1),
    "sentence_end": flat(1),
    "attended_columns": flat(1),
    "same_word": flat(1),
    "word_share": flat(1),
    "distance": flat(1),
    "same": flat(1),
    "same_matched": flat(1),
    "unique": flat(1),
    "contrast": flat(0.4),
}


def simulated(
    random: np.random.Generator,
    modes: dict[Mode, Lifts],
    groups: int = 60,
    of_a_group: int = 1,
    spread: float = 0.15,
    measures: tuple[str, ...] = tuple(MEASURES),
    together: bool = True,
) -> Totals:
    """What a study of documents would have added up, had their heads these lifts over chance.

    The documents of a group are alike: their lifts deviate together, and a little each on its own.
    With `together` they weigh together in the bootstrap, else each on its own.
    """
    found = Totals(200, 0)
    names = [f"group {n} of {random.integers(2**60)}".encode() for n in range(groups)]
    by_group = weights(
        [name + bytes([0 if together else n]) for name in names for n in range(of_a_group)], 0
    )
    for mode, lifts in modes.items():
        own = NOTHING | lifts
        shape = (groups, LAYERS, HEADS)
        shared = {name: random.lognormal(-(spread**2) / 2, spread, shape) for name in own}

        def drawn(name, own=own, shared=shared, shape=shape):
            own_spread = spread / 3
            size = (groups * of_a_group, *shape[1:])
            each = random.lognormal(-(own_spread**2) / 2, own_spread, size)
            return own[name] * np.repeat(shared[name], of_a_group, axis=0) * each

        one = np.ones((groups * of_a_group, LAYERS, HEADS))
        others = [name for name in BY_CLASS if name in lifts]
        for measure, arrays in _contributions(drawn, one, others).items():
            if measure not in measures:
                continue
            key = key_of(MEASURES[measure], mode, VIEW.reading, VIEW.special, VIEW.rule)
            added = {
                id(value): (by_group.T @ value.reshape(len(value), -1)).reshape(-1, LAYERS, HEADS)
                for value in {id(value): value for value in arrays.values()}.values()
            }
            found.sums[key] = {name: added[id(value)] for name, value in arrays.items()}
    return found


def _contributions(drawn, one, others):
    """The arrays of each measure (documents, layers, heads); what no claim asks for is 1.

    Of `others`, classes of repeated words that no claim is about, there is as much as is said.
    """
    focus = dict.fromkeys(NAMES, 0.05 * one) | {f"{name}_chance": 0.05 * one for name in NAMES}
    focus |= dict.fromkeys(("rows", "texts", "entropy", "entropy_chance", "confidence"), one)
    focus |= dict.fromkeys(("confidence_chance", "attended_columns_chance", "sink"), one)
    focus |= {name: 0.05 * drawn(name) for name in ("separator", "sentence_end")}
    size = ("texts", "with_pairs", "norm", "norm_spread", "common_mode", "effective_rank")
    found = {
        "focus": focus | {"attended_columns": drawn("attended_columns")},
        "size": dict.fromkeys((*size, "similarity", "similarity_std"), one)
        | {"contrast": drawn("contrast")},
        "range": {"high": PAIRS * one, "distance": PAIRS * 30 * drawn("distance")}
        | {"distance_chance": PAIRS * 30 * one}
        | {f"beyond_{n}{part}": one for n in (64, 128) for part in ("", "_chance")},
        "sentence": {"high": PAIRS * one, "same": PAIRS * 0.2 * drawn("same")}
        | {"same_chance": PAIRS * 0.2 * one},
        "repetition": {"high": PAIRS * one}
        | {f"{name}{part}": PAIRS * 0.01 * one for name in REPEATED for part in ("", "_chance")}
        | {"same_content_word": PAIRS * 0.01 * drawn("same_word")}
        | {name: PAIRS * 0.01 * drawn(name) for name in others}
        | dict.fromkeys(("detection", "detection_texts"), one),
        "anchor": {"pairs": PAIRS * one, "weight": one}
        | {
            f"{kind}_{name}{part}": 0.1 * one
            for kind in ("token", "word")
            for name in ("share", "uniqueness_in_layer", "uniqueness_in_model", "surroundings")
            for part in ("", "_chance")
        }
        | {"word_share": 0.1 * drawn("word_share")}
        | {"word_uniqueness_in_layer": 0.3 * drawn("unique")}
        | {"word_uniqueness_in_layer_chance": 0.3 * one},
    }
    found["sentence"]["same_matched"] = found["sentence"]["same"] / drawn("same_matched")
    return found
