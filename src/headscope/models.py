"""Find and load a model with its tokenizer, and say what can be observed in it.

A model comes from the package (the specimen), a local folder, the hub, or the caller. Weights are
read from safetensors only and code from the hub is never run, unless the caller says so.
"""

import json
import math
import os
import socket
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlparse

import numpy as np
import psutil
import torch
import transformers
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel

from headscope.capture import Seam, attention_modules, stack_of
from headscope.errors import CannotLoad
from headscope.specimen import FOLDER


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a model can be observed."""

    name: str  # as it was asked for
    family: str  # transformers' model_type
    stack: str  # of the heads that read a text: "encoder" or "decoder"
    layers: int
    heads: int  # in a layer; query heads where key heads are grouped
    head_size: int
    window: int | None  # most tokens read at once, special tokens included; None: no limit
    seam: Seam  # "interface": attention and head vectors; "projection": head vectors
    parameters: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model, its tokenizer and its shape."""

    model: PreTrainedModel
    backbone: PreTrainedModel  # the part that reads a text: no language head, no decoder
    tokenizer: Any
    shape: ModelShape


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
        if tokenizer is None:
            raise CannotLoad(
                f"A model object needs its tokenizer: hs.load(model, tokenizer). {name} came "
                "without one. (Or pass the folder that holds both.)"
            )
    else:
        where = FOLDER if source is None else source
        name = "specimen" if source is None else str(source)
        options = {
            "revision": revision,
            "trust_remote_code": trust_remote_code,
            "local_files_only": _offline(where),
        }
        target = _device(device)
        kind = _dtype(dtype, target)
        with _quiet():
            config = _config(where, options)
            if tokenizer is None:
                tokenizer = _tokenizer(where, config, options)
            _check_memory(where, target, kind)
            model = _weights(where, config, target, kind, allow_pickle, options)
    _check_tokenizer(tokenizer, name)
    backbone = _backbone(model)
    return LoadedModel(model, backbone, tokenizer, _shape(name, model, backbone, tokenizer))


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
def _quiet() -> Iterator[None]:
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
    if Path(where).is_dir() and not (Path(where) / "config.json").exists():
        raise CannotLoad(
            f"The folder {where} holds no config.json, so it is no saved model. Save one there "
            "with model.save_pretrained(folder) and tokenizer.save_pretrained(folder)."
        )
    try:
        return AutoConfig.from_pretrained(where, **options)
    except (OSError, ValueError) as error:
        reason = str(error)
        if "trust_remote_code" in reason:
            raise CannotLoad(
                f"'{where}' brings its own code. Read that code; then, if you trust it, pass "
                "trust_remote_code=True."
            ) from error
        if "model_type" in reason or "does not recognize this architecture" in reason:
            raise CannotLoad(
                f"transformers {transformers.__version__} does not know the architecture of "
                f"'{where}'. A newer transformers may. It said: {_first_line(error)}"
            ) from error
        raise CannotLoad(
            f"There is no folder '{where}', no model of that name in the local cache, and the hub "
            "gave none (no network, no such name, or no access). Pass a local folder with "
            "config.json, model.safetensors and tokenizer.json, check the spelling, or call "
            f"hs.load() for the bundled specimen. The hub said: {_first_line(error)}"
        ) from error


def _tokenizer(where: str | Path, config: Any, options: dict[str, Any]) -> Any:
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        if len(tokenizer) <= len(tokenizer.all_special_ids):  # made up: there were no files
            raise OSError("no vocabulary")
        return tokenizer
    except Exception as error:
        family = getattr(config, "model_type", "unknown")
        if getattr(config, "image_size", None) or getattr(config, "num_mel_bins", None):
            raise CannotLoad(
                f"'{where}' ({family}) reads images or sound, not text, and headscope's readings "
                "are of texts. Its heads can be observed with headscope.capture.capture."
            ) from error
        raise CannotLoad(
            f"'{where}' has a model ({family}) but no tokenizer that can be loaded. Save it "
            "beside the model with tokenizer.save_pretrained(folder), or pass it: "
            f"hs.load(folder, tokenizer). It failed with: {_first_line(error)}"
        ) from error


def _check_tokenizer(tokenizer: Any, name: str) -> None:
    if not getattr(tokenizer, "is_fast", False):
        raise CannotLoad(
            f"The tokenizer of '{name}' ({type(tokenizer).__name__}) cannot say which characters a "
            "token covers. headscope needs a fast tokenizer (a tokenizer.json)."
        )


