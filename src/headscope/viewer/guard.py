"""The door of the local server: who may ask, and what a page from here may do.

Any web page a person visits can send requests to 127.0.0.1, under a host name of its own choosing.
So every request must name this server as its host, and whatever says where it comes from must say
that it comes from here.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Guard:
    """Refuse foreign hosts and origins; add the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, port: int, policy: str):
        self.app = app
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

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        why = self.refusal(Headers(scope=scope), scope["path"])
        if why:
            await JSONResponse({"error": why}, status_code=403)(scope, receive, reply)
        else:
            await self.app(scope, receive, reply)

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
