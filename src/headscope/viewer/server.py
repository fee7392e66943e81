"""The local server: reads texts with the models it was started with, for a browser on this machine.

It listens on 127.0.0.1 only, serves nothing from disk (the viewer's files are read once, before it
starts), answers no page but its own, and does its arithmetic in one thread a model, so that several
tabs and slow clients wait for their own answers only. docs/server-api.md describes what it answers.
"""

import asyncio
import hashlib
import json
import logging
import queue
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headscope.errors import CannotRead, HeadscopeError, Refused
from headscope.text import tokenize
from headscope.viewer.guard import Guard, Key
from headscope.viewer.packed import (
    MOST_TOKENS,
    label,
    packed,
    packed_attention,
    packed_focus,
    packed_writes,
)
from headscope.viewer.page import assets, server_page
from headscope.viewer.segmented import packed_segments

if TYPE_CHECKING:
    import uvicorn

    from headscope.reading import Reading
    from headscope.scope import Scope

MOST_BODY = 2**20  # bytes of a request
BODY_SECONDS = 30.0  # for all of them
KEPT_READINGS = 4  # per model: attention is asked about a text that has just been read

Answer = TypeVar("Answer")


class ModelThread:
    """One model, one thread: what is asked of it is done in turn, away from the event loop.

    The thread is a daemon, so that Ctrl-C need not wait for a forward pass.
    """

    def __init__(self, scope: "Scope", most_tokens: int = MOST_TOKENS):
        self.scope = scope
        self.most_tokens = most_tokens
        self.readings: OrderedDict[str, Reading] = OrderedDict()
        self.tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="headscope model").start()

    def _work(self) -> None:
        while True:
            self.tasks.get()()

    async def do(self, work: Callable[[], Answer]) -> Answer:
        """Wait for some work to be done in this model's thread."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()

        def tell(found: Answer | None, error: BaseException | None) -> None:
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(found)  # type: ignore[arg-type]

        def task() -> None:
            if done.cancelled():  # the client has gone
                return
            try:
                found, error = work(), None
            except Exception as failure:
                found, error = None, failure
            if not loop.is_closed():
                loop.call_soon_threadsafe(tell, found, error)

        self.tasks.put(task)
        return await done

    def read(self, text: str) -> "Reading":
        """The reading of a text, made or remembered."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self.readings:
            count = len(tokenize(text, self.scope.tokenizer))
            if count > self.most_tokens:
                raise Refused(
                    413,
                    f"The text has {count:,} tokens, and the viewer shows up to "
                    f"{self.most_tokens:,}. Paste a part of it; `headscope study` takes texts of "
                    "any length.",
                )
            self.readings[key] = self.scope.read(text)
            while len(self.readings) > KEPT_READINGS:
                self.readings.popitem(last=False)
        self.readings.move_to_end(key)
        return self.readings[key]


def make_app(
    scopes: Mapping[str, "Scope"],
    text: str,
    port: int,
    key: Key,
    study: Mapping[str, Any] | None = None,
    most_tokens: int = MOST_TOKENS,
    debug: bool = False,
) -> Starlette:
    """The application: `scopes` by the name a person chooses, `text` what is shown first.

    `study` is one packed for the viewer, of the first of the models.
    """
    workers = {name: ModelThread(scope, most_tokens) for name, scope in scopes.items()}
    page, policy = server_page()
    found = assets()
    static = {
        **{name: (code, "text/javascript") for name, code in found.modules.items()},
        "style.css": (found.style, "text/css"),
    }

    async def index(_: Request) -> Response:
        return Response(page, media_type="text/html")

    async def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in static:
            return JSONResponse({"error": f"There is no file '{name}' here."}, status_code=404)
        code, kind = static[name]
        return Response(code, media_type=kind)

    async def session(_: Request) -> Response:
        return JSONResponse(
            {"models": list(workers), "text": text, "most_tokens": most_tokens, "study": study}
        )

    async def read(request: Request) -> Response:
        asked = await _body(request)
        worker, wanted = _worker(workers, asked), _text(asked)
        return _bytes(await worker.do(lambda: packed(worker.read(wanted), whole=False)))

    async def focus(request: Request) -> Response:
        asked = await _body(request)
        worker, wanted = _worker(workers, asked), _text(asked)
        return JSONResponse({"focus": await worker.do(lambda: packed_focus(worker.read(wanted)))})

    async def segments(request: Request) -> Response:
        asked = await _body(request)
        worker, wanted = _worker(workers, asked), _text(asked)
        return JSONResponse(await worker.do(lambda: packed_segments(worker.read(wanted))))

    async def attention(request: Request) -> Response:
        asked = await _body(request)
        worker, wanted = _worker(workers, asked), _text(asked)
        layer, head = _whole(asked, "layer"), _whole(asked, "head")
        return _bytes(await worker.do(lambda: packed_attention(worker.read(wanted), layer, head)))

    async def writes(request: Request) -> Response:
        asked = await _body(request)
        worker, wanted = _worker(workers, asked), _text(asked)
        layer, head = _whole(asked, "layer"), _whole(asked, "head")
        at = None if asked.get("position") is None else _whole(asked, "position")
        return JSONResponse(
            await worker.do(lambda: packed_writes(worker.read(wanted), layer, head, at))
        )

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/static/{name}", file),
            Route("/api/session", session),
            Route("/api/read", read, methods=["POST"]),
            Route("/api/focus", focus, methods=["POST"]),
            Route("/api/segments", segments, methods=["POST"]),
            Route("/api/attention", attention, methods=["POST"]),
            Route("/api/writes", writes, methods=["POST"]),
        ],
        exception_handlers={HeadscopeError: _refuse, HTTPException: _not_here},
    )
    app.add_middleware(Guard, port=port, policy=policy, key=key, debug=debug)
    return app


