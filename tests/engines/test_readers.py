"""Readers: the same units in the same order, whoever of them is killed or cannot be started."""

import copy
import os
import sys
import types
from functools import partial

import pytest

from engines.studied import DOCUMENTS, LINES
from engines.test_engines import workers_of
from headscope.corpus import Corpus
from headscope.engines import readers as own
from headscope.engines.readers import Readers, readers_of
from headscope.errors import CannotStudy
from headscope.study.prepare import prepare
from headscope.units import Units, _read

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are of POSIX")

VOCABULARY = 10_000
PREPARE = partial(prepare, seed=0, vocabulary=VOCABULARY)
REMEMBERED = {("types", 0), ("couples", 0), ("word places", VOCABULARY)}
CORPUS = Corpus([*DOCUMENTS[:40], "\x00\x01", *LINES[:4], "\u200b", " ", *DOCUMENTS[40:80]])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(own, "DOCUMENTS", 3)


def reading(tokenizer):
    return partial(_read, tokenizer=tokenizer, window=20, language="en")


def told(found: list[Units]) -> list[object]:
    """What tells two readings apart."""
    return [
        (
            skipped,
            [
                (unit.document, unit.window, unit.identity, unit.text, unit.tokens.ids.tolist())
                for unit in units
            ],
        )
        for units, skipped in found
    ]


def test_units_come_in_order_and_prepared_though_readers_are_killed(tiny):
    read = reading(tiny.tokenizer)
    here = list(map(read, enumerate(CORPUS)))
    assert sum(skipped is not None for _, skipped in here) >= 3
    taken, found, killed = [0], [], []

    def items():
        for item in enumerate(CORPUS):
            taken[0] = item[0]
            yield item

    readers = Readers(2)
    for units in readers.through(read, items(), PREPARE):
        found.append(units)
        assert taken[0] <= len(found) + 3 * (2 * 2 + 1)  # no more than is in hand
        if len(found) in (4, 20):
            killed += workers_of(os.getpid())[:1]
            killed[-1].kill()
    assert told(found) == told(here)
    assert {frozenset(unit.known) for units, _ in found for unit in units} == {
        frozenset(REMEMBERED)
    }
    assert len({one.pid for one in killed}) == 2
    assert not workers_of(os.getpid())


def test_what_reading_raises_is_raised_as_it_is_and_ends_the_readers():
    read = reading(None)  # no tokenizer, which nobody can call
    with pytest.raises(TypeError) as here:
        list(map(read, enumerate(CORPUS)))
    readers = Readers(2)
    with pytest.raises(TypeError) as there:
        list(readers.through(read, enumerate(CORPUS), PREPARE))
    assert str(there.value) == str(here.value)
    assert not workers_of(os.getpid())


def test_readers_that_are_closed_while_they_read_are_gone_at_once(tiny):
    readers = Readers(2)
    units = readers.through(reading(tiny.tokenizer), enumerate(CORPUS), PREPARE)
    next(units)
    there = workers_of(os.getpid())
    readers.close()
    assert len(there) == 2
    assert not workers_of(os.getpid())
    units.close()


@pytest.mark.parametrize("why", ["cannot be pickled", "cannot be read there"])
def test_a_tokenizer_that_cannot_be_sent_is_used_here(tiny, monkeypatch, why):
    tokenizer = copy.deepcopy(tiny.tokenizer)
    if why == "cannot be pickled":
        tokenizer.mine = lambda: None
    else:
        module = types.ModuleType("only_here")
        module.Mine = type("Mine", (type(tokenizer),), {"__module__": "only_here"})
        monkeypatch.setitem(sys.modules, "only_here", module)
        tokenizer.__class__ = module.Mine
    read = reading(tokenizer)
    found = list(Readers(1).through(read, enumerate(CORPUS), PREPARE))
    assert told(found) == told(list(map(read, enumerate(CORPUS))))


def test_documents_that_end_every_reader_are_named(tiny, monkeypatch):
    def ask(self, block):
        self.process.kill()
        return self._answer()

    monkeypatch.setattr("headscope.engines.processes.Process.ask", ask)
    monkeypatch.setattr("headscope.engines.pool.ATTEMPTS", 2)
    readers = Readers(1)
    with pytest.raises(CannotStudy, match=r"2 readers .*list, line 1 .*by SIGKILL.*fewer readers"):
        list(readers.through(reading(tiny.tokenizer), enumerate(CORPUS), PREPARE))


@pytest.mark.parametrize(
    ("asked", "devices", "processors", "number"),
    [
        (None, ("cpu",), 16, 0),
        (None, ("cuda",), 16, 6),
        (None, ("cuda:0", "cuda:1", "cuda:1"), 16, 12),
        (None, ("cuda:0",), 4, 3),
        (None, ("cuda:0",), 1, 0),
        (None, (), 16, 0),
        (0, ("cuda:0",), 16, 0),
        (3, ("cpu",), 1, 3),
    ],
)
def test_a_gpu_has_six_readers_or_as_many_as_there_are_processors_for(
    monkeypatch, asked, devices, processors, number
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)), raising=False)
    found = readers_of(asked, devices)
    assert (0 if found is None else found.number) == number


@pytest.mark.parametrize("number", [-1, 4097])
def test_a_number_of_readers_that_cannot_be_is_told(number):
    with pytest.raises(
        CannotStudy, match=f"readers has to be a number from 0 to 4,096, not {number}"
    ):
        readers_of(number, ("cpu",))
