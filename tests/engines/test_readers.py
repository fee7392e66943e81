"""Readers: the same units in the same order, whoever of them is killed or cannot be started."""

import copy
import os
import sys
import types
from functools import partial

import pytest
from transformers import PreTrainedTokenizerFast

import headscope as hs
from engines.studied import DOCUMENTS, LINES, OPTIONS, digests
from engines.test_engines import Counting, workers_of
from headscope.corpus import Corpus
from headscope.engines import readers as own
from headscope.engines.readers import Readers, readers_of
from headscope.errors import CannotStudy
from headscope.study.prepare import prepare
from headscope.units import Units, _read

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are of POSIX")

VOCABULARY = 10_000
PREPARE = partial(prepare, seed=0, vocabulary=VOCABULARY, causal=False)
REMEMBERED = {
    ("types", 0),
    ("couples", 0),
    ("word places", VOCABULARY),
    ("focus", False),
    ("priority", 0, "example"),
    ("priority", 0, "null"),
}
TEXTS = [*DOCUMENTS[:12], "\x00\x01", *LINES[:4], "\u200b", " ", *DOCUMENTS[:16]]
CORPUS = Corpus(TEXTS)
QUICK = OPTIONS | {"nulls": ()}


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


def test_units_come_in_order_and_prepared_and_few_are_in_hand(tiny):
    read = reading(tiny.tokenizer)
    here = list(map(read, enumerate(CORPUS)))
    assert sum(skipped is not None for _, skipped in here) >= 3
    taken, found = [0], []

    def items():
        for item in enumerate(CORPUS):
            taken[0] = item[0]
            yield item

    readers = Readers(2)
    for units in readers.through(read, items(), PREPARE):
        found.append(units)
        assert taken[0] <= len(found) + 3 * (2 * 2 + 1)  # no more than is in hand
    assert told(found) == told(here)
    assert {frozenset(unit.known) for units, _ in found for unit in units} == {
        frozenset(REMEMBERED)
    }
    assert not workers_of(os.getpid())


def test_readers_that_are_ended_while_they_read_are_gone_at_once(tiny):
    readers = Readers(2)
    units = readers.through(reading(tiny.tokenizer), enumerate(CORPUS), PREPARE)
    next(units)
    there = workers_of(os.getpid())
    readers.end()
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


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """A study without readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.units.CHUNK_UNITS", 5)
        return digests(tiny.study(TEXTS, tmp_path_factory.mktemp("whole"), **QUICK))


class StoppedError(Exception):
    """What ends a study in the middle."""


def test_a_study_whose_readers_are_killed_goes_on_with_another_number(
    tiny, whole, tmp_path, monkeypatch
):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)
    monkeypatch.setattr("headscope.study.run.SAVE_EVERY", -1)
    steps, killed = [], []

    def stop():
        steps.append(workers_of(os.getpid()))
        if len(steps) == 2:
            killed.extend(steps[-1])
            for one in killed:
                one.kill()
        if len(steps) == 8:
            raise StoppedError

    with pytest.raises(StoppedError):
        tiny.study(TEXTS, tmp_path, readers=2, progress=Counting(stop), **QUICK)
    assert killed
    assert set(steps[-1]) - set(killed)
    assert not workers_of(os.getpid())
    made = tiny.study(TEXTS, tmp_path, readers=1, **QUICK)
    assert digests(made) == whole
    assert made.manifest.corpus.skipped == 5
    assert not workers_of(os.getpid())


@pytest.mark.slow
def test_workers_are_sent_what_readers_have_made(tiny, whole, tmp_path, monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)
    made = tiny.study(TEXTS, tmp_path, readers=1, workers=1, **QUICK)
    assert digests(made) == whole


class Failing(PreTrainedTokenizerFast):
    """A tokenizer that cannot make anything of one text."""

    def __call__(self, text, **options):
        if text == DOCUMENTS[15]:
            raise ArithmeticError("this is too long")
        return super().__call__(text, **options)


def test_an_error_of_a_tokenizer_ends_a_study_as_it_does_without_readers(tiny, tmp_path):
    tokenizer = copy.deepcopy(tiny.tokenizer)
    tokenizer.__class__ = Failing
    scope = hs.load(tiny.model, tokenizer)
    for readers in (0, 1):
        with pytest.raises(ArithmeticError) as error:
            scope.study(TEXTS, tmp_path / str(readers), readers=readers, **QUICK)
        assert str(error.value) == "this is too long"
    assert not workers_of(os.getpid())


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
    with readers_of(asked, devices) as found:
        assert (0 if found is None else found.number) == number


@pytest.mark.parametrize("number", [-1, 4097])
def test_a_number_of_readers_that_cannot_be_is_told(number):
    with pytest.raises(
        CannotStudy, match=f"readers has to be a number from 0 to 4,096, not {number}"
    ):
        readers_of(number, ("cpu",)).__enter__()
