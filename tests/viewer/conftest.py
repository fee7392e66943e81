"""A real Chromium, a real server and a saved page, as a person would have them."""

import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import headscope as hs
from headscope.viewer.guard import Key
from headscope.viewer.server import configuration, listening_socket, make_app

SHORT = (
    "The keeper lit the lamp at dusk. The lamp burned all night, and the keeper slept. "
    "A ship passed the rocks in the fog."
)


@dataclass
class Served:
    """A running server."""

    port: int
    names: list[str]
    text: str
    key: Key

    @classmethod
    def printed(cls, line: str, names: list[str]) -> "Served":
        """The server that a command said it had started."""
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", line)
        assert found is not None, line
        return cls(int(found[1]), names, "", Key(found[2]))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.key.token}"

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request with the token, its headers as given: `Host` too."""
        path = f"/?token={self.key.token}" if path == "/" else path
        headers = {"Authorization": f"Bearer {self.key.token}"} | headers
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path: str, **asked: Any) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps({"model": self.names[0], **asked}).encode()
        return self.ask("POST", path, body, **{"Content-Type": "application/json"})


@contextmanager
def served(scopes: dict[str, hs.Scope], text: str, **more: Any) -> Iterator[Served]:
    listener = listening_socket()
    port = listener.getsockname()[1]
    key = Key()
    app = make_app(scopes, text, port, key, **more)
    server = uvicorn.Server(configuration(app))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Served(port, list(scopes), text, key)
    server.should_exit = True
    thread.join(20)
    listener.close()
    assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="session")
def reading(specimen: hs.Scope) -> hs.Reading:
    """A short text, so that every cell of a thumbnail is one pair."""
    return specimen.read(SHORT)


@pytest.fixture(scope="session")
def server(specimen: hs.Scope) -> Iterator[Served]:
    with served({"specimen": specimen}, SHORT) as running:
        yield running


@pytest.fixture(scope="session")
def saved(reading: hs.Reading, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reading.save(tmp_path_factory.mktemp("page") / "reading.html")


@dataclass
class Tab:
    """A page in Chromium, with all it asked for and complained about."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def until(self, condition: str, argument: Any = None, seconds: float = 20) -> None:
        """Wait for a JavaScript expression to hold (the page's policy forbids waiting in it)."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition, argument):
            shown = self.page.inner_text("body")[:400]
            assert time.monotonic() < end, f"never came true: {condition}\n{shown}"
            self.page.wait_for_timeout(20)

    def set(self, **state: Any) -> None:
        """Change what is looked at, and wait until it is shown."""
        self.page.evaluate("state => headscope.session.state.set(state)", state)
        self.settle()

    def settle(self) -> None:
        """Wait until no question to the worker is open but the measures of other heads."""
        self.page.wait_for_timeout(30)
        self.until("headscope.idle()")
        self.page.wait_for_timeout(60)

    def hash(self) -> dict[str, str]:
        found: dict[str, str] = self.page.evaluate(
            "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
        )
        return found


Open = Callable[..., Tab]


@pytest.fixture
def open_tab(chromium: Any) -> Iterator[Open]:
    """Open a page; afterwards it must have complained of nothing and asked nobody else."""
    contexts, tabs = [], []

    def open_address(address: str, **options: Any) -> Tab:
        settings = {"viewport": {"width": 1280, "height": 800}, "accept_downloads": True}
        context = chromium.new_context(**(settings | options))
        contexts.append(context)
        page = context.new_page()
        tab = Tab(page)
        tabs.append((tab, address))
        page.on("request", lambda request: tab.requests.append(request.url))
        page.on("console", lambda message: tab.complaints.append(message.text[:300]))
        page.on("pageerror", lambda error: tab.complaints.append(str(error)[:300]))
        page.on("dialog", lambda dialog: tab.complaints.append(f"dialog: {dialog.message}"))
        page.goto(address)
        tab.until(
            "globalThis.headscope?.session.reading || document.querySelector('dialog[open]') || "
            "globalThis.headscope?.session.given?.missing"
        )
        tab.settle()
        return tab

    yield open_address
    for context in contexts:
        context.close()
    for tab, address in tabs:
        assert tab.complaints == []
        own = address.split("#")[0].split("?")[0]
        foreign = [u for u in tab.requests if not u.startswith((own, "data:", "blob:"))]
        assert foreign == []


@pytest.fixture(params=["server", "file"])
def tab(request: pytest.FixtureRequest, open_tab: Open) -> Tab:
    """The short text in the viewer: from the server, and from disk with the network off."""
    if request.param == "server":
        return open_tab(request.getfixturevalue("server").address)
    return open_tab(request.getfixturevalue("saved").as_uri(), offline=True)
