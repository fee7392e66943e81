"""The command line: thin verbs over the library, readable by people and by pipes."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope import __version__
from headscope.cli.agreement import agreement
from headscope.cli.communities import communities
from headscope.cli.compare import compare
from headscope.cli.denoise import denoise
from headscope.cli.effects import effects
from headscope.cli.entropy import entropy
from headscope.cli.failure import run
from headscope.cli.options import Device, DType, Model
from headscope.cli.prune import prune
from headscope.cli.read import read
from headscope.cli.report import figure, report
from headscope.cli.structure import structure
from headscope.cli.study import study
from headscope.cli.texts import text_of
from headscope.cli.view import view
from headscope.terminal import say, show, write, write_csv, write_json

if TYPE_CHECKING:
    from headscope.shapes import ModelShape

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="See what each attention head of a transformer brings together.\n\n"
    "Layers and heads are counted from 1.",
)


def _version(asked: bool) -> None:
    if asked:
        write(f"headscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where an error comes from, to report it.")
    ] = False,  # `run` looks for it
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for what the demo makes.")] = Path("demo"),
) -> None:
    """Read and study the sample text with the specimen, and write pages about it."""
    from headscope.report.terminal import summary
    from headscope.sample import SAMPLE, sample_text
    from headscope.scope import load

    say("Reading the sample text with the specimen …")
    scope = load()
    result = scope.read(sample_text(), focus=True)
    show(summary(result, result.high_pairs(scope.shape.numbers[-1], 1)))
    out.mkdir(parents=True, exist_ok=True)
    say("\nStudying its paragraphs: every measure, with chance levels and intervals …")
    made = scope.study(SAMPLE, out / "study", document="paragraph")
    page, viewer = made.report(out / "report.html"), made.save(out / "reading.html", result)
    say("\nOpen these pages in a browser:")
    say(f"  what every head does       {page.resolve().as_uri()}")
    say(f"  look into the text itself  {viewer.resolve().as_uri()}")
    if sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Open the report now?"):
        typer.launch(page.resolve().as_uri())


@app.command()
def segment(
    source: Annotated[str, typer.Argument(help="A text, a file, or - for standard input.")],
    model: Model = None,
    level: Annotated[str, typer.Option(help="topic or sentence.")] = "topic",
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Number of segments.", show_default="by itself")
    ] = None,
    granularity: Annotated[float, typer.Option(help="2: twice as many boundaries.")] = 1.0,
    inside_paragraphs: Annotated[
        bool, typer.Option("--inside-paragraphs", help="Cut inside paragraphs too.")
    ] = False,
    segmenter: Annotated[
        Path | None, typer.Option(help="A file from fit_segmenter().save().")
    ] = None,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    offsets: Annotated[bool, typer.Option(help="Print only where segments begin and end.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say why there is each boundary.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table with commas.")] = False,
    progress: Annotated[
        bool,
        typer.Option("--progress", help="Tell progress also where standard error is no terminal."),
    ] = False,
    device: Device = "auto",
    dtype: DType = None,
) -> None:
    """Cut a text where its meaning turns. Into a pipe it writes one segment a line."""
    from headscope.scope import load
    from headscope.segment.terminal import print_segments

    text = text_of(source)
    found = load(model, device=device, dtype=dtype).segment(
        text,
        level=level,
        n=n,
        granularity=granularity,
        segmenter=segmenter,
        language=language,
        inside_paragraphs=inside_paragraphs,
        progress=progress or sys.stderr.isatty(),
    )
    why = found.explain()
    if n is not None and len(found) < n and why.has_layout and not inside_paragraphs:
        say(
            f"{n} segments are more than the paragraphs of this text allow; it has {len(found)}. "
            "--inside-paragraphs cuts inside them too."
        )
    if as_json:
        explanation = {"explanation": why.as_dict()} if explain else {}
        write_json({**found.as_dict(), **explanation})
    elif as_csv:
        write_csv(found.as_dict()["segments"], ("start", "end", "score", "text"))
    elif explain:
        write(str(why))
    elif offsets:
        write("\n".join(f"{start}\t{end}" for start, end in found.offsets))
    else:
        print_segments(found)


@app.command()
def models(
    model: Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table with commas.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Try every model type of transformers (some minutes)."),
    ] = False,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", help="With --check, this model type only; may be given again."),
    ] = None,
) -> None:
    """Say what can be observed in a model, or in every type of model."""
    if check or types:
        from headscope.cli.families import check_types

        check_types(types, as_json=as_json, as_csv=as_csv)
        return
    from headscope.scope import load

    scope = load(model, device="cpu")
    if as_json:
        write_json(scope.shape.as_dict(), indent=2)
        return
    sense = scope.loaded.sense
    what = "a text" if sense is None else {"image": "a picture", "sound": "a sound"}[sense.kind]
    said = _said(scope.shape, what)
    if as_csv:
        write_csv([said], tuple(said))
        return
    for name, value in said.items():
        write(f"{name:<16}{value}")


def _said(shape: "ModelShape", what: str) -> dict[str, str]:
    """What can be observed, in words, of a model that reads a text or `what` else."""
    seen = {"interface": "head vectors and attention", "projection": "head vectors only"}
    own = shape.own
    more = {
        "attention": "each token sees those before it" if shape.causal else "both ways",
        "W_O takes": own.takes + ("" if own.product else ", which weighs values in its own way"),
        "stacks": ", ".join(one.name for one in shape.stacks),
        "out of reach": ", ".join(shape.asleep),  # of the inputs that it reads
        "out of sight": "; ".join(f"{path}: {why}" for path, why in shape.unseen),
    }
    return {
        "name": shape.name,
        "family": shape.family,
        "heads read as": f"{shape.stack} of {what}",
        "layers": shape.layers_in_words,
        "heads": f"{shape.heads} in a layer",
        "head size": str(shape.head_size),
        "window": f"{shape.window:,} tokens" if shape.window else "no limit",
        "can be seen": seen[shape.seam],
        "parameters": f"{shape.parameters:,}",
        **{name: value for name, value in more.items() if value},
    }


app.command()(read)
app.command()(view)
app.command()(study)
app.command()(effects)
app.command()(prune)
app.command()(entropy)
app.command()(agreement)
app.command()(denoise)
app.command()(communities)
app.command()(structure)
app.command()(compare)
app.command()(report)
app.command()(figure)


def main() -> None:
    """Run the command line."""
    sys.exit(run(app, sys.argv[1:]))
