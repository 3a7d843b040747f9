"""A page of the explorer in a real browser."""

from __future__ import annotations

import threading
import time
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causewire.explore import ExploreServer, explore
from causewire.trace import Trace

__all__ = ["OpenPage", "opened", "pixels", "serving"]


class OpenPage:
    """The page, and everything about it that tests ask for."""

    def __init__(self, page: Any, server: ExploreServer | None) -> None:
        self.page = page
        self.server = server
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.largest = 0
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def value(self, expression: str) -> Any:
        """Evaluate an expression; `app` is the explorer."""
        return self.page.evaluate(
            f"(() => {{ const app = globalThis.explorer; return {expression} }})()"
        )

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        for _ in range(3000):
            if self.value(f"Boolean({expression})"):
                return
            time.sleep(0.01)
        raise AssertionError(f"never came true: {expression}; {self.troubles}")

    def idle(self) -> None:
        """Wait until what is on screen has been asked for, answered and drawn."""
        self.until(
            "app.main && app.main.windows.data && !app.main.windows._busy && !app.main._pending"
        )

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def event(self, row: int) -> tuple[float, float]:
        """Return where an event of the main diagram is on the screen."""
        return self.place(
            f"""(() => {{
                const scene = app.main.scene(), d = scene.data, k = d.event_row.indexOf({row});
                return [scene.x(d.event_x[k]), scene.y(d.event_process[k])];
            }})()"""
        )

    def svg(self) -> ET.Element:
        """Return the diagram as it is on screen, as the page exports it."""
        with self.page.expect_download() as download:
            self.page.click("#export-svg")
        return ET.parse(download.value.path()).getroot()

    def place(self, expression: str) -> tuple[float, float]:
        """Return where on the screen something of the main diagram is: [x, y] on its canvas."""
        x, y = self.value(expression)
        box = self.page.locator("figure canvas").first.bounding_box()
        return box["x"] + x, box["y"] + y


def pixels(picture: bytes) -> bytes:
    """Return the bytes of a PNG that say what is in it, unpacked."""
    assert picture.startswith(b"\x89PNG")
    data, at = b"", 8
    while at < len(picture):
        size = int.from_bytes(picture[at : at + 4], "big")
        if picture[at + 4 : at + 8] == b"IDAT":
            data += picture[at + 8 : at + 8 + size]
        at += size + 12
    return zlib.decompress(data)


@contextmanager
def serving(source: Trace | Path, **more: Any) -> Iterator[ExploreServer]:
    """Serve a trace while the block runs."""
    server = explore(source, **more)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        for dataset in server.api.datasets:
            dataset.stop()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def opened(
    browser: Any,
    server: ExploreServer,
    width: int = 1440,
    height: int = 900,
    scheme: str = "light",
    **context: Any,
) -> Iterator[OpenPage]:
    """Open the page of a server; at the end nothing may have gone wrong on it."""
    tab = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, **context
    )
    try:
        page = OpenPage(tab.new_page(), server)
        page.page.goto(server.url)
        page.until("app && app.status && app.status.report")
        page.idle()
        yield page
        assert page.troubles == []
        origin = server.url[: server.url.index("/", 8)]
        assert all(url.startswith((origin, "blob:", "data:")) for url in page.requests)
    finally:
        tab.close()
