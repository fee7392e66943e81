"""The command line: thin verbs over the library, readable by people and by pipes."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from headscope import __version__
from headscope.cli.report import figure, report
from headscope.cli.study import compare, study
from headscope.cli.texts import say, text_of
from headscope.cli.view import view
from headscope.errors import HeadscopeError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="See what each attention head of a transformer brings together.\n\n"
    "Layers and heads are counted from 1.",
)

Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="A hub name or a folder.", show_default="the bundled specimen"
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"headscope {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


@app.command()
def read(
    source: Annotated[str, typer.Argument(help="A text, a file, or - for standard input.")],
    model: Model = None,
    layer: Annotated[int | None, typer.Option(help="Layer of the pairs.")] = None,
    head: Annotated[int, typer.Option(help="Head of the pairs.")] = 1,
    rule: Annotated[str, typer.Option(help="Which pairs are high.")] = "quantile(0.01)",
    reading: Annotated[str, typer.Option(help="raw, cosine or centred.")] = "raw",
    special: Annotated[bool, typer.Option(help="Keep special tokens among the pairs.")] = True,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    rows: Annotated[int, typer.Option(help="Pairs to print.")] = 12,
    out: Annotated[Path | None, typer.Option(help="Also write a page (.html) here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Device = "auto",
) -> None:
    """Read one text: where attention goes, and which tokens a head brings together."""
    from headscope.scope import load

    text = text_of(source)
    scope = load(model, device=device)
    result = scope.read(text, language=language)
    pairs = result.high_pairs(
        layer or scope.shape.layers,
        head,
        rule,
        reading=reading,  # type: ignore[arg-type]
        special="kept" if special else "left_out",
    )
    if as_json:
        _print_json(result, pairs)
    else:
        from headscope.report.terminal import summary

        Console().print(summary(result, pairs, rows))
    if out is not None:
        result.save(out)
        say(f"A page about it: {out}")


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
    result = scope.read(sample_text())
    Console().print(summary(result, result.high_pairs(scope.shape.layers, 1)))
    out.mkdir(parents=True, exist_ok=True)
    say("\nStudying its paragraphs: every measure, with chance levels and intervals …")
    made = scope.study(SAMPLE, out / "study", cut="paragraph")
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
    granularity: Annotated[float, typer.Option(help="Above 1: more segments.")] = 1.0,
    segmenter: Annotated[
        Path | None, typer.Option(help="A file from fit_segmenter().save().")
    ] = None,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    offsets: Annotated[bool, typer.Option(help="Print only where segments begin and end.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Device = "auto",
) -> None:
    """Cut a text where its meaning turns. Into a pipe it writes one segment a line."""
    from headscope.scope import load
    from headscope.segment.terminal import print_segments

    text = text_of(source)
    found = load(model, device=device).segment(
        text,
        level=level,
        n=n,
        granularity=granularity,
        segmenter=segmenter,
        language=language,
        progress=sys.stderr.isatty(),
    )
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False))
    elif offsets:
        typer.echo("\n".join(f"{start}\t{end}" for start, end in found.offsets))
    else:
        print_segments(found)


@app.command()
def models(
    model: Model = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what can be observed in a model."""
    from headscope.scope import load

    scope = load(model, device="cpu")
    if as_json:
        typer.echo(json.dumps(scope.shape.as_dict(), indent=2))
        return
    for name, value in scope.shape.as_dict().items():
        typer.echo(f"{name.replace('_', ' '):<12}{value if value is not None else 'no limit'}")


app.command()(view)
app.command()(study)
app.command()(compare)
app.command()(report)
app.command()(figure)


def _print_json(result: Any, pairs: Any) -> None:
    focus, tokens = result.focus(), result.tokens
    found = {
        "model": result.scope.shape.as_dict(),
        "tokens": [
            {
                "piece": tokens.pieces[i],
                "word": tokens.word_texts[i],
                "id": int(tokens.ids[i]),
                "start": int(tokens.starts[i]),
                "end": int(tokens.ends[i]),
                "sentence": int(tokens.sentences[i]),
                "special": bool(tokens.special[i]),
            }
            for i in range(len(tokens))
        ],
        "focus": {
            "targets": focus.targets,
            "mass": focus.mass.round(6).tolist(),
            "chance": focus.chance.round(6).tolist(),
        },
        "high_pairs": {"caption": pairs.caption, "pairs": pairs.rows()},
    }
    typer.echo(json.dumps(found, ensure_ascii=False))


def main() -> None:
    """Run the command line; an error headscope can explain is printed, not traced."""
    try:
        app()
    except (HeadscopeError, ValueError, IndexError) as error:
        Console(stderr=True).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader of the pipe has seen enough
        sys.stderr.close()
        sys.exit(0)
