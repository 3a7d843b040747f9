"""What a watch finds, told to other programs: a webhook, and counters for Prometheus.

    with Webhook("https://example.org/alerts") as hook, Counters("127.0.0.1", 9090) as counters:
        watch(spark, "traces/", "found/", tell=both)

Both are called with the name of a table and a row, as `watch` calls `tell`. A webhook never
delays the watch: rows wait in a queue of bounded length, and a thread posts them. A batch
that is repeated after a crash is reported again, so receivers see each violation at least once.
"""

from __future__ import annotations

import json
import queue
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from .errors import PipelineError

__all__ = ["Counters", "Webhook"]

_TOGETHER = 100
"""Rows that are posted together, at most."""


class Webhook:
    """Posts violations to a URL as JSON: `{"violations": [{"run": ...}, ...]}`.

    A post that fails is repeated, with growing pauses; a client error (4xx) is final.
    """

    def __init__(
        self,
        url: str,
        *,
        attempts: int = 5,
        pause: float = 0.5,
        timeout: float = 10.0,
        most: int = 10_000,
    ) -> None:
        """Start the thread that posts.

        Args:
            url: Where to post, with http or https.
            attempts: How often a post is tried.
            pause: Seconds before the second attempt; each pause is twice the one before.
            timeout: Seconds that one attempt may take.
            most: Rows that may wait; further ones are dropped, and counted.

        Raises:
            PipelineError: The URL is not one of HTTP.
        """
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise PipelineError(f"{url!r} is not a URL for a webhook (http:// or https://)")
        self.counts: Counter[str] = Counter()
        """Rows that were `sent`, `failed` (given up) or `dropped` (too many waited)."""
        self._url, self._attempts, self._pause, self._timeout = url, attempts, pause, timeout
        self._rows: queue.Queue[dict[str, Any] | None] = queue.Queue(most)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, table: str, row: dict[str, Any]) -> None:
        """Take a row of a table; only violations are posted."""
        if table == "violations":
            try:
                self._rows.put_nowait(row)
            except queue.Full:
                self.counts["dropped"] += 1

    def close(self, patience: float = 10.0) -> None:
        """Post what still waits, for as long as `patience` seconds, and end the thread."""
        timer = threading.Timer(patience, self._over.set)
        timer.daemon = True
        timer.start()
        self._rows.put(None)
        self._thread.join()
        timer.cancel()

    def _work(self) -> None:
        ended = False
        while not ended:
            rows = [self._rows.get()]
            while len(rows) < _TOGETHER and rows[-1] is not None:
                try:
                    rows.append(self._rows.get_nowait())
                except queue.Empty:
                    break
            ended = rows[-1] is None
            known = [row for row in rows if row is not None]
            if known:
                self.counts["sent" if self._posted(known) else "failed"] += len(known)

    def _posted(self, rows: list[dict[str, Any]]) -> bool:
        body = json.dumps({"violations": rows}).encode()
        pause = self._pause
        for attempt in range(self._attempts):
            if self._over.wait(pause if attempt else 0):
                return False
            pause *= 2 if attempt else 1
            request = Request(self._url, body, {"Content-Type": "application/json"})
            try:
                with urlopen(request, timeout=self._timeout):
                    return True
            except HTTPError as error:
                if 400 <= error.code < 500 and error.code != 429:
                    return False
            except OSError:  # it cannot be reached, or does not answer in time
                pass
        return False


_HELP = {
    "events": "Events in windows that are over.",
    "violations": "Messages that were overtaken.",
    "windows": "Windows that are over.",
    "late": "Rows that came too late, or were inconsistent.",
    "quarantine": "Rows that could not be understood.",
}


class Counters:
    """Counts what a watch finds, and serves the counts at `/metrics` for Prometheus."""

    def __init__(self, host: str, port: int, webhook: Webhook | None = None) -> None:
        """Start the server; port 0 chooses a free one.

        Args:
            host: The address to listen on.
            port: The port to listen on.
            webhook: Its alerts are counted, too.

        Raises:
            PipelineError: The address cannot be listened on.
        """
        self.counts: Counter[str] = Counter()
        counters = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path.split("?")[0] == "/metrics"
                body = counters.text().encode() if found else b"see /metrics\n"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Print nothing: standard error is for problems."""

        self._webhook = webhook
        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise PipelineError(f"cannot listen on {host}:{port}: {error}") from None
        self.port = self._server.server_port
        """The port that is listened on."""
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, table: str, row: dict[str, Any]) -> None:
        """Count a row of a table."""
        self.counts[table] += 1
        if table == "windows":
            self.counts["events"] += row["events"]

    def text(self) -> str:
        """Return the counts in the text format of Prometheus."""
        lines = []
        for name, text in _HELP.items():
            full = f"causewire_watch_{name}_total"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} counter"]
            lines.append(f"{full} {self.counts[name]}")
        if self._webhook is not None:
            full = "causewire_watch_alerts_total"
            lines += [f"# HELP {full} Violations posted to the webhook.", f"# TYPE {full} counter"]
            counts = self._webhook.counts
            lines += [
                f'{full}{{result="{result}"}} {counts[result]}'
                for result in ("sent", "failed", "dropped")
            ]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
