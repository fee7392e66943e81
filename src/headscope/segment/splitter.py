"""Segments as the chunks that retrieval libraries ask for.

`TopicSplitter` has the methods of LangChain's text splitters and of LlamaIndex's node parsers and
text splitters, and depends on neither: documents are made with the class of those it is given.
Where a library insists on its own class, `as_langchain` and `as_llama_index` make one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal

import regex

from headscope.errors import NotPossible
from headscope.models import load_model
from headscope.observed import ObservedModel
from headscope.segment.by_level import segment
from headscope.segment.passages import passages
from headscope.segment.segmenter import Segmenter

WORD = regex.compile(r"\S+\s*")


@dataclass(frozen=True)
class Chunk:
    """A piece of a text, with the fields of a LangChain document."""

    page_content: str
    metadata: dict[str, Any]
    id: str | None = None


class TopicSplitter:
    """Split texts into topics of at most `chunk_size`, the length of a chunk being kept to.

    The length is counted in characters, in the model's tokens, or by a function of your own. What
    is too long for one chunk is cut between sentences, then words, then characters; joined in
    order the chunks are the text. Topics turn between paragraphs where a text has some, unless
    `inside_paragraphs`.
    """

    def __init__(
        self,
        scope: ObservedModel | None = None,
        *,
        chunk_size: int | None = None,
        length: Literal["characters", "tokens"] | Callable[[str], int] = "characters",
        granularity: float = 1.0,
        segmenter: Segmenter | None = None,
        language: str = "en",
        inside_paragraphs: bool = False,
    ):
        if chunk_size is not None and chunk_size < 1:
            raise NotPossible(f"chunk_size={chunk_size} leaves no room for a chunk")
        self.scope = ObservedModel(load_model()) if scope is None else scope
        self.chunk_size = chunk_size
        self.granularity = granularity
        self.segmenter = segmenter
        self.language = language
        self.inside_paragraphs = inside_paragraphs
        self._length = self._counter(length)

    def split_text(self, text: str) -> list[str]:
        """The chunks of one text, in order."""
        segments = segment(
            self.scope,
            text,
            granularity=self.granularity,
            segmenter=self.segmenter,
            language=self.language,
            inside_paragraphs=self.inside_paragraphs,
        )
        return [chunk for segment in segments for chunk in self._fitted(str(segment))]

    def split_texts(self, texts: Iterable[str]) -> list[str]:
        """The chunks of several texts, in order (LlamaIndex's name)."""
        return [chunk for text in texts for chunk in self.split_text(text)]

    def create_documents(
        self, texts: Sequence[str], metadatas: Sequence[dict[str, Any]] | None = None
    ) -> list[Chunk]:
        """A chunk of each text after the other, `start_index` added to its metadata."""
        made = []
        for text, metadata in zip(texts, metadatas or [{} for _ in texts], strict=True):
            start = 0
            for chunk in self.split_text(text):
                made.append(Chunk(chunk, {**metadata, "start_index": start}))
                start += len(chunk)
        return made

    def split_documents(self, documents: Iterable[Any]) -> list[Any]:
        """Documents of LangChain's kind (`page_content`, `metadata`), one per chunk."""
        return [
            type(document)(page_content=chunk.page_content, metadata=chunk.metadata)
            for document in documents
            for chunk in self.create_documents([document.page_content], [document.metadata])
        ]

    transform_documents = split_documents

    def get_nodes_from_documents(self, documents: Sequence[Any], **_: Any) -> list[Any]:
        """Documents of LlamaIndex's kind (`text`, `metadata`), one per chunk."""
        return [
            type(document)(text=chunk, metadata=dict(document.metadata))
            for document in documents
            for chunk in self.split_text(document.text)
        ]

    __call__ = get_nodes_from_documents

    def as_langchain(self) -> Any:
        """A `TextSplitter` of langchain-text-splitters, where nothing else will do."""
        base = import_module("langchain_text_splitters").TextSplitter
        return self._subclass(base)(chunk_overlap=0, add_start_index=True)

    def as_llama_index(self) -> Any:
        """A `TextSplitter` of llama-index-core, as an `IngestionPipeline` wants it."""
        return self._subclass(import_module("llama_index.core.node_parser").TextSplitter)()

    def _subclass(self, base: Any) -> Any:
        return type(base)("Topics", (base,), {"split_text": lambda _, text: self.split_text(text)})

    def _counter(self, length: str | Callable[[str], int]) -> Callable[[str], int]:
        if callable(length):
            return length
        if length == "characters":
            return len
        if length == "tokens":
            return lambda text: len(
                self.scope.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
            )
        raise NotPossible(f"length is 'characters', 'tokens' or a function, not {length!r}")

    def _fits(self, text: str) -> bool:
        return self.chunk_size is None or self._length(text) <= self.chunk_size

    def _fitted(self, segment: str) -> list[str]:
        """A segment, or as few pieces of it as fit, cut between sentences where that is enough."""
        if self._fits(segment):
            return [segment]
        starts = [start for start, _ in passages(segment, self.language)[0]]
        sentences = _between(segment, [0, *starts[1:], len(segment)])
        return self._packed(sentences, self._words)

    def _words(self, sentence: str) -> list[str]:
        ends = [match.end() for match in WORD.finditer(sentence)]
        return self._packed(_between(sentence, [0, *ends[:-1], len(sentence)]), self._characters)

    def _characters(self, word: str) -> list[str]:
        """Single characters packed; one that does not fit by itself is a chunk all the same."""
        return self._packed(list(word), lambda character: [character])

    def _packed(self, parts: list[str], finer: Callable[[str], list[str]]) -> list[str]:
        """Parts joined while they fit; one that is too long alone is cut finer."""
        packed, open_part = list[str](), ""
        for part in parts:
            if open_part and self._fits(open_part + part):
                open_part += part
                continue
            if open_part:
                packed.append(open_part)
            if self._fits(part):
                open_part = part
            else:
                packed += finer(part)
                open_part = ""
        return [*packed, open_part] if open_part else packed


def _between(text: str, edges: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise(edges) if b > a]
