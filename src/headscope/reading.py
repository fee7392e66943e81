"""One text as a model reads it: tokens, head vectors, and what can be asked of them.

Layers and heads are counted from 1 here, as in the papers; positions from 0, as in Python.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import HeadOutputs
from headscope.measures.focus import TARGETS, focus_chance, focus_sums
from headscope.pairs import PairTokens, Rule, parse_rule, quantile, reference
from headscope.pairs import Reading as Kind
from headscope.pairs.tokens import Special
from headscope.study.units import pair_tokens
from headscope.text import Tokens, Window

if TYPE_CHECKING:
    import pyarrow

    from headscope.scope import Scope
    from headscope.viewer.widget import Viewer


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tokens that a head brings together."""

    similarity: float
    first: int  # position in the text, from 0
    second: int
    first_word: str
    second_word: str
    distance: int  # in tokens
    same_sentence: bool
    same_word: bool  # the same word twice; two pieces of one word do not count
    special: bool  # one end is a special token


class PairTable(Sequence[Pair]):
    """The high pairs of a head, most similar first."""

    def __init__(self, pairs: list[Pair], caption: str):
        self.pairs = pairs
        self.caption = caption

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> Any:
        return self.pairs[index]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def rows(self) -> list[dict[str, Any]]:
        """A plain dictionary per pair."""
        return [asdict(pair) for pair in self.pairs]

    def to_arrow(self) -> "pyarrow.Table":
        """As an Arrow table (`.to_pandas()` from there)."""
        import pyarrow as pa

        return pa.table({f.name: [getattr(p, f.name) for p in self] for f in fields(Pair)})

    def __repr__(self) -> str:
        from headscope.report.terminal import pairs_as_text

        return pairs_as_text(self)

    def _repr_html_(self) -> str:
        from headscope.report.page import pairs_as_html

        return pairs_as_html(self)


@dataclass(frozen=True, eq=False)
class Focus:
    """Where the attention of each head goes, and where it would go by chance."""

    targets: tuple[str, ...]
    mass: NDArray[np.float64]  # (layers, heads, targets): mean over rows
    chance: NDArray[np.float64]  # (targets,): of evenly spread attention

    def of(self, layer: int, head: int) -> dict[str, float]:
        """Target to mass for one head, counted from 1."""
        return dict(zip(self.targets, self.mass[layer - 1, head - 1].tolist(), strict=True))

    def by_layer(self) -> NDArray[np.float64]:
        """Mean over the heads of each layer: (layers, targets)."""
        means: NDArray[np.float64] = self.mass.mean(axis=1)
        return means


