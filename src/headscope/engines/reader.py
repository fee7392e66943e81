"""What a reader does; run by `readers` as a program of its own, without a model.

It is told how to read documents, and then gets them in blocks.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence

from headscope.documents import Document
from headscope.engines.serving import serve
from headscope.units import Item, Units

Read = Callable[[Item], Units]


def blocks(items: Iterator[Item], documents: int, characters: int) -> Iterator[list[Item]]:
    """Documents in blocks that are worth sending: so many, or fewer with so many characters."""
    block, size = list[Item](), 0
    for item in items:
        block.append(item)
        size += len(item[1].text) if isinstance(item[1], Document) else 0
        if len(block) >= documents or size >= characters:
            yield block
            block, size = [], 0
    if block:
        yield block


def read_block(read: Read, block: Sequence[Item]) -> list[Units]:
    """The units of every document of a block."""
    return [read(item) for item in block]


def _reads(said: bytes) -> Callable[[Sequence[Item]], list[Units]]:
    read, prepare = pickle.loads(said)

    def answer(block: Sequence[Item]) -> list[Units]:
        found = read_block(read, block)
        prepare([unit for units, _ in found for unit in units])
        return found

    return answer


def main() -> None:
    """Answer until nobody asks any more."""
    serve(_reads)
