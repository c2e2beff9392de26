"""What the scoring server refuses before it does any work; the application behind it is stood in for by an echo."""

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Iterator
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

from tests.kit import free_port
from transformer.commands import server
from transformer.commands.server import MOST_BYTES, Guard

ABOUT = '{"title": "a model"}'
JSON = {"content-type": "application/json"}


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})


def ask(
    body: Any = b"{}",
    headers: dict[str, str] = JSON,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] = ("127.0.0.1:5001", "localhost:5001"),
    address: str = "http://127.0.0.1:5001",
) -> tuple[int, str]:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(Guard(echo, frozenset(hosts), token, ABOUT))
        async with httpx.AsyncClient(transport=transport, base_url=address) as client:
            return await client.post("/invocations", content=body, headers=headers)

    answer = asyncio.run(asked())
    return answer.status_code, answer.text


@pytest.mark.parametrize(
    ("status", "how"),
    [
        (200, {}),
        (200, {"address": "http://localhost:5001", "headers": JSON | {"origin": "http://localhost:5001"}}),
        (421, {"address": "http://rebound.example:5001"}),
        (403, {"headers": JSON | {"origin": "https://other.example"}}),
        (403, {"headers": JSON | {"origin": "null"}}),
        (200, {"headers": {"content-type": "text/csv; charset=UTF-8"}}),
        (415, {"headers": {"content-type": "application/vnd.apache.parquet"}}),
        (415, {"headers": {"content-type": "application/json; charset=latin-1"}}),
        (415, {"headers": {}}),
        (200, {"body": b"x" * MOST_BYTES}),
        (413, {"body": b"x" * (MOST_BYTES + 1)}),
        (401, {"token": "secret"}),
        (401, {"token": "secret", "headers": JSON | {"authorization": "Bearer other"}}),
        (200, {"token": "secret", "headers": JSON | {"authorization": "Bearer secret"}}),
        (200, {"hosts": (), "address": "http://a.name.of.this.machine:5001"}),
    ],
    ids=str,
)
def test_a_request_is_answered_or_refused(status: int, how: dict[str, Any]) -> None:
    found, text = ask(**how)
    assert found == status
    assert status == 200 or (text.startswith('{"error_code": ') and "x" * 9 not in text and "secret" not in text)


def get(path: str, token: str | None = None, **headers: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(Guard(echo, frozenset({"127.0.0.1:5001"}), token, ABOUT))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5001") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(asked())


def test_the_page_loads_nothing_from_elsewhere_and_cannot_be_framed() -> None:
    page = get("/")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"} <= {*policy}
    named = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {*named} == {"data:,", "style.css", "page.css", "page.js"}
    assert all(get(f"/{name}").status_code == 200 for name in named[1:])
    assert get("/about.json").json() == {"title": "a model"}
    assert get("/docs").status_code == 404, "MLflow's page of this name loads scripts from elsewhere"


def test_the_page_is_there_without_the_token_but_nothing_of_the_model() -> None:
    assert get("/", "secret").status_code == get("/page.js", "secret").status_code == 200
    assert get("/about.json", "secret").status_code == 401
    assert get("/about.json", "secret", authorization="Bearer secret").status_code == 200
    assert get("/", origin="https://other.example").status_code == 403


def test_a_body_without_a_length_is_counted_and_a_slow_one_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PATIENCE", 0.2)

    async def parts(seconds: float) -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * (MOST_BYTES // 4)
            await asyncio.sleep(seconds)

    assert ask(parts(0.0))[0] == 413
    assert ask(parts(0.1))[0] == 408


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on which a connection is looked at every few milliseconds."""
    monkeypatch.setattr(server, "_PATIENCE", 0.02)
    port = free_port()
    guarded = Guard(echo, frozenset({f"127.0.0.1:{port}"}), None, ABOUT)
    running = uvicorn.Server(uvicorn.Config(guarded, port=port, http=server._Impatient, log_level="error"))
    thread = Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join()


def test_a_connection_in_use_stays_and_one_that_only_begins_a_request_is_closed(address: str) -> None:
    with httpx.Client(base_url=address) as client:
        assert {client.post("/invocations", json={}).status_code for _ in range(500)} == {200}, "one connection"
    host, port = address.removeprefix("http://").split(":")
    for before in (b"", b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % f"{host}:{port}".encode()):
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            slow.sendall(before + b"POST /invocations HTTP/1.1\r\n")
            while slow.recv(1 << 16):  # the answer to what came before, if any
                pass
