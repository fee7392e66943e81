"""Focus: where a head's attention goes, how sharp it is and on how few tokens it gathers.

For one text, `focus_sums` asks the model's own attention function (`HeadOutputs.weigh`); over a
corpus, `attention` computes A again from queries and keys, a few rows at a time. Neither keeps A.
"""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.capture import HeadOutputs
from headscope.compute.arrays import Array, beside, library, real
from headscope.compute.threads import by_layer
from headscope.measures.base import (
    Definition,
    Measure,
    ObservedAttention,
    Quantity,
    Sums,
    Values,
    all_on_grid,
    ratio,
)
from headscope.text import TokenClass, Tokens
from headscope.units import Unit

TARGETS = (
    *(kind.label for kind in TokenClass),
    "previous token",
    "own token",
    "next token",
    "own sentence",
)
NAMES = tuple(target.replace(" ", "_") for target in TARGETS)
SINK = 0.3


def update(observed: ObservedAttention) -> dict[str, Array]:
    """Contributions of each text."""
    mass = observed.sums("mass").sum(axis=3)  # (texts, layers, heads, classes)
    near = [observed.sums(name).sum(-1) for name in ("previous", "own", "next")]
    by_class = observed.sums("own_sentence")  # (texts, layers, heads, classes)
    like, classes = 0.0 * mass[..., 0], mass.shape[-1]
    known = np.stack([of_text(unit, causal=observed.causal) for unit in observed.units])
    inside = known[:, None, None, :classes]
    own = (by_class * beside(inside, mass)).sum(-1)
    targets = [*(mass[..., kind] for kind in range(classes)), *near, own]
    spread, most = _columns(observed)
    by_text = beside(known[:, classes:].T[..., None, None], mass)  # (…, texts, 1, 1)
    rows, entropy, confidence, attended, *levels = by_text
    sums = {
        "texts": like + 1,
        "rows": like + rows,
        "entropy": observed.sums("entropy").sum(-1),
        "entropy_chance": like + entropy,
        "confidence": observed.sums("maximum").sum(-1),
        "confidence_chance": like + confidence,
        "attended_columns": spread,
        "attended_columns_chance": like + attended,
        "sink": real(most > SINK * rows),
    }
    for name, value, level in zip(NAMES, targets, levels, strict=True):
        sums[name] = value
        sums[f"{name}_chance"] = like + level
    return all_on_grid(sums)


def compute(sums: Sums) -> dict[str, Quantity]:
    """Quantities from sums."""
    rows, texts = sums["rows"], sums["texts"]
    found = {
        name: Quantity(ratio(sums[name], rows), ratio(sums[f"{name}_chance"], rows))
        for name in (*NAMES, "entropy", "confidence")
    }
    found["separators"] = Quantity(
        found["separator"].value + found["sentence_end"].value, _both(found)
    )
    found["attended_columns"] = Quantity(
        ratio(sums["attended_columns"], texts), ratio(sums["attended_columns_chance"], texts)
    )
    found["sink"] = Quantity(ratio(sums["sink"], texts))
    return found


def _both(found: dict[str, Quantity]) -> Values:
    separator, end = found["separator"].chance, found["sentence_end"].chance
    assert separator is not None
    assert end is not None
    return separator + end


def of_text(unit: Unit, *, causal: bool) -> Values:
    """What is known without the model: by class whether its rows are in a sentence; then rows,
    entropy, confidence and attended columns of even rows, and their mass on every target.
    """

    def made() -> Values:
        tokens, size = unit.tokens, len(unit)
        even = (size, *_even(size, causal), *focus_chance(tokens, causal=causal))
        # A special token is in no sentence: its row counts for nothing there.
        return np.concatenate([_in_sentences(tokens), even])

    return unit.remember(("focus", causal), made)


def _in_sentences(tokens: Tokens) -> Values:
    """By class: 1 where rows of that class are in a sentence."""
    inside = np.ones(len(TokenClass))
    inside[TokenClass.SEPARATOR] = 0
    inside[TokenClass.FIRST] = 0 if tokens.special[0] else 1
    return inside


@lru_cache(maxsize=1024)
def _even(size: int, causal: bool) -> tuple[float, float, float]:
    """Entropy and largest weight of rows that spread evenly, summed; and columns they attend."""
    rows = _visible(size, causal)
    return np.log(rows).sum(), (1 / rows).sum(), _spread(_even_columns(rows))


def _visible(size: int, causal: bool) -> Values:
    """How many tokens each row can see."""
    return np.arange(1.0, size + 1) if causal else np.full(size, float(size))


def _even_columns(visible: Values) -> Values:
    """What each column receives when every row spreads evenly over what it sees."""
    size = len(visible)
    if visible[0] == size:
        return np.ones(size)
    return np.cumsum((1 / visible)[::-1])[::-1]


def _columns(observed: ObservedAttention) -> list[Array]:
    """Of the columns of A: how many are attended, and the largest sum, (texts, layers, heads)."""
    columns = observed.statistics.columns  # (texts, layers, heads, tokens)

    def look(layers: slice) -> tuple[Array, Array]:
        own = real(columns[:, layers])
        return _spread(own), library(own).amax(own, -1)

    return by_layer(look, layers=columns.shape[1], axis=1, like=columns)


