"""The explorer in a browser: time to the first picture, frames a second, memory of the page.

    python benchmarks/explore.py
    python benchmarks/explore.py --events 1000 100000 --shiviz out/shiviz

For each size a trace is made and opened in headless Chromium (without a graphics card: everything
is drawn by the processor). The first picture is counted from the start of the server, so reading
the trace is part of it. Frames are counted while the view moves and zooms a little in each frame
for some seconds; `script` is the time that the page's own code takes for one of them, and `cpu` the
processor time of the whole browser, drawing included: 16 ms or less allow 60 frames a second, which
is also the most that the browser draws. The first row is a page that only clears a canvas of the
same size: what a frame costs before anything is drawn on it. Memory is that of the page's process,
bitmaps included, and in parentheses that of its objects. Times depend on the machine and on what
else runs on it; processor times do so least.

With a checkout of ShiViz (git clone https://github.com/DistributedClocks/shiviz out/shiviz) the
same events are given to it as a log, in the same browser, up to a million; its time runs from
handing over the text to the first picture, for as long as `--patience` allows.

Each size has a browser of its own, and what goes wrong with one is written in its row: the others
are measured all the same. This takes about five minutes, and with ShiViz as long as `--patience` in
addition. `--events 1000 --seconds 1` shows in half a minute that everything is there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from causewire.check import check
from causewire.explore import explore
from causewire.testing.synthetic import Shape, write
from causewire.trace import open_trace, write_shiviz

SIZES = (1_000, 100_000, 10_000_000)
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
]

_FRAMES = """
(seconds) => new Promise((done) => {
  const app = globalThis.explorer, { view, main } = app;
  const frame = main._frame.bind(main);
  let spent = 0, drawn = 0;
  main._frame = () => { const t = performance.now(); frame(); spent += performance.now() - t; drawn += 1; };
  const begun = performance.now();
  const move = () => {
    const now = performance.now();
    if (now - begun > 1000 * seconds) {
      delete main._frame;
      done({ frames: drawn / ((now - begun) / 1000), script: spent / drawn, events: main.windows.data.events, exact: main.windows.data.exact });
      return;
    }
    view.pan(0.002 * Math.sin(now / 300));
    view.zoom(1 + 0.002 * Math.cos(now / 500));
    requestAnimationFrame(move);
  };
  requestAnimationFrame(move);
})
"""  # noqa: E501


_EMPTY = """
<style>body { margin: 0 }</style><canvas width="1040" height="770"></canvas>
<script>
  const canvas = document.querySelector("canvas");
  const data = { events: 0, exact: true };
  const main = { windows: { data }, _frame() {
    const c = canvas.getContext("2d");
    c.fillStyle = "#fff";
    c.fillRect(0, 0, 1040, 770);
  } };
  globalThis.explorer = { main, view: { pan() {}, zoom() { main._frame(); } } };
</script>
"""


_SHIVIZ = r"""
([text, pattern, runs]) => setTimeout(() => {
  const begun = performance.now();
  Shiviz.getInstance().visualize(text, pattern, runs, "order", false);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    console.log(`measured ${performance.now() - begun}`);
  }));
}, 50)
"""

_SHIVIZ_PATTERN = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
_SHIVIZ_RUNS = "^=== (?<trace>.*) ===$"


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def _page_memory() -> int:
    """Return the memory of the largest process that shows the explorer's page, in bytes."""
    largest = 0
    for pid in _started():
        try:
            entry = Path("/proc", str(pid))
            if b"--renderer-client-id" in (entry / "cmdline").read_bytes():
                found = re.search(r"RssAnon:\s+(\d+) kB", (entry / "status").read_text())
                largest = max(largest, 1024 * int(found[1]) if found else 0)
        except OSError:
            continue
    return largest


def _browser_time() -> float:
    """Return the processor time of all processes that this one has started, in seconds."""
    return sum(_started().values())


def _started() -> dict[int, float]:
    """Return the processes that this one has started, with their processor time in seconds."""
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            spent[int(entry.name)] = (int(fields[11]) + int(fields[12])) / tick
    found = {}
    for pid in parents:
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and pid != os.getpid():
            found[pid] = spent[pid]
    return found


def _moved(page: Any, seconds: float) -> dict[str, Any]:
    before = _browser_time()
    result: dict[str, Any] = page.evaluate(_FRAMES, seconds)
    result["cpu"] = 1000 * (_browser_time() - before) / max(1.0, result["frames"] * seconds)
    return result


def _until(page: Any, expression: str, what: str, end: float) -> None:
    while not page.evaluate(f"Boolean({expression})"):
        if time.perf_counter() > end:
            raise TimeoutError(f"{what}: not done in time")
        time.sleep(0.005)


def measure_empty(browser: Any, seconds: float) -> dict[str, Any]:
    """Return what frames of an empty canvas cost."""
    tab = browser.new_context(viewport={"width": 1440, "height": 900})
    page = tab.new_page()
    page.set_content(_EMPTY)
    moved = _moved(page, seconds)
    tab.close()
    return moved


