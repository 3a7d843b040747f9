"""The report in a real browser: wide and narrow, light and dark, with hostile names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.metrics import measure
from causewire.report.checks import report_check
from causewire.report.sweeps import report_sweep
from causewire.trace import open_trace, write_trace

from ..browser import axe_violations, launched, require_browser
from ..explore.stories import STORY, simulated
from .sweep_folder import RUNS, sweep_folder

require_browser()

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
BIDI = "\u202egnihton"
LONG = "n" * 1_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return report_sweep(sweep_folder(folder / "sweep", RUNS), folder / "out").page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    names = {"ann": MARKUP, "bob": BIDI, "cid": LONG}

    def named(name: str | None) -> str | None:
        return None if name is None else names.get(name, name)

    write_trace(
        folder / "t.jsonl",
        [
            event._replace(
                run=MARKUP,
                process=named(event.process) or "",
                origin=named(event.origin),
                peers=tuple(named(peer) or "" for peer in event.peers),
            )
            for event in STORY
        ],
    )
    trace = open_trace(folder / "t.jsonl")
    return report_check(
        trace, check(trace, examples=10), folder / "out", [run.summary() for run in measure(trace)]
    ).page


@contextmanager
def opened(browser: Any, page: Path, width: int, scheme: str) -> Iterator[Any]:
    """Open a page offline; at the end nothing may have gone wrong on it."""
    troubles: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
    )
    try:
        tab = context.new_page()
        tab.on("console", lambda message: troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        tab.on("request", lambda request: requests.append(request.url))
        requests: list[str] = []
        tab.goto(page.as_uri())
        tab.wait_for_function(
            "[...document.querySelectorAll('figure.chart')].every((f) => f.dataset.drawn)"
        )
        yield tab
        assert troubles == []
        assert [url for url in requests if not url.startswith(("data:", "blob:"))] == [
            page.as_uri()
        ]
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        context.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1440, "dark")])
@pytest.mark.parametrize("which", ["sweep", "hostile"])
def test_every_page_passes_axe(
    browser: Any, request: pytest.FixtureRequest, which: str, width: int, scheme: str
) -> None:
    with opened(browser, request.getfixturevalue(which), width, scheme) as tab:
        tab.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        assert axe_violations(tab) == []


def test_figures_are_hovered_filtered_zoomed_and_saved(browser: Any, sweep: Path) -> None:
    with opened(browser, sweep, 1440, "light") as tab:
        chart = tab.locator("figure.chart").first
        chart.locator(".mark-symbol.role-mark path").first.hover()
        tip = tab.locator("#vg-tooltip-element")
        tip.wait_for()
        assert "execution time (s), mean" in tip.inner_text()
        assert "2.2" in tip.inner_text()

        lines = "[...document.querySelectorAll('.mark-line path')]"
        faint = f"Math.min(...{lines}.map((line) => line.getAttribute('opacity')))"
        assert tab.evaluate(faint) == 1
        name = chart.locator(".role-legend-label text").first.bounding_box()
        tab.mouse.click(name["x"] + 4, name["y"] + name["height"] / 2)
        tab.wait_for_function(f"{faint} < 0.5")

        drawn = f"{lines}.map((line) => line.getAttribute('d')).join()"
        before = tab.evaluate(drawn)
        chart.locator(".mark-symbol.role-mark path").nth(1).hover()
        tab.keyboard.down("Shift")
        tab.mouse.wheel(0, -400)
        tab.keyboard.up("Shift")
        tab.wait_for_function(f"(before) => {drawn} !== before", arg=before)

        for kind, start in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
            with tab.expect_download() as saved:
                chart.get_by_role("button", name=f"Save as {kind}").click()
            assert Path(saved.value.path()).read_bytes().startswith(start)
            assert saved.value.suggested_filename == f"time.{kind.lower()}"


def test_a_page_follows_the_width_of_the_window_and_prints(browser: Any, sweep: Path) -> None:
    with opened(browser, sweep, 1440, "dark") as tab:
        tab.set_viewport_size({"width": 390, "height": 844})
        tab.wait_for_function(
            "[...document.querySelectorAll('figure.chart')].every((f) => f.dataset.drawn < 400)"
        )
        tab.emulate_media(media="print", color_scheme="dark")
        paper = "getComputedStyle(document.body).backgroundColor"
        assert tab.evaluate(paper) == "rgb(255, 255, 255)"
        assert not tab.locator("button").first.is_visible()
        tab.set_viewport_size({"width": 1440, "height": 900})


def test_hostile_names_are_text(browser: Any, hostile: Path) -> None:
    assert hostile.stat().st_size < 4_000_000
    with opened(browser, hostile, 1440, "light") as tab:
        text = tab.inner_text("body")
        assert "<img src=x onerror" in text
        assert "\\u202egnihton" in text
        assert "\u202e" not in text
        assert LONG[:1000] not in text
        assert tab.locator("img[src=x]").count() == 0


def test_the_picture_of_the_documentation(browser: Any, tmp_path: Path) -> None:
    """`CAUSEWIRE_PICTURES=docs/figures` keeps it."""
    write_trace(tmp_path / "run.parquet", simulated("fifo", 200))
    trace = open_trace(tmp_path / "run.parquet")
    page = report_check(
        trace, check(trace, examples=3), tmp_path / "out", [run.summary() for run in measure(trace)]
    ).page
    picture = Path(os.environ.get("CAUSEWIRE_PICTURES", tmp_path)) / "report-trace.png"
    with opened(browser, page, 1100, "light") as tab:
        tab.screenshot(path=picture, clip={"x": 0, "y": 0, "width": 1100, "height": 760})
    assert picture.stat().st_size > 20_000
