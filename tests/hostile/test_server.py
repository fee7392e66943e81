"""The local server against whoever else can reach it: other users, other pages, broken clients."""

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headscope as hs
from headscope.viewer import connections
from headscope.viewer.guard import Key
from viewer.conftest import Served, served

TEXT = "The keeper lit the lamp, and the lamp burned."
JSON = {"Content-Type": "application/json"}
ASKED = [
    ("GET", "/api/session"),
    ("POST", "/api/read"),
    ("POST", "/api/focus"),
    ("POST", "/api/segments"),
    ("POST", "/api/attention"),
    ("POST", "/api/writes"),
    ("GET", "/api/nothing"),
    ("PUT", "/api/read"),
]
WRONG_TOKENS = ["", " ", "x", "Bearer ", "null", "undefined", "é", "*", "../", "%00", "A" * 5_000]


@pytest.fixture(scope="module")
def small(tiny: hs.Scope) -> Iterator[Served]:
    with served({"tiny": tiny}, TEXT, most_tokens=300) as running:
        yield running


def answer(small: Served, sent: bytes, seconds: float = 10) -> bytes:
    """What comes back for these very bytes."""
    with socket.create_connection(("127.0.0.1", small.port), seconds) as asked:
        asked.sendall(sent)
        with contextlib.suppress(OSError):
            asked.shutdown(socket.SHUT_WR)
        found = b""
        with contextlib.suppress(OSError):
            while part := asked.recv(65536):
                found += part
        return found


