"""Find and load a model with its tokenizer, and say what can be observed in it.

A model comes from the package (the specimen), a local folder, the hub, or the caller. Weights are
read from safetensors only and code from the hub is never run, unless the caller says so.
"""

import os
import socket
import urllib.request
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlparse

import torch
import transformers
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
)

from headscope.devices import check_weights, find_device
from headscope.errors import CannotLoad, CannotObserve, NotPossible
from headscope.gguf import gguf_file
from headscope.inputs.sense import Sense, SenseKind, find_sense, may_sense
from headscope.inputs.settings import Settings, settings_beside, settings_of
from headscope.shapes import ModelShape, find_shape
from headscope.specimen import FOLDER

SPECIMEN = "specimen"  # the name of the model that comes with the package


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, its tokenizer and its shape."""

    model: PreTrainedModel
    backbone: PreTrainedModel  # the part that reads a text: no language head, no decoder
    tokenizer: Any  # None where there is none: a model that sees or hears
    shape: ModelShape
    sense: Sense | None = None  # how it sees or hears; None: it reads texts
    settings: Settings | None = None  # of the processors beside the model
    takes: str = "input_ids"  # what the part that reads calls the text
    given: Mapping[str, Tensor] = field(default_factory=dict)  # beside a text: a decoder's source

    def with_sense(self, kind: SenseKind) -> "LoadedModel":
        """The same model, read with pictures or sounds."""
        if self.sense is not None and self.sense.kind == kind:
            return self
        with quiet():
            return _sensing(self.shape.name, self.model, self.tokenizer, self.settings, kind)

    def through(self, stack: str) -> "LoadedModel":
        """The same model, read through another stack that a text runs through."""
        found = {one.name: one for one in self.shape.stacks}
        if stack not in found:
            asleep = ", ".join(self.shape.asleep)
            raise NotPossible(
                f"There is no stack '{stack}' that a text runs through; there is: "
                f"{', '.join(found)}." + (f" Out of a text's reach: {asleep}." if asleep else "")
            )
        shape = self.shape.through(stack)
        if not self.model.config.is_encoder_decoder or stack == "encoder":
            backbone = self.backbone if self.takes == "input_ids" else self.model.get_encoder()
            return replace(self, shape=shape, backbone=backbone, takes="input_ids", given={})
        whole = cast(PreTrainedModel, self.model.base_model)
        return replace(self, shape=shape, backbone=whole, takes="decoder_input_ids", given={})

    @property
    def needs_source(self) -> bool:
        """Whether what is read is a target, which a decoder reads beside a source."""
        return self.takes == "decoder_input_ids"


def load_model(
    source: str | Path | PreTrainedModel | None = None,
    tokenizer: Any = None,
    *,
    device: str = "auto",
    dtype: str | torch.dtype | None = None,
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load what `source` names; see `headscope.load`."""
    if isinstance(source, PreTrainedModel):
        name, model = type(source).__name__, source.eval()
        tokenizer, settings = settings_of(tokenizer)
        senses = list(may_sense(model))
        if tokenizer is None and not senses:
            raise CannotLoad(
                f"A model object needs its tokenizer: hs.load(model, tokenizer). {name} came "
                "without one. (Or pass the folder that holds both.)"
            )
    else:
        own = source is None or (source == SPECIMEN and not Path(SPECIMEN).exists())
        where, name = (FOLDER, SPECIMEN) if own else (source or "", str(source))
        options = {
            "revision": revision,
            "trust_remote_code": trust_remote_code,
            "local_files_only": _offline(where),
        }
        target = find_device(device)
        kind = _dtype(dtype, target)
        if (file := gguf_file(where)) is not None:
            where, options["gguf_file"] = file.parent, file.name
        with quiet():
            config = _config(where, options)
            check_weights(where, target, kind)
            tokenizer, settings = settings_of(tokenizer)
            settings = settings or settings_beside(where, options)
            if tokenizer is None:
                tokenizer = _tokenizer(where, config, options)
            model = _weights(where, config, target, kind, allow_pickle, options)
        senses = list(may_sense(model))
    if senses and not getattr(tokenizer, "is_fast", False):
        tokenizer = None  # such as that of Wav2Vec2, for what it says and not for what it reads
    if tokenizer is not None:
        _check_tokenizer(tokenizer, name)
        try:
            with quiet():
                window = partial(_window, tokenizer=tokenizer)
                backbone, shape = find_shape(name, model, tokenizer, window)
            return LoadedModel(model, backbone, tokenizer, shape, settings=settings)
        except CannotObserve:
            if not senses:
                raise
    with quiet():
        return _sensing(name, model, tokenizer, settings, senses[0])


