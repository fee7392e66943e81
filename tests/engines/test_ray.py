"""Studies read by actors of Ray on this machine: the same bytes, and the same however they end."""

import os
import random
import signal
import sys

import pytest

from engines.studied import DOCUMENTS, OPTIONS, digests
from headscope.engines import engine_of
from headscope.engines.on_ray import OfRay
from headscope.errors import CannotStudy
from headscope.study.progress import Quiet

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX"),
]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("headscope.units.CHUNK_UNITS", 5)


@pytest.fixture(scope="module")
def whole(tiny, tmp_path_factory):
    """A study made in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.units.CHUNK_UNITS", 5)
        return digests(tiny.study(DOCUMENTS, tmp_path_factory.mktemp("whole"), **OPTIONS))


@pytest.fixture(scope="module")
def here():
    """A Ray of the caller's, which a study uses and leaves as it is."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=5, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


def test_ray_is_started_and_ended_where_nobody_has(tiny, whole, tmp_path):
    made = tiny.study(DOCUMENTS, tmp_path, engine="ray", workers=2, **OPTIONS)
    assert digests(made) == whole
    assert not ray.is_initialized()


def test_an_address_where_nobody_answers_is_told(tiny, tmp_path):
    with pytest.raises(CannotStudy, match=r"Ray cannot be reached or started at '127\.0\.0\.1:1'"):
        tiny.study(DOCUMENTS, tmp_path, address="127.0.0.1:1", **OPTIONS)


@pytest.mark.usefixtures("here")
def test_any_number_of_actors_makes_the_same_bytes_also_by_stretches_tokenised_on_ray(
    tiny, whole, tmp_path, monkeypatch
):
    for workers, stretches in ((1, False), (5, False), (2, True)):
        engine = engine_of("ray", workers)
        engine.stretches = stretches
        engine.through = engine._tokenised if stretches else engine.through
        monkeypatch.setattr("headscope.scope.Scope.study", tiny.study.__func__)
        monkeypatch.setattr("headscope.engines.engine_of", lambda *_, engine=engine: engine)
        made = tiny.study(DOCUMENTS, tmp_path / f"{workers} {stretches}", engine="ray", **OPTIONS)
        assert digests(made) == whole
    assert ray.is_initialized()


@pytest.mark.usefixtures("here")
def test_actors_killed_ten_times_change_nothing(tiny, whole, tmp_path, monkeypatch):
    chance, begun, killed = random.Random(1), [], []
    init = OfRay.__init__

    def noted(self, *given):
        init(self, *given)
        begun.append(self)

    class Killing(Quiet):
        def advance(self, units):
            living = [actor for actor in begun if actor not in killed]
            if living and len(killed) < 10:
                victim = chance.choice(living)
                killed.append(victim)
                ray.kill(victim.actor)

    monkeypatch.setattr(OfRay, "__init__", noted)
    documents = DOCUMENTS * 3
    here = digests(tiny.study(documents, tmp_path / "here", **OPTIONS))
    made = tiny.study(
        documents, tmp_path / "killed", engine="ray", workers=2, progress=Killing(), **OPTIONS
    )
    assert digests(made) == here
    assert len(killed) == 10  # each another one, so eight at least were started in their place


@pytest.mark.usefixtures("here")
def test_ctrl_c_saves_and_the_same_command_goes_on(tiny, whole, tmp_path):
    class Interrupting(Quiet):
        said = 0

        def advance(self, units):
            self.said += 1
            if self.said == 3:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tiny.study(DOCUMENTS, tmp_path, engine="ray", workers=2, progress=Interrupting(), **OPTIONS)
    assert digests(tiny.study(DOCUMENTS, tmp_path, engine="ray", workers=2, **OPTIONS)) == whole
