"""One text as a model reads it: tokens, head vectors, and what can be asked of them.

Layers and heads are counted from 1 here, as in the papers; positions from 0, as in Python.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.annotations import Labels, labels_of
from headscope.capture import HeadOutputs, Observe
from headscope.communities import Communities, communities_of
from headscope.errors import CannotObserve, NotFiniteError, NotPossible
from headscope.measures.focus import TARGETS, focus_chance, focus_sums
from headscope.output import check_out, write_out
from headscope.pair_table import Pair, PairTable
from headscope.pairs import PairTokens, Rule, SimilarityReading, parse_rule, quantile, reference
from headscope.pairs.tokens import Special
from headscope.shapes import ModelShape
from headscope.text import Tokens, Window
from headscope.units import pair_tokens
from headscope.writing import Written, written

if TYPE_CHECKING:
    from headscope.scope import Scope
    from headscope.viewer.widget import Viewer


MUCH_UNKNOWN = 0.05
"""With a larger share of unknown tokens a person is warned."""


@dataclass(frozen=True, eq=False)
class Focus:
    """Where the attention of each head goes, and where it would go by chance."""

    targets: tuple[str, ...]
    mass: NDArray[np.float64]  # (layers, heads, targets): mean over rows
    chance: NDArray[np.float64]  # (targets,): of evenly spread attention
    numbers: tuple[int, ...]  # of the layers, from 1

    def __repr__(self) -> str:
        from headscope.report.terminal import focus_as_text

        return focus_as_text(self)

    def _repr_html_(self) -> str:
        from headscope.report.page import focus_as_html

        return focus_as_html(self)

    def of(self, layer: int, head: int) -> dict[str, float]:
        """Target to mass for one head, counted from 1."""
        place = self.numbers.index(layer)
        return dict(zip(self.targets, self.mass[place, head - 1].tolist(), strict=True))

    def by_layer(self) -> NDArray[np.float64]:
        """Mean over the heads of each layer: (layers, targets)."""
        means: NDArray[np.float64] = self.mass.mean(axis=1)
        return means


class FocusSums:
    """Where attention goes, added up over the windows of a text."""

    def __init__(self, shape: ModelShape):
        self.shape = shape
        self.sums = np.zeros((shape.layers, shape.heads, len(TARGETS)))
        self.chance, self.rows = np.zeros(len(TARGETS)), 0

    def of(self, tokens: Tokens) -> Observe:
        """What adds up the layers of a window; its chance level is added at once."""
        self.chance += focus_chance(tokens, causal=self.shape.causal)
        self.rows += len(tokens)

        def add(seen: HeadOutputs) -> None:
            self.sums[self.shape.place(seen.site.layer + 1)] += focus_sums(seen, tokens)

        return add

    def focus(self) -> Focus:
        """The mean over all rows."""
        numbers = self.shape.numbers
        return Focus(TARGETS, self.sums / self.rows, self.chance / self.rows, numbers)


class Reading:
    """One text read by one model."""

    def __init__(
        self,
        scope: "Scope",
        tokens: Tokens,
        windows: list[Window],
        vectors: list[list[Tensor]],
        focus: Focus | None = None,
        source: Tokens | None = None,
    ):
        self.scope = scope
        self.source = source  # what an encoder read beside it
        self.tokens = tokens
        self.windows = windows
        self._taken = focus
        self.marks: dict[str, tuple[str | None, ...]] = {}  # a person's own labels of the tokens
        self.layers = [_joined(tokens, windows, parts) for parts in zip(*vectors, strict=True)]
        refuse_not_finite(self.layers)

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        shape, silent = self.scope.shape, int(self.tokens.special.sum())
        unknown = int(self.tokens.unknown.sum())
        parts = f" in {len(self.windows)} windows" if len(self.windows) > 1 else ""
        lost = f" and {unknown} unknown" if unknown else ""
        return (
            f"<Reading by {shape.name} ({shape.layers_in_words} × {shape.heads} heads): "
            f"{len(self)} tokens{parts}, {silent} of them special{lost}, "
            f"{self.tokens.in_words}>"
        )

    def _repr_html_(self) -> str:
        from headscope.report.page import reading_as_html

        return reading_as_html(self)

    def save(self, path: str | Path) -> Path:
        """Write the viewer with this reading inside: one file that needs nothing else."""
        from headscope.viewer.page import saved_page

        path = check_out(path, ".html", ".htm")
        return write_out(path, saved_page(self))

    def show(self, height: int = 760) -> "Viewer":
        """Show the viewer in a notebook; `height` in pixels."""
        from headscope.viewer.widget import Viewer

        return Viewer(self, height=height)

    def head_vectors(self, layer: int, head: int) -> NDArray[np.float32]:
        """z of one head: (tokens, head size)."""
        self.scope.check_head(layer, head)
        place = self.scope.shape.place(layer)
        vectors: NDArray[np.float32] = self.layers[place][head - 1].float().numpy()
        return vectors

    def similarity(
        self, layer: int, head: int, reading: SimilarityReading = "raw"
    ) -> NDArray[np.float64]:
        """The context similarity matrix of one head: C_ij = z_i · z_j (tokens, tokens).

        `reading` is "raw", "cosine" or "centred" (cosine once the mean vector is taken away).
        """
        return reference.similarity(self.head_vectors(layer, head), reading)

    def cross_similarity(
        self, layer: int, head: int, reading: SimilarityReading = "raw"
    ) -> NDArray[np.float64]:
        """How like a target's vectors are to what each source token gives: (targets, sources).

        C_ij = z_i · v_j of a head of cross attention: z_i = Σ_j A_ij v_j mixes the values of the
        source tokens, so both stand in one space. `reading` as in `similarity`, the means being
        those of the targets and of the sources.
        """
        self.scope.check_head(layer, head)
        if self.source is None or not self.scope.shape.stack.startswith("cross"):
            raise NotPossible(
                "cross_similarity() is of cross attention: "
                "scope.stack('cross').read(target, source=text)."
            )
        found: list[tuple[Tensor, Tensor]] = []

        def observe(seen: HeadOutputs) -> None:
            if seen.site.layer == layer - 1 and seen.v is not None:
                group = seen.z.shape[1] // seen.v.shape[1]
                found.append((seen.z[0, head - 1], seen.v[0, (head - 1) // group]))

        self.scope.observe(self.tokens, observe)
        if not found:
            raise CannotObserve(f"The values of {self.scope.shape.family} are out of sight.")
        z, v = (one.double().cpu().numpy() for one in found[0])
        if reading == "centred":
            z, v = z - z.mean(0), v - v.mean(0)
        if reading != "raw":
            z, v = (one / np.maximum(np.linalg.norm(one, axis=1), 1e-30)[:, None] for one in (z, v))
        similarity: NDArray[np.float64] = z @ v.T
        return similarity

    def attention(self, layer: int, head: int, *, window: int | None = None) -> NDArray[np.float64]:
        """The attention weights of one head: A_ij (tokens, tokens), a row for each reader.

        Computed on demand, for this head. A text in several windows has a matrix for each:
        say which `window`, counted from 0.
        """
        self.scope.check_head(layer, head)
        if window is None and len(self.windows) > 1:
            raise NotPossible(
                f"this text was read in {len(self.windows)} windows, and attention stays within a "
                f"window: pass window=0 … {len(self.windows) - 1}"
            )
        part = self.windows[window or 0]
        found: list[Tensor] = []

        def observe(seen: HeadOutputs) -> None:
            if seen.site.layer == layer - 1:
                keys = len(part.tokens) if seen.k is None else seen.k.shape[2]
                found.append(seen.weigh(torch.eye(keys))[0, head - 1])

        self.scope.observe_attention(part.tokens, observe)
        weights: NDArray[np.float64] = found[0].double().cpu().numpy()
        return weights

    def mark(self, name: str, labels: Labels, *, column: str = "upos") -> "Reading":
        """Label the tokens by classes of your own, which the viewer colours the text by.

        `labels`: one for each token (None for none), a function of the word, or a CoNLL-U file of
        the same text, of which `column` is taken (upos, xpos, deprel, misc).
        """
        self.marks[name] = labels_of(self.tokens, labels, column)
        return self

    def writes(
        self, layer: int, head: int, *, position: int | None = None, top: int = 10
    ) -> Written:
        """The words that a head raises and lowers by what it writes (z W_O), the most first.

        Of the mean over the tokens that are not special, or of the token at one `position`.
        """
        self.scope.check_head(layer, head)
        if position is not None and not 0 <= position < len(self):
            raise NotPossible(
                f"There is no position {position}: the text has {len(self)} tokens, from 0."
            )
        z = self.layers[self.scope.shape.place(layer)][head - 1].float()
        if position is None:
            z = z[torch.from_numpy(~self.tokens.special)]
        return written(self.scope, z, layer, head, position, top)

    def focus(self) -> Focus:
        """Attention mass by class of token for every head, with its chance level."""
        return self._focus

    @cached_property
    def _focus(self) -> Focus:
        if self._taken is not None:
            return self._taken
        if self.scope.shape.stack.startswith("cross"):
            raise CannotObserve(
                "Cross attention falls on the source, and where attention goes is told of the text "
                "that is read. attention() gives its weights, a column for each source token."
            )
        sums = FocusSums(self.scope.shape)
        for part in self.windows:
            self.scope.observe_attention(part.tokens, sums.of(part.tokens))
        return sums.focus()

    @cached_property
    def pair_tokens(self) -> PairTokens:
        """The tokens as the pair statistics need them."""
        return pair_tokens(self.tokens)

    @property
    def unknown_note(self) -> str:
        """What of the text the model does not know; "" where it knows all of it."""
        unknown, share = int(self.tokens.unknown.sum()), self.tokens.unknown_share
        if not unknown:
            return ""
        count = f"{unknown:,} of {int((~self.tokens.special).sum()):,} tokens"
        symbol = self.tokens.symbols[int(self.tokens.unknown.argmax())]
        percent = f"{100 * share:.{0 if share >= 0.1 else 1}f} %"
        said = f"{count} ({percent}) are unknown to the model, which read {symbol} instead"
        if share <= MUCH_UNKNOWN:
            return f"{said}."
        return (
            f"{said}: such tokens are alike for no other reason, and what is measured here says "
            "little of the text. Read it with a model of its language and script."
        )

    @cached_property
    def token_windows(self) -> NDArray[np.int32]:
        """The number of the window, from 0, that each token's vectors are from."""
        found = np.zeros(len(self.tokens), dtype=np.int32)
        for number, window in enumerate(self.windows):
            found[window.positions[window.own]] = number
        return found

    def communities(
        self,
        layer: int,
        head: int,
        *,
        gamma: float = 1.0,
        reading: SimilarityReading = "centred",
        special: Special = "left_out",
        seed: int = 0,
    ) -> Communities:
        """The communities of tokens that a head makes: states of least energy of a Potts model.

        With a larger `gamma` there are more. `reading.mark("mine", found.labels)` colours the text
        by them. Needs igraph (`pip install 'headscope[potts]'`).
        """
        z = self.head_vectors(layer, head)
        kept = self.pair_tokens.kept(special)
        of, energy = communities_of(z, kept, self.token_windows, reading, gamma, seed)
        number = int(of.max(initial=-1)) + 1
        caption = (
            f"layer {layer}, head {head}: {number} communities of {int(kept.sum()):,} tokens, "
            f"energy {energy:.3g} of all couplings ({reading}, γ = {gamma:g})"
        )
        return Communities(of, energy, self.tokens.pieces, caption)

    def high_pairs(
        self,
        layer: int,
        head: int,
        rule: Rule | str | None = None,
        *,
        reading: SimilarityReading = "raw",
        special: Special = "kept",
        across_windows: bool = False,
    ) -> PairTable:
        """The pairs of tokens that a head brings together, most similar first.

        `rule` says which pairs are high: `quantile(0.01)` unless given, or its name as a string.
        The tokens of two windows were read apart, so that their similarity says less: such pairs
        take part only with `across_windows`.
        """
        chosen = quantile() if rule is None else parse_rule(rule) if isinstance(rule, str) else rule
        tokens, marks = self.tokens, self.pair_tokens
        kept = marks.kept(special)
        C = reference.similarity(self.head_vectors(layer, head), reading, kept)
        windows = None if across_windows else self.token_windows
        first, second = np.nonzero(reference.high_pairs(C, chosen, kept, windows))
        order = np.argsort(-C[first, second], kind="stable")
        word, sentence, words = marks.words, tokens.sentences, tokens.word_texts
        occurrence = marks.occurrences
        pairs = [
            Pair(
                similarity=float(C[i, j]),
                first=int(i),
                second=int(j),
                first_word=words[i],
                second_word=words[j],
                first_piece=tokens.pieces[i],
                second_piece=tokens.pieces[j],
                first_place=int(tokens.places_in_words[i]),
                second_place=int(tokens.places_in_words[j]),
                distance=int(j - i),
                same_sentence=bool(sentence[i] == sentence[j] >= 0),
                same_word=bool(word[i] == word[j] >= 0 and occurrence[i] != occurrence[j]),
                special=bool(tokens.special[i] or tokens.special[j]),
                first_unknown=bool(tokens.unknown[i]),
                second_unknown=bool(tokens.unknown[j]),
            )
            for i, j in zip(first[order], second[order], strict=True)
        ]
        told = "taken in" if across_windows else "left out"
        across = f"; pairs across its {len(self.windows)} windows {told}"
        caption = (
            f"layer {layer}, head {head}: {len(pairs)} high pair{'s' * (len(pairs) != 1)} of "
            f"{int(reference.all_pairs(kept, windows).sum()):,} "
            f"({reading}, {chosen}{across if len(self.windows) > 1 else ''})"
        )
        return PairTable(pairs, caption)


