"""The places between words where a sentence may end, and what is seen there.

Of the heads: how alike the tokens on both sides are to each head, how much attention each side
sends to special tokens, and the head vectors of both sides in the middle layers. Of the text: what
kind of character stands before, what kind after, and what is between.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import regex
import torch
from numpy.typing import NDArray

from headscope.capture import HeadOutputs
from headscope.text import Tokens, Window, tokenize, windows

if TYPE_CHECKING:
    from headscope.observed import ObservedModel

WINDOW = 256  # tokens read at once
OVERLAP = 64

# A gap is before a run of characters that follows white space, or a full stop without a space.
GAP = regex.compile(r"(?<=\s)(?=\S)|(?<=[。！？｡])(?=[^\s。！？｡”’」』）])")
BEFORE = [
    regex.compile(pattern)
    for pattern in (
        r"[.!?…。！？][\"'”’»)\]]+\s*$",  # a sentence end and something that closes
        r"(?:^|[\s(.])\p{L}\.\s*$",  # an initial, or the end of an abbreviation such as e.g.
        r"(?:^|\s)(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|Inc|Co|Corp|Ltd|No|Gen|Col|Lt|Sen|Rep|Gov|"
        r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|Fig|al|cf|approx|a\.m|p\.m)\.\s*$",
        r"[!?！？]\s*$",
        r"[.…。]\s*$",
        r"[:;]\s*$",
        r"[,،、，]\s*$",
        r"[\p{P}\p{S}]\s*$",
    )
]
AFTER = [
    regex.compile(pattern)
    for pattern in (r"\p{Lu}", r"\p{Ll}", r"\p{N}", r"[\"'“‘«(\[]", r"[-–—*•·>=_#]")
]
BETWEEN = [regex.compile(pattern) for pattern in (r"\n\s*\n", r"\n")]
SURFACE = (len(BEFORE) + 1) * (len(AFTER) + 1) * (len(BETWEEN) + 1)
LOOK_BACK = 24  # characters before a gap that are looked at


def gaps(text: str) -> list[int]:
    """Where a sentence could begin: the first character of every word but the first."""
    first = len(text) - len(text.lstrip())
    return [match.start() for match in GAP.finditer(text) if match.start() > first]


def surface(text: str, place: int) -> int:
    """The kind of a gap, a number below `SURFACE`: what is before, after and between."""
    left = text[max(0, place - LOOK_BACK) : place]
    between = left[len(left.rstrip()) :]
    before = _first(BEFORE, lambda p: bool(p.search(left)))
    after = _first(AFTER, lambda p: bool(p.match(text, place)))
    kind = _first(BETWEEN, lambda p: bool(p.search(between)))
    return (before * (len(AFTER) + 1) + after) * (len(BETWEEN) + 1) + kind


def middle(layers: int) -> slice:
    """The layers, from 0, whose head vectors are looked at: a third, in the middle."""
    return slice(layers // 3, max(layers // 3 + 1, 2 * layers // 3))


def head_features(
    scope: "ObservedModel", text: str
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """For a window at a time: numbers of the gaps it holds, and a row of features for each.

    Gaps at which no token begins or ends have no row.
    """
    tokens = tokenize(text, scope.tokenizer)
    size = min(WINDOW, scope.shape.window or WINDOW)
    places = np.array(gaps(text), dtype=np.int64)
    for window in windows(tokens, size, min(OVERLAP, size // 4)):
        numbers, left, right = _sides(window, places)
        if len(numbers):
            yield numbers, _rows(scope, window.tokens, left, right)


def _sides(
    window: Window, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of the gaps this window owns: number, last token before, first token after."""
    tokens = window.tokens
    inner = np.flatnonzero(~tokens.special)
    right = np.searchsorted(tokens.starts[inner], places)
    numbers = np.flatnonzero((right > 0) & (right < len(inner)))
    right = inner[right[numbers]]
    owned = window.own[right]
    return numbers[owned], right[owned] - 1, right[owned]


def _rows(
    scope: "ObservedModel", tokens: Tokens, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Similarity, attention to special tokens on either side, and vectors of the middle layers."""
    column = torch.from_numpy(tokens.special).float()[:, None]
    use = range(scope.shape.layers)[middle(scope.shape.layers)]
    alike, focus, vectors = list[torch.Tensor](), list[torch.Tensor](), list[torch.Tensor]()

    def observe(seen: HeadOutputs) -> None:
        z = seen.z[0, :, : len(tokens)].float().cpu()  # (heads, tokens, head size)
        mass = seen.weigh(column)[0, :, : len(tokens), 0].float().cpu()  # (heads, tokens)
        unit = torch.nn.functional.normalize(z - z.mean(dim=1, keepdim=True), dim=-1)
        alike.append((unit[:, left] * unit[:, right]).sum(-1))
        focus.extend([mass[:, left], mass[:, right]])
        if scope.shape.place(seen.site.layer + 1) in use:
            vectors.extend([z[:, side].permute(0, 2, 1).flatten(0, 1) for side in (left, right)])

    scope.observe_attention(tokens, observe)
    found: NDArray[np.float32] = torch.cat([*alike, *focus, *vectors]).T.contiguous().numpy()
    return found


def by_head(
    rows: NDArray[np.float32], weights: NDArray[np.float32], shape: tuple[int, int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What each head adds at each gap, twice (gaps, layers × heads).

    First by how alike it finds both sides, then by its attention to special tokens and its vectors.
    """
    layers, heads, size = shape
    parts = np.split(rows * weights, [layers * heads, 3 * layers * heads], axis=1)
    rest = parts[1].reshape(-1, layers, 2, heads).sum(axis=2)
    used = middle(layers)
    rest[:, used] += parts[2].reshape(len(rows), -1, 2, heads, size).sum(axis=(2, 4))
    return parts[0], rest.reshape(len(rows), -1)


def _first(
    patterns: list[regex.Pattern[str]], matches: Callable[[regex.Pattern[str]], bool]
) -> int:
    """The number of the first pattern that matches, or one past the last."""
    return next((i for i, pattern in enumerate(patterns) if matches(pattern)), len(patterns))
