"""The splitter for retrieval libraries: whole text, kept lengths, their documents."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.segment.splitter import TopicSplitter

TEXT = (
    "The cat sleeps on the mat. It dreams of fish. The ship left the harbour at dawn. "
    "Waves broke over its deck. " * 4
)


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class LlamaIndexDocument:
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


@given(text=st.text(max_size=200), size=st.integers(1, 60))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_chunks_are_the_text_and_none_is_too_long(tiny, text, size):
    chunks = TopicSplitter(tiny, chunk_size=size).split_text(text)
    assert "".join(chunks) == text
    assert all(0 < len(chunk) <= size for chunk in chunks)


def test_a_limit_in_tokens_is_kept(tiny):
    chunks = TopicSplitter(tiny, chunk_size=12, length="tokens").split_text(TEXT)
    counts = [len(tiny.tokenizer(c, add_special_tokens=False)["input_ids"]) for c in chunks]
    assert "".join(chunks) == TEXT
    assert len(chunks) > 4
    assert max(counts) <= 12


def test_a_chunk_is_cut_between_sentences_where_that_is_enough(tiny):
    chunks = TopicSplitter(tiny, chunk_size=60).split_text(TEXT)
    assert all(chunk.rstrip().endswith(".") for chunk in chunks)


def test_a_length_of_ones_own(tiny):
    chunks = TopicSplitter(tiny, chunk_size=5, length=lambda t: len(t.split())).split_text(TEXT)
    assert max(len(chunk.split()) for chunk in chunks) <= 5


def test_langchain_documents_keep_their_metadata_and_place(tiny):
    given_ = LangChainDocument(TEXT, {"source": "a.txt"})
    made = TopicSplitter(tiny, chunk_size=80).split_documents([given_])
    assert all(isinstance(document, LangChainDocument) for document in made)
    assert {document.metadata["source"] for document in made} == {"a.txt"}
    for document in made:
        start = document.metadata["start_index"]
        assert TEXT[start : start + len(document.page_content)] == document.page_content


def test_llama_index_documents_become_nodes(tiny):
    splitter = TopicSplitter(tiny, chunk_size=80)
    nodes = splitter([LlamaIndexDocument(TEXT, {"page": 3})])
    assert "".join(node.text for node in nodes) == TEXT
    assert all(node.metadata == {"page": 3} for node in nodes)
    assert splitter.split_texts([TEXT, TEXT]) == [node.text for node in nodes] * 2


@pytest.mark.parametrize("wrong", [{"chunk_size": 0}, {"length": "pages"}])
def test_a_wrong_setting_is_an_error(tiny, wrong):
    with pytest.raises(ValueError, match=r"chunk|length"):
        TopicSplitter(tiny, **wrong)
