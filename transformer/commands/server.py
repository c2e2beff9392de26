"""The scoring server: a page to try the model, and MLflow's application behind checks of what reaches it.

A program of its own, which `transformer serve` becomes: it imports nothing of this package, since a model brings the
code of its own version.
"""

import asyncio
import hmac
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_BYTES = 4 << 20
"""Bytes of a request."""
_KINDS = ("application/json", "text/csv")
_PATIENCE = 10.0
"""Seconds that a client may take to send a request's head, and its body."""
_GRACE = 8.0
"""Seconds that running requests have left after SIGTERM: containers are killed after ten."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "TRANSFORMER_TOKEN"
ABOUT = "TRANSFORMER_ABOUT"
"""The variable with the page's settings, as JSON."""
_APPLICATION = ("/invocations", "/ping", "/health", "/version")
"""What MLflow's application answers; its other pages load scripts from elsewhere."""
_SETTINGS = "/about.json"
_HERE = Path(__file__).parent
_PAGE = {
    "/": ("text/html", _HERE / "page" / "index.html"),
    "/page.css": ("text/css", _HERE / "page" / "page.css"),
    "/page.js": ("text/javascript", _HERE / "page" / "page.js"),
    "/style.css": ("text/css", _HERE.parent / "reporting" / "page_template" / "style.css"),
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Gives out the page, and refuses a request, in one line of JSON, before any work is done for it.

    404: neither for the page nor for MLflow's application; 421: for another host, as by a page that has this address
    rebound; 403: from a page of another origin; 401: without the token; 415: neither JSON nor CSV, in UTF-8; 413: too
    long; 408: too slow.
    """

    def __init__(self, app: App, hosts: frozenset[str], token: str | None, about: str) -> None:
        """hosts: names of this server, with its port; none to answer to any; token: what requests must bear, if any.

        about: the page's settings, in JSON.
        """
        self._app, self._hosts, self._token = app, hosts, token
        self._page = {path: (kind, file.read_bytes()) for path, (kind, file) in _PAGE.items()}
        self._page[_SETTINGS] = ("application/json", about.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (refusal := self._refusal(scope, headers)) is not None:
            await _refuse(send, *refusal)
            return
        if scope["path"] in self._page and scope["method"] in ("GET", "HEAD"):
            await _answer(send, 200, *self._page[scope["path"]])
            return
        try:
            body = await asyncio.wait_for(_body(receive), _PATIENCE)
        except TimeoutError:
            await _refuse(send, 408, f"the request took over {_PATIENCE:.0f} s to arrive")
            return
        if body is None:
            await _refuse(send, 413, f"the request has over {MOST_BYTES:,} bytes: ask in parts")
            return
        await self._app(scope, _given(body, receive), send)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> tuple[int, str] | None:
        host, origin = headers.get("host"), headers.get("origin")
        if self._hosts and host not in self._hosts:
            return 421, "the request is for another host"
        if origin is not None and origin.partition("://")[2] != host:
            return 403, "the request comes from a page of another origin"
        path, borne = scope["path"], headers.get("authorization", "").encode()
        if path not in self._page and path not in _APPLICATION:
            return 404, f"there are only {', '.join(('/', *_APPLICATION))}"
        known = path in ("/ping", "/health", *_PAGE)  # the page, which then asks with the token
        if self._token is not None and not known and not hmac.compare_digest(borne, f"Bearer {self._token}".encode()):
            return 401, "the header `Authorization: Bearer TOKEN` is missing, or has another token"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal() or int(length) > MOST_BYTES:
            return 413, f"the request has over {MOST_BYTES:,} bytes: ask in parts"
        if scope["method"] == "POST":
            kind, _, charset = headers.get("content-type", "").lower().replace(" ", "").partition(";")
            if kind not in _KINDS or charset not in ("", "charset=utf-8"):
                return 415, f"send {' or '.join(_KINDS)}, in UTF-8"
        return None


async def _body(receive: Receive) -> bytes | None:
    """Return a request's whole body; None if it is too long."""
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            return None
        more = message.get("more_body", False)
    return b"".join(parts)


def _given(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body, then waits for the connection's end."""
    sent = False

    async def give() -> MutableMapping[str, Any]:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


async def _refuse(send: Send, status: int, line: str) -> None:
    content = json.dumps({"error_code": status, "message": line}).encode()
    await _answer(send, status, "application/json", content, connection="close")


async def _answer(send: Send, status: int, kind: str, content: bytes, **more: str) -> None:
    given = {"content-type": f"{kind}; charset=utf-8", "content-length": str(len(content)), "cache-control": "no-store"}
    given |= {"content-security-policy": _POLICY, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
    headers = [(name.encode(), value.encode()) for name, value in (given | more).items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class _Impatient(H11Protocol):
    """Closes a connection on which no request begins within the patience; uvicorn closes those that send nothing."""

    _watch: asyncio.TimerHandle | None = None
    _answered: object = None
    """The request that was answered when the connection was looked at last; at first none."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch = self.loop.call_later(_PATIENCE, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        if self.cycle is self._answered:  # no request has begun since
            self.transport.close()
        else:
            self._answered = self.cycle if self.cycle.response_complete else self
            self._watch = self.loop.call_later(_PATIENCE, self._close_if_idle)


class _Server(uvicorn.Server):
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Give the running requests little time, then end."""
        observer = sys.modules.get("transformer.core.observer")
        if forward := getattr(observer, "bring_deadline_forward", None):  # of a model's own version, which may be older
            forward(_GRACE)
        super().handle_exit(sig, frame)


def main(host: str, port: int) -> None:
    """Serve the model that MLflow's variable names until a signal ends it; other variables have the rest.

    A server for other machines is known by names that it cannot know: there the token alone is checked.
    """
    from mlflow.pyfunc.scoring_server.app import app

    names = (*LOOPBACK, "[::1]") if host in LOOPBACK else ()
    hosts = frozenset(f"{name}:{port}" for name in names)
    guarded = Guard(app, hosts, os.environ.get(TOKEN), os.environ[ABOUT])
    colours = False if os.environ.get("NO_COLOR") else None  # None: on a terminal
    _Server(uvicorn.Config(guarded, host=host, port=port, http=_Impatient, use_colors=colours)).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
