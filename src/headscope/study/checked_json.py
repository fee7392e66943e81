"""JSON as the type it has to have: every field there, of its type, and within its limits.

A type is a dataclass of numbers, texts, tuples, mappings and other such dataclasses; `Between` and
`Like` in its annotations are the limits. What does not fit is told with the file and the field.
"""

import math
import re
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from headscope.errors import CannotStudy

AGAIN = "It is not as headscope writes it: copy the study again, or make it again."


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers, or lengths of texts and lists, that a field can have."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Like:
    """How a text has to look."""

    pattern: str
    says: str


def read_as(kind: Any, value: Any, field: str, file: str) -> Any:
    """A value of JSON as the type a field has."""
    limits: tuple[Any, ...] = ()
    if get_origin(kind) is Annotated:
        kind, *rest = get_args(kind)
        limits = tuple(rest)
    if get_origin(kind) in (Union, UnionType):
        if value is None and NoneType in get_args(kind):
            return None
        kind = next(one for one in get_args(kind) if one is not NoneType)
        return read_as(kind, value, field, file)
    made = _made(kind, value, field, file)
    for limit in limits:
        if isinstance(limit, Like):
            if not re.fullmatch(limit.pattern, made):
                raise wrong_field(file, field, value, limit.says)
        else:
            size = made if isinstance(made, int | float) else len(made)
            if not limit.least <= size <= limit.most:
                what = "a number" if made is size else "a length"
                expected = f"{what} from {limit.least:,} to {limit.most:,}"
                raise wrong_field(file, field, value, expected)
    return made


def _made(kind: Any, value: Any, field: str, file: str) -> Any:
    inside = f"{field}." if field else ""
    if isinstance(kind, type) and is_dataclass(kind):
        if not isinstance(value, dict):
            raise wrong_field(file, field, value, "several fields")
        hints = get_type_hints(kind, include_extras=True)
        optional = {one.name for one in fields(kind) if one.default_factory is not MISSING}
        missing = [name for name in hints if name not in value and name not in optional]
        if missing:
            raise CannotStudy(f"'{file}' has no field '{inside}{missing[0]}'. {AGAIN}")
        there = {name: own for name, own in hints.items() if name in value}
        return kind(
            **{name: read_as(own, value[name], inside + name, file) for name, own in there.items()}
        )
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(value, list) or (arguments[-1] is not ... and len(value) != 2):
            raise wrong_field(file, field, value, "a list")
        return tuple(read_as(arguments[0], one, field, file) for one in value)
    if origin is not None:  # a mapping
        if not isinstance(value, dict):
            raise wrong_field(file, field, value, "several fields")
        return {
            read_as(arguments[0], name, field, file): read_as(
                arguments[1], one, f"{inside}{name}", file
            )
            for name, one in value.items()
        }
    return _scalar(kind, value, field, file)


def _scalar(kind: Any, value: Any, field: str, file: str) -> Any:
    says = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}[kind]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value) if abs(value) < 2**63 else math.inf
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise wrong_field(file, field, value, says)
    if kind is str and any("\ud800" <= character <= "\udfff" for character in value):
        raise wrong_field(file, field, value, "a text without halves of surrogate pairs")
    return value


def wrong_field(file: str, field: str, value: Any, expected: str) -> CannotStudy:
    """The error for a field that is not as it should be."""
    return CannotStudy(
        f"In '{file}', {field} should be {expected}, not {shown_value(value)}. {AGAIN}"
    )


def shown_value(value: Any) -> str:
    """A stranger's value, short and harmless enough to be repeated."""
    shown = ascii(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"