def _spread(columns: Array) -> Array:
    """The effective number of columns (…, tokens): exp of the entropy of their shares."""
    maths = library(columns)
    shares = ratio(columns, columns.sum(-1)[..., None], 0.0)
    logs = maths.log(maths.where(shares > 0, shares, 1.0))
    return maths.exp(-(shares * logs).sum(-1))


def focus_sums(outputs: HeadOutputs, tokens: Tokens) -> NDArray[np.float64]:
    """Σ_i of the attention mass that row i puts on each target: (heads, targets)."""
    # A special token is in no sentence: its row and its column count for nothing here.
    inside = torch.from_numpy(tokens.sentences - tokens.sentences[~tokens.special].min())
    columns = [
        _one_hot(tokens.classes, len(TokenClass)),
        _one_hot(inside.numpy(), int(inside.max()) + 1),
    ]  # weighed together, or a head of 64 dimensions would be used for 6 of them
    weighed = outputs.weigh(torch.from_numpy(np.concatenate(columns, axis=1)))
    classes, sentence = weighed.split([column.shape[1] for column in columns], dim=-1)
    near = outputs.near()
    index = inside.clamp(min=0).to(sentence.device).expand(*sentence.shape[:2], -1)
    own = sentence.gather(-1, index[..., None])[..., 0]
    own = own * (inside >= 0).to(own)
    masses = torch.cat([classes, near, own[..., None]], dim=-1)  # (1, heads, tokens, targets)
    sums: NDArray[np.float64] = masses[0].double().sum(dim=1).cpu().numpy()
    return sums


def focus_chance(tokens: Tokens, *, causal: bool) -> NDArray[np.float64]:
    """Σ_i of the same masses if row i spread evenly over all tokens, or up to i: (targets,)."""
    size = len(tokens)
    place, own = np.arange(size), np.where(tokens.special, 0, _fellows(tokens.sentences, causal))
    if not causal:  # all rows see the same
        of_class = np.bincount(tokens.classes, minlength=len(TokenClass))
        other = (size - 1) / size
        return np.array([*of_class, other, 1.0, other, own.sum() / size])
    ones = _one_hot(tokens.classes, len(TokenClass))
    near = np.stack([place > 0, place >= 0, np.zeros(size, bool)], axis=1)
    counts = np.concatenate([np.cumsum(ones, axis=0), near, own[:, None]], axis=1)
    chance: NDArray[np.float64] = (counts / (place + 1)[:, None]).sum(axis=0)
    return chance


def _one_hot(numbers: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Indicator columns; a negative number is in no column."""
    ones: NDArray[np.float32] = (numbers[:, None] == np.arange(count)).astype(np.float32)
    return ones


def _fellows(numbers: NDArray[np.int64], causal: bool) -> NDArray[np.int64]:
    """How many tokens each token can see that have its number, itself included."""
    if not causal:
        numbers = numbers - numbers.min()
        return np.bincount(numbers)[numbers]
    order = np.argsort(numbers, kind="stable")
    _, starts, inverse, sizes = np.unique(
        numbers[order], return_index=True, return_inverse=True, return_counts=True
    )
    found = np.empty(len(numbers), np.int64)
    found[order] = np.arange(len(numbers)) - starts[inverse] + 1 if causal else sizes[inverse]
    return found


EVEN = "each row spreads evenly over what it can see"
TOWARDS = {
    "first_token": "the token at position 0, whatever it is",
    "separator": "separators: special tokens after position 0",
    "sentence_end": "the closing punctuation of sentences",
    "comma": "commas",
    "other_punctuation": "punctuation and symbols that are neither comma nor end of a sentence",
    "word": "words",
    "previous_token": "the token before, A_i,i−1",
    "own_token": "the token itself, A_ii",
    "next_token": "the token after, A_i,i+1",
    "own_sentence": "the sentence of the token (the rows of special tokens count as 0)",
    "separators": "separators and closing punctuation together: separator + sentence_end",
}


def _mass(name: str) -> Definition:
    return Definition(
        name,
        f"attention on {TOWARDS[name]}; mean over rows i of Σ_j A_ij",
        "share of attention",
        "percent",
        "attention goes there",
        EVEN,
        "paper" if name in ("separator", "sentence_end", "separators") else "ours",
    )


MEASURE = Measure(
    "focus",
    "where attention goes, how sharp it is and on how few tokens it gathers",
    ("attention",),
    (),
    (
        *(_mass(name) for name in NAMES),
        Definition(
            "entropy",
            "mean over rows of −Σ_j A_ij ln A_ij",
            "nats",
            "number",
            "attention spreads",
            f"{EVEN}: ln of the tokens a row can see",
            "ours",
        ),
        Definition(
            "confidence",
            "mean over rows of the largest weight, max_j A_ij",
            "share of attention",
            "percent",
            "attention is sharp",
            f"{EVEN}: 1 / the tokens a row can see",
            "ours",
        ),
        _mass("separators"),
        Definition(
            "attended_columns",
            "how many tokens share the attention: exp of the entropy of the column means of A; "
            "mean over texts",
            "tokens",
            "number",
            "attention is shared by more tokens",
            EVEN,
            "paper",
        ),
        Definition(
            "sink",
            f"share of the texts in which one token gets more than {SINK} of all attention, as a "
            "column mean of A",
            "share of texts",
            "percent",
            "attention falls on one token",
            "",
            "ours",
        ),
    ),
    update,
    compute,
)
