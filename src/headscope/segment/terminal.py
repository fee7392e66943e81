"""A segmentation in the terminal: each segment in its colour, its number and place beside it."""

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from headscope.segment.segments import Segments
from headscope.terminal import Terminal

COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")


def coloured(segments: Segments) -> Group:
    """Topics as blocks under a line each; sentences one a line."""
    strongest = max((segment.score for segment in segments), default=0.0)
    blocks: list[Text | Padding] = []
    for number, segment in enumerate(segments):
        colour = COLOURS[number % len(COLOURS)]
        body = " ".join(segment.split()) if segments.level == "sentence" else segment.strip()
        place = f"{segment.start}–{segment.end}"
        if segments.level == "sentence":
            blocks.append(Text.assemble((f"{number + 1:>4} ", "dim"), (body, colour)))
            continue
        strength = round(8 * max(segment.score, 0) / strongest) if strongest > 0 else 0
        score = f"  {'▮' * strength}{'▯' * (8 - strength)} {segment.score:.2f}" if number else ""
        blocks.append(Text.assemble((f"▌ {number + 1} ", f"bold {colour}"), (place + score, "dim")))
        blocks.append(Padding(Text(body, colour), (0, 0, 1, 2)))
    return Group(*blocks)


def print_segments(segments: Segments, console: Terminal | None = None) -> None:
    """Colours for a person; where a pipe reads, one segment a line."""
    console = console or Terminal()
    if console.is_terminal:
        console.print(coloured(segments))
        return
    for segment in segments:
        console.file.write(" ".join(segment.split()) + "\n")
