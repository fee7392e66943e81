"""The verb `read` of the command line."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from headscope.cli.options import Device, DType, Model
from headscope.cli.placed import PlacedAsked, is_placed, read_placed
from headscope.cli.texts import text_of
from headscope.errors import CannotRead
from headscope.output import check_out
from headscope.terminal import say, show, write, write_csv, write_json
from headscope.visible import shortened

PAIR_COLUMNS = (
    "similarity",
    "first",
    "second",
    "first_word",
    "second_word",
    "distance",
    "same_sentence",
    "same_word",
    "special",
)


def read(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…",
            help="Texts, files, or - for standard input; or pictures and sounds, by their files.",
        ),
    ],
    model: Model = None,
    layer: Annotated[int | None, typer.Option(help="Layer of the pairs.")] = None,
    head: Annotated[int, typer.Option(help="Head of the pairs.")] = 1,
    rule: Annotated[str, typer.Option(help="Which pairs are high.")] = "quantile(0.01)",
    reading: Annotated[str, typer.Option(help="raw, cosine or centred.")] = "raw",
    special: Annotated[
        str, typer.Option(help="Special tokens among the pairs: kept or left_out.")
    ] = "kept",
    across_windows: Annotated[
        bool,
        typer.Option("--across-windows", help="In a long text, also pairs across its windows."),
    ] = False,
    language: Annotated[str, typer.Option(help="For finding sentences.")] = "en",
    rows: Annotated[int, typer.Option(help="Pairs to print.", min=0)] = 12,
    out: Annotated[Path | None, typer.Option(help="Also write a page (.html) here.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each text.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print all pairs as a table with commas.")
    ] = False,
    marks: Annotated[
        Path | None,
        typer.Option(help="CoNLL-U of the same text: the page colours the text by its tags."),
    ] = None,
    column: Annotated[str, typer.Option(help="Of --marks: upos, xpos, deprel or misc.")] = "upos",
    writes: Annotated[
        bool, typer.Option("--writes", help="Also the words that the head raises and lowers.")
    ] = False,
    progress: Annotated[
        bool, typer.Option(help="Tell progress on standard error, also where that is no terminal.")
    ] = False,
    device: Device = "auto",
    dtype: DType = None,
) -> None:
    """Read a text: where attention goes, and which tokens a head brings together."""
    from headscope.report.terminal import summary
    from headscope.scope import load

    if out is not None:
        check_out(out, ".html", ".htm")
    if is_placed(sources[0]):
        asked = PlacedAsked(layer, head, rule, reading, special, rows, out, as_json, as_csv)
        read_placed(load(model, device=device, dtype=dtype), sources, asked)
        return
    if len(sources) > 1 and (out is not None or marks is not None):
        raise CannotRead("A page, like --marks, is of one text. Give one text, or leave it out.")
    texts = [text_of(source) for source in sources]
    scope = load(model, device=device, dtype=dtype)
    chosen = scope.shape.numbers[-1] if layer is None else layer
    for number, (source, text) in enumerate(zip(sources, texts, strict=True)):
        result = scope.read(
            text,
            language=language,
            focus=True,
            progress=progress or sys.stderr.isatty(),
        )
        if marks is not None:
            result.mark(column, marks, column=column)
        pairs = result.high_pairs(
            chosen,
            head,
            rule,
            reading=reading,  # type: ignore[arg-type]
            special=special,  # type: ignore[arg-type]
            across_windows=across_windows,
        )
        words = result.writes(chosen, head) if writes else None
        if as_json:
            write_json(_as_json(result, pairs, words))
        elif as_csv:
            named = [{"text": number + 1, **pair} for pair in pairs.rows()]
            write_csv(named, ("text", *PAIR_COLUMNS), head=number == 0)
        else:
            if len(sources) > 1:
                write(f"{number + 1}. {shortened(source, 60)}")
            show(summary(result, pairs, rows, words))
        if out is not None:
            result.save(out)
            say(f"A page about it: {out}")


def _as_json(result: Any, pairs: Any, words: Any) -> dict[str, Any]:
    focus, tokens = result.focus(), result.tokens
    return {
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
                "unknown": bool(tokens.unknown[i]),
                "window": int(result.token_windows[i]),
            }
            for i in range(len(tokens))
        ],
        "focus": {
            "targets": focus.targets,
            "mass": focus.mass.round(6).tolist(),
            "chance": focus.chance.round(6).tolist(),
        },
        "high_pairs": {"caption": pairs.caption, "pairs": pairs.rows()},
        **({} if words is None else {"writes": asdict(words)}),
    }
