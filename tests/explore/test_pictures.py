"""The pictures of the documentation, made by the page itself.

They are made in each run of these tests, so that what they show stays possible.
`CAUSEWIRE_PICTURES=docs/figures pytest tests/explore/test_pictures.py` writes them to a directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causewire.trace import trace_of

from ..browser import launched, require_browser
from .browser import OpenPage, opened, serving
from .stories import simulated

require_browser()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


def _keep(page: OpenPage, folder: Path, name: str) -> None:
    page.idle()
    page.page.wait_for_timeout(300)
    path = Path(os.environ.get("CAUSEWIRE_PICTURES", folder)) / f"explore-{name}.png"
    page.page.screenshot(path=path)
    assert path.stat().st_size > 20_000


def test_a_violation_and_the_same_run_under_csps(browser: Any, tmp_path: Path) -> None:
    events = simulated("fifo", 200)
    with (
        serving(trace_of(events, "run"), title="run.parquet") as server,
        opened(browser, server, 1440, 900) as page,
    ):
        page.page.click("#tab-replay")
        page.page.select_option("#replay-protocol", "csps")
        page.page.get_by_role("button", name="Replay", exact=True).click()
        page.page.wait_for_selector(".compare td")
        page.page.click("#tab-violations")
        page.page.click("button.item >> nth=0")
        page.until("app.main.chain && app.diagrams[1].chain && app.diagrams[1].selection")
        _keep(page, tmp_path, "violation")


def test_a_frozen_process_on_a_dark_screen(browser: Any, tmp_path: Path) -> None:
    faults = [
        {"kind": "freeze", "at": "20ms", "processes": ["p2"]},
        {"kind": "thaw", "at": "60ms"},
    ]
    events = simulated("csps", 120, seed=4, faults=faults)
    with (
        serving(trace_of(events, "run"), title="frozen.parquet") as server,
        opened(browser, server, 1440, 900, "dark") as page,
    ):
        page.value("app.view.show(10e6, 90e6)")
        page.idle()
        copy = page.value(
            "(() => { const d = app.main.windows.data; "
            "const held = [...d.copy].map((c, k) => [d.copy_release[k] - d.copy_send[k], c]); "
            "return held.sort((a, b) => b[0] - a[0])[0][1]; })()"
        )
        page.value(f"app.choose(app.main, {{ row: -1, copy: {copy} }}, false)")
        page.until("app.main.selection")
        assert "was frozen" in page.text("#panel-selection")
        _keep(page, tmp_path, "frozen")


def test_many_events_and_where_their_time_went(browser: Any, tmp_path: Path) -> None:
    events = simulated("csps", 8000, processes=12, workload="hotspot")
    with (
        serving(trace_of(events, "run"), title="hotspot.parquet") as server,
        opened(browser, server, 1440, 900) as page,
    ):
        page.page.click("#tab-latency")
        page.until("app.latency.data")
        _keep(page, tmp_path, "density")


def test_a_phone(browser: Any, tmp_path: Path) -> None:
    events = simulated("csps", 120, seed=4)
    with (
        serving(trace_of(events, "run"), title="run.parquet") as server,
        opened(browser, server, 390, 844, "dark") as page,
    ):
        page.value("app.choose(app.main, { row: -1, copy: 40 }, false)")
        page.until("app.main.selection")
        page.value("app.closer()")
        _keep(page, tmp_path, "phone")