def _sensing(
    name: str, model: PreTrainedModel, tokenizer: Any, settings: Settings | None, kind: SenseKind
) -> LoadedModel:
    """A model that reads pictures or sounds."""
    sense, shape = find_sense(name, model, kind, settings)
    return LoadedModel(model, sense.part, tokenizer, shape, sense, settings)


def _offline(where: str | Path) -> bool:
    """Whether the hub is out of reach, asked before its client tries for half a minute."""
    if Path(where).is_dir() or urllib.request.getproxies():
        return False
    hub = urlparse(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    try:
        socket.getaddrinfo(hub.hostname, hub.port or 443)
    except OSError:
        return True
    return False


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars and no reports from transformers; what matters becomes a warning of ours."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _config(where: str | Path, options: dict[str, Any]) -> Any:
    here = str(where) != "" and Path(where).is_dir()
    if here and "gguf_file" not in options and not (Path(where) / "config.json").exists():
        raise CannotLoad(
            f"The folder '{where}' holds no config.json, so it is no saved model. Save one there "
            "with model.save_pretrained(folder) and tokenizer.save_pretrained(folder)."
        )
    try:
        config = AutoConfig.from_pretrained(where, **options)
    except Exception as error:
        reason = str(error)
        if "trust_remote_code" in reason:
            raise CannotLoad(
                f"'{where}' brings its own code, which is not run unasked.",
                python="Read that code; then, if you trust it, pass trust_remote_code=True.",
                command="Read that code; if you trust it, load the model in Python, with "
                "trust_remote_code=True.",
            ) from error
        if "model_type" in reason or "does not recognize this architecture" in reason:
            raise CannotLoad(
                f"transformers {transformers.__version__} does not know the architecture of "
                f"'{where}'. A newer transformers may. It said: {_first_line(error)}"
            ) from error
        if here:
            what = options.get("gguf_file", "config.json")
            raise _broken(where, f"{what} does not describe a model", error) from error
        raise CannotLoad(
            f"There is no folder '{where}', no model of that name in the local cache, and the hub "
            "gave none (no network, no such name, or no access). Check the spelling, or name a "
            "local folder with config.json, model.safetensors and tokenizer.json.",
            python=f"hs.load() is the bundled specimen. The hub said: {_first_line(error)}",
            command="Leave --model out for the bundled specimen. "
            f"The hub said: {_first_line(error)}",
        ) from error
    text = config.get_text_config()
    for name in ("num_hidden_layers", "num_attention_heads", "hidden_size"):
        if isinstance(value := getattr(text, name, None), int) and value < 1:
            raise _broken(where, f"config.json says {name} = {value}")
    return config


def _broken(where: str | Path, what: str, error: Exception | None = None) -> CannotLoad:
    """The error for a model whose files do not fit each other."""
    said = f" ({type(error).__name__}: {_first_line(error)})" if error else ""
    return CannotLoad(f"The model in '{where}' is broken: {what}{said}. Copy or download it again.")


def _tokenizer(where: str | Path, config: Any, options: dict[str, Any]) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        if len(tokenizer) <= len(tokenizer.all_special_ids):  # made up: there were no files
            raise OSError("no vocabulary")
        int(tokenizer.model_max_length)
        return tokenizer
    except Exception as error:
        family = getattr(config, "model_type", "unknown")
        parts = (
            config,
            getattr(config, "vision_config", None),
            getattr(config, "audio_config", None),
        )
        if any(getattr(one, key, None) for one in parts for key in OF_SENSES):
            return None
        raise CannotLoad(
            f"'{where}' has a model ({family}) but no tokenizer that can be loaded "
            f"({_first_line(error)}). Save it beside the model with "
            "tokenizer.save_pretrained(folder)",
            python="or pass it: hs.load(folder, tokenizer).",
            command="and name that folder.",
        ) from error


def _check_tokenizer(tokenizer: Any, name: str) -> None:
    if not getattr(tokenizer, "is_fast", False):
        raise CannotLoad(
            f"The tokenizer of '{name}' ({type(tokenizer).__name__}) cannot say which characters a "
            "token covers. headscope needs a fast tokenizer (a tokenizer.json)."
        )


def _dtype(dtype: str | torch.dtype | None, target: torch.device) -> torch.dtype | str:
    """What was asked for; else float32 on a CPU, and the dtype of the weights elsewhere."""
    if dtype is None:
        return torch.float32 if target.type == "cpu" else "auto"
    if isinstance(dtype, str) and dtype != "auto":
        found = getattr(torch, dtype, None)
        if not isinstance(found, torch.dtype):
            raise CannotLoad(f"There is no dtype {dtype!r}. Use float32, float16 or bfloat16.")
        return found
    return dtype


def _weights(
    where: str | Path,
    config: Any,
    target: torch.device,
    dtype: torch.dtype | str,
    allow_pickle: bool,
    options: dict[str, Any],
) -> PreTrainedModel:
    # The class the weights were saved from, so that no part of it starts out random.
    saved_as = (getattr(config, "architectures", None) or [""])[0]
    kind = getattr(transformers, saved_as, AutoModel)
    if "gguf_file" in options:  # it names no class; what it holds are language models
        kind = AutoModelForCausalLM
    try:
        model: PreTrainedModel
        with torch.random.fork_rng():
            torch.manual_seed(0)  # of weights that are not there: the same ones every time
            model, report = kind.from_pretrained(
                where,
                dtype=dtype,
                use_safetensors=None if allow_pickle else True,
                output_loading_info=True,
                **options,
            )
    except Exception as error:
        if not allow_pickle and isinstance(error, OSError) and "safetensors" in str(error):
            raise CannotLoad(
                f"'{where}' has no model.safetensors. If its weights are a pickle "
                "(pytorch_model.bin), loading them can run any code they contain.",
                python="If you trust where they come from, pass allow_pickle=True.",
                command="Convert them, or, if you trust where they come from, load the model in "
                "Python, with allow_pickle=True.",
            ) from error
        what = options.get("gguf_file", "config.json")
        raise _broken(where, f"{what} and the weights do not fit", error) from error
    # A pooler comes after all heads; sentence models are often saved without one.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        warnings.warn(
            f"{len(missing)} weights of {type(model).__name__} are not in '{where}' and are "
            f"random: {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}",
            stacklevel=4,
        )
    model.to(target)  # type: ignore[arg-type]
    model.eval()
    for name, weight in model.named_parameters():
        if weight.dtype in PLAIN and weight.numel():
            low, high = weight.detach().aminmax()
            if not (low.isfinite() and high.isfinite()):
                raise _broken(where, f"{name} holds NaN or infinity")
    return model


PLAIN = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _window(backbone: PreTrainedModel, tokenizer: Any) -> int | None:
    """The longest input: what the tokenizer says, and what the positions allow."""
    limits = [int(tokenizer.model_max_length)]
    for path, module in backbone.named_modules():
        # Learned positions end; RoBERTa counts them from after its padding index.
        if isinstance(module, nn.Embedding) and path.split(".")[-1] in POSITIONS:
            padding = module.padding_idx
            limits.append(module.num_embeddings - (0 if padding is None else padding + 1))
    config = getattr(backbone, "config", None)  # some parts of a model keep none of their own
    text = None if config is None else config.get_text_config()
    positions = getattr(text, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        limits.append(positions)
    shortest = min(limits)
    return shortest if shortest < 10**7 else None


OF_SENSES = ("image_size", "num_mel_bins", "conv_stride")  # in a configuration
POSITIONS = {"position_embeddings", "wpe", "positions_embed", "embed_positions"}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
