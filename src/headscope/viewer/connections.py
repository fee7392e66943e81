"""Connections to the local server: who says nothing, or takes nothing, is let go.

uvicorn waits for the head of a request and for a reader of its answer as long as they like. Here
each has its time and there are only so many at once, so nobody can keep others out by standing in
the door.
"""

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 100  # connections at once; a browser opens six
HEAD_SECONDS = 10.0  # for the first line and the headers of a request
TAKEN_SECONDS = 60.0  # for taking some of an answer


class Connection(H11Protocol):
    """One connection; errors of HTTP itself are answered as JSON."""

    def __init__(self, *given: Any, **named: Any):
        super().__init__(*given, **named)
        self.head: asyncio.TimerHandle | None = None
        self.taken: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            self._answer(503, "Too many connections are open. Close some tabs and try again.")
        else:
            self._wait_for_a_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        for timer in (self.head, self.taken):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more of a request; more of its head gives no more time."""
        super().data_received(data)
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering and self.head is not None:
            self.head.cancel()
            self.head = None
        elif not answering and self.head is None:
            self._wait_for_a_head()

    def pause_writing(self) -> None:
        """The other side takes nothing more for now."""
        super().pause_writing()
        self.taken = self.loop.call_later(TAKEN_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        if self.taken is not None:
            self.taken.cancel()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so, as everything else is."""
        self._answer(400, f"This is no HTTP request that can be read. {msg}")

    def _wait_for_a_head(self) -> None:
        self.head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _answer(self, status: int, message: str) -> None:
        if self.transport.is_closing():
            return
        body = json.dumps({"error": message}).encode()
        head = (
            f"HTTP/1.1 {status} \r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
