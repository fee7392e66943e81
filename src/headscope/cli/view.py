"""The verb `view` of the command line."""

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.placed import is_placed
from headscope.cli.texts import is_there, text_of
from headscope.errors import CannotRead, HeadscopeError
from headscope.terminal import say

if TYPE_CHECKING:
    from headscope.scope import Scope


def view(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|FILE|STUDY",
            help="A text, a file, or - for standard input; the folder of a study; or both.",
            show_default="the sample",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="A hub name, a folder, a GGUF file; may be given again, to compare models.",
            show_default="the study's, or the bundled specimen",
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="0: any free port.", min=0, max=65535)] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open a browser at the page.")
    ] = True,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Look at every head, one head, the text itself, in the browser. Ctrl-C ends it."""
    import threading
    import webbrowser

    from headscope.viewer.server import by_name, serve

    folders, texts = _sorted(sources or [])
    if texts and is_placed(texts[0]):
        raise CannotRead(
            f"The local server shows texts. '{texts[0]}' as a page: headscope read '{texts[0]}' "
            "--model MODEL --out page.html"
        )
    scopes, study, first = _opened(folders, model or [], device)
    text = text_of(texts[0]) if texts else first

    def started(address: str, once: str) -> None:
        say(f"Look at {address}  (Ctrl-C ends it)")
        if open_browser:  # aside: a browser in the terminal would hold up the server
            threading.Thread(target=webbrowser.open, args=[once], daemon=True).start()

    with contextlib.suppress(KeyboardInterrupt):
        serve(
            by_name(scopes),
            text,
            study=study,
            port=port,
            debug="--debug" in sys.argv,
            started=started,
        )
    os._exit(0)  # a forward pass under way is not waited for


def _sorted(sources: list[str]) -> tuple[list[str], list[str]]:
    """The folder of a study and the text, at most one of each."""
    folders = [source for source in sources if _is_folder(source)]
    texts = [source for source in sources if source not in folders]
    if len(folders) > 1 or len(texts) > 1:
        raise CannotRead(
            "The viewer shows one text and one study at a time. Put a text of several words into "
            "quotation marks; to compare two studies: headscope compare."
        )
    return folders, texts


def _is_folder(source: str) -> bool:
    return is_there(Path(source)) and Path(source).is_dir()


def _opened(
    folders: list[str], models: list[str], device: str
) -> "tuple[list[Scope], dict[str, Any] | None, str]":
    """The models, that of the study first, the study as the viewer takes it, and its first text."""
    from headscope.sample import sample_text
    from headscope.scope import load

    if not folders:
        names: list[str] | list[None] = models or [None]
        return [load(name, device=device) for name in names], None, sample_text()
    from headscope.study.folder import open_study
    from headscope.viewer.studied import (
        WITHOUT_INPUT,
        first_text,
        packed_study,
        scope_of,
        without_model,
    )

    study, missing = open_study(folders[0]), ""
    if study.manifest.corpus.kind != "text":
        scopes = [load(name, device=device) for name in models]
        return scopes, packed_study(study, WITHOUT_INPUT), sample_text()
    try:
        scopes = [scope_of(study, models[0] if models else None, device)]
    except HeadscopeError as error:
        if models:
            raise
        scopes, missing = [], without_model(study, error)
        say(f"{missing} ({error})")
    scopes += [load(name, device=device) for name in models[1:]]
    return scopes, packed_study(study, missing), first_text(study)
