"""A model ready to be looked at: `headscope.load` makes one, and it reads texts."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headscope.capture import Change, HeadOutputs, Observe, capture, silence
from headscope.errors import CannotObserve
from headscope.models import LoadedModel, ModelShape, load_model
from headscope.text import Tokens, tokenize, windows

if TYPE_CHECKING:
    from headscope.reading import Reading
    from headscope.segment.segmenter import Segmenter
    from headscope.segment.segments import Segments
    from headscope.store import Study
    from headscope.study.progress import Progress


class Scope:
    """A model whose heads can be read; the model itself is never changed."""

    def __init__(self, loaded: LoadedModel, silenced: frozenset[tuple[int, int]] = frozenset()):
        self.loaded = loaded
        self.silenced = silenced  # (layer, head), 1-based

    @property
    def model(self) -> PreTrainedModel:
        """The transformers model."""
        return self.loaded.model

    @property
    def tokenizer(self) -> Any:
        """The transformers tokenizer."""
        return self.loaded.tokenizer

    @property
    def shape(self) -> ModelShape:
        """Layers, heads, window and how the heads are seen."""
        return self.loaded.shape

    def __repr__(self) -> str:
        shape = self.shape
        window = f"{shape.window:,} tokens" if shape.window else "any length"
        silent = f", {len(self.silenced)} heads silenced" if self.silenced else ""
        return (
            f"<Scope {shape.name}: {shape.family} {shape.stack}, {shape.layers} layers × "
            f"{shape.heads} heads × {shape.head_size}, {window}, "
            f"{shape.parameters / 1e6:.1f} M parameters{silent}>"
        )

    def read(
        self,
        text: str,
        *,
        language: str = "en",
        window: int | None = None,
        overlap: int | None = None,
    ) -> "Reading":
        """Read one text: its tokens and the vectors of every head.

        A text longer than the model's window (or than `window`) is read in windows that share
        `overlap` tokens, a quarter of a window by default.
        """
        from headscope.reading import Reading

        longest = self.shape.window
        if window is not None and longest is not None and window > longest:
            raise ValueError(f"window={window} is more than the model's {longest} tokens")
        size = window or longest
        special = self.tokenizer.num_special_tokens_to_add()
        if overlap is None:
            overlap = 0 if size is None else size // 4
        if size is not None and not 0 <= overlap < size - special:
            raise ValueError(
                f"overlap={overlap} must be at least 0 and leave room in a window of {size} tokens "
                f"({special} of them special)"
            )
        tokens = tokenize(text, self.tokenizer, language=language)
        cut = windows(tokens, size, overlap)
        return Reading(self, tokens, cut, [self.head_vectors(part.tokens) for part in cut])

    def study(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        cut: str = "file",
        column: str = "text",
        pattern: str | None = None,
        strict: bool = False,
        progress: "Progress | None" = None,
        **parameters: Any,
    ) -> "Study":
        """Study a corpus and write the result to a folder, resuming what is half done there.

        `source`, `cut`, `column` and `pattern` as in `headscope.corpus.Corpus`; `parameters` as in
        `headscope.study.parameters.Parameters`.
        """
        from headscope.corpus import Corpus
        from headscope.study.parameters import Parameters
        from headscope.study.run import study

        corpus = Corpus(source, cut, column, pattern)  # type: ignore[arg-type]
        made = Parameters(**parameters)
        return study(self, corpus, out, made, strict=strict, progress=progress)

    def segment(
        self,
        text: str,
        *,
        level: str = "topic",
        n: int | None = None,
        granularity: float = 1.0,
        segmenter: "Segmenter | str | Path | None" = None,
        language: str = "en",
        progress: bool = False,
    ) -> "Segments":
        """Cut a text where its meaning turns, into topics or sentences; joined they are the text.

        `n` is the number of segments; without it as many as are worth it, more of them with a
        `granularity` above 1. `segmenter` is one from `fit_segmenter`, or its file.
        """
        from headscope.segment.levels import segment

        return segment(self, text, level, n, granularity, segmenter, language, progress)

    def fit_segmenter(
        self,
        examples: "Iterable[Iterable[str | Iterable[str]]]",
        *,
        language: str = "en",
        study: "Study | None" = None,
    ) -> "Segmenter":
        """Learn from texts that are already cut what a boundary between topics looks like.

        An example is a text as its segments, in order; a segment is a string, or its sentences.
        The heads of the kernel are those of the last two layers, or chosen by the measures of a
        `study` of this model.
        """
        from headscope.segment.fitting import fit_segmenter

        return fit_segmenter(self, examples, language, study)

    def ablate(self, heads: Iterable[tuple[int, int]]) -> "Scope":
        """The same model with the given (layer, head), 1-based, silenced: their z set to zero."""
        added = frozenset((int(layer), int(head)) for layer, head in heads)
        for layer, head in added:
            self.check_head(layer, head)
        return Scope(self.loaded, self.silenced | added)

    def check_head(self, layer: int, head: int) -> None:
        """Raise unless there is such a head; layers and heads are counted from 1."""
        for name, value, most in (
            ("layer", layer, self.shape.layers),
            ("head", head, self.shape.heads),
        ):
            if not 1 <= value <= most:
                raise IndexError(f"{name} {value} does not exist: {name}s are 1 to {most}")

    def forward(self, **inputs: Any) -> Any:
        """The model's own output for its own inputs, under this scope's ablation."""
        with torch.inference_mode(), capture(self.model, change=self._change()):
            return self.model(**inputs)

    def head_vectors(self, tokens: Tokens) -> list[Tensor]:
        """z of every layer for one window, each (heads, tokens, head size), on the CPU."""
        layers: list[Tensor] = []
        self.observe(tokens, lambda seen: layers.append(seen.z[0, :, : len(tokens)].cpu()))
        return layers

    def observe(self, tokens: Tokens, observe: Observe, **options: Any) -> Any:
        """Run the part of the model that reads over one window and show each layer's heads."""
        return self.observe_batch(torch.as_tensor(tokens.ids)[None], None, observe, **options)

    def observe_batch(
        self, ids: Tensor, mask: Tensor | None, observe: Observe, **options: Any
    ) -> Any:
        """As `observe`, over a batch of ids (texts, tokens); `mask` is 0 where one is padded."""
        if mask is not None:
            options["attention_mask"] = mask.to(self.model.device)
        backbone = self.loaded.backbone
        with torch.inference_mode(), capture(backbone, observe, change=self._change()):
            return backbone(input_ids=ids.to(self.model.device), **options)

    def observe_attention(self, tokens: Tokens, observe: Observe) -> None:
        """As `observe`, but every family's calls can `weigh`.

        A family seen through its output projection is asked for its attention weights, which
        takes memory for tokens² × heads × layers; the others never make them.
        """
        if self.shape.seam == "interface":
            self.observe(tokens, observe)
            return
        seen: list[HeadOutputs] = []
        output = self.observe(tokens, seen.append, output_attentions=True)
        for outputs, weights in zip(seen, output.attentions or (), strict=False):
            if weights.shape[-2:] != (len(tokens), len(tokens)):
                break
            observe(replace(outputs, v=outputs.z, attend=partial(_weigh_dense, weights)))
        else:
            if output.attentions:
                return
        raise CannotObserve(
            f"{self.shape.family} does not show its attention weights token by token; only its "
            "head vectors can be seen. similarity() and high_pairs() work, attention() and focus() "
            "do not."
        )

    def _change(self) -> Change | None:
        heads = [(layer - 1, head - 1) for layer, head in self.silenced]
        return silence(heads, self.shape.stack) if heads else None


def _weigh_dense(weights: Tensor, values: Tensor, rows: slice) -> Tensor:
    return weights[:, :, rows] @ values


def load(
    source: str | Path | PreTrainedModel | None = None,
    tokenizer: Any = None,
    *,
    device: str = "auto",
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Scope:
    """Load a model to look at: a hub name, a folder, a model object; the specimen by default.

    Weights are read from safetensors only, unless `allow_pickle`; code that comes with a model is
    not run, unless `trust_remote_code`. `dtype` is float32 on a CPU and the weights' own elsewhere,
    unless given.
    """
    return Scope(
        load_model(
            source,
            tokenizer,
            device=device,
            dtype=dtype,
            revision=revision,
            allow_pickle=allow_pickle,
            trust_remote_code=trust_remote_code,
        )
    )
