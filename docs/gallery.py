"""The gallery: every figure beside the command that made it when the site was built."""

import io
import shlex
import shutil
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

from headscope.cli import app
from headscope.cli.failure import run
from headscope.sample import SAMPLE

STUDY = "headscope study sample.txt --document paragraph --out study --quiet"
FIGURES = (
    ("matrix", "One head's similarity matrix: the tokens of the first sentences.",
     "headscope figure sample.txt matrix --layer 3 --head 9 --tokens 1:60 --out matrix.png"),
    ("focus", "Where attention goes, layer by layer, beside chance.",
     "headscope figure study focus --out focus.svg"),
    ("centralisation", "How many tokens share a layer's attention.",
     "headscope figure study centralisation --out centralisation.svg"),
    ("range", "How far apart the tokens of high pairs are.",
     "headscope figure study range --out range.svg"),
    ("sentence", "How often high pairs stay within a sentence, and what distance explains of it.",
     "headscope figure study sentence --out sentence.svg"),
    ("repetition", "Which heads pair a content word with its repetition.",
     "headscope figure study repetition --out repetition.svg"),
    ("anchor", "Which heads gather their pairs around one word.",
     "headscope figure study anchor --out anchor.svg"),
    ("uniqueness", "How many heads of a layer have an anchor of their own.",
     "headscope figure study uniqueness --out uniqueness.svg"),
    ("noise", "High pairs that nothing seems to relate.",
     "headscope figure study noise --out noise.svg"),
    ("snr", "How far related pairs stand above the others.",
     "headscope figure study snr --out snr.svg"),
    ("findings", "The claims, their statistics and intervals, beside thresholds and nulls.",
     "headscope figure study findings --out findings.svg"),
)  # fmt: skip


def gallery() -> dict[str, str | bytes]:
    """The page and its pictures, by their place on the site."""
    files: dict[str, str | bytes] = {}
    page = [
        "# Gallery",
        "Every figure here was made by the command above it when this site was built, with the "
        "bundled specimen, from the sample text that comes with headscope. A name that ends in "
        "`.png`, `.pdf` or `.html` gives another format.",
        f"The study that they show:\n\n    {STUDY}",
    ]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        shutil.copy(SAMPLE, "sample.txt")
        done(STUDY)
        for name, says, command in FIGURES:
            done(command)
            picture = shlex.split(command)[-1]
            files[f"gallery/{picture}"] = Path(picture).read_bytes()
            page.append(f"## {name}\n\n{says}\n\n    {command}\n\n![{name}](gallery/{picture})")
    return {"gallery.md": "\n\n".join(page) + "\n", **files}


def done(command: str) -> None:
    """Run a command of headscope here; a failure ends the build."""
    with redirect_stdout(io.StringIO()):
        status = run(app, shlex.split(command)[1:])
    if status:
        raise RuntimeError(f"this command of the gallery ends with status {status}: {command}")
