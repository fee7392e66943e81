"""Files that hostile commands are pointed at, and a finished study to do harm to."""

import os
import shutil
from pathlib import Path

import pytest

import headscope as hs

from .surroundings import OPTIONS, TEXTS


@pytest.fixture(scope="session")
def place(tiny_folder: Path, tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a study, texts, and things that are none of these."""
    place = tmp_path_factory.mktemp("place")
    (place / "model").symlink_to(tiny_folder)
    text = "The lamp is gone. The sea is not gone.\n\nThe keeper lit the lamp at dusk."
    (place / "text.txt").write_text(text)
    (place / "latin.txt").write_bytes(b"The caf\xe9 by the sea.")
    (place / "empty.txt").write_bytes(b"")
    (place / "nul.txt").write_bytes(b"\0" * 100)
    (place / "folder").mkdir()
    (place / "loop.txt").symlink_to("loop.txt")
    (place / "some.json").write_text('{"format": "none of ours"}')
    os.mkfifo(place / "pipe")
    tiny.study(place / "text.txt", place / "study", document="paragraph")
    return place


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A person's own files, beside the folder `study`."""
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "cv.txt").write_text("who I am")
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "link").symlink_to("letters")
    return tmp_path


@pytest.fixture(scope="session")
def made(tiny: hs.Scope, tmp_path_factory: pytest.TempPathFactory) -> hs.Study:
    return tiny.study(TEXTS, tmp_path_factory.mktemp("made") / "study", **OPTIONS)


@pytest.fixture
def copy(made: hs.Study, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.path, tmp_path / "copy"))
