"""What a decoder reads: a target beside its source, and what it writes itself."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.capture import capture
from headscope.errors import CannotObserve, NotPossible
from headscope.observed import ObservedModel
from headscope.reading import Reading
from headscope.shapes import no_trace
from headscope.text import Tokens, begun_with, tokenize, windows

if TYPE_CHECKING:
    from headscope.scope import Scope


def read_target(
    scope: "Scope", text: str, source: str | None, size: int | None, language: str
) -> Reading:
    """One text read by a decoder, or by its cross attention, beside its source."""
    if not scope.loaded.needs_source:
        raise NotPossible(
            f"The {scope.shape.stack} reads one text. A source stands beside what a decoder reads: "
            "scope.stack('decoder').read(target, source=text), of an encoder-decoder."
        )
    if source is None:
        raise NotPossible(
            f"The {scope.shape.stack} reads a target beside a source: "
            f"scope.stack('{scope.shape.stack}').read(target, source=text)."
        )
    own = tokenize(source, scope.tokenizer, language=language)
    target = _begun(scope, tokenize(text, scope.tokenizer, language=language))
    for what, tokens in (("source", own), ("target", target)):
        if size is not None and len(tokens) > size:
            raise NotPossible(
                f"The {what} has {len(tokens):,} tokens, and the model reads {size:,} at once: a "
                "source and a target cannot be cut into windows. Read a part of both."
            )
    ids = torch.as_tensor(own.ids)[None].to(scope.model.device)
    beside = scope.beside({"input_ids": ids})
    vectors = [beside.head_vectors(target)]
    return Reading(beside, target, windows(target, None), vectors, source=own)


def _begun(scope: "Scope", tokens: Tokens) -> Tokens:
    """A target as a decoder is given it: after the token that it begins with."""
    config: Any = scope.model.config
    start = getattr(config, "decoder_start_token_id", None)
    start = getattr(config, "bos_token_id", None) if start is None else start
    if start is None or int(tokens.ids[0]) == start:
        return tokens
    return begun_with(tokens, int(start), str(scope.tokenizer.convert_ids_to_tokens(int(start))))


def generate(scope: "Scope", prompt: str, n: int, language: str) -> Reading:
    """A text and what the model writes after it, or the target that it writes for it."""
    if n < 1:
        raise NotPossible(f"n={n}: a continuation has at least one token.")
    if not scope.model.can_generate():
        raise CannotObserve(
            f"{scope.shape.name} ({type(scope.model).__name__}) writes no text: it has no language "
            "head for the next token. Load the model with the one it was trained with "
            "(ForCausalLM, ForConditionalGeneration)."
        )
    tokens = tokenize(prompt, scope.tokenizer, language=language)
    ids = tokens.ids
    both = bool(scope.model.config.is_encoder_decoder)
    while not both and len(ids) > 1 and tokens.special[len(ids) - 1]:
        ids = ids[:-1]  # a text that is ended is not gone on with
    longest = scope.shape.window
    if not both and longest is not None and len(ids) + n > longest:
        raise NotPossible(
            f"The text has {len(ids):,} tokens, and {n:,} more do not fit in the {longest:,} that "
            "the model reads at once. Ask for fewer, or give less text."
        )
    new = _written(scope, torch.as_tensor(ids)[None], n, both)
    decode = scope.tokenizer.decode
    if both:
        text = decode(new, skip_special_tokens=True)
        if not text.strip():
            raise CannotObserve("The model wrote nothing but special tokens.")
        return scope.stack("decoder").read(text, source=prompt, language=language)
    shown = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    begun, whole = decode(ids, **shown), decode([*ids, *new], **shown)
    reading = scope.read(prompt + whole[len(begun) :], language=language)
    own = reading.tokens.starts < len(prompt)
    labels = ["person" if first else "model" for first in own]
    special = reading.tokens.special
    return reading.mark(
        "written by", [None if s else name for s, name in zip(special, labels, strict=True)]
    )


def _written(scope: "Scope", ids: Tensor, n: int, both: bool) -> list[int]:
    """The tokens that a model writes after some, the likeliest each time."""
    ids = ids.to(scope.model.device)
    pad = scope.tokenizer.pad_token_id
    options: dict[str, Any] = {"max_new_tokens": n, "do_sample": False, "num_beams": 1}
    options["pad_token_id"] = scope.tokenizer.eos_token_id if pad is None else pad
    model: Any = scope.model
    with torch.no_grad(), no_trace(model), capture(model, change=scope.silencing()):
        out = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    return [int(one) for one in out[0, 0 if both else ids.shape[1] :]]


def refuse_study(scope: ObservedModel) -> None:
    """Raise where a corpus of texts alone is no input, or the result would not tell all."""
    if scope.loaded.needs_source:
        raise NotPossible(
            f"The {scope.shape.stack} reads a target beside a source, and a corpus holds texts "
            "alone. Study the encoder: scope.stack('encoder').study(...)."
        )
    if scope.elsewhere:
        stacks = ", ".join(sorted({stack for stack, _, _ in scope.elsewhere}))
        raise NotPossible(
            f"Heads of another stack are silenced ({stacks}), which a study does not tell. Silence "
            "heads of the stack that is studied only."
        )
