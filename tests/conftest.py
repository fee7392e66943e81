"""What several tests need: small tokenizers of every kind, a tiny model, the specimen."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers as t

import headscope as hs
from places import SHARED
from tiny import TOKENIZERS, tiny_bert, wordpiece

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("shared") and not SHARED.exists():
            item.add_marker(
                pytest.mark.skip(reason="the development data is not beside the project")
            )


@pytest.fixture(scope="session", params=TOKENIZERS)
def any_tokenizer(request: pytest.FixtureRequest) -> t.PreTrainedTokenizerFast:
    return TOKENIZERS[request.param]()


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with random weights: 3 layers × 4 heads × 8, 64 tokens at once."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = wordpiece()
    tiny_bert(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> hs.Scope:
    return hs.load(tiny_folder, device="cpu")


@pytest.fixture(scope="session")
def specimen() -> hs.Scope:
    return hs.load(device="cpu")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: looked for chromium and google-chrome")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()
