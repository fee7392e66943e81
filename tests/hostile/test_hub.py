"""A stranger's study names a model; nobody asks the network for it but the person."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headscope.study.manifest import sealed

SCRIPT = """
import sys, headscope as hs
from headscope.viewer.studied import reading_beside, scope_of
study = hs.open(sys.argv[1])
try:
    if len(sys.argv) > 2:
        scope_of(study, sys.argv[2])
    else:
        print(reading_beside(study, None))
except hs.HeadscopeError as error:
    print("refused:", error)
"""


class Hub(ThreadingHTTPServer):
    """Where a model hub would be: it has nothing, and keeps what it was asked for."""

    def __init__(self) -> None:
        asked = self.asked = []

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Answer)


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_model_of_a_study_is_asked_of_the_hub_only_by_the_person(hub, copy, tmp_path):
    file = Path(copy) / "manifest.json"
    said = json.loads(file.read_text())
    said["model"]["name"] = "somebody/a-model"
    file.write_bytes(sealed(said))
    address = f"http://127.0.0.1:{hub.server_port}"
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    environment = {name: value for name, value in os.environ.items() if name not in proxies}
    environment |= {
        "HF_ENDPOINT": address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_OFFLINE": "0",
    }

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", SCRIPT, str(copy), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout

    assert "is not at hand" in run()
    assert hub.asked == []
    assert "refused" in run("somebody/a-model")
    assert any("somebody/a-model" in path for path in hub.asked), "this hub can be asked"
