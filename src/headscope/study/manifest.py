"""What a study says of itself: typed, checked field by field when read, sealed when written.

A manifest may come from anybody. What is not as it should be is told in a sentence that names the
file and the field, and nothing else of the program ever sees it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from headscope.errors import CannotStudy
from headscope.study.checked_json import Between, Like, read_as, shown_value, wrong_field

FORMAT = 2
LONGEST = 2**24  # bytes of a manifest; ours have a few thousand

Some = Annotated[int, Between(1, 100_000)]
Count = Annotated[int, Between(0, 2**62)]
Text = Annotated[str, Between(0, 4096)]
Name = Annotated[str, Between(1, 4096)]
Hash = Annotated[str, Like(r"[0-9a-f]{32}", "32 hexadecimal digits")]
TABLE = r"[a-z][a-z0-9_]{0,63}"
TableName = Annotated[str, Like(TABLE, "small letters, digits and _")]
ReadingName = Annotated[str, Like(r"raw|cosine|centred", "raw, cosine or centred")]
Special = Annotated[str, Like(r"kept|left_out", "kept or left_out")]
Null = Annotated[str, Like(r"shuffle|random|permuted|uniform|identity", "a null")]
NullMode = Annotated[str, Like(r"shuffle|random(-[23])?|permuted|uniform|identity", "a mode")]
Rule = Annotated[str, Like(r"(quantile|peak|sigma|nearest)\([0-9.e+-]{1,30}\)", "a rule")]


@dataclass(frozen=True, slots=True)
class StudiedModel:
    """The model, as in `models.ModelShape`."""

    name: Name
    family: Text
    stack: Annotated[str, Like(r"[a-z][\w .,()-]{0,99}", "the name of a stack")]
    layers: Some
    heads: Some
    head_size: Some
    window: Some | None
    seam: Annotated[str, Like("interface|projection", "interface or projection")]
    parameters: Count
    weights: Hash  # of the weights themselves
    numbers: Annotated[tuple[Some, ...], Between(0, 100_000)] = field(default_factory=tuple)
    """Of the layers with heads, from 1, where a hybrid has layers without; () for all."""

    @property
    def layer_numbers(self) -> tuple[int, ...]:
        """The numbers of the layers, as tables have them."""
        return self.numbers or tuple(range(1, self.layers + 1))


@dataclass(frozen=True, slots=True)
class StudiedCorpus:
    """The documents."""

    name: Name
    document: Annotated[str, Like("file|paragraph|line", "file, paragraph or line")]
    column: Text
    files: Text | None
    fingerprint: Hash  # the sum of the identities of its documents
    documents: Count
    windows: Count
    tokens: Count
    skipped: Count
    kind: Annotated[str, Like("text|image|sound", "text, image or sound")] = field(
        default_factory=lambda: "text"
    )
    """What a document is; of a picture or a sound, tokens are patches or frames."""

    @property
    def in_words(self) -> str:
        """ "40 documents, 5,120 tokens", or "40 pictures, 7,880 positions"."""
        what, parts = {
            "text": ("document", "tokens"),
            "image": ("picture", "positions"),
            "sound": ("sound", "positions"),
        }[self.kind]
        several = "s" if self.kind == "text" or self.documents != 1 else ""
        return f"{self.documents:,} {what}{several}, {self.tokens:,} {parts}"


@dataclass(frozen=True, slots=True)
class StudiedWith:
    """The parameters, as in `parameters.Parameters`."""

    readings: Annotated[tuple[ReadingName, ...], Between(1, 3)]
    special: Annotated[tuple[Special, ...], Between(1, 2)]
    rule: Rule
    sweep: bool
    nulls: Annotated[tuple[Null, ...], Between(0, 5)]
    group: Annotated[str, Like("document|file|window", "document, file or window")]
    null_tokens: Annotated[int, Between(1, 2**40)]
    replicates: Annotated[int, Between(0, 100_000)]
    seed: Annotated[int, Between(0, 2**63 - 1)]
    window: Some | None
    language: Text
    batch_tokens: Annotated[int, Between(1, 2**40)]
    padding: Annotated[float, Between(0, 1)]
    texts: Annotated[int, Between(0, 100_000)]


@dataclass(frozen=True, slots=True)
class StudiedNulls:
    """The sample of the corpus that nulls were run on."""

    windows: Count
    tokens: Count
    cannot: Mapping[NullMode, Text]  # modes that could not be run, and why


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table of the study."""

    rows: Count
    sha256: Annotated[str, Like(r"[0-9a-f]{64}", "64 hexadecimal digits")]