async def _refuse(_: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refused) else 422
    return JSONResponse({"error": str(error)}, status_code=status)


async def _not_here(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {
        404: f"There is nothing at '{request.url.path}'.",
        405: f"'{request.url.path}' does not answer {request.method}.",
    }.get(error.status_code, error.detail)
    return JSONResponse({"error": said}, error.status_code, headers=error.headers)


def _bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, read no further than the limit."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise Refused(415, "Send JSON, as Content-Type: application/json.")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                data += part
                if len(data) > MOST_BODY:
                    raise Refused(
                        413,
                        f"The request is larger than {MOST_BODY // 2**20} MiB. Paste a part of the "
                        "text; `headscope study` takes texts of any length.",
                    )
    except TimeoutError:
        raise Refused(408, "The request did not come to its end. Ask again.") from None
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused(400, "The request is not JSON in UTF-8.") from None
    if not isinstance(found, dict):
        raise Refused(400, "The request must be a JSON object.")
    return found


def _worker(workers: Mapping[str, ModelThread], asked: dict[str, Any]) -> ModelThread:
    name = asked.get("model")
    if not isinstance(name, str) or name not in workers:
        raise Refused(
            404,
            f"There is no model {name!r} here. This server was started with: "
            f"{', '.join(workers) or 'no model'}. "
            "Stop it and start it with --model to add one.",
        )
    return workers[name]


def _text(asked: dict[str, Any]) -> str:
    text = asked.get("text")
    if not isinstance(text, str):
        raise CannotRead("The request needs a 'text' (a string).")
    return text


def _whole(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refused(422, f"The request needs a '{name}' (a whole number, counted from 1).")
    return value


def by_name(scopes: Sequence["Scope"]) -> dict[str, "Scope"]:
    """Scopes by the name a person chooses; two folders of one name are numbered."""
    names = [label(scope.shape.name) for scope in scopes]
    return {
        name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})": scope
        for place, (name, scope) in enumerate(zip(names, scopes, strict=True))
    }


def listening_socket(port: int = 0) -> socket.socket:
    """A socket on this machine only; a free port unless one is named."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise HeadscopeError(
            f"Port {port} cannot be used ({error.strerror}). Leave --port out to have a free one "
            "chosen."
        ) from error
    return listener


def serve(
    scopes: Mapping[str, "Scope"],
    text: str,
    *,
    study: Mapping[str, Any] | None = None,
    port: int = 0,
    debug: bool = False,
    started: Callable[[str, str], None] = lambda *_: None,
) -> None:
    """Serve until Ctrl-C; `started` is told the address once the server answers.

    It is told another as well, which works once: for starting a browser with.
    """
    import uvicorn

    listener, key = listening_socket(port), Key()
    chosen = listener.getsockname()[1]
    config = configuration(make_app(scopes, text, chosen, key, study, debug=debug))

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            here = f"http://127.0.0.1:{chosen}/"
            started(f"{here}?token={key.token}", f"{here}?once={key.new_code()}")

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            self.force_exit = True  # at once: no answer under way is waited for,
            logging.getLogger("uvicorn.error").disabled = True  # and its end is no news
            super().handle_exit(sig, frame)

    Server(config).run(sockets=[listener])


def configuration(app: Starlette) -> "uvicorn.Config":
    """How uvicorn serves an application of ours."""
    import uvicorn

    from headscope.viewer.connections import Connection

    return uvicorn.Config(
        app, http=Connection, ws="none", log_level="error", server_header=False, lifespan="off"
    )
