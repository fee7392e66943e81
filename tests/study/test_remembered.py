"""What depends on a unit alone is made once, goes along with it, and is what it would be anew."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from engines.studied import LINES
from headscope.corpus import Document
from headscope.measures import anchor, repetition
from headscope.measures.type_counts import word_places
from headscope.text import Tokens
from headscope.units import Unit, read_units, shuffled

VOCABULARY, SEED = 10_000, 3
FIELDS = set(Tokens.__dataclass_fields__) - {"spelled"}  # which is symbols, in one way or other


@pytest.fixture
def units(tiny):
    """Short and long ones, the last without a repeated word."""

    def read() -> list[Unit]:
        texts = [*LINES[:6], " ".join(LINES[:4]), "Each word stands here once."]
        return [
            unit
            for number, text in enumerate(texts)
            for unit in read_units(number, Document(text, "a.txt"), tiny.tokenizer, 50, "en")
        ]

    return read


def plain_types(unit: Unit) -> np.ndarray:
    tokens = unit.tokens
    words = [
        -1 - token if special else word
        for token, special, word in zip(tokens.ids, tokens.special, tokens.word_types, strict=True)
    ]
    rows = [tokens.ids.tolist(), words]
    for order in anchor.permutations(unit, SEED):
        rows += [[row[at] for at in order] for row in rows[:2]]
    return np.array(rows)


def test_types_are_the_same_remembered_or_not(units):
    for unit in units():
        expected = plain_types(unit)
        for again in (unit, unit, pickle.loads(pickle.dumps(unit))):
            found = anchor.types_of(again, SEED)
            assert found.dtype == np.int64
            assert np.array_equal(found, expected)
        assert not np.array_equal(anchor.types_of(unit, SEED + 1), expected)


def test_couples_are_the_same_together_alone_and_in_part_remembered(units):
    together = repetition.couples(units(), SEED)
    assert together.dtype == np.int64
    assert (together[-1] == -1).all()
    assert (together[:-1] >= 0).all()
    alone = [repetition.couples([unit], SEED)[0] for unit in units()]
    assert np.array_equal(together, alone)
    mixed = units()
    repetition.couples(mixed[1::2], SEED)
    for _ in range(2):
        assert np.array_equal(repetition.couples(mixed, SEED), together)
    sent = pickle.loads(pickle.dumps(mixed))
    assert all(("couples", SEED) in unit.known for unit in sent)
    assert np.array_equal(repetition.couples(sent, SEED), together)
    assert not np.array_equal(repetition.couples(mixed, SEED + 1), together)


def test_a_shuffled_unit_remembers_nothing_of_the_other(units):
    unit = units()[0]
    anchor.types_of(unit, SEED)
    word_places(unit, VOCABULARY)
    moved = shuffled(unit, SEED)
    assert unit.known
    assert not moved.known
    assert np.array_equal(anchor.types_of(moved, SEED), plain_types(moved))


def test_a_unit_that_was_sent_is_the_same_in_every_number(units):
    for unit in (*units(), *[shuffled(unit, SEED) for unit in units()[:2]]):
        sent = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(unit))))
        for name in (*FIELDS, "symbols", "word_types", "word_texts", "pieces"):
            ours, theirs = getattr(unit.tokens, name), getattr(sent.tokens, name)
            assert np.array_equal(ours, theirs), name
            if isinstance(ours, np.ndarray):
                assert ours.dtype == theirs.dtype, name
        for name in type(unit.marks).__slots__:
            ours, theirs = getattr(unit.marks, name), getattr(sent.marks, name)
            assert np.array_equal(ours, theirs), name
            assert ours.dtype == theirs.dtype, name
        for name in ("document", "identity", "window", "source", "line", "part", "text"):
            assert getattr(unit, name) == getattr(sent, name), name
        ours, theirs = word_places(unit, VOCABULARY), word_places(sent, VOCABULARY)
        assert np.array_equal(ours[0], theirs[0])
        assert ours[1] == theirs[1]


def test_symbols_are_sent_whole_whatever_they_hold(units):
    unit = units()[0]
    odd = ("a\0b", "\0", *unit.tokens.symbols[2:])
    unit = replace(unit, tokens=replace(unit.tokens, spelled=odd))
    assert pickle.loads(pickle.dumps(unit)).tokens.symbols == odd