@dataclass(frozen=True, slots=True)
class Addition:
    """Tables that were added to a finished study, and how they were made."""

    tables: Annotated[tuple[TableName, ...], Between(1, 100)]
    headscope: Text
    parameters: Mapping[Name, Text]  # everything that decides what they say
    documents: Count  # of the corpus, that they were made from
    windows: Count
    tokens: Count
    device: Text
    threads: Some
    seconds: Annotated[float, Between(0, 1e12)]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was studied, how, and what came out."""

    headscope: Text  # versions
    torch: Text
    transformers: Text
    python: Text
    model: StudiedModel
    silenced: tuple[tuple[Some, Some], ...]  # (layer, head)
    corpus: StudiedCorpus
    parameters: StudiedWith
    focus: Text  # "measured", or why it could not be
    nulls: StudiedNulls
    device: Text
    dtype: Text
    threads: Some
    padding: Annotated[float, Between(0, 1)]
    seconds: Annotated[float, Between(0, 1e12)]
    tokens_per_second: Annotated[float, Between(0, 1e15)]
    tables: Mapping[TableName, TableEntry]
    added: Mapping[TableName, Addition] = field(default_factory=dict)  # to the study, later on


def plain(manifest: Manifest) -> dict[str, Any]:
    """Plain values, as JSON gives them back."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(manifest)))
    return found


def written(manifest: Manifest) -> bytes:
    """A manifest as its file has it, sealed."""
    return sealed({"format": FORMAT, **plain(manifest)})


def sealed(said: Mapping[str, Any]) -> bytes:
    """Plain values as JSON, with a checksum of them."""
    text = json.dumps({**said, "seal": _seal(said)}, ensure_ascii=False, indent=2)
    return text.encode() + b"\n"


def _seal(said: Mapping[str, Any]) -> str:
    """A checksum of everything but itself, however it is written down."""
    rest = {name: value for name, value in said.items() if name != "seal"}
    plain = json.dumps(rest, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return sha256(plain.encode()).hexdigest()


def read_manifest(data: bytes, file: str) -> Manifest:
    """The manifest in the bytes of a file; raises with the file and the field that is wrong."""
    said = _plain(data, file)
    number = said.get("format")
    if number != FORMAT or isinstance(number, bool):
        by = f", {said['headscope']}" if isinstance(said.get("headscope"), str) else ""
        raise CannotStudy(
            f"The study in '{file}' has format {shown_value(number)}; this headscope reads "
            f"{FORMAT}. "
            f"Use the headscope that made it{by}, or make the study again."
        )
    if said.get("seal") != _seal(said):
        raise CannotStudy(
            f"'{file}' is not as it was written: its checksum does not fit. Copy the study again, "
            "or make it again."
        )
    found: Manifest = read_as(Manifest, said, "", file)
    numbers, most = found.model.layer_numbers, (found.model.layers, found.model.heads)
    if list(numbers) != sorted(set(numbers)) or len(numbers) != most[0]:
        raise wrong_field(file, "model.numbers", numbers, f"{most[0]} numbers of layers, in order")
    most = (numbers[-1], most[1])
    if most[0] * most[1] > 100_000 or any(not fits(pair, most) for pair in found.silenced):
        raise wrong_field(file, "silenced", found.silenced, "heads that the model has")
    return found


def table_names(file: Path) -> list[str]:
    """The tables that a manifest of ours lists, of whatever format; raises of any other file."""
    said = _plain(manifest_bytes(file), str(file))
    tables = said.get("tables")
    if not isinstance(tables, dict) or not isinstance(said.get("headscope"), str):
        raise CannotStudy(
            f"'{file}' is no manifest of headscope, so it is not replaced, with or without "
            "--force. Name another folder with --out."
        )
    return [name for name in tables if re.fullmatch(TABLE, name)]


def manifest_bytes(file: Path) -> bytes:
    """What is in the file of a manifest, if it can be one."""
    try:
        if not file.is_file() or file.stat().st_size > LONGEST:
            raise CannotStudy(f"'{file}' is no manifest of headscope, by its kind or its size.")
        return file.read_bytes()
    except OSError as error:
        raise CannotStudy(f"'{file}' cannot be read: {error.strerror or error}.") from error


def fits(pair: tuple[int, int], most: tuple[int, int]) -> bool:
    """Whether there is such a head, counted from 1."""
    return 1 <= pair[0] <= most[0] and 1 <= pair[1] <= most[1]


def _plain(data: bytes, file: str) -> dict[str, Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError) as error:
        why = str(error).splitlines()[0][:120]
        raise CannotStudy(
            f"'{file}' is no manifest of headscope, or a damaged one: it is no JSON ({why}). Copy "
            "the study again, or make it again."
        ) from None
    if not isinstance(said, dict):
        raise CannotStudy(f"'{file}' is no manifest of headscope: it holds no fields.")
    return said
