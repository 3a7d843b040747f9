"""What a frame of the diagram costs, counted: calls that draw, not seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causewire.trace import trace_of

from ..browser import launched, require_browser
from .browser import OpenPage, opened, serving
from .stories import simulated

require_browser()

pytestmark = pytest.mark.slow

_COUNTED = """
() => new Promise((done) => {
  const app = globalThis.explorer, calls = {}, drawing = CanvasRenderingContext2D.prototype;
  const kept = {};
  for (const name of ["stroke", "fill", "arc", "measureText", "getImageData"]) {
    kept[name] = drawing[name];
    drawing[name] = function (...more) { calls[name] = (calls[name] ?? 0) + 1; return kept[name].apply(this, more); };
  }
  const strip = app.overview._strip;
  let changed = 0;
  const watch = new MutationObserver((records) => { changed += records.length; });
  watch.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  const before = app.main.frames;
  let left = 20;
  const move = () => {
    if (left-- === 0) {
      Object.assign(drawing, kept);
      watch.disconnect();
      const frames = app.main.frames - before;
      done({ frames, changed, same: strip === app.overview._strip, calls });
      return;
    }
    app.view.pan(left % 2 ? 0.001 : -0.001);
    app.view.zoom(left % 2 ? 1.001 : 1 / 1.001);
    requestAnimationFrame(move);
  };
  requestAnimationFrame(move);
})
"""  # noqa: E501


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


def _moved(page: OpenPage) -> dict[str, Any]:
    page.page.wait_for_load_state("networkidle")  # the strip below has its violations
    page.idle()
    page.page.evaluate(_COUNTED)  # the first frames measure and keep the widths of texts
    result: dict[str, Any] = page.page.evaluate(_COUNTED)
    return result


@pytest.mark.parametrize("messages", [240, 6000])
def test_a_frame_has_few_paths_no_text_to_measure_and_no_change_of_the_page(
    browser: Any, messages: int
) -> None:
    events = simulated("fifo", messages, processes=20)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        assert page.value("app.main.windows.data.exact") is (messages == 240)
        moved = _moved(page)
        assert 15 <= moved["frames"] <= 25  # one for each movement
        assert moved["changed"] == 0
        assert moved["same"], "the strip below the diagram is painted again in each frame"
        calls = moved["calls"]
        assert calls.pop("stroke") <= 4 * moved["frames"]
        assert calls.pop("fill", 0) <= 4 * moved["frames"]
        assert calls == {}  # no circles, nothing measured, nothing read back


def test_a_wave_is_drawn_for_each_process_of_a_large_run(browser: Any) -> None:
    events = simulated("fifo", 6000, processes=20)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        differ = page.value(
            """(() => {
                const { canvas, density } = app.main, scene = app.main.scene();
                const rows = () => {
                    const copy = new OffscreenCanvas(canvas.width, canvas.height);
                    const c = copy.getContext("2d", { willReadFrequently: true });
                    c.drawImage(canvas, 0, 0);
                    return app.view.lanes.map((process) => {
                        const y = Math.round(scene.y(process)) - 2;
                        return new Uint32Array(c.getImageData(0, y, copy.width, 1).data.buffer);
                    });
                };
                const before = rows();
                density.draw = () => {};
                app.main._frame();
                return rows().map((row, k) => row.filter((p, x) => p !== before[k][x]).length);
            })()"""
        )
        assert len(differ) == 20
        assert min(differ) > 100  # pixels of each process
