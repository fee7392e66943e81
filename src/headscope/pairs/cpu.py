"""The pair statistics on a CPU: torch multiplies a panel of C, numba goes over it, and it is gone.

One worker thread takes a few heads of one text at a time: together where the text is short and the
rules are quantiles, and otherwise one after the other, panel by panel (`panels.py`).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headscope.pairs import passes, short_texts
from headscope.pairs.assemble import (
    COUNTERS,
    HighNumbers,
    PairNumbers,
    assemble,
    batch_chance,
    round_up,
    simple_reach,
)
from headscope.pairs.batch import TokenBatch, labels
from headscope.pairs.chance import TextChance
from headscope.pairs.distances import DISTANCE_BINS, UPPER_DISTANCES
from headscope.pairs.panels import COLLECTED, ROWS, Panels, kth_largest, nearest_reach
from headscope.pairs.rules import Nearest, Quantile, Rule
from headscope.pairs.statistics import Anchors, PairStatistics, TopPairs
from headscope.pairs.tokens import SPECIAL, Ints, PairTokens, Reading, Special
from headscope.pairs.vectors import read_vectors, refuse_not_finite
from headscope.pairs.workers import SMALL, TOGETHER, room, start_in_parallel

NOT_LISTED = np.empty((0, 2), np.int32)


class _Text:
    """The tokens of a text as the passes read them."""

    def __init__(
        self, tokens: PairTokens, special: Special, chance: TextChance, types: Ints | None
    ) -> None:
        kept = tokens.kept(special)
        self.count, self.inside_share = chance.count, chance.inside_share  # of pairs, (S,)
        self.members = torch.from_numpy(kept)  # (S,)
        self.left_out = np.flatnonzero(~kept)
        self.kept = kept.astype(np.float32)  # (S,)
        self.ordinary = (~tokens.special).astype(np.float32)  # (S,)
        self.sentence, self.word = labels(tokens.sentences), labels(tokens.words)  # (S,)
        self.token = tokens.ids  # (S,)
        self.types = np.empty((0, len(tokens)), np.int32) if types is None else types  # (K, S)


def _texts(batch: TokenBatch, special: Special) -> list[_Text]:
    types = batch.types or [None] * len(batch)
    together = zip(batch.texts, batch_chance(batch, special), types, strict=True)
    return [_Text(tokens, special, chance, own) for tokens, chance, own in together]


class _Numbers:
    """The arrays that the passes fill, for every text and head."""

    def __init__(self, texts: int, heads: int, size: int, rules: int, kinds: int, top: int) -> None:
        def floats(*shape: int) -> npt.NDArray[np.float64]:
            return np.zeros((texts, heads, *shape))

        def counts(*shape: int) -> npt.NDArray[np.int64]:
            return np.zeros((texts, heads, *shape), np.int64)

        self.exponent, self.shift = np.zeros((texts, heads), np.int32), floats()
        self.sums, self.squares = floats(DISTANCE_BINS), floats(DISTANCE_BINS)
        self.unrelated = floats(2)
        self.extremes = floats(2)
        self.reach = floats(rules + 1)  # of the rules, and last of the top pairs
        self.counters, self.by_distance = counts(rules, COUNTERS), counts(rules, DISTANCE_BINS)
        self.expected, self.high_sums = floats(rules), floats(rules, 2)
        self.taking_part = counts(rules, size)
        self.anchors = counts(rules, kinds, 3)
        self.anchors[..., 0] = -1
        self.top = TopPairs(counts(top) - 1, counts(top) - 1, floats(top) + np.nan)
        self.finite = torch.ones(texts, heads, dtype=torch.bool)

    def high(self, rule: int) -> HighNumbers:
        """The numbers of one rule."""
        return HighNumbers(
            reach=self.reach[:, :, rule],
            counters=self.counters[:, :, rule],
            by_distance=self.by_distance[:, :, rule],
            expected=self.expected[:, :, rule],
            taking_part=self.taking_part[:, :, rule],
            sums=self.high_sums[:, :, rule],
            anchors=Anchors(*np.moveaxis(self.anchors[:, :, rule], -1, 0))
            if self.anchors.shape[3]
            else None,
        )


def start(
    z: Tensor,
    batch: TokenBatch,
    rules: Sequence[Rule],
    *,
    reading: Reading,
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
    reading: Reading,
    settings: Sequence[Special],
    top: int,
    layer: str | None,
) -> list[Callable[[], PairStatistics]]:
    """The same for several settings of special tokens; heads of short texts are multiplied once."""
    heads, size = z.shape[1], int(max(batch.lengths, default=0))
    kinds = len(batch.types[0]) if batch.types else 0
    texts = {s: batch.remember(("cpu", s), partial(_texts, batch, s)) for s in settings}
    numbers = {
        s: _Numbers(len(batch), heads, max(size, 1), len(rules), kinds, top) for s in settings
    }

    def compute(b: int, h: int) -> None:
        some = slice(h, h + TOGETHER)
        vectors = z[b, some, : batch.lengths[b]].contiguous()  # (TOGETHER, S, d)
        left: list[tuple[Special, Tensor, npt.NDArray[np.bool_]]] = []
        read, panels = None, None
        for setting in sorted(settings, key=SPECIAL.index):  # leaving out blanks what was kept
            text, own = texts[setting][b], numbers[setting]
            if read is None or reading == "centred":
                read, panels = read_vectors(vectors, reading, text.members), None
            own.finite[b, some] = read.finite
            if not bool(read.finite.all()) or not text.count:
                continue
            own.exponent[b, some] = read.exponent.numpy()
            own.shift[b, some] = _likely_mean(read.vectors, text).numpy()
            undone = np.ones(len(read.vectors), np.bool_)
            if _is_short(read.vectors, rules):
                panels = _multiply(read.vectors) if panels is None else panels
                undone = _together(panels, text, rules, top, own, b, h)
            left.append((setting, read.vectors, undone))
        for setting, read_by, undone in left:
            for n in np.flatnonzero(undone).tolist():
                _head(read_by[n], texts[setting][b], rules, top, numbers[setting], (b, h + n))

    heads_of = ((b, h) for b in range(len(batch)) for h in range(0, heads, TOGETHER))
    wait = start_in_parallel(compute, heads_of)

    def result(setting: Special) -> PairStatistics:
        wait()
        own = numbers[setting]
        refuse_not_finite(own.finite, layer)
        found = PairNumbers(
            own.exponent,
            own.shift,
            own.sums,
            own.squares,
            own.unrelated,
            own.extremes,
            tuple(own.high(rule) for rule in range(len(rules))),
            own.top if top else None,
        )
        return assemble(batch, rules, found, reading, setting)

    return [partial(result, setting) for setting in settings]


def _likely_mean(vectors: Tensor, text: _Text) -> Tensor:
    """About the mean of C over pairs: (‖Σ z‖² - Σ ‖z‖²) / 2 pairs. Sums about it keep digits."""
    total, own = vectors.sum(-2), torch.linalg.vector_norm(vectors, dim=(-2, -1))  # (H, d), (H,)
    own = own**2
    if len(text.left_out):
        others = vectors[:, text.left_out]  # (H, left out, d)
        total, own = total - others.sum(-2), own - others.square().sum((-2, -1))
    likely: Tensor = (total.square().sum(-1) - own) / (2 * text.count)  # (H,)
    return likely


def _is_short(vectors: Tensor, rules: Sequence[Rule]) -> bool:
    """Whether heads (n, S, d) are done in one compiled call: the usual case."""
    quantiles = all(isinstance(rule, Quantile) for rule in rules)
    return quantiles and len(vectors) * vectors.shape[1] ** 2 <= SMALL


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
    text: _Text,
    rules: Sequence[Rule],
    top: int,
    numbers: _Numbers,
    b: int,
    h: int,
) -> npt.NDArray[np.bool_]:
    """Some heads of a short text (n, S, S) in one compiled call; which of them are not done."""
    count = len(panels)
    ranks = [rule.number(text.count) for rule in rules if isinstance(rule, Quantile)]
    done = np.zeros(count, np.bool_)
    at, number = (b, slice(h, h + count)), min(top, text.count)
    short_texts.add_heads(
        panels,
        text.left_out,
        numbers.shift[at],
        text.kept,
        text.sentence,
        text.token,
        text.word,
        text.ordinary,
        text.inside_share,
        text.types,
        UPPER_DISTANCES,
        np.array([*ranks, *([number] if number else [])]),
        COLLECTED,
        numbers.sums[at],
        numbers.squares[at],
        numbers.unrelated[at],
        numbers.extremes[at],
        numbers.reach[at],
        numbers.counters[at],
        numbers.by_distance[at],
        numbers.expected[at],
        numbers.taking_part[at],
        numbers.high_sums[at],
        numbers.anchors[at],
        number,
        numbers.top.first[at],
        numbers.top.second[at],
        numbers.top.value[at],
        done,
    )
    for each in (numbers.sums, numbers.squares, numbers.unrelated):  # the other way adds up again
        each[at][~done] = 0
    return ~done


def _head(
    vectors: Tensor,
    text: _Text,
    rules: Sequence[Rule],
    top: int,
    numbers: _Numbers,
    at: tuple[int, int],
) -> None:
    """Every number of one head of one text: any rule, and texts of any length."""
    panels, number, size = Panels(vectors, text.left_out), min(top, text.count), len(vectors)
    sums, squares = np.zeros(size), np.zeros(size)  # (S,) by distance
    shift = numbers.shift[at]
    extremes = np.array([-passes.BLANK, passes.BLANK], np.float32)
    kinds = (text.sentence, text.word, text.ordinary)
    for panel in panels:
        passes.add_up(
            *panel, shift, text.kept, *kinds, sums, squares, numbers.unrelated[at], extremes
        )
    numbers.extremes[at] = extremes
    passes.into_bins(sums, UPPER_DISTANCES, numbers.sums[at])
    passes.into_bins(squares, UPPER_DISTANCES, numbers.squares[at])
    ranks = {rule.number(text.count) for rule in rules if isinstance(rule, Quantile)}
    ranks |= {number} - {0}
    values = kth_largest(panels, sorted(ranks), float(extremes[0]), float(extremes[1]))
    for n, rule in enumerate(rules):
        if isinstance(rule, Nearest):
            reach = nearest_reach(panels, rule.k)  # (S,)
        else:
            if isinstance(rule, Quantile):
                numbers.reach[at][n] = limit = values[rule.number(text.count)]
            else:
                totals = np.array([sums.sum(), squares.sum()])
                exact = simple_reach(rule, text.count, shift, totals, extremes)
                numbers.reach[at][n], limit = exact, float(round_up(exact))
            reach = np.full(size, limit, np.float32)  # (S,)
        by_distance = np.zeros(size, np.int64)  # (S,)
        counted = (numbers.taking_part[at][n], numbers.high_sums[at][n])
        for panel in panels:
            passes.count_high(
                *panel,
                reach,
                text.sentence,
                text.token,
                text.word,
                text.ordinary,
                numbers.counters[at][n],
                by_distance,
                *counted,
                NOT_LISTED,
            )
        passes.into_bins(by_distance, UPPER_DISTANCES, numbers.by_distance[at][n])
        numbers.expected[at][n] = by_distance @ text.inside_share
        if len(text.types):
            near = np.empty(size, np.uint8)  # (S,)
            passes.find_anchors(counted[0], text.types, numbers.anchors[at][n], near)
            for panel in panels:
                passes.count_around(*panel, reach, near, numbers.anchors[at][n])
    if number:
        _find_top(panels, np.float32(values[number]), number, numbers.top, at)


def _find_top(
    panels: Panels, reach: np.float32, number: int, top: TopPairs, at: tuple[int, int]
) -> None:
    first, second, value = top.first[at], top.second[at], top.value[at]  # (N,)
    above, filled = 0, 0
    for panel in panels:
        above = passes.count_above(*panel, reach, above)
    ties = number - above
    for panel in panels:
        filled, ties = passes.collect_top(*panel, reach, ties, first, second, value, filled)
    order = np.argsort(-value[:filled], kind="stable")
    for column in (first, second, value):
        column[:filled] = column[:filled][order]
