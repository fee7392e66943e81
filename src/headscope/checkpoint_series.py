"""A model at several steps of its training: `headscope.checkpoints` finds them, and studies each.

They are the folders of models in a folder, revisions of a model on the hub, or several models.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.errors import CannotLoad, CannotStudy
from headscope.scope import load
from headscope.study.series import Series, begin_series, in_order, open_series
from headscope.study.writer import SERIES


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One model of a series, and the name of its study."""

    name: str
    source: str
    revision: str | None = None


class Checkpoints:
    """The checkpoints of a model, in the order of their steps; loaded when they are studied."""

    def __init__(self, found: Sequence[Checkpoint], **options: Any) -> None:
        by_name = {one.name: one for one in found}
        if len(by_name) < len(found):
            raise CannotLoad(
                "Two checkpoints have the same name, so their studies would have the same folder: "
                f"{', '.join(sorted(one.name for one in found))[:300]}."
            )
        self.found = [by_name[name] for name in in_order(tuple(by_name))]
        self.options = options

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        return f"<{len(self)} checkpoints: {', '.join(one.name for one in self)}>"

    def study(
        self,
        source: Any,
        out: str | Path,
        *,
        begin: Callable[[Checkpoint], None] | None = None,
        **options: Any,
    ) -> Series:
        """Study a corpus with every checkpoint, each into a folder of its name, as `Scope.study`.

        What is finished is handed back, what was stopped goes on. `begin` is called before each.
        """
        if str(source) == "-" or isinstance(source, Iterator):
            raise CannotStudy(
                "Each checkpoint reads the corpus anew, so it cannot be a pipe or an iterator, "
                "which can be read once. Name a file or a folder, or pass a list."
            )
        folder, first = begin_series(out), None
        for one in self:
            if begin is not None:
                begin(one)
            scope = load(one.source, revision=one.revision, **self.options)
            shape = (scope.shape.layers, scope.shape.heads)
            first = first or (one.name, shape)
            if shape != first[1]:
                raise CannotStudy(
                    f"'{one.name}' has {shape[0]} × {shape[1]} heads and '{first[0]}' "
                    f"{first[1][0]} × {first[1][1]}: they are no checkpoints of one model."
                )
            scope.study(source, folder / one.name, **options)
        series = open_series(folder)
        series.write()
        return series


def checkpoints(source: str | Path | Sequence[str | Path], **options: Any) -> Checkpoints:
    """Find the checkpoints of a model, to study each: in the order of the steps in their names.

    They are a folder of model folders, revisions on the hub (`MODEL@REVISION,REVISION`), or several
    models: a list, or names with commas between. `options` as in `headscope.load`: device, dtype,
    allow_pickle, trust_remote_code.
    """
    if not isinstance(source, str | Path):
        return Checkpoints([_model(str(one)) for one in source], **options)
    if Path(source).is_dir():
        return Checkpoints(_in_folder(Path(source)), **options)
    model, at, revisions = str(source).partition("@")
    names = [one.strip() for one in (revisions if at else model).split(",")]
    if not all(names) or not model or (not at and len(names) == 1):
        raise CannotLoad(
            f"There is no folder '{source}'. Checkpoints are a folder of model folders, revisions "
            "of a model on the hub (MODEL@REVISION,REVISION), or several models (MODEL,MODEL)."
        )
    if at:
        found = [Checkpoint(_folder_name(one), model, one) for one in names]
    else:
        found = [_model(one) for one in names]
    return Checkpoints(found, **options)


def _model(source: str) -> Checkpoint:
    return Checkpoint(_folder_name(Path(source).name), source)


def _in_folder(folder: Path) -> list[Checkpoint]:
    """Every folder in a folder that holds a saved model."""
    inside = sorted(one for one in folder.iterdir() if (one / "config.json").is_file())
    if not inside:
        alone = (folder / "config.json").is_file()
        raise CannotLoad(
            f"'{folder}' holds no folders of models (none in it has a config.json). "
            + (
                "It is a model itself: name the folder that holds it and its other checkpoints."
                if alone
                else "Save each checkpoint in a folder of its own, with "
                "model.save_pretrained(folder) and tokenizer.save_pretrained(folder)."
            )
        )
    return [Checkpoint(one.name, str(one)) for one in inside]


def _folder_name(name: str) -> str:
    """A name of a folder, of a revision or a model: without what leads elsewhere."""
    plain = name.replace("/", "-").replace("\\", "-").strip(".")
    if not plain or plain == SERIES:
        raise CannotLoad(f"'{name}' is no name of a checkpoint.")
    return plain
