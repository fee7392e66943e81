"""The splitter inside the real libraries, where they are installed."""

from typing import Any

import pytest

from headscope.segment.splitter import TopicSplitter

TEXT = (
    "The cat sleeps on the mat. It dreams of fish. The ship left the harbour at dawn. "
    "Waves broke over its deck. " * 4
)


@pytest.fixture
def splitter(tiny) -> TopicSplitter:
    return TopicSplitter(tiny, chunk_size=80)


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install it to test this")


def test_langchain_stores_and_finds_the_chunks(splitter):
    library("langchain_text_splitters")
    documents = library("langchain_core.documents")
    stores, embeddings = (
        library("langchain_core.vectorstores"),
        library("langchain_core.embeddings"),
    )
    document = documents.Document(page_content=TEXT, metadata={"source": "a.txt"})
    for made in (
        splitter.split_documents([document]),
        splitter.as_langchain().split_documents([document]),
        splitter.create_documents([TEXT], [{"source": "a.txt"}]),
    ):
        assert "".join(chunk.page_content for chunk in made) == TEXT
        for chunk in made:
            start = chunk.metadata["start_index"]
            assert TEXT[start : start + len(chunk.page_content)] == chunk.page_content
        store = stores.InMemoryVectorStore(embeddings.DeterministicFakeEmbedding(size=8))
        store.add_documents(made)
        (found,) = store.similarity_search("ship", k=1)
        assert found.metadata["source"] == "a.txt"


def test_langchain_takes_the_splitter_for_one_of_its_own(splitter):
    base = library("langchain_text_splitters").TextSplitter
    made = splitter.as_langchain()
    assert isinstance(made, base)
    assert made.split_text(TEXT) == splitter.split_text(TEXT)


def test_llama_index_ingests_the_chunks_as_nodes_of_their_document(splitter):
    core, ingestion = library("llama_index.core"), library("llama_index.core.ingestion")
    document = core.Document(text=TEXT, metadata={"page": 3}, doc_id="one")
    pipeline = ingestion.IngestionPipeline(transformations=[splitter.as_llama_index()])
    nodes = pipeline.run(documents=[document])
    assert "".join(node.text for node in nodes) == TEXT
    assert {node.ref_doc_id for node in nodes} == {"one"}
    assert {node.metadata["page"] for node in nodes} == {3}
    assert [node.text for node in splitter([document])] == [node.text for node in nodes]
