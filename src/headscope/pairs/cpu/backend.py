"""The pair statistics on a CPU: torch multiplies a panel of C, numba goes over it, and it is gone.

One worker thread takes a few heads of one text at a time: together where the text is short and the
rules are quantiles, and otherwise one after the other, panel by panel (`panels.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headscope.compute.threads import SMALL, heads_at_once, room, start_in_parallel
from headscope.pairs.assemble import (
    COUNTERS,
    HighNumbers,
    PairNumbers,
    assemble,
    batch_chance,
    chance_of,
    round_up,
    simple_reach,
)
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.chance import TextChance
from headscope.pairs.cpu import passes, short_texts
from headscope.pairs.cpu.panels import PANEL, ROWS, Panels, kth_largest, nearest_reach
from headscope.pairs.distances import DISTANCE_BINS, UPPER_DISTANCES
from headscope.pairs.rules import Nearest, Quantile, Rule
from headscope.pairs.statistics import Anchors, PairStatistics, TopPairs
from headscope.pairs.tokens import Ints, PairTokens, SimilarityReading, Special
from headscope.pairs.vectors import (
    ReadVectors,
    read_vectors,
    refuse_not_finite,
    vector_sizes,
)


class _Text:
    """The tokens of a text as the passes read them, under some settings of special tokens."""

    def __init__(
        self,
        tokens: PairTokens,
        settings: Sequence[Special],
        chances: Sequence[TextChance],
        types: Ints | None,
    ) -> None:
        kept = np.stack([tokens.kept(setting) for setting in settings])  # (settings, S)
        self.members = torch.from_numpy(kept)
        self.left_out = [np.flatnonzero(~own) for own in kept]
        self.kept = kept.astype(np.float32)
        self.with_special = np.array([setting == "kept" for setting in settings])
        self.counts = np.array([chance.count for chance in chances])  # (settings,) pairs
        self.inside_share = np.stack([chance.inside_share for chance in chances])  # (settings, S)
        self.special = np.flatnonzero(tokens.special)
        self.ordinary = (~tokens.special).astype(np.float32)  # (S,)
        self.labels = np.stack(
            [
                labels(tokens.sentences),
                tokens.ids,
                labels(tokens.words),
                tokens.occurrences,
                tokens.word_classes,
            ]
        )  # (5, S), in the order of `passes`
        self.types = np.empty((0, len(tokens)), np.int32) if types is None else types  # (K, S)

    @cached_property
    def related(self) -> npt.NDArray[np.int32]:
        """The pairs (n, 2) that are related though far apart."""
        sentence, word = self.labels[passes.SENTENCES], self.labels[passes.WORDS]
        return short_texts.far_and_related(sentence, word, self.ordinary)

    def ranks(self, rules: Sequence[Rule], top: int) -> npt.NDArray[np.int64]:
        """Ranks from above (settings, rules + 1): of the quantiles, and how many are listed."""
        found = [
            [*(rule.number(count) for rule in rules if isinstance(rule, Quantile)), min(top, count)]
            for count in self.counts.tolist()
        ]
        return np.array(found, np.int64)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Lengths and rounding of the vectors of some heads, (heads, S), or of one, (S,)."""

    lengths: npt.NDArray[np.float32]
    rounding: npt.NDArray[np.float32]

    @staticmethod
    def of(z: Tensor, read: ReadVectors, reading: SimilarityReading, members: Tensor) -> "_Sizes":
        """Those of z (heads, S, d)."""
        found = vector_sizes(z, read.vectors, reading, members)
        return _Sizes(found.lengths.numpy(), found.rounding.numpy())

    def head(self, number: int) -> "_Sizes":
        """Those of one head."""
        return _Sizes(self.lengths[number], self.rounding[number])


def _texts(batch: TokenBatch, settings: Sequence[Special]) -> list[_Text]:
    types = batch.types or [None] * len(batch)
    chances = zip(*(batch_chance(batch, setting) for setting in settings), strict=True)
    together = zip(batch.texts, chances, types, strict=True)
    return [_Text(tokens, settings, chance, own) for tokens, chance, own in together]


