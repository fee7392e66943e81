"""The door of the local server: who may ask, and what a page from here may do.

Any web page a person visits can send requests to 127.0.0.1, under a host name of its own choosing.
So every request must name this server as its host, and whatever says where it comes from must say
that it comes from here.

Any other user of this machine can ask too. So a request must show the token in the printed address:
the page as part of its address, what the page asks for in a header.
"""

import hmac
import secrets
import sys
import traceback
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headscope.markup import h, page
from headscope.terminal import say

WHERE_TO_GO = (
    "Open the address that “headscope view” printed, with its token: it keeps other users of this "
    "machine out."
)


class Key:
    """What opens the door: a token for as long as the server runs, and codes that work once.

    A browser is started with a code, since all users see the words that a program is started with.
    """

    def __init__(self, token: str | None = None):
        self.token = token or secrets.token_urlsafe(24)
        self.codes: set[str] = set()

    def new_code(self) -> str:
        """A code that opens the page once."""
        code = secrets.token_urlsafe(24)
        self.codes.add(code)
        return code

    def fits(self, token: str) -> bool:
        """Whether this is the token, in a time that does not say how much of it is right."""
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def spend(self, code: str) -> bool:
        """Whether this is a code that was not used before."""
        known = code in self.codes
        self.codes.discard(code)
        return known


class Guard:
    """Refuse who may not ask; add the headers that keep a page to itself; let no error through."""

    def __init__(self, app: ASGIApp, port: int, policy: str, key: Key, debug: bool = False):
        self.app = app
        self.key = key
        self.debug = debug
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.origins = {f"http://{host}" for host in self.hosts}
        self.headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say why not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = False

        async def reply(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self.answered(scope)
        try:
            await (answer or self.app)(scope, receive, reply)
        except ClientDisconnect:  # who asked has gone
            return
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:300]}"
            say(f"A request to {scope['path']} failed by a fault of headscope ({what}).")
            if self.debug:
                traceback.print_exc(file=sys.stderr)
            if not began:
                said = f"This should not have happened, and is a fault of headscope ({what})."
                await JSONResponse({"error": said}, status_code=500)(scope, receive, reply)

    def answered(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further; None where it does."""
        headers, path = Headers(scope=scope), scope["path"]
        why = self.refusal(headers, path)
        if why:
            return JSONResponse({"error": why}, status_code=403)
        if path == "/":
            return self._at_the_door(scope)
        shown = headers.get("authorization", "").removeprefix("Bearer ")
        if path.startswith("/api/") and not self.key.fits(shown):
            return JSONResponse({"error": WHERE_TO_GO}, status_code=403)
        return None

    def _at_the_door(self, scope: Scope) -> Response | None:
        """The page is for who has the token, or a code for it."""
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        if self.key.fits(asked.get("token", [""])[0]):
            return None
        if self.key.spend(asked.get("once", [""])[0]):
            return RedirectResponse(f"/?token={self.key.token}", status_code=303)
        closed = page("headscope", None, h("p", None, WHERE_TO_GO))
        own = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
        return HTMLResponse(closed, status_code=403, headers=own)

    def refusal(self, headers: Headers, path: str) -> str:
        """Why a request is not answered; "" if it is."""
        if headers.get("host", "").lower() not in self.hosts:
            return "This server answers only requests addressed to it, by the address it printed."
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self.origins:
            return f"This server does not answer pages from {origin}."
        # A link from elsewhere may open the page; nothing else may be asked from elsewhere.
        elsewhere = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        if elsewhere and path != "/":
            return "This server answers only its own page."
        return ""
