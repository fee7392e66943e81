"""A small corpus in a file, and a study of it, as verbs that add to a study meet them."""

import shutil
from pathlib import Path

import pytest

import headscope as hs
from effects.texts import PARAGRAPHS
from headscope.study.folder import Study


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten paragraphs of the sample text."""
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    file.write_text("\n\n".join(PARAGRAPHS[:10]))
    return file


@pytest.fixture(scope="session")
def made(tiny: hs.Scope, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "study"
    tiny.study(corpus, folder, document="paragraph", nulls=(), readings=("raw",), special=("kept",))
    return folder


@pytest.fixture
def study(made: Path, tmp_path: Path) -> Study:
    """A study of its own to add to."""
    shutil.copytree(made, tmp_path / "study")
    return hs.open(tmp_path / "study")
