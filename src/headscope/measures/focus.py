"""Focus: where a head's attention goes.

For a class of tokens, focus is the mean over rows i of Σ_{j∈class} A_ij. Its chance level is what
the same rows would give if each spread its attention evenly over the tokens it can see. Both are
computed without making A: see `HeadOutputs.weigh`.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.capture import HeadOutputs
from headscope.text import TokenClass, Tokens

TARGETS = (
    *(kind.label for kind in TokenClass),
    "previous token",
    "own token",
    "next token",
    "own sentence",
)


def focus_sums(outputs: HeadOutputs, tokens: Tokens) -> NDArray[np.float64]:
    """Σ_i of the attention mass that row i puts on each target: (heads, targets)."""
    classes = outputs.weigh(torch.from_numpy(_one_hot(tokens.classes, len(TokenClass))))
    near = outputs.near()
    # A special token is in no sentence: its row and its column count for nothing here.
    inside = torch.from_numpy(tokens.sentences - tokens.sentences[~tokens.special].min())
    sentence = outputs.weigh(
        torch.from_numpy(_one_hot(inside.numpy(), int(inside.max()) + 1))
    )  # (1, heads, tokens, sentences)
    index = inside.clamp(min=0).to(sentence.device).expand(*sentence.shape[:2], -1)
    own = sentence.gather(-1, index[..., None])[..., 0]
    own = own * (inside >= 0).to(own)
    masses = torch.cat([classes, near, own[..., None]], dim=-1)  # (1, heads, tokens, targets)
    sums: NDArray[np.float64] = masses[0].double().sum(dim=1).cpu().numpy()
    return sums


def focus_chance(tokens: Tokens, *, causal: bool) -> NDArray[np.float64]:
    """Σ_i of the same masses if row i spread evenly over all tokens, or up to i: (targets,)."""
    size = len(tokens)
    ones = _one_hot(tokens.classes, len(TokenClass))
    place = np.arange(size)
    visible = place + 1 if causal else np.full(size, size)
    seen = np.cumsum(ones, axis=0) if causal else np.tile(ones.sum(axis=0), (size, 1))
    near = np.stack([place > 0, place >= 0, (place < size - 1) & (not causal)], axis=1)
    inside = tokens.sentences
    before = np.array(
        [np.sum(inside[: i + 1 if causal else size] == inside[i]) for i in range(size)]
    )
    own = np.where(tokens.special, 0, before)
    counts = np.concatenate([seen, near, own[:, None]], axis=1)  # (tokens, targets)
    chance: NDArray[np.float64] = (counts / visible[:, None]).sum(axis=0)
    return chance


def _one_hot(numbers: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Indicator columns; a negative number is in no column."""
    ones: NDArray[np.float32] = (numbers[:, None] == np.arange(count)).astype(np.float32)
    return ones
