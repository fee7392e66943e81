"""Heads of two models on the same texts: they may cut words into other tokens, so words are held
against words.

The vector of a word is the mean over its tokens. The words of a window that both models see are one
block, and blocks add up as texts do.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.corpus import Document
from headscope.effects.alike import FEWEST, hsic, replicates_for
from headscope.effects.loss import replicated
from headscope.measures.base import ratio
from headscope.observed import ObservedModel
from headscope.study.bootstrap import Group, Values
from headscope.text import Tokens
from headscope.units import Unit, read_units


class AcrossSums:
    """How the similarities of the heads of two models go together, added up over documents."""

    def __init__(self, heads: int, others: int, seed: int, replicates: int, group: Group):
        self.seed, self.group = seed, group
        self.replicates = replicates_for(max(heads, others), replicates)
        # (replicates + 1, heads, others), (replicates + 1, heads), (replicates + 1, others)
        self.together = np.zeros((self.replicates + 1, heads, others))
        self.first = np.zeros((self.replicates + 1, heads))
        self.second = np.zeros((self.replicates + 1, others))
        self.words = 0

    def add(self, unit: Unit, one: Sequence[Tensor], other: Sequence[Tensor]) -> None:
        """Take in a block: the vectors of its words by layer of each model (heads, words, d)."""
        words = one[0].shape[1]
        self.words += words
        self.together += self._replicated(unit, words * hsic(one, other))
        self.first += self._replicated(unit, words * hsic(one).diagonal())
        self.second += self._replicated(unit, words * hsic(other).diagonal())

    def _replicated(self, unit: Unit, value: Values) -> Values:
        return replicated([unit], value[None], self.seed, self.replicates, self.group)

    def similarity(self) -> Values:
        """The debiased linear CKA of each head with each other: (replicates + 1, heads, others)."""
        first, second = (
            np.sqrt(np.where(own > 0, own, np.nan)) for own in (self.first, self.second)
        )
        return ratio(self.together, first[:, :, None] * second[:, None, :])


def blocks(
    scope: ObservedModel, unit: Unit, other: ObservedModel, language: str
) -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """The words of a window, as both models see them: by layer (heads, words, d).

    The other model reads the text of the window, in windows of its own where that is too long.
    """
    tokens = unit.tokens
    own_words = _words(tokens, int(tokens.starts[~tokens.special].min()))
    own: list[Tensor] | None = None
    text = Document(unit.text, unit.source)
    for part in read_units(0, text, other.tokenizer, other.shape.window, language):
        words = _words(part.tokens, 0)
        shared = [word for word in own_words if word in words]
        if len(shared) < FEWEST:
            continue
        own = scope.head_vectors(unit.tokens) if own is None else own
        theirs = other.head_vectors(part.tokens)
        yield (
            [_of_words(layer, [own_words[word] for word in shared]) for layer in own],
            [_of_words(layer, [words[word] for word in shared]) for layer in theirs],
        )


def _words(tokens: Tokens, first: int) -> dict[tuple[int, int], list[int]]:
    """The places of the tokens of each word, by where it is in the text from a character on."""
    found = defaultdict(list)
    for place, word in enumerate(tokens.words.tolist()):
        if word >= 0:
            start, end = tokens.word_spans[word].tolist()
            found[start - first, end - first].append(place)
    return found


def _of_words(z: Tensor, places: Sequence[Sequence[int]]) -> Tensor:
    """The mean over the tokens of each word (heads, words, d), from z (heads, tokens, d)."""
    weight = torch.zeros(len(places), z.shape[1], dtype=torch.float32)
    for word, own in enumerate(places):
        weight[word, own] = 1 / len(own)
    return weight @ z.float()
