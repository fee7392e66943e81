"""What a head says of two words: how alike its vectors of them are, and its attention between them.

A word's vector is the mean over its pieces. Attention to a word is the sum over its pieces, from a
word the mean over them, as Clark et al. (2019) have it. One head's tile is there at a time.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from headscope.capture import HeadOutputs
from headscope.effects.structure.questions import Values, Words
from headscope.effects.structure.scores import Asked, Sums
from headscope.observed import ObservedModel
from headscope.pairs import reference
from headscope.pairs.tokens import READINGS
from headscope.text import Tokens

SIMILARITIES: tuple[str, ...] = READINGS
ATTENTION = ("attention_to", "attention_from")
SIGNALS = (*SIMILARITIES, *ATTENTION)
SAYS = {
    "raw": "C of the word and the candidate",
    "cosine": "their cosine",
    "centred": "their cosine after the mean over the words of the window is taken away",
    "attention_to": "attention from the word to the candidate",
    "attention_from": "attention from the candidate to the word",
}

Found = Mapping[tuple[str, str], tuple[Sums, Sums]]
"""By kind and relation: sums of similarities and of attention, rows of (signals, heads)."""


def read(
    scope: ObservedModel,
    tokens: Tokens,
    words: Words,
    asked: Sequence[Asked],
    take: Callable[[int, Found], None],
) -> None:
    """Put all questions of a window to every layer, and hand over what was found."""

    def observe(seen: HeadOutputs) -> None:
        if seen.site.stack == scope.shape.stack:
            take(seen.site.layer, _of_layer(seen, words, asked))

    scope.observe_attention(tokens, observe)


def _of_layer(seen: HeadOutputs, words: Words, asked: Sequence[Asked]) -> Found:
    z = seen.z[0].double().cpu().numpy()  # (heads, tokens, d)
    columns = torch.from_numpy(words.total.T).to(seen.z.dtype)  # (tokens, words)
    weights = seen.weigh(columns)[0].double().cpu().numpy()  # (heads, tokens, words)
    heads, found = len(z), {}
    rows = {
        one: [np.empty((len(names), heads, len(one.question.first))) for names in _BOTH]
        for one in asked
    }
    for head in range(heads):
        vectors = words.mean @ z[head]  # (words, d)
        A = words.mean @ weights[head]  # (words, words)
        tiles = (
            [reference.similarity(vectors, reading) for reading in READINGS],
            [A, A.T],
        )
        for one, (alike, attention) in rows.items():
            first, second = one.question.first, one.question.second
            for into, of in zip((alike, attention), tiles, strict=True):
                into[:, head] = [tile[first, second] for tile in of]
    for one, (alike, attention) in rows.items():
        pairs = alike.shape[-1]
        by_similarity = one.scores(alike.reshape(-1, pairs), symmetric=True)
        by_attention = one.scores(attention.reshape(-1, pairs), symmetric=False)
        for relation in by_similarity:
            found[one.question.kind, relation] = by_similarity[relation], by_attention[relation]
    return found


_BOTH = (SIMILARITIES, ATTENTION)


def joined(pair: tuple[Sums, Sums], what: str, score: str, heads: int) -> Values:
    """Sums of all signals: (signals, heads)."""
    parts = [getattr(sums, what)[score].reshape(-1, heads) for sums in pair]
    return np.concatenate(parts)