class Numbers:
    """The arrays that the passes fill, for every text, head and setting of special tokens."""

    def __init__(
        self, shape: tuple[int, int, int], size: int, rules: int, kinds: int, top: int
    ) -> None:
        def floats(*more: int) -> npt.NDArray[np.float64]:
            return np.zeros((*shape, *more))

        def counts(*more: int) -> npt.NDArray[np.int64]:
            return np.zeros((*shape, *more), np.int64)

        self.exponent, self.shift = np.zeros(shape, np.int32), floats()
        self.sums, self.squares = floats(DISTANCE_BINS), floats(1)
        self.unrelated, self.highest = floats(2), floats(1)
        self.reach = floats(rules + 1)  # of the rules, and last of the top pairs
        self.counters, self.by_distance = counts(rules, COUNTERS), counts(rules, DISTANCE_BINS)
        self.expected, self.taking_part = floats(rules), counts(rules, size)
        self.anchors = counts(rules, kinds, 3)
        self.anchors[..., 0] = -1
        self.first, self.second, self.top = counts(top) - 1, counts(top) - 1, floats(top) + np.nan
        self.finite = torch.ones(shape, dtype=torch.bool)

    def of(self, setting: int) -> PairNumbers:
        """The numbers of one setting."""
        own = (slice(None), slice(None), setting)
        rules = range(self.counters.shape[3])
        return PairNumbers(
            self.exponent[own],
            self.shift[own],
            self.sums[own],
            self.squares[own][..., 0],
            self.unrelated[own],
            self.highest[own][..., 0],
            tuple(self._high((*own, rule)) for rule in rules),
            TopPairs(self.first[own], self.second[own], self.top[own])
            if self.top.shape[-1]
            else None,
        )

    def _high(self, at: tuple[slice, slice, int, int]) -> HighNumbers:
        """The numbers of one rule."""
        return HighNumbers(
            reach=self.reach[at],
            counters=self.counters[at],
            by_distance=self.by_distance[at],
            expected=self.expected[at],
            taking_part=self.taking_part[at],
            anchors=Anchors(*np.moveaxis(self.anchors[at], -1, 0))
            if self.anchors.shape[4]
            else None,
        )


def start(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading,
    special: Special,
    top: int,
    layer: str | None,
) -> Callable[[], PairStatistics]:
    """Start every statistic of z (B, H, S, d), never holding more of C than a panel."""
    [found] = start_settings(
        z, batch, rules, reading=reading, settings=[special], top=top, layer=layer
    )
    return found


def start_settings(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: SimilarityReading,
    settings: Sequence[Special],
    top: int,
    layer: str | None,
) -> list[Callable[[], PairStatistics]]:
    """The same for several settings of special tokens, which share the products of raw and cosine.

    With `centred` the mean that is taken away, and so every vector, belongs to the setting.
    """
    heads, size = z.shape[1], int(max(batch.lengths, default=0))
    kinds = len(batch.types[0]) if batch.types else 0
    key = tuple(settings)
    texts = batch.remember(("cpu", key), partial(_texts, batch, key))
    numbers = Numbers((len(batch), heads, len(key)), max(size, 1), len(rules), kinds, top)
    apart = reading == "centred"

    def compute(b: int, h: int) -> None:
        text, some = texts[b], slice(h, h + at_once[b])
        vectors = z[b, some, : batch.lengths[b]].contiguous()  # (heads, S, d)
        for own in range(len(key)) if apart else [slice(None)]:
            members = text.members[own] if isinstance(own, int) else text.members[0]
            read = read_vectors(vectors, reading, members)
            numbers.finite[b, some, own] = read.finite[:, None] if not apart else read.finite
            if not bool(read.finite.all()):
                continue
            sizes = _Sizes.of(vectors, read, reading, members)
            exponent, shift = read.exponent.numpy(), _likely_mean(read.vectors, text).numpy()
            numbers.exponent[b, some, own] = exponent if apart else exponent[:, None]
            numbers.shift[b, some, own] = shift if apart else shift[:, None]
            chosen = range(own, own + 1) if isinstance(own, int) else range(len(key))
            _add(read.vectors, sizes, text, chosen, rules, top, numbers, (b, h))

    at_once = [heads_at_once(int(length)) for length in batch.lengths]
    heads_of = ((b, h) for b in range(len(batch)) for h in range(0, heads, at_once[b]))
    wait = start_in_parallel(compute, heads_of)

    def result(number: int) -> PairStatistics:
        wait()
        refuse_not_finite(numbers.finite[..., number], layer)
        chance = chance_of(batch, key[number])
        return assemble(chance, rules, numbers.of(number), reading, key[number])

    return [partial(result, number) for number in range(len(key))]


