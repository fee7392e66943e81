"""What headscope's segmentation is compared with: from no boundaries at all to C99 and LSA.

Every function takes the units of a text and the number of segments, or None where the method
chooses it by itself, and gives the boundaries: the number of units before each.
"""

import hashlib
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer

from headscope.segment.segmenter import kernel_vectors


def none(units: list[str], count: int | None) -> list[int]:
    return []


def even(units: list[str], count: int | None) -> list[int]:
    assert count is not None
    return sorted({round(len(units) * part / count) for part in range(1, count)} - {0, len(units)})


def random(units: list[str], count: int | None) -> list[int]:
    assert count is not None
    seed = int.from_bytes(hashlib.sha256(" ".join(units).encode()).digest()[:8])
    places = np.random.default_rng(seed).permutation(np.arange(1, len(units)))
    return sorted(places[: count - 1].tolist())


def nltk_texttiling(units: list[str], count: int | None) -> list[int]:
    """nltk's TextTiling with its own settings, a unit a paragraph; it chooses the number."""
    from nltk.tokenize import TextTilingTokenizer

    flat = [" ".join(unit.split()) or "x" for unit in units]
    try:
        tiles = TextTilingTokenizer(stopwords=sorted(ENGLISH_STOP_WORDS)).tokenize(
            "\n\n".join(flat)
        )
    except ValueError:  # too short for its windows
        return []
    sizes = [len([part for part in tile.split("\n\n") if part.strip()]) for tile in tiles]
    return [cut for cut in np.cumsum(sizes)[:-1].tolist() if 0 < cut < len(units)]


def texttiling(units: list[str], count: int | None) -> list[int]:
    """TextTiling on units: blocks of six, cosine of word counts, the deepest valleys."""
    assert count is not None
    counts = _counts(units)
    before = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    places = np.arange(1, len(units))
    left = before[places] - before[np.maximum(places - 6, 0)]
    right = before[np.minimum(places + 6, len(units))] - before[places]
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    alike = (left * right).sum(axis=1) / np.maximum(norms, 1e-9)
    depth = np.array(
        [_peak(alike[i::-1]) + _peak(alike[i:]) - 2 * alike[i] for i in range(len(alike))]
    )
    return sorted((np.argsort(-depth, kind="stable")[: count - 1] + 1).tolist())


def c99(units: list[str], count: int | None) -> list[int]:
    """C99 (Choi 2000): ranks of cosines in 11 × 11 windows, divisive clustering by density."""
    counts = _counts(units)
    unit = counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)
    ranks = _ranks(unit @ unit.T)
    area = np.pad(ranks.cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def inside(a: int, b: int) -> float:
        return float(area[b, b] - area[a, b] - area[b, a] + area[a, a])

    edges, densities = [0, len(units)], [inside(0, len(units)) / len(units) ** 2]
    order: list[int] = []
    total, square = inside(0, len(units)), float(len(units) ** 2)
    most = (count or min(len(units), 60)) - 1
    while len(order) < most:
        best = (-1.0, 0, 0.0, 0.0)
        for a, b in pairwise(edges):
            for c in range(a + 1, b):
                rest = total - inside(a, b) + inside(a, c) + inside(c, b)
                size = square - (b - a) ** 2 + (c - a) ** 2 + (b - c) ** 2
                best = max(best, (rest / size, c, rest, size))
        if best[1] == 0:
            break
        density, cut, total, square = best
        edges = sorted([*edges, cut])
        order.append(cut)
        densities.append(density)
    if count is None and len(densities) > 2:
        steps = np.diff(densities)
        large = np.flatnonzero(steps > steps.mean() + 1.2 * steps.std())
        order = order[: int(large[-1]) + 1] if len(large) else []
    return sorted(order)


def tfidf(units: list[str]) -> NDArray[np.float32]:
    """Units as TF-IDF, prepared for the same dynamic programme as the heads."""
    made = TfidfVectorizer(stop_words="english", sublinear_tf=True, token_pattern=r"\w+")
    try:
        matrix = made.fit_transform(units).toarray().astype(np.float32)
    except ValueError:  # nothing but stop words
        matrix = np.zeros((len(units), 1), dtype=np.float32)
    return kernel_vectors(matrix[:, None, :], np.ones(1))


def lsa(units: list[str]) -> NDArray[np.float32]:
    """The same after latent semantic analysis of the text, 50 dimensions."""
    made = TfidfVectorizer(stop_words="english", sublinear_tf=True, token_pattern=r"\w+")
    matrix = made.fit_transform(units)
    size = min(50, min(matrix.shape) - 1)
    found = TruncatedSVD(size, random_state=0).fit_transform(matrix).astype(np.float32)
    return kernel_vectors(found[:, None, :], np.ones(1))


def _counts(units: list[str]) -> NDArray[np.float64]:
    made = CountVectorizer(stop_words="english", token_pattern=r"\w+", preprocessor=_stemmed)
    try:
        found: NDArray[np.float64] = made.fit_transform(units).toarray().astype(float)
    except ValueError:
        found = np.zeros((len(units), 1))
    return found


def _stemmed(text: str) -> str:
    return " ".join(_stem(word) for word in text.lower().split())


@cache
def _stem(word: str) -> str:
    from nltk.stem import PorterStemmer

    return str(PorterStemmer().stem(word.strip(".,;:!?\"'()[]")))


def _ranks(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the neighbours in an 11 × 11 window that are smaller."""
    size = len(similarity)
    smaller, seen = np.zeros((size, size)), np.zeros((size, size))
    for down in range(-5, 6):
        for across in range(-5, 6):
            if down == across == 0:
                continue
            rows = slice(max(0, -down), min(size, size - down))
            columns = slice(max(0, -across), min(size, size - across))
            if rows.stop <= rows.start or columns.stop <= columns.start:
                continue
            other = similarity[
                rows.start + down : rows.stop + down, columns.start + across : columns.stop + across
            ]
            smaller[rows, columns] += other < similarity[rows, columns]
            seen[rows, columns] += 1
    return smaller / np.maximum(seen, 1)


def _peak(values: NDArray[np.float64]) -> float:
    """The height reached by climbing from the first value until it goes down."""
    top = values[0]
    for value in values[1:]:
        if value < top:
            break
        top = value
    return float(top)
