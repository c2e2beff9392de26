"""An MLflow server that fails in one of the ways that real ones do: `Faulty(fault, port)` on loopback."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DRIP_SECONDS = SLOW_SECONDS = 2.0


@contextmanager
def faulty(fault: str, behind: int = 0) -> Iterator[str]:
    """The address of a server: `error` answers 500, `drip` sends a byte every two seconds, `silent` never answers.

    `slow` answers what the server at the port `behind` does, two seconds later.
    """

    class Handler(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.close_connection = True
            getattr(self, fault)(body)

        def error(self, body: bytes) -> None:
            self.send_error(500)

        def drip(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            while not ended.wait(DRIP_SECONDS):
                self.wfile.write(b" ")
                self.wfile.flush()

        def silent(self, body: bytes) -> None:
            ended.wait()

        def slow(self, body: bytes) -> None:
            time.sleep(SLOW_SECONDS)
            upstream = http.client.HTTPConnection("127.0.0.1", behind)
            upstream.request(self.command, self.path, body, {k: v for k, v in self.headers.items() if k != "Host"})
            answer = upstream.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type") or "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # the end waits for what is under way
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