def refuse_not_finite(layers: Sequence[Tensor]) -> None:
    """Raise where the vectors of a head mean nothing."""
    finite = [torch.isfinite(layer).all(dim=-1).all(dim=-1).tolist() for layer in layers]
    broken = [
        (i, j) for i, heads in enumerate(finite, 1) for j, one in enumerate(heads, 1) if not one
    ]
    if broken:
        layer, head = broken[0]
        more = f" (and of {len(broken) - 1} more heads)" if len(broken) > 1 else ""
        raise NotFiniteError(
            f"The head vectors of layer {layer}, head {head}{more} hold NaN or infinity: the "
            "weights of the model are broken, or too large for its dtype. Copy or download the "
            "model again; if it runs in float16, run it in bfloat16 or float32."
        )


def _joined(tokens: Tokens, windows: list[Window], parts: Sequence[Tensor]) -> Tensor:
    """One layer's z for the whole text, (heads, tokens, head size), from its windows."""
    if len(windows) == 1:
        return parts[0]
    whole = parts[0].new_empty(parts[0].shape[0], len(tokens), parts[0].shape[2])
    for window, part in zip(windows, parts, strict=True):
        own = torch.from_numpy(window.own)
        whole[:, torch.from_numpy(window.positions)[own]] = part[:, own]
    return whole