def _device(device: str) -> torch.device:
    if device != "auto":
        return torch.device(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _dtype(dtype: str | torch.dtype | None, target: torch.device) -> torch.dtype | str:
    """What was asked for; else float32 on a CPU, and the dtype of the weights elsewhere."""
    if dtype is None:
        return torch.float32 if target.type == "cpu" else "auto"
    if isinstance(dtype, str) and dtype != "auto":
        found = getattr(torch, dtype, None)
        if not isinstance(found, torch.dtype):
            raise CannotLoad(f"There is no dtype '{dtype}'. Use float32, float16 or bfloat16.")
        return found
    return dtype


def _check_memory(where: str | Path, target: torch.device, dtype: torch.dtype | str) -> None:
    """Refuse before the machine starts to swap, where the size of the weights can be seen."""
    files = sorted(Path(where).glob("*.safetensors")) if Path(where).is_dir() else []
    try:
        needed = sum(_weight_bytes(file, dtype) for file in files)
    except (ValueError, KeyError) as error:
        raise CannotLoad(
            f"The weights in '{where}' cannot be read: a safetensors file there is broken or cut "
            "short. Copy or download it again."
        ) from error
    free = (
        torch.cuda.mem_get_info(target)[0]
        if target.type == "cuda"
        else psutil.virtual_memory().available
    )
    if needed > free:
        gib = 2**30
        raise CannotLoad(
            f"The weights of '{where}' need {needed / gib:.1f} GiB as {dtype}, and "
            f"{free / gib:.1f} GiB are free on {target}. Pass dtype='bfloat16' for half of "
            "float32's size, another device, or a smaller model."
        )


def _weight_bytes(file: Path, dtype: torch.dtype | str) -> int:
    """Size in memory of the weights in a safetensors file, from its header."""
    with file.open("rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    tensors: list[dict[str, Any]] = [
        tensor for key, tensor in header.items() if key != "__metadata__"
    ]
    if isinstance(dtype, str):
        return sum(int(np.diff(tensor["data_offsets"])[0]) for tensor in tensors)
    return sum(int(math.prod(tensor["shape"])) for tensor in tensors) * dtype.itemsize


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
    try:
        model: PreTrainedModel
        model, report = kind.from_pretrained(
            where,
            dtype=dtype,
            use_safetensors=None if allow_pickle else True,
            output_loading_info=True,
            **options,
        )
    except OSError as error:
        if not allow_pickle and "safetensors" in str(error):
            raise CannotLoad(
                f"'{where}' has no model.safetensors. If its weights are a pickle "
                "(pytorch_model.bin), loading them can run any code they contain; if you trust "
                "where they come from, pass allow_pickle=True."
            ) from error
        raise CannotLoad(f"The weights of '{where}' cannot be read: {error}") from error
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
    return model


def _backbone(model: PreTrainedModel) -> PreTrainedModel:
    """The part of a model that turns a text into hidden states."""
    if getattr(model.config, "is_encoder_decoder", False):
        return cast(PreTrainedModel, model.get_encoder())
    return cast(PreTrainedModel, model.base_model)


def _shape(
    name: str, model: PreTrainedModel, backbone: PreTrainedModel, tokenizer: Any
) -> ModelShape:
    seam, paths = attention_modules(backbone)
    module, path = next(iter((module, path) for module, path in paths.items()))
    config = backbone.config.get_text_config()
    heads = int(config.num_attention_heads)
    size = getattr(config, "head_dim", None) or getattr(config, "d_kv", None)
    return ModelShape(
        name=name,
        family=str(config.model_type),
        stack=stack_of(path, module, backbone),
        layers=int(config.num_hidden_layers),
        heads=heads,
        head_size=int(size or config.hidden_size // heads),
        window=_window(backbone, config, tokenizer),
        seam=seam,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def _window(backbone: PreTrainedModel, config: Any, tokenizer: Any) -> int | None:
    """The longest input: what the tokenizer says, and what the positions allow."""
    limits = [int(tokenizer.model_max_length)]
    for path, module in backbone.named_modules():
        # Learned positions end; RoBERTa counts them from after its padding index.
        if isinstance(module, nn.Embedding) and path.split(".")[-1] in POSITIONS:
            padding = module.padding_idx
            limits.append(module.num_embeddings - (0 if padding is None else padding + 1))
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        limits.append(positions)
    shortest = min(limits)
    return shortest if shortest < 10**7 else None


POSITIONS = {"position_embeddings", "wpe", "positions_embed", "embed_positions"}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
