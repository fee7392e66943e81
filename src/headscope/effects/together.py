"""What one text says of every pair of heads: how their similarities, pairs and attention agree."""

import numpy as np
import torch
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.effects.alike import (
    FEWEST,
    Counts,
    attention_distances,
    compared_rows,
    hsic,
    shared_pairs,
)
from headscope.observed import ObservedModel
from headscope.pairs import Quantile, TokenBatch, pair_statistics, parse_rule
from headscope.pairs.tokens import SimilarityReading, Special
from headscope.study.bootstrap import Values
from headscope.study.told import View
from headscope.units import Unit


def seen_together(
    scope: ObservedModel, unit: Unit, view: View, seed: int
) -> dict[str, Values] | None:
    """The sums of one text, as `AgreementSums.add` takes them; None where it is too short.

    High pairs are those of the view. Every head has as many, the share that a quantile rule says
    (1 % under another rule), of equals those that come first.
    """
    one = _Text(scope, unit, view, seed)
    if one.number < FEWEST:
        return None
    scope.observe(unit.tokens, one.observe)
    return one.sums()


class _Text:
    """A text going through a model, and what its layers have shown so far."""

    def __init__(self, scope: ObservedModel, unit: Unit, view: View, seed: int) -> None:
        self.scope, self.unit, self.batch = scope, unit, TokenBatch([unit.marks])
        self.reading: SimilarityReading = view.reading  # type: ignore[assignment]
        self.special: Special = view.special  # type: ignore[assignment]
        rule = parse_rule(view.rule)
        self.rule = rule if isinstance(rule, Quantile) else Quantile()
        self.kept = torch.from_numpy(unit.marks.kept(self.special))
        self.number = int(self.kept.sum())
        self.all_pairs = self.number * (self.number - 1) // 2
        self.rows = compared_rows(len(unit), unit.random(seed, "rows").random())
        self.layers: list[Tensor] = []
        self.high: list[tuple[Counts, Counts]] = []
        self.attention: list[Tensor] = []

    def observe(self, seen: HeadOutputs) -> None:
        """Keep what is needed of a layer until all are there."""
        if seen.site.stack != self.scope.shape.stack:
            return
        self.layers.append(seen.z[0][:, self.kept.to(seen.z.device)])
        found = pair_statistics(
            seen.z,
            self.batch,
            self.rule,
            reading=self.reading,
            special=self.special,
            top=self.rule.number(self.all_pairs),
            layer=f"{seen.site.layer + 1}",
        ).top
        assert found is not None
        self.high.append((found.first[0], found.second[0]))
        if self.scope.shape.seam == "interface":
            weights = seen.weights(self.rows)[0].float().cpu()  # (heads, rows, tokens)
            # Of a model with attention sinks, what goes to tokens.
            self.attention.append(weights / weights.sum(-1, keepdim=True).clamp(min=1e-12))

    def sums(self) -> dict[str, Values]:
        """Everything, weighed: similarities by tokens, attention by texts."""
        first, second = (np.concatenate(ends) for ends in zip(*self.high, strict=True))
        high = first.shape[1]
        found = {
            "hsic": self.number * hsic(self.layers),
            "shared": shared_pairs(first, second, len(self.unit)),
            "own": np.array(float(high)),
            "shared_chance": np.array(high**2 / self.all_pairs),
        }
        if self.attention:
            rows = torch.cat(self.attention)  # (heads, rows, tokens)
            others = rows.roll(rows.shape[1] // 2, 1)
            found |= {
                "texts": np.array(1.0),
                "distance": attention_distances(rows, rows),
                "distance_chance": attention_distances(rows, others),
            }
        return found
