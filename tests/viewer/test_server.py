"""The local server: it answers its own page, for the models it was given, and nothing else."""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

import headscope as hs
from headscope.viewer.packed import packed
from headscope.viewer.segmented import packed_segments
from headscope.viewer.server import by_name, listening_socket
from viewer.conftest import Served, served

TEXT = "The keeper lit the lamp, and the lamp burned."
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def small(tiny: hs.Scope) -> Iterator[Served]:
    with served({"tiny": tiny}, TEXT, most_tokens=300) as running:
        yield running


def test_it_reads_a_text(small: Served, tiny: hs.Scope) -> None:
    status, headers, body = small.post("/api/read", text=TEXT)
    assert status == 200
    assert headers["content-type"] == "application/octet-stream"
    assert body == packed(tiny.read(TEXT), whole=False)


def test_it_gives_attention_on_demand(small: Served, tiny: hs.Scope) -> None:
    status, _, body = small.post("/api/attention", text=TEXT, layer=2, head=3)
    assert status == 200
    weights = tiny.read(TEXT).attention(2, 3)
    assert np.frombuffer(body, "<f2").reshape(weights.shape) == pytest.approx(weights, abs=1e-3)


def test_it_gives_focus_on_demand(small: Served, tiny: hs.Scope) -> None:
    status, _, body = small.post("/api/focus", text=TEXT)
    assert status == 200
    mass = np.array(json.loads(body)["focus"]["mass"])
    assert mass == pytest.approx(tiny.read(TEXT).focus().mass, abs=1e-4)


def test_it_says_what_a_head_writes_over_the_text_and_at_a_token(
    small: Served, tiny: hs.Scope
) -> None:
    reading = tiny.read(TEXT)
    for position in (None, 4):
        asked = {"layer": 2, "head": 3, "position": position}
        status, _, body = small.post("/api/writes", text=TEXT, **asked)
        assert status == 200
        told = reading.writes(2, 3, position=position)
        assert [word for word, _ in json.loads(body)["raised"]] == [w for w, _ in told.raised[:8]]
    for wrong in ({"layer": 9, "head": 1}, {"layer": 1, "head": 1, "position": 999}):
        assert small.post("/api/writes", text=TEXT, **wrong)[0] == 422


def test_it_gives_segments_on_demand(small: Served, tiny: hs.Scope) -> None:
    text = "The lamp burned. The keeper slept. A ship passed. The fog came. " * 3
    status, _, body = small.post("/api/segments", text=text)
    assert status == 200
    assert json.loads(body) == json.loads(json.dumps(packed_segments(tiny.read(text))))
    assert small.post("/api/segments", text="lamp " * 3000)[0] == 413
    assert small.post("/api/segments", text=" ")[0] == 422
    assert small.post("/api/segments", model="other", text=text)[0] == 404


def test_it_says_what_it_was_started_with(small: Served) -> None:
    status, _, body = small.ask("GET", "/api/session")
    assert status == 200
    assert json.loads(body) == {
        "models": ["tiny"],
        "text": TEXT,
        "most_tokens": 300,
        "study": None,
    }


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80"])
@pytest.mark.parametrize("path", ["/", "/api/session", "/static/main.js"])
def test_a_request_to_another_host_is_refused(small: Served, host: str, path: str) -> None:
    status, _, body = small.ask("GET", path, Host=host)
    assert status == 403
    assert b"only requests addressed to it" in body


def test_localhost_is_this_host(small: Served) -> None:
    assert small.ask("GET", "/", Host=f"localhost:{small.port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_a_page_from_elsewhere_cannot_drive_it(small: Served, origin: str) -> None:
    body = json.dumps({"model": "tiny", "text": TEXT}).encode()
    status, headers, _ = small.ask("POST", "/api/read", body, Origin=origin, **JSON)
    assert status == 403
    assert "access-control-allow-origin" not in headers


def test_a_page_from_elsewhere_may_link_to_it_but_not_load_from_it(small: Served) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert small.ask("GET", "/", **foreign)[0] == 200
    for path in ("/api/session", "/static/main.js"):
        assert small.ask("GET", path, **foreign)[0] == 403


def test_a_form_from_elsewhere_is_not_taken_for_json(small: Served) -> None:
    body = json.dumps({"model": "tiny", "text": TEXT}).encode()
    status, _, _ = small.ask("POST", "/api/read", body, **{"Content-Type": "text/plain"})
    assert status == 415


def test_every_answer_carries_the_policy(small: Served) -> None:
    for path in ("/", "/api/session", "/static/main.js", "/nothing"):
        _, headers, _ = small.ask("GET", path)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/server.py",
        "/static/....//server.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/..\\server.py",
        "/static/worker/answer.js",
        "/../../../etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(small: Served, path: str) -> None:
    status, _, body = small.ask("GET", path)
    assert status == 404
    assert b"import" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b"[]", 400),
        (b'"text"', 400),
        (b"{}", 404),
        (b'{"model": "tiny"}', 422),
        (b'{"model": "tiny", "text": 7}', 422),
        (b'{"model": "tiny", "text": "  "}', 422),
        (b'{"model": "tiny", "text": "\\ud800"}', 422),
        (b'{"model": ["tiny"], "text": "a"}', 404),
        (b'{"model": "/etc", "text": "a"}', 404),
        (b'{"model": "bert-base-uncased", "text": "a"}', 404),
    ],
)
def test_garbage_is_refused_with_a_reason(small: Served, body: bytes, status: int) -> None:
    answered, headers, reason = small.ask("POST", "/api/read", body, **JSON)
    assert answered == status
    assert headers["content-type"] == "application/json"
    assert len(json.loads(reason)["error"]) > 20


