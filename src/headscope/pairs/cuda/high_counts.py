"""What is counted over the high pairs of a rule on a device, and the launches that count."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from headscope.pairs.assemble import COUNTERS
from headscope.pairs.cuda import count_kernels
from headscope.pairs.cuda.launches import BLOCK, Lists, strides, zeros
from headscope.pairs.cuda.layer import BINS, Layer
from headscope.pairs.tokens import AROUND, WORD_CLASSES
from headscope.pairs.vectors import VectorSizes


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted over the high pairs of one rule, for every head."""

    reach: Tensor  # (BH,) threshold, or (BH, S) one for every token
    sizes: VectorSizes  # (BH, S)
    large: Tensor  # (BH,) product of two lengths from which on they are large
    counters: Tensor  # (BH, COUNTERS)
    expected: Tensor  # (BH,) in whole numbers of 1 / SHARE_STEPS
    by_bin: Tensor  # (BH, BINS)
    taking_part: Tensor  # (BH, S)
    anchors: Tensor  # (BH, K) int64: the ends of the leading type, and 65,535 less its first place
    around: Tensor  # (BH, K) pairs in the surroundings of it
    marks: Tensor  # (BH, S) a bit for each kind whose leading type is near

    @staticmethod
    def nothing(layer: Layer, sizes: VectorSizes, large: Tensor, reach: Tensor) -> "Counted":
        """Nothing counted yet."""
        size, number, types = layer.text.size, layer.number, layer.text.types
        kinds = 0 if types is None else types.shape[1]
        widths = (2 * COUNTERS, 2, BINS, size, kinds, size if kinds else 0)
        shapes = [(number, width) for width in widths]
        wide_counters, wide_expected, *parts = zeros(layer.z.device, *shapes)
        counters, expected = wide_counters.view(torch.int64), wide_expected.view(torch.int64)
        by_bin, taking_part, around, marks = parts
        anchors = torch.zeros(number, kinds, dtype=torch.int64, device=layer.z.device)
        return Counted(
            reach,
            sizes,
            large,
            counters,
            expected[:, 0],
            by_bin,
            taking_part,
            anchors,
            around,
            marks,
        )

    def put(self, heads: Tensor, other: "Counted") -> None:
        """Replace what was counted for some heads."""
        for field in fields(self):
            if field.name != "sizes":
                getattr(self, field.name)[heads] = getattr(other, field.name)[heads]

    def add(self, lists: Lists) -> None:
        """Count the listed pairs that reach the threshold."""
        text, layer = lists.layer.text, lists.layer
        count_kernels.count_high[lists.grid](
            lists.listed,
            lists.found,
            layer.heads,
            self.reach,
            *strides(self.reach),
            text.sentence,
            text.token,
            text.word,
            text.occurrence,
            text.word_class,
            text.ordinary,
            text.bins,
            text.inside_share,
            self.sizes.lengths,
            self.sizes.rounding,
            self.large,
            self.counters,
            self.expected,
            self.by_bin,
            self.taking_part,
            lists.room,
            lists.number,
            layer.z.shape[1],
            text.size,
            HIDE=lists.hide,
            BINS=BINS,
            CLASSES=WORD_CLASSES,
            COUNTERS=COUNTERS,
            BLOCK=BLOCK,
            num_warps=4,
        )

    def find_anchors(self, layer: Layer) -> None:
        """Find the leading types of some heads, once all their high pairs are counted."""
        text, types = layer.text, layer.text.types
        if types is None:
            return
        (number,), (_, kinds, size) = layer.heads.shape, types.shape
        ends = torch.zeros(number, kinds, size, dtype=torch.int32, device=types.device)
        own = (layer.heads, types)
        sizes = {"H": layer.z.shape[1], "S": text.size, "KINDS": kinds, "BLOCK": BLOCK}
        grid = (-(-size // BLOCK), number)
        count_kernels.add_ends[grid](*own, self.taking_part, ends, **sizes)
        count_kernels.find_leaders[(number,)](
            *own, ends, self.anchors, self.marks, AROUND=AROUND, **sizes
        )

    def add_around(self, lists: Lists) -> None:
        """Count the listed pairs that reach the threshold in the surroundings of the anchors."""
        text, layer = lists.layer.text, lists.layer
        if text.types is None:
            return
        kinds = text.types.shape[1]
        count_kernels.count_around[lists.grid](
            lists.listed,
            lists.found,
            layer.heads,
            self.reach,
            *strides(self.reach),
            self.marks,
            self.around,
            lists.room,
            lists.number,
            text.size,
            HIDE=lists.hide,
            KINDS=kinds,
            WIDTH=1 << (kinds - 1).bit_length(),
            BLOCK=BLOCK,
            num_warps=4,
        )
