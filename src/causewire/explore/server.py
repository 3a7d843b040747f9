"""The web server of the explorer: for this machine, and for one page only.

Any page that the browser has open can send requests to a local port, so the
server answers only those that show that they come from its own page:

- it listens on the loopback interface only;
- every address begins with a random token;
- `Host` has to be the address of the server itself, so a foreign name that was
  made to point at this machine (DNS rebinding) is refused;
- `Origin` and `Sec-Fetch-Site`, where a browser sends them, have to be its own;
- files come from a list made at the start; no path is ever joined or resolved.

The page may load nothing from elsewhere, and may not be framed by another one.
"""

from __future__ import annotations

import gzip
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .api import Answer, Api

__all__ = ["HOST", "ExploreServer"]

HOST = "127.0.0.1"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_COMPRESSED_FROM = 1 << 16
"""Bytes from which on an answer is compressed (a local network is fast)."""


def _static() -> dict[str, Answer]:
    """Return the files of the page by name."""
    found = {}
    for entry in files(__package__).joinpath("static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if entry.is_file() and suffix in _TYPES:
            found[entry.name] = Answer(entry.read_bytes(), _TYPES[suffix])
    return found


class ExploreServer(ThreadingHTTPServer):
    """Serves one explorer; `url` is where its page is."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, api: Api, port: int = 0, token: str | None = None) -> None:
        self.api = api
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.static = _static()
        super().__init__((HOST, port), _Handler)
        self.hosts = frozenset({f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"})

    @property
    def url(self) -> str:
        """The address of the page, token included."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that break off; anything else is shown."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: ExploreServer
    protocol_version = "HTTP/1.1"
    server_version = "causewire"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        self._respond("GET")

    def do_POST(self) -> None:
        self._respond("POST")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: the terminal is the user's."""

    def _respond(self, method: str) -> None:
        length = self.headers.get("Content-Length", "0")
        if length != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self._send(_refusal(413, "requests have no body"))
            return
        self._send(self._refused(method) or self._answer(method))

    def _refused(self, method: str) -> Answer | None:
        """Return a refusal unless the request comes from the page itself."""
        host = self.headers.get("Host", "")
        if host not in self.server.hosts:
            return _refusal(421, "this server is not that host")
        origin = self.headers.get("Origin")
        if origin is not None and origin.removeprefix("http://") not in self.server.hosts:
            return _refusal(403, "requests of other origins are refused")
        if origin is None and method == "POST":
            return _refusal(403, "a request without an origin cannot change anything")
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            return _refusal(403, "requests of other sites are refused")
        token = self.path.split("/", 2)[1:2]
        if not token or not secrets.compare_digest(token[0].encode(), self.server.token.encode()):
            return _refusal(404, "not found: the address lacks the token")
        return None

    def _answer(self, method: str) -> Answer:
        parts = urlsplit(self.path)
        name = parts.path.split("/", 2)[2] if parts.path.count("/") >= 2 else None
        if name is None:
            return _refusal(404, "not found")
        if name.startswith("api/"):
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            return self.server.api.answer(method, name.removeprefix("api/"), query)
        if method == "GET" and (name or "index.html") in self.server.static:
            return self.server.static[name or "index.html"]
        return _refusal(404, "not found")

    def _send(self, answer: Answer) -> None:
        body = answer.body
        small = len(body) < _COMPRESSED_FROM
        packed = not small and "gzip" in self.headers.get("Accept-Encoding", "")
        if packed:
            body = gzip.compress(body, 1)
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(body)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        if answer.filename:
            self.send_header("Content-Disposition", f'attachment; filename="{answer.filename}"')
        self.end_headers()
        self.wfile.write(body)


def _refusal(status: int, reason: str) -> Answer:
    return Answer(json.dumps({"error": reason}).encode(), status=status)
