"""A model ready to be looked at: `headscope.load` makes one, and it reads texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor
from transformers import PreTrainedModel

from headscope.errors import NotPossible
from headscope.models import load_model
from headscope.observed import ObservedModel
from headscope.progress import progress_bar
from headscope.text import tokenize, windows

if TYPE_CHECKING:
    from headscope.effects.loss import LossKind, Metric
    from headscope.effects.replacing import To
    from headscope.inputs.sense import SenseKind
    from headscope.pairs import SimilarityReading
    from headscope.placed import PlacedReading
    from headscope.reading import Reading
    from headscope.segment.segmenter import Segmenter
    from headscope.segment.segments import Segments
    from headscope.study.folder import Study
    from headscope.study.progress import Progress


class Scope(ObservedModel):
    """A model whose heads can be read; the model itself is never changed."""

    def __repr__(self) -> str:
        shape = self.shape
        window = f"{shape.window:,} tokens" if shape.window else "any length"
        if self.loaded.sense is not None:
            window = {"image": "reads pictures", "sound": "reads sounds"}[self.loaded.sense.kind]
        count = len(self.silenced) + len(self.elsewhere)
        silent = f", {count} heads silenced" if count else ""
        hidden = f", {len(shape.unseen)} attention modules out of sight" if shape.unseen else ""
        return (
            f"<Scope {shape.name}: {shape.family} {shape.stack}, {shape.layers_in_words} × "
            f"{shape.heads} heads × {shape.head_size}, {window}, "
            f"{shape.parameters / 1e6:.1f} M parameters{hidden}{silent}>"
        )

    @overload
    def read(
        self,
        text: str,
        *,
        source: str | None = None,
        language: str = "en",
        window: int | None = None,
        overlap: int | None = None,
        focus: bool = False,
        progress: bool = False,
    ) -> "Reading": ...

    @overload
    def read(self, text: Any, *, labels: Sequence[str] | None = None) -> "PlacedReading": ...

    def read(
        self,
        text: Any,
        *,
        source: str | None = None,
        labels: Sequence[str] | None = None,
        language: str = "en",
        window: int | None = None,
        overlap: int | None = None,
        focus: bool = False,
        progress: bool = False,
    ) -> "Reading | PlacedReading":
        """Read one text, picture or sound: its tokens and the vectors of every head.

        A picture is a path, a PIL image or an array (height, width, 3); a sound is a path or
        (array, samples in a second). A dictionary of tensors is given to the model as it is, with a
        label for each position. A string is a text to a model that reads texts, else a path.

        A decoder reads its text beside a `source`, which its encoder reads: see `stack`.

        A text longer than the model's window (or than `window`) is read in windows that share
        `overlap` tokens, a quarter of a window by default. With `focus`, where attention goes is
        taken in the same pass; else it costs another one when it is first asked for.
        """
        from headscope.placed import is_input, read_input
        from headscope.reading import FocusSums, Reading

        if is_input(self, text):
            return read_input(self, text, labels)
        longest = self.shape.window
        if window is not None and longest is not None and window > longest:
            raise NotPossible(f"window={window} is more than the model's {longest} tokens")
        size = window or longest
        special = self.tokenizer.num_special_tokens_to_add()
        if overlap is None:
            overlap = 0 if size is None else size // 4
        if size is not None and not 0 <= overlap < size - special:
            raise NotPossible(
                f"overlap={overlap} must be at least 0 and leave room in a window of {size} tokens "
                f"({special} of them special)"
            )
        if source is not None or self.loaded.needs_source:
            from headscope.targets import read_target

            return read_target(self, text, source, size, language)
        tokens = tokenize(text, self.tokenizer, language=language)
        cut = windows(tokens, size, overlap)
        # Off the attention interface weights cost another kind of pass, with other rounding.
        sums = FocusSums(self.shape) if focus and self.shape.own.weighs else None
        vectors = []
        with progress_bar("reading", len(cut), progress) as advance:
            for part in cut:
                also = None if sums is None else sums.of(part.tokens)
                vectors.append(self.head_vectors(part.tokens, also))
                if advance is not None:
                    advance(1)
        return Reading(self, tokens, cut, vectors, None if sums is None else sums.focus())

    def with_sense(self, kind: "SenseKind") -> "Scope":
        """The same model, read with pictures ("image") or sounds ("sound")."""
        return self._seeing if kind == "image" else self._hearing

    @cached_property
    def _seeing(self) -> "Scope":
        loaded = self.loaded.with_sense("image")
        return self if loaded is self.loaded else Scope(loaded)

    @cached_property
    def _hearing(self) -> "Scope":
        loaded = self.loaded.with_sense("sound")
        return self if loaded is self.loaded else Scope(loaded)

    def study(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        document: str = "file",
        column: str = "text",
        files: str | None = None,
        strict: bool = False,
        force: bool = False,
        progress: "Progress | None" = None,
        group: str | None = None,
        engine: str | None = None,
        workers: int | None = None,
        devices: Sequence[str] = (),
        address: str | None = None,
        threads: int | None = None,
        readers: int | None = None,
        device_memory: float | None = None,
        **parameters: Any,
    ) -> "Study":
        """Study a corpus and write the result to a folder, resuming what is half done there.

        A folder of pictures or of sounds, or a list of them, is studied as the model sees or hears
        it: each file is a document, and what only a text has is absent.

        `source`, `document`, `column` and `files` as in `headscope.corpus.Corpus`, `parameters` as
        in `headscope.study.parameters.Parameters`. Another study in the folder is refused, or
        replaced with `force`; a folder that holds anything else is always refused.

        Intervals are over a `group`: "document"; "file", as is usual where documents are
        paragraphs or lines of several files; or "window", as blocks of a long document.

        It is read in this process, by so many `workers` on this machine, on several `devices`, or
        by Ray (`engine="ray"`), at an `address`; each has so many `threads` of torch. Text is made
        ready by so many `readers`, processes without the model: beside each GPU 6, if there are as
        many processors, else none. For a number of threads the tables have the same bytes, whatever
        reads them. A GPU may need `device_memory` GiB beyond the model's own pass (4).
        """
        from headscope.corpus import Corpus
        from headscope.engines import engine_of
        from headscope.engines.readers import readers_of
        from headscope.study.parameters import Parameters
        from headscope.study.placed.corpus import PlacedCorpus, kind_of_corpus
        from headscope.targets import refuse_study

        refuse_study(self)
        sense = self.loaded.sense
        kind = kind_of_corpus(source, files, None if sense is None else sense.kind)
        if kind is not None:
            from headscope.study.placed.run import placed_study, usual_parameters
            from headscope.study.reader import so_many_threads

            if engine or workers or devices or address or readers or device_memory is not None:
                raise NotPossible(
                    "Pictures and sounds are read in this process: leave engine, workers, devices, "
                    "address, readers and device_memory out."
                )
            named = {"group": group} if group else {}
            chosen = usual_parameters({**named, **parameters})
            with so_many_threads(threads or torch.get_num_threads()):
                return placed_study(
                    self.with_sense(kind),
                    PlacedCorpus(source, kind, files),  # type: ignore[arg-type]
                    out,
                    chosen,
                    strict=strict,
                    force=force,
                    progress=progress,
                )
        from headscope.study.run import study

        corpus = Corpus(source, document, column, files)  # type: ignore[arg-type]
        made = Parameters(group=group or ("file" if corpus.has_parts else "document"), **parameters)  # type: ignore[arg-type]
        where = engine_of(engine, workers, devices, address, threads)
        on = (str(self.model.device),) if where is None else where.devices
        with readers_of(readers, on) as found:
            return study(
                self,
                corpus,
                out,
                made,
                strict=strict,
                force=force,
                progress=progress,
                engine=where,
                threads=threads,
                readers=found,
                device_memory=device_memory,
            )

    def effects(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        loss: "LossKind | Metric | None" = None,
        to: "Sequence[To]" = ("zero",),
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder, made first where there is none, what each head is worth.

        `loss` is the model's own unless given: "masked", "causal", "embedding", or a function of
        hidden states (`headscope.effects.loss.Metric`). `to` is what z is put to: "zero", its
        "mean", its mean at each "position", or that of another text ("resample"). `reads` says what
        of the corpus is read, as in `headscope.effects.sample.Reads`: limit, windows, seed,
        document, column, files.
        """
        from headscope.effects.heads import effects
        from headscope.effects.sample import Reads

        return effects(self, source, out, Reads(**reads), loss=loss, to=to, progress=progress)

    def prune(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        by: str = "noise",
        keep: float = 0.5,
        even: bool = False,
        save: str | Path | None = None,
        loss: "LossKind | Metric | None" = None,
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder what taking heads away costs, in several orders.

        `by` is "noise", "snr", "effect", "gradient", "depth", "random", or a quantity of the study
        (the smallest go first, with "-" before it the largest); `keep` is the share of heads that
        stays, with `even` of each layer. `save` writes the model without the others to a new
        folder, which plain transformers loads. `loss` and `reads` as in `effects`.
        """
        from headscope.effects.prune import prune
        from headscope.effects.sample import Reads

        options = {"by": by, "keep": keep, "even": even, "save": save}
        return prune(self, source, out, Reads(**reads), loss=loss, progress=progress, **options)  # type: ignore[arg-type]

    def entropy(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        loss: "LossKind | None" = None,
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder how sure and how right each layer would be as the last.

        Every layer's hidden state goes through the model's own language head. `loss` is how the
        model is asked: "masked" or "causal", as it was trained unless given; `reads` as in
        `effects`.
        """
        from headscope.effects.entropy import entropy
        from headscope.effects.sample import Reads

        return entropy(self, source, out, Reads(**reads), loss=loss, progress=progress)

    def agreement(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        beside: "ObservedModel | None" = None,
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder how alike every two of its heads are, and a map of them.

        By their similarities (debiased linear CKA), their high pairs and their attention.
        `beside` is another model, whose heads are held against these on the same texts, word by
        word; `reads` as in `effects`.
        """
        from headscope.effects.agreement import agreement
        from headscope.effects.sample import Reads

        return agreement(self, source, out, Reads(**reads), beside=beside, progress=progress)

    def denoise(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        loss: "LossKind | Metric | None" = None,
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder what comes of taking noise away from head vectors.

        The common mode of each text, the mean vector of each position, or all but the first
        singular directions of Z: what the measures say then, and what the model loses when what is
        left is put back. `loss` and `reads` as in `effects`.
        """
        from headscope.effects.denoise import denoise
        from headscope.effects.sample import Reads

        return denoise(self, source, out, Reads(**reads), loss=loss, progress=progress)

    def segment(
        self,
        text: str,
        *,
        level: str = "topic",
        n: int | None = None,
        granularity: float = 1.0,
        segmenter: "Segmenter | str | Path | None" = None,
        language: str = "en",
        inside_paragraphs: bool = False,
        progress: bool = False,
    ) -> "Segments":
        """Cut a text where its meaning turns, into topics or sentences; joined they are the text.

        `n` is the number of segments; without it as many as are worth it, at `granularity` 2 with
        twice as many boundaries. Topics turn between the paragraphs of a text that has some, unless
        `inside_paragraphs`. `segmenter` is one from `fit_segmenter`, or its file.
        """
        from headscope.segment.by_level import segment

        return segment(
            self, text, level, n, granularity, segmenter, language, inside_paragraphs, progress
        )

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

    def communities(
        self,
        source: "str | Path | Iterable[Any]",
        out: str | Path,
        *,
        reading: "SimilarityReading" = "centred",
        gammas: "Iterable[float] | None" = None,
        tokens: int = 128,
        warmed: int = 4,
        progress: "Progress | None" = None,
        **reads: Any,
    ) -> "Study":
        """Add to the study of a folder the communities of tokens that each head makes.

        Among the first `tokens` of every window, at every resolution of `gammas`; `warmed` texts
        are also looked at by temperature. Of `reads`, as in `effects`, limit is 24 and windows 1
        unless given: this takes long. Needs igraph (`pip install 'headscope[potts]'`).
        """
        from headscope.effects.potts.communities import add_communities
        from headscope.effects.potts.couplings import GAMMAS
        from headscope.effects.sample import Reads

        chosen = Reads(**{"limit": 24, "windows": 1, **reads})
        swept = GAMMAS if gammas is None else gammas
        return add_communities(
            self,
            source,
            out,
            chosen,
            reading=reading,
            gammas=swept,
            tokens=tokens,
            warmed=warmed,
            progress=progress,
        )

    def structure(
        self,
        gold: str | Path,
        out: str | Path,
        *,
        limit: int = 200,
        windows: int = 8,
        seed: int = 0,
        progress: "Progress | None" = None,
    ) -> "Study":
        """Add to the study of a folder how well heads find what people have annotated.

        `gold` is a file or a folder: CoNLL-U (dependencies, GUM's coreference), names in CoNLL's
        columns, LitBank or GAP. Where there is no study yet, one of its texts is made first.
        """
        from headscope.effects.structure.verb import add_structure

        return add_structure(
            self, gold, out, limit=limit, windows=windows, seed=seed, progress=progress
        )

    def stack(self, name: str) -> "Scope":
        """The same model, read through another stack: "encoder", "decoder", "cross".

        Of an encoder-decoder, the heads of the decoder and its cross attention read a target:
        `scope.stack("decoder").read(target, source=text)`.
        """
        own = self.shape.stack
        silent = self.elsewhere | {(own, layer, head) for layer, head in self.silenced}
        here = frozenset((layer, head) for stack, layer, head in silent if stack == name)
        there = frozenset(one for one in silent if one[0] != name)
        return Scope(self.loaded.through(name), here, there)

    def beside(self, given: Mapping[str, Tensor]) -> "Scope":
        """The same, with inputs that go with every text: a decoder's source."""
        return Scope(replace(self.loaded, given=given), self.silenced, self.elsewhere)

    def ablate(self, heads: Iterable[tuple[int, int]], stack: str | None = None) -> "Scope":
        """The same model with the given (layer, head), 1-based, silenced: their z set to zero.

        They are heads of the stack that is read, unless another `stack` is named.
        """
        if stack is not None and stack != self.shape.stack:
            return self.stack(stack).ablate(heads).stack(self.shape.stack)
        added = frozenset((int(layer), int(head)) for layer, head in heads)
        for layer, head in added:
            self.check_head(layer, head)
        return Scope(self.loaded, self.silenced | added, self.elsewhere)

    def generate(self, prompt: str, n: int = 50, *, language: str = "en") -> "Reading":
        """Let the model go on from a text by up to `n` tokens, the likeliest each time.

        All of it is read; of an encoder-decoder the target that its decoder writes, beside the
        prompt. The mark "written by" tells what is whose. Silenced heads are so while it writes.
        """
        from headscope.targets import generate

        return generate(self, prompt, n, language)


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
    """Load a model to look at: a hub name, a folder, a GGUF file or an object; else the specimen.

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
