"""The tokens of a batch of texts, with everything about them that no head changes.

Made once for a batch and used for every layer, so that what depends on the text alone is counted
and moved to a device only once.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from headscope.pairs.tokens import Bools, Ints, PairTokens, Special

T = TypeVar("T")


class TokenBatch:
    """The tokens of several texts; results that depend on them alone are remembered.

    types: for each text (kinds, tokens), numbers that are equal where two tokens are of one type;
        with them, the anchors of high pairs are found.
    """

    def __init__(
        self, texts: Iterable[PairTokens], types: Sequence[npt.NDArray[np.integer]] | None = None
    ) -> None:
        self.texts = tuple(texts)
        self.type_numbers = None if types is None else tuple(types)
        self.lengths: npt.NDArray[np.int64] = np.array([len(text) for text in self.texts], np.int64)
        self._known: dict[Hashable, object] = {}

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def types(self) -> tuple[Ints, ...] | None:
        """Where the type of each token first occurs, for each text (kinds, tokens)."""
        numbers = self.type_numbers
        if numbers is None:
            return None
        return self.remember("types", lambda: tuple(first_places(each) for each in numbers))

    def remember(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave the first time it was asked for under this key."""
        if key not in self._known:
            self._known[key] = make()
        return cast(T, self._known[key])

    def kept(self, setting: Special) -> tuple[Bools, ...]:
        """Which tokens of each text take part."""
        return tuple(text.kept(setting) for text in self.texts)


def first_places(types: npt.NDArray[np.integer]) -> Ints:
    """Where the type of each token first occurs, from any numbers of types (kinds, tokens)."""
    places = np.empty(types.shape, np.int32)
    for kind, numbers in enumerate(types):
        _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
        places[kind] = first[which]
    return places


def labels(numbers: Ints) -> Ints:
    """The same numbers, with every -1 replaced by a negative number of its own: equal to none."""
    return np.where(numbers < 0, -2 - np.arange(len(numbers), dtype=np.int32), numbers).astype(
        np.int32
    )
