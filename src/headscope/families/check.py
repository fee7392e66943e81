"""What works with one model type: seen in a tiny model of it, step by step."""

import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headscope.capture import HeadOutputs, capture
from headscope.capture.structure import innermost
from headscope.errors import HeadscopeError

TEXT = "The lamp is lit, and the keeper sleeps. The sea keeps no lamp, and the fog is not gone."
STEPS = ("read", "pairs", "attention", "focus", "ablate", "study", "page")


@dataclass(slots=True)
class Checked:
    """What was seen of a model type."""

    family: str
    model: str = ""  # its class
    takes: str = ""  # text, image, sound or series: what it was run with
    observed: str = ""  # interface, structure, both, partly, refused; or what failed before
    identical: bool | None = None  # outputs with and without observation
    calls: dict[str, int] = field(default_factory=dict)  # seen, by stack
    unseen: dict[str, str] = field(default_factory=dict)  # path to why
    steps: dict[str, str] = field(default_factory=dict)  # "" where a step works, else why not
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @property
    def passes(self) -> bool:
        """Whether every step works with a text."""
        return len(self.steps) == len(STEPS) and not any(self.steps.values())


def check(family: str, tokenizer: Any, *, steps: bool = True) -> Checked:
    """Build a tiny model of a type and see what works with it."""
    from headscope.families.tiny import tiny_model

    found = Checked(family)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = tiny_model(family, len(tokenizer))
        except Exception as error:
            found.observed, found.note = "not built", _said(error)
            return found
        found.model = type(model).__name__
        _observe(model, found, len(tokenizer))
        if steps and _takes_text(model):
            _try_steps(model, tokenizer, found)
    return found


def _takes_text(model: Any) -> bool:
    from inspect import signature

    return any("input_ids" in signature(one.forward).parameters for one in _models(model))


def _models(model: Any) -> list[Any]:
    return [one for one in model.modules() if hasattr(one, "base_model_prefix")]


def _observe(model: Any, found: Checked, vocabulary: int) -> None:
    """Whether its heads are seen, and its outputs the same to the bit."""
    from headscope.families.inputs import inputs_of

    said = ""
    for takes, given in inputs_of(model, vocabulary):
        try:
            plain = _run(model, given)
        except Exception as error:
            said = said if _said(error) in said else f"{said} | {_said(error)}".strip(" |")
            continue
        found.takes = takes
        calls: dict[str, int] = {}
        seams: set[str] = set()

        def see(seen: HeadOutputs, calls: dict[str, int] = calls, seams: set[str] = seams) -> None:
            calls[seen.site.stack] = calls.get(seen.site.stack, 0) + 1
            seams.add("structure" if seen.v is None else "interface")

        try:
            with capture(model, see) as opened:
                observed = _run(model, given)
        except HeadscopeError:
            found.observed, found.note = _refused(model)
            return
        except Exception as error:
            found.observed, found.note = "failed", _said(error)
            return
        found.identical = len(plain) == len(observed) and all(
            torch.equal(a, b) or (a.isnan() & b.isnan() | (a == b)).all()
            for a, b in zip(plain, observed, strict=True)
        )
        found.calls, found.unseen = calls, dict(opened.unseen)
        found.observed = "both" if len(seams) > 1 else next(iter(seams))
        if found.unseen:
            found.observed = f"partly, by {found.observed}"
        return
    found.observed, found.note = "not run", said or "no inputs are known for it"


def _refused(model: Any) -> tuple[str, str]:
    """Why none of the heads of a model can be seen."""
    rest = innermost(model, set())
    for module, path in rest.items():
        return "refused", f"{path}: {type(module).__name__} joins no heads that could be proven"
    return "no heads", "no module of it is attention"


def _run(model: Any, given: dict[str, Any]) -> list[Tensor]:
    """All tensors of an output, the same random numbers drawn each time."""
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(3)
        return list(_tensors(model(**given)))


def _tensors(output: Any) -> list[Tensor]:
    if isinstance(output, Tensor):
        return [output]
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (list, tuple)):
        return [tensor for one in output for tensor in _tensors(one)]
    return []


def _try_steps(model: Any, tokenizer: Any, found: Checked) -> None:
    """Every step of the product, with a text; a step that fails leaves what it said."""
    import headscope as hs

    try:
        scope = hs.load(model, tokenizer)
        reading = scope.read(TEXT)
    except Exception as error:
        found.steps = dict.fromkeys(STEPS, _said(error))
        return
    layer = scope.shape.numbers[-1]

    def ablated() -> None:
        silent = scope.ablate([(scope.shape.numbers[0], 1)])
        tokens = reading.windows[0].tokens
        plain, changed = (
            _tensors(one.observe(tokens, lambda seen: None)) for one in (scope, silent)
        )
        assert not all(map(torch.equal, plain, changed)), "the output did not change"

    def studied() -> None:
        with tempfile.TemporaryDirectory() as folder:
            made: dict[str, Any] = {"replicates": 2, "texts": 0, "nulls": (), "readings": ("raw",)}
            study = scope.study([TEXT, TEXT[:40]], os.path.join(folder, "study"), **made)
            assert len(study.table("heads")) == scope.shape.layers * scope.shape.heads

    def paged() -> None:
        with tempfile.TemporaryDirectory() as folder:
            reading.save(Path(folder) / "page.html")

    tried: dict[str, Callable[[], Any]] = {
        "read": lambda: None,
        "pairs": lambda: reading.high_pairs(layer, 1),
        "attention": lambda: _rows(reading.attention(layer, 1, window=0)),
        "focus": reading.focus,
        "ablate": ablated,
        "study": studied,
        "page": paged,
    }
    for name, step in tried.items():
        try:
            step()
            found.steps[name] = ""
        except Exception as error:
            found.steps[name] = _said(error)


def _rows(weights: Any) -> None:
    assert (weights >= -1e-6).all(), "attention weights below 0"
    assert (weights.sum(-1) < 1.01).all(), "rows of attention above 1"


def _said(error: Exception) -> str:
    said = (str(error).strip().splitlines() or [""])[0][:300]
    return said if isinstance(error, HeadscopeError) else f"{type(error).__name__}: {said}"