@pytest.mark.parametrize("layer", [0, 4, -1, 1.5, "1", None, True, 10**30])
def test_a_head_that_does_not_exist_is_refused(small: Served, layer: object) -> None:
    status, _, reason = small.post("/api/attention", text=TEXT, layer=layer, head=1)
    assert status == 422
    assert "layer" in json.loads(reason)["error"]


def test_a_body_too_large_is_refused_before_it_is_read(small: Served) -> None:
    body = json.dumps({"model": "tiny", "text": "a" * 2**21}).encode()
    status, _, reason = small.ask("POST", "/api/read", body, **JSON)
    assert status == 413
    assert "Paste a part" in json.loads(reason)["error"]


def test_a_text_of_too_many_tokens_is_refused_with_what_to_do(small: Served) -> None:
    status, _, reason = small.post("/api/read", text="lamp " * 3000)
    assert status == 413
    assert "shows up to 300. Paste a part of it" in json.loads(reason)["error"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_only_the_methods_of_the_api_are_answered(small: Served, method: str) -> None:
    status, headers, _ = small.ask(method, "/api/read")
    assert status == 405
    assert "access-control-allow-methods" not in headers


def test_fifty_at_once_are_all_answered(small: Served, tiny: hs.Scope) -> None:
    texts = [f"{TEXT} Lamp number {k}." for k in range(50)]
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda text: small.post("/api/read", text=text), texts))
    assert [status for status, _, _ in answers] == [200] * 50
    for text, (_, _, body) in zip(texts, answers, strict=True):
        assert body == packed(tiny.read(text), whole=False)


def test_a_slow_client_does_not_keep_others_waiting(small: Served) -> None:
    with socket.create_connection(("127.0.0.1", small.port)) as slow:
        slow.sendall(
            f"POST /api/read HTTP/1.1\r\nHost: 127.0.0.1:{small.port}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{".encode()
        )
        assert small.post("/api/read", text=TEXT)[0] == 200
        assert small.ask("GET", "/api/session")[0] == 200


def test_the_page_is_answered_while_a_model_works(tiny: hs.Scope) -> None:
    began, release = threading.Event(), threading.Event()

    class Slow(hs.Scope):
        def read(self, *args: object, **options: object) -> hs.Reading:
            began.set()
            assert release.wait(30)
            return super().read(*args, **options)  # type: ignore[arg-type]

    slow = Slow(tiny.loaded)
    with served({"slow": slow, "quick": tiny}, TEXT) as running, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(running.post, "/api/read", text=TEXT)
        assert began.wait(30)
        assert running.ask("GET", "/")[0] == 200
        assert running.post("/api/read", model="quick", text=TEXT)[0] == 200
        assert not waiting.done()
        release.set()
        assert waiting.result(30)[0] == 200


def test_many_requests_leave_no_memory_behind(small: Served) -> None:
    def some(count: int, name: str) -> int:
        for k in range(count):
            assert small.post("/api/read", text=f"{TEXT} {name} {k} " * 6)[0] == 200
        gc.collect()
        return psutil.Process().memory_info().rss

    before = some(40, "warm")
    after = some(160, "later")
    assert after - before < 24 * 2**20


def test_two_folders_of_one_name_are_told_apart(tiny: hs.Scope, specimen: hs.Scope) -> None:
    assert list(by_name([tiny, tiny])) == [f"{Path(tiny.shape.name).name} ({k})" for k in (1, 2)]
    assert len(by_name([tiny, specimen])) == 2


def test_a_port_in_use_is_explained() -> None:
    with listening_socket() as taken:
        taken.listen()
        with pytest.raises(hs.HeadscopeError, match="Leave --port out"):
            listening_socket(taken.getsockname()[1])


def test_it_listens_on_this_machine_only() -> None:
    with listening_socket() as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


@pytest.mark.skipif(os.name == "nt", reason="signals are other there")
def test_ctrl_c_ends_it_at_once_even_while_it_reads(tiny_folder: Path) -> None:
    code = "from headscope.cli import main; main()"
    words = ["view", TEXT, "--model", str(tiny_folder), "--no-open"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            busy = Served.printed(line, [tiny_folder.name])
            with ThreadPoolExecutor(40) as pool:
                texts = [f"{k} {'the lamp and the fog ' * 150}" for k in range(40)]
                asked = [pool.submit(busy.post, "/api/read", text=text) for text in texts]
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                process.wait(3)
            answered = [one for one in asked if not one.exception() and one.result()[0] == 200]
            assert len(answered) < len(asked)  # so it was at work when it ended
            assert process.returncode == 0
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