class Reading:
    """One text read by one model."""

    def __init__(
        self, scope: "Scope", tokens: Tokens, windows: list[Window], vectors: list[list[Tensor]]
    ):
        self.scope = scope
        self.tokens = tokens
        self.windows = windows
        self.layers = [_joined(tokens, windows, parts) for parts in zip(*vectors, strict=True)]

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        shape, silent = self.scope.shape, int(self.tokens.special.sum())
        parts = f" in {len(self.windows)} windows" if len(self.windows) > 1 else ""
        return (
            f"<Reading by {shape.name} ({shape.layers} layers × {shape.heads} heads): "
            f"{len(self)} tokens{parts}, {silent} of them special, "
            f"{len(np.unique(self.tokens.words[~self.tokens.special]))} words, "
            f"{self.tokens.sentence_count} sentences>"
        )

    def _repr_html_(self) -> str:
        from headscope.report.page import reading_as_html

        return reading_as_html(self)

    def save(self, path: str | Path) -> Path:
        """Write the viewer with this reading inside: one file that needs nothing else."""
        from headscope.viewer.page import saved_page

        path = Path(path)
        path.write_text(saved_page(self), encoding="utf-8")
        return path

    def show(self, height: int = 760) -> "Viewer":
        """Show the viewer in a notebook; `height` in pixels."""
        from headscope.viewer.widget import Viewer

        return Viewer(self, height=height)

    def head_vectors(self, layer: int, head: int) -> NDArray[np.float32]:
        """z of one head: (tokens, head size)."""
        self.scope.check_head(layer, head)
        vectors: NDArray[np.float32] = self.layers[layer - 1][head - 1].float().numpy()
        return vectors

    def similarity(self, layer: int, head: int, reading: Kind = "raw") -> NDArray[np.float64]:
        """The context similarity matrix of one head: C_ij = z_i · z_j (tokens, tokens).

        `reading` is "raw", "cosine" or "centred" (cosine once the mean vector is taken away).
        """
        return reference.similarity(self.head_vectors(layer, head), reading)

    def attention(self, layer: int, head: int, *, window: int | None = None) -> NDArray[np.float64]:
        """The attention weights of one head: A_ij (tokens, tokens), a row for each reader.

        Computed on demand, for this head. A text in several windows has a matrix for each:
        say which `window`, counted from 0.
        """
        self.scope.check_head(layer, head)
        if window is None and len(self.windows) > 1:
            raise ValueError(
                f"this text was read in {len(self.windows)} windows, and attention stays within a "
                f"window: pass window=0 … {len(self.windows) - 1}"
            )
        part = self.windows[window or 0]
        found: list[Tensor] = []

        def observe(seen: HeadOutputs) -> None:
            if seen.site.layer == layer - 1:
                columns = torch.eye(len(part.tokens)).split(seen.z.shape[-1], dim=1)
                blocks = [seen.weigh(block)[0, head - 1] for block in columns]
                found.append(torch.cat(blocks, dim=-1))

        self.scope.observe_attention(part.tokens, observe)
        weights: NDArray[np.float64] = found[0].double().cpu().numpy()
        return weights

    def focus(self) -> Focus:
        """Attention mass by class of token for every head, with its chance level."""
        return self._focus

    @cached_property
    def _focus(self) -> Focus:
        shape = self.scope.shape
        sums = np.zeros((shape.layers, shape.heads, len(TARGETS)))
        chance, rows = np.zeros(len(TARGETS)), 0
        for part in self.windows:
            tokens = part.tokens

            def add(seen: HeadOutputs, tokens: Tokens = tokens) -> None:
                sums[seen.site.layer] += focus_sums(seen, tokens)

            self.scope.observe_attention(tokens, add)
            chance += focus_chance(tokens, causal=shape.stack == "decoder")
            rows += len(tokens)
        return Focus(TARGETS, sums / rows, chance / rows)

    @cached_property
    def pair_tokens(self) -> PairTokens:
        """The tokens as the pair statistics need them."""
        return pair_tokens(self.tokens)

    def high_pairs(
        self,
        layer: int,
        head: int,
        rule: Rule | str | None = None,
        *,
        reading: Kind = "raw",
        special: Special = "kept",
    ) -> PairTable:
        """The pairs of tokens that a head brings together, most similar first.

        `rule` says which pairs are high: `quantile(0.01)` unless given, or its name as a string.
        """
        chosen = quantile() if rule is None else parse_rule(rule) if isinstance(rule, str) else rule
        tokens, marks = self.tokens, self.pair_tokens
        kept = marks.kept(special)
        C = reference.similarity(self.head_vectors(layer, head), reading, kept)
        first, second = np.nonzero(reference.high_pairs(C, chosen, kept))
        order = np.argsort(-C[first, second], kind="stable")
        word, sentence, words = marks.words, tokens.sentences, tokens.word_texts
        pairs = [
            Pair(
                similarity=float(C[i, j]),
                first=int(i),
                second=int(j),
                first_word=words[i],
                second_word=words[j],
                distance=int(j - i),
                same_sentence=bool(sentence[i] == sentence[j] >= 0),
                same_word=bool(word[i] == word[j] >= 0),
                special=bool(tokens.special[i] or tokens.special[j]),
            )
            for i, j in zip(first[order], second[order], strict=True)
        ]
        caption = (
            f"layer {layer}, head {head}: {len(pairs)} high pairs of "
            f"{int(kept.sum()) * (int(kept.sum()) - 1) // 2:,} ({reading}, {chosen})"
        )
        return PairTable(pairs, caption)


def _joined(tokens: Tokens, windows: list[Window], parts: Sequence[Tensor]) -> Tensor:
    """One layer's z for the whole text, (heads, tokens, head size), from its windows."""
    if len(windows) == 1:
        return parts[0]
    whole = parts[0].new_empty(parts[0].shape[0], len(tokens), parts[0].shape[2])
    for window, part in zip(windows, parts, strict=True):
        own = torch.from_numpy(window.own)
        whole[:, torch.from_numpy(window.positions)[own]] = part[:, own]
    return whole
