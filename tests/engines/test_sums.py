"""What chunks add up to does not depend on who added them, or on how many at a time."""

import numpy as np
import pytest

from engines.studied import DOCUMENTS, OPTIONS, Beside, digests
from headscope.corpus import Corpus
from headscope.measures.type_counts import TypeCounts
from headscope.study import sums
from headscope.study.ballots import elect
from headscope.study.parameters import Parameters
from headscope.study.run import study


@pytest.fixture
def short_stretches(monkeypatch):
    """Chunks of five windows, and stretches of four chunks."""
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)
    for module in ("reader", "run"):
        monkeypatch.setattr(f"headscope.study.{module}.STRETCH", 4)


def made(scope, out, engine=None, documents=DOCUMENTS):
    options = {name: value for name, value in OPTIONS.items() if name != "threads"}
    parameters = Parameters(**options)
    return study(scope, Corpus(documents), out, parameters, engine=engine, threads=1)


@pytest.mark.usefixtures("short_stretches")
def test_whole_stretches_give_the_bytes_of_single_chunks(tiny, tmp_path):
    one_by_one, by_stretches = Beside(stretches=False), Beside(stretches=True)
    here = digests(made(tiny, tmp_path / "here"))
    assert digests(made(tiny, tmp_path / "one by one", one_by_one)) == here
    assert digests(made(tiny, tmp_path / "stretches", by_stretches)) == here
    lengths = [len(run.chunks) for run in by_stretches.runs]
    assert lengths[:-1] == [4] * (len(lengths) - 1)
    assert len(lengths) > 2
    assert 0 < lengths[-1] <= 4
    assert {len(run.chunks) for run in one_by_one.runs} == {1}


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("stretches", [False, True])
def test_what_stopped_here_goes_on_elsewhere_and_back(tiny, tmp_path, monkeypatch, stretches):
    """It stops within a chunk and within a stretch, is gone on with by workers, and again here."""
    from headscope.study.reader import Reader

    whole = digests(made(tiny, tmp_path / "whole"))
    monkeypatch.setattr("headscope.study.run.SAVE_EVERY", -1)

    class Death(BaseException):
        pass

    def dying(after, function):
        left = iter(range(after))

        def step(*given):
            if next(left, None) is None:
                raise Death
            return function(*given)

        return step

    with monkeypatch.context() as patch:
        patch.setattr("headscope.study.sums.Chunked.see", dying(9, sums.Chunked.see))
        with pytest.raises(Death):
            made(tiny, tmp_path / "stopped")
    with monkeypatch.context() as patch:
        patch.setattr(Reader, "answer", dying(3, Reader.answer))
        with pytest.raises(Death):
            made(tiny, tmp_path / "stopped", Beside(stretches))
    assert digests(made(tiny, tmp_path / "stopped")) == whole


def test_votes_in_runs_elect_what_single_votes_elect(random):
    for _ in range(200):
        votes = [str(word) for word in random.integers(0, 3, random.integers(1, 40))]
        single = TypeCounts.empty(1, 1, 1)
        for word in votes:
            single.vote({7: word})
        runs, names = [], {}
        cut = int(random.integers(len(votes)))
        for part in (votes[:cut], votes[cut:]):
            runs = []
            for word in part:
                if runs and runs[-1][0] == word:
                    runs[-1] = (word, runs[-1][1] + 1)
                else:
                    runs.append((word, 1))
            elect(names, {7: runs})
        assert names == single.names


@pytest.mark.parametrize("name", ["norm", "similarity_std", "high"])
def test_a_product_is_the_same_in_any_shape_and_order(random, name):
    """Also for lengths of very different sizes, and to the last bit of the exact sum."""
    weights = random.poisson(1.0, (90, 21)).astype(float)
    values = random.lognormal(0, 3, (90, 3, 4))
    if name == "high":
        values = np.round(values * 2**20) / 2**20
    found = sums._weighed(weights.T, {name: values})[name]
    order = random.permutation(90)
    again = sums._weighed(weights[order].T, {name: values[order]})[name]
    assert np.array_equal(found, again)
    alone = [sums._weighed(weights.T, {name: values[..., h : h + 1]})[name] for h in range(4)]
    assert np.array_equal(found, np.concatenate(alone, -1))
    exact = np.einsum("ur,ulh->rlh", weights.astype(np.longdouble), values.astype(np.longdouble))
    np.testing.assert_allclose(found, exact.astype(float), rtol=3e-16)