def measure(browser: Any, path: Path, seconds: float, patience: float) -> dict[str, Any]:
    """Open one trace, look at all of it and at some of it, and return what was measured.

    What goes wrong on the way is the value of "trouble"; what was measured before it stays.
    """
    result: dict[str, Any] = {}
    begun = time.perf_counter()
    server = explore(path)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        tab = browser.new_context(viewport={"width": 1440, "height": 900})
        page = tab.new_page()
        page.goto(server.url)
        end = begun + patience
        _until(page, "globalThis.explorer?.firstPicture", "first picture", end)
        result["first"] = time.perf_counter() - begun
        _until(page, "globalThis.explorer.status?.report", "check", end)
        result["checked"] = time.perf_counter() - begun
        result["whole"] = _moved(page, seconds)
        page.evaluate(
            "(() => { const v = explorer.view; "
            "v.zoom(Math.max(1, explorer.info.copies / 1000)); })()"
        )
        exact = "explorer.main.windows.data.exact && !explorer.main.windows._busy"
        _until(page, exact, "1,000 messages", time.perf_counter() + patience)
        result["close"] = _moved(page, seconds)
        result["memory"] = _page_memory(), page.evaluate("performance.memory.usedJSHeapSize")
        tab.close()
    except Exception as error:  # a browser that has died raises what it likes
        result["trouble"] = str(error).splitlines()[0]
    server.shutdown()
    thread.join()
    server.server_close()
    return result


def measure_shiviz(checkout: Path, log: Path, patience: float) -> str:
    """Return how long ShiViz takes to show a log, in words."""
    # In a process of its own: a page that is busy answers nobody, not even a timeout.
    command = [sys.executable, __file__, "--shiviz", str(checkout), "--log", str(log)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            told, _ = child.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)  # its browser ends with it
            return f"not done after {patience:.0f} s"
    return told.strip() or "failed"


def show_in_shiviz(browser: Any, checkout: Path, log: Path) -> str:
    """Show a log in ShiViz, and return how long that took, or what went wrong."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.goto((checkout / "index.html").resolve().as_uri())
    told: list[str] = []
    page.on("pageerror", lambda error: told.append(f"failed: {str(error).splitlines()[0]}"))
    page.on("console", lambda message: told.append(message.text))
    text = log.read_text(encoding="utf-8")
    page.evaluate(_SHIVIZ, [text, _SHIVIZ_PATTERN, _SHIVIZ_RUNS])
    while True:
        page.wait_for_timeout(20)
        for line in told:
            if line.startswith("measured "):
                return f"{float(line.split()[1]) / 1000:.2f} s"
            if line.startswith("failed"):
                return line


def _frames(moved: dict[str, Any]) -> str:
    return f"{moved['frames']:.0f}, {moved['script']:.1f} ms, {moved['cpu']:.1f} ms"


def _memory(process: int, objects: int) -> str:
    return f"{process / 1e6:.0f} MB ({objects / 1e6:.1f} MB)"


def _row(events: int, found: dict[str, Any], other: str) -> str:
    """Return the row of the table for one size, or what went wrong in place of a number."""
    missing = f"failed: {found.get('trouble', '')}".replace("|", "/")
    cells = [
        f"{found['first']:.2f} s" if "first" in found else missing,
        f"{found['checked']:.2f} s" if "checked" in found else missing,
        _frames(found["whole"]) if "whole" in found else missing,
        _frames(found["close"]) if "close" in found else missing,
        _memory(*found["memory"]) if "memory" in found else missing,
        other,
    ]
    return f"| {events:,} | {' | '.join(cells)} |"


def _in_shiviz(args: argparse.Namespace, path: Path, events: int) -> str:
    """Return how long ShiViz takes for the events of a trace, or why that is not known."""
    if args.shiviz is None or events > 1_000_000:
        return "not measured"
    try:
        log = path.with_name("events.log")
        write_shiviz(log, open_trace(path).events())
        _say(f"{events:,} events: in ShiViz, for at most {args.patience:.0f} s")
        return measure_shiviz(args.shiviz, log, args.patience)
    except Exception as error:  # the rows before this one must not be lost
        return f"failed: {error}".splitlines()[0].replace("|", "/")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--events", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--seconds", type=float, default=3.0, help="of moving; default: 3")
    parser.add_argument("--shiviz", type=Path, metavar="DIR", help="a checkout of ShiViz")
    parser.add_argument("--log", type=Path, metavar="LOG", help="show only this log, in ShiViz")
    parser.add_argument(
        "--patience",
        type=float,
        default=600.0,
        help="the most to wait for a picture, ours or that of ShiViz, in seconds; default: 600",
    )
    args = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if chromium is None:
        print("no Chromium was found", file=sys.stderr)
        return 2
    if args.shiviz is not None and not (args.shiviz / "index.html").is_file():
        print(f"{args.shiviz} has no checkout of ShiViz; see --help", file=sys.stderr)
        args.shiviz = None
    from playwright.sync_api import sync_playwright

    if args.log is not None and args.shiviz is not None:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
            print(show_in_shiviz(browser, args.shiviz, args.log), flush=True)
            browser.close()
        return 0
    print(
        "| events | first picture | checked | whole run: frames/s, script, cpu "
        "| 1,000 messages: frames/s, script, cpu | memory of the page | ShiViz, first picture |\n"
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    troubles = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
        _say("an empty canvas, and a trace that makes sure that the check is compiled")
        empty = _frames(measure_empty(browser, args.seconds))
        browser.close()
        write(Path(folder) / "first", Shape(20, 1_000), 0.0001)
        check(open_trace(Path(folder) / "first"))
        print(f"| an empty canvas | | | {empty} | | | |", flush=True)
        for events in args.events:
            path = Path(folder) / str(events)
            _say(f"{events:,} events: writing the trace")
            write(path, Shape(100 if events > 1_000_000 else 20, events), 0.0001)
            _say(f"{events:,} events: opening it, moving through it")
            browser = driver.chromium.launch(executable_path=chromium, args=_FLAGS)
            found = measure(browser, path, args.seconds, args.patience)
            browser.close()
            troubles += "trouble" in found
            print(_row(events, found, _in_shiviz(args, path, events)), flush=True)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
