"""Text as a person can safely see it: what would steer a terminal or a page is spelled out.

Control characters move cursors and end programs, overrides of direction swap words, and half a
surrogate pair cannot be written at all. All that is shown, in whatever way, goes through here.
"""

import regex

# Controls, line separators, overrides of direction, halves of surrogate pairs, noncharacters.
STEERING = regex.compile(
    r"[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Noncharacter_Code_Point}--[\u061c\u200e\u200f]]",
    regex.V1,
)
STEERING_BUT_LINES = regex.compile(rf"[{STEERING.pattern}--[\n\t]]", regex.V1)


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every character that steers written as Python writes it: `\\x1b`, `\\u202e`.

    With `lines`, its line ends and tabs stay as they are.
    """
    shown: str = (STEERING_BUT_LINES if lines else STEERING).sub(_spelled, text)
    return shown


def shortened(text: str, longest: int = 24) -> str:
    """A word on one line, a very long one cut in the middle."""
    shown = visible(text[: 2 * longest] + text[-2 * longest :] if len(text) > 4 * longest else text)
    if len(shown) > longest:
        shown = f"{shown[: longest // 2]}…{shown[-longest // 2 + 1 :]}"
    return shown


def _spelled(found: "regex.Match[str]") -> str:
    return repr(found[0])[1:-1]