def _likely_mean(vectors: Tensor, text: _Text) -> Tensor:
    """About the mean of C over pairs of ordinary tokens; sums about it keep digits.

    (‖Σ z‖² - Σ ‖z‖²) / 2 pairs.
    """
    if len(text.special):
        vectors = vectors * torch.from_numpy(text.ordinary)[:, None]
    total, own = vectors.sum(-2), torch.linalg.vector_norm(vectors, dim=(-2, -1)).square()
    ordinary = vectors.shape[1] - len(text.special)
    likely: Tensor = (total.square().sum(-1) - own) / max(ordinary * (ordinary - 1), 1)  # (H,)
    return likely


def _add(
    vectors: Tensor,
    sizes: _Sizes,
    text: _Text,
    settings: range,
    rules: Sequence[Rule],
    top: int,
    numbers: Numbers,
    at: tuple[int, int],
) -> None:
    """Every number of some heads (n, S, d) of a text under some settings."""
    b, h = at
    count, size, _ = vectors.shape
    if all(isinstance(rule, Quantile) for rule in rules) and size**2 <= PANEL:
        together = min(count, max(1, SMALL // size**2))
        for n in range(0, count, together):
            some = slice(n, n + together)
            _together(
                _multiply(vectors[some]),
                sizes.lengths[some],
                sizes.rounding[some],
                text,
                slice(settings.start, settings.stop),
                text.ranks(rules, top),
                numbers,
                (b, slice(h + n, h + min(n + together, count))),
            )
        return
    for setting in settings:
        for n in range(count if text.counts[setting] else 0):
            own = sizes.head(n)
            _head(vectors[n], own, text, setting, rules, top, numbers, (b, h + n, setting))


def _multiply(vectors: Tensor) -> npt.NDArray[np.float32]:
    """C of several heads (n, S, d): the upper half, and a little more."""
    count, size, _ = vectors.shape
    panels = room(count * size**2).view(count, size, size)
    for i in range(0, size, ROWS):
        rows = slice(i, i + ROWS)
        torch.bmm(vectors[:, rows], vectors[:, i:].mT, out=panels[:, rows, i:])
    found: npt.NDArray[np.float32] = panels.numpy()
    return found


def _together(
    panels: npt.NDArray[np.float32],
    lengths: npt.NDArray[np.float32],
    rounding: npt.NDArray[np.float32],
    text: _Text,
    settings: slice,
    ranks: npt.NDArray[np.int64],
    numbers: Numbers,
    at: tuple[int, slice],
) -> None:
    """Some heads of a short text (n, S, S) in one compiled call."""
    own, size = (*at, settings), panels.shape[1]
    most = size * (size - 1) // 2 + passes.CHUNK
    short_texts.add_heads(
        panels,
        room(2 * most, "pairs").view(torch.int32).view(most, 2).numpy(),
        room(most, "values").numpy(),
        numbers.shift[*at, settings.start],
        text.special,
        text.related,
        text.labels,
        text.ordinary,
        text.types,
        lengths,
        rounding,
        UPPER_DISTANCES,
        text.with_special[settings],
        text.kept[settings],
        text.inside_share[settings],
        text.counts[settings],
        ranks[settings],
        numbers.sums[own],
        numbers.squares[own],
        numbers.unrelated[own],
        numbers.highest[own],
        numbers.reach[own],
        numbers.counters[own],
        numbers.by_distance[own],
        numbers.expected[own],
        numbers.taking_part[own],
        numbers.anchors[own],
        numbers.first[own],
        numbers.second[own],
        numbers.top[own],
    )


def _head(
    vectors: Tensor,
    sizes: _Sizes,
    text: _Text,
    setting: int,
    rules: Sequence[Rule],
    top: int,
    numbers: Numbers,
    at: tuple[int, int, int],
) -> None:
    """Every number of one head of one text: any rule, and texts of any length."""
    panels, size = Panels(vectors, text.left_out[setting]), len(vectors)
    count, kept = int(text.counts[setting]), text.kept[setting]
    number = min(top, count)
    sums, square = np.zeros(size), np.zeros(1)  # (S,) by distance
    shift = numbers.shift[at]
    extremes = np.array([-passes.BLANK, passes.BLANK], np.float32)
    kinds = (text.labels[passes.SENTENCES], text.labels[passes.WORDS], text.ordinary)
    for panel in panels:
        passes.add_up(*panel, shift, kept, *kinds, sums, square, numbers.unrelated[at], extremes)
    numbers.highest[at], numbers.squares[at] = extremes[1], square
    passes.into_bins(sums, UPPER_DISTANCES, numbers.sums[at])
    ranks = {rule.number(count) for rule in rules if isinstance(rule, Quantile)}
    ranks |= {number} - {0}
    values = kth_largest(panels, sorted(ranks), float(extremes[0]), float(extremes[1]))
    for n, rule in enumerate(rules):
        if isinstance(rule, Nearest):
            reach = nearest_reach(panels, rule.k)  # (S,)
        else:
            if isinstance(rule, Quantile):
                numbers.reach[at][n] = limit = values[rule.number(count)]
            else:
                totals = np.array([sums.sum(), square[0]])
                exact = simple_reach(rule, count, shift, totals, extremes)
                numbers.reach[at][n], limit = exact, float(round_up(exact))
            reach = np.full(size, limit, np.float32)  # (S,)
        large = np.full(1, np.inf, np.float32)
        if isinstance(rule, Quantile):
            passes.find_large(sizes.lengths, kept, np.array([rule.number(count)]), large)
        by_distance = np.zeros(size, np.int64)  # (S,)
        taking_part = numbers.taking_part[at][n]
        for panel in panels:
            passes.count_high(
                *panel,
                reach,
                text.labels,
                text.ordinary,
                sizes.lengths,
                sizes.rounding,
                large[0],
                numbers.counters[at][n],
                by_distance,
                taking_part,
            )
        passes.into_bins(by_distance, UPPER_DISTANCES, numbers.by_distance[at][n])
        numbers.expected[at][n] = by_distance @ text.inside_share[setting]
        if len(text.types):
            near = np.empty(size, np.uint8)  # (S,)
            passes.find_anchors(taking_part, text.types, numbers.anchors[at][n], near)
            for panel in panels:
                passes.count_around(*panel, reach, near, numbers.anchors[at][n])
    if number:
        _find_top(panels, np.float32(values[number]), number, numbers, at)


def _find_top(
    panels: Panels, reach: np.float32, number: int, numbers: Numbers, at: tuple[int, int, int]
) -> None:
    first, second, value = numbers.first[at], numbers.second[at], numbers.top[at]  # (N,)
    above, filled = 0, 0
    for panel in panels:
        above = passes.count_above(*panel, reach, above)
    ties = number - above
    for panel in panels:
        filled, ties = passes.collect_top(*panel, reach, ties, first, second, value, filled)
    order = np.argsort(-value[:filled], kind="stable")
    for column in (first, second, value):
        column[:filled] = column[:filled][order]