@pytest.mark.parametrize(("method", "path"), ASKED)
@pytest.mark.parametrize("token", WRONG_TOKENS)
def test_without_the_token_nothing_is_answered(
    small: Served, method: str, path: str, token: str
) -> None:
    body = json.dumps({"model": "tiny", "text": TEXT, "layer": 1, "head": 1}).encode()
    shown = {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    status, headers, reason = small.ask(method, path, body, **JSON, **shown)
    assert status == 403
    assert headers["content-type"] == "application/json"
    assert "with its token" in json.loads(reason)["error"]
    assert TEXT.encode() not in reason


QUERIES = ["", "?", "?token=", "?token=x", "?token", "?once=", "?once=x", "?token[]=", "?token=%00"]


@pytest.mark.parametrize("query", [*QUERIES, "?Token=x", "?token=\u00e9"])
def test_the_page_itself_needs_the_token(small: Served, query: str) -> None:
    sent = f"GET /{query} HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\nConnection: close\r\n\r\n"
    found = answer(small, sent.encode("latin-1"))
    status = int(found.split()[1])
    assert status in (400, 403)
    assert b"with its token" in found or status == 400
    assert b"boot.js" not in found


def test_a_token_nearly_right_is_wrong(small: Served) -> None:
    token = small.key.token
    for wrong in (token[:-1], token + "x", token.swapcase(), token[::-1], f" {token}"):
        assert not small.key.fits(wrong)
    assert len(token) >= 32
    assert len({Key().token for _ in range(100)}) == 100


def test_a_code_opens_the_page_once(small: Served) -> None:
    code = small.key.new_code()
    sent = (
        f"GET /?once={code} HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\nConnection: close\r\n\r\n"
    )
    first, second = (answer(small, sent.encode()) for _ in range(2))
    assert first.split()[1] == b"303"
    assert f"location: /?token={small.key.token}".encode() in first.lower().replace(
        small.key.token.lower().encode(), small.key.token.encode()
    )
    assert second.split()[1] == b"403"


def test_the_programs_of_this_machine_are_started_without_the_token(small: Served) -> None:
    """Every user sees the words that a process was started with."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            assert small.key.token not in " ".join(process.cmdline())


@pytest.mark.parametrize(
    "method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ODD"]
)
@pytest.mark.parametrize(
    "path", ["/nothing", "/api/read", "/api/session", "/static/nothing.js", "//", "/api"]
)
def test_every_refusal_is_json(small: Served, method: str, path: str) -> None:
    status, headers, body = small.ask(method, path)
    if (method, path) == ("GET", "/api/session"):
        assert status == 200
        return
    assert status in (404, 405, 415, 403)
    assert headers["content-type"] == "application/json"
    assert len(json.loads(body)["error"]) > 10
    assert "default-src 'none'" in headers["content-security-policy"]


NOT_HTTP = [
    b"\r\n\r\n", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\nHost\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"A" * 200_000,
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /api/read HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/read HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n",
    b"POST /api/read HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("sent", NOT_HTTP, ids=range(len(NOT_HTTP)))
def test_what_is_no_http_is_answered_in_json_or_not_at_all(
    small: Served, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    found = answer(small, sent)
    if found:
        head, _, body = found.partition(b"\r\n\r\n")
        assert 400 <= int(head.split()[1]) < 500
        first, _ = json.JSONDecoder().raw_decode(body.decode())
        assert len(first["error"]) > 10
    assert "Traceback" not in "".join(capfd.readouterr())
    assert small.ask("GET", "/api/session")[0] == 200


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300))
def test_no_bytes_get_past_the_door(small: Served, sent: bytes) -> None:
    found = answer(small, sent + b"\r\n\r\n")
    assert not found or 400 <= int(found.split()[1]) < 500


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([path for _, path in ASKED[1:5]]),
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.just("tiny") | VALUES,
            "text": st.just(TEXT) | st.text(max_size=20) | VALUES,
            "layer": st.integers(-1, 5) | VALUES,
            "head": st.integers(-1, 5) | VALUES,
        },
    ),
)
def test_whatever_is_asked_is_answered_or_refused(
    small: Served, path: str, asked: dict[str, object]
) -> None:
    status, headers, body = small.ask("POST", path, json.dumps(asked).encode(), **JSON)
    assert status in (200, 400, 404, 413, 422), body
    if status != 200:
        assert headers["content-type"] == "application/json"
        assert len(json.loads(body)["error"]) > 10


def test_an_upload_that_breaks_off_is_no_news(
    small: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    for sent in (b"", b"{", b'{"model": "tiny", "text": "The sea'):
        with socket.create_connection(("127.0.0.1", small.port)) as asked:
            asked.sendall(
                f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\n"
                f"Authorization: Bearer {small.key.token}\r\n"
                "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n".encode()
                + sent
            )
    assert small.post("/api/read", text=TEXT)[0] == 200
    assert "".join(capfd.readouterr()) == ""


def test_who_says_nothing_is_let_go(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    for begun in (b"", b"GET ", b"GET / HTTP/1.1\r\nHost: "):
        with socket.create_connection(("127.0.0.1", small.port), 10) as silent:
            silent.sendall(begun)
            began = time.monotonic()
            with contextlib.suppress(ConnectionResetError):
                assert silent.recv(10) == b""
            assert 0.2 < time.monotonic() - began < 8


def test_who_says_a_little_now_and_then_is_let_go(
    small: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.5)
    head = b"GET / HTTP/1.1\r\nX: " + b"y" * 200
    with socket.create_connection(("127.0.0.1", small.port), 10) as slow:
        sent = 0
        with contextlib.suppress(OSError):
            for letter in head:
                slow.sendall(bytes([letter]))
                sent += 1
                time.sleep(0.05)
    assert sent < len(head)


def test_who_takes_nothing_is_let_go(small: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TAKEN_SECONDS", 0.5)
    body = json.dumps({"model": "tiny", "text": "lamp " * 290, "layer": 1, "head": 1}).encode()
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        idle.connect(("127.0.0.1", small.port))
        for _ in range(40):
            with contextlib.suppress(OSError):
                idle.sendall(
                    f"POST /api/attention HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\n"
                    f"Authorization: Bearer {small.key.token}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
        end = time.monotonic() + 20
        ours = idle.getsockname()[1]
        while any(
            c.laddr and c.laddr.port == small.port and c.raddr and c.raddr.port == ours
            and c.status == psutil.CONN_ESTABLISHED
            for c in psutil.Process().net_connections()
        ):  # fmt: skip
            assert time.monotonic() < end, "the connection was kept"
            time.sleep(0.1)


def test_there_are_only_so_many_connections(small: Served) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(connections.MOST):
            stack.enter_context(socket.create_connection(("127.0.0.1", small.port)))
        time.sleep(0.3)
        refused = http.client.HTTPConnection("127.0.0.1", small.port, timeout=10)
        stack.callback(refused.close)
        refused.request("GET", "/api/session")
        found = refused.getresponse()
        assert found.status == 503
        assert "Close some tabs" in json.loads(found.read())["error"]
    time.sleep(0.3)
    assert small.ask("GET", "/api/session")[0] == 200


def test_a_fault_of_ours_is_told_in_json(
    small: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by nobody")

    monkeypatch.setattr("headscope.viewer.server.packed_focus", broken)
    status, headers, body = small.post("/api/focus", text=TEXT)
    assert status == 500
    assert headers["content-type"] == "application/json"
    assert "ZeroDivisionError: by nobody" in json.loads(body)["error"]
    said = capfd.readouterr().err
    assert "A request to /api/focus failed" in said
    assert "Traceback" not in said
