"""Statistics of the similarity matrices C = Z Zᵀ of attention heads, without ever keeping C."""

from headscope.pairs.rules import (
    Nearest,
    Peak,
    Quantile,
    Rule,
    Sigma,
    nearest,
    parse_rule,
    peak,
    quantile,
    sigma,
)
from headscope.pairs.statistics import ChancePairs, HighPairs, PairStatistics, TopPairs
from headscope.pairs.tokens import PairTokens, Reading, Special, plain_tokens

__all__ = [
    "ChancePairs",
    "HighPairs",
    "Nearest",
    "PairStatistics",
    "PairTokens",
    "Peak",
    "Quantile",
    "Reading",
    "Rule",
    "Sigma",
    "Special",
    "TopPairs",
    "nearest",
    "parse_rule",
    "peak",
    "plain_tokens",
    "quantile",
    "sigma",
]
