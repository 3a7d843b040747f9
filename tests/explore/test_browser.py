"""The page in a real browser: everything that can be clicked, pressed, dragged and read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causewire import cli
from causewire.check import check
from causewire.explore import Api, Dataset, EndpointStates
from causewire.explore.saved import saved
from causewire.trace import Event, open_trace, open_writer, trace_of

from ..browser import axe_violations, launched, require_browser
from .browser import OpenPage, opened, pixels, serving
from .stories import STORY, latencies, simulated

require_browser()

pytestmark = pytest.mark.slow

TABS = ("selection", "violations", "latency", "waiting", "processes", "steps", "replay")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@pytest.fixture
def page(browser: Any) -> Iterator[OpenPage]:
    events = simulated("fifo", 200)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        yield page


def _arrow(page: OpenPage, k: int, share: float = 0.5) -> tuple[float, float]:
    """Return a place on the arrow of the kth message in view."""
    return page.place(
        f"""(() => {{
            const scene = app.main.scene(), d = scene.data, k = {k};
            const a = [scene.x(d.copy_release[k]), scene.y(d.copy_from[k])];
            const b = [scene.x(d.copy_receive[k]), scene.y(d.copy_to[k])];
            return [a[0] + {share} * (b[0] - a[0]), a[1] + {share} * (b[1] - a[1])];
        }})()"""
    )


@pytest.mark.parametrize(("width", "height", "scheme"), [(390, 844, "dark"), (1440, 900, "light")])
def test_every_panel_passes_axe(browser: Any, width: int, height: int, scheme: str) -> None:
    events = simulated("fifo", 200)
    with (
        serving(trace_of(events, "run")) as server,
        opened(browser, server, width, height, scheme) as page,
    ):
        for tab in TABS:
            page.page.click(f"#tab-{tab}")
            if tab == "violations":
                page.page.click("button.item >> nth=0")
            if tab == "replay":
                page.page.get_by_role("button", name="Replay", exact=True).click()
                page.until("app.diagrams.length === 2")
            page.idle()
            assert axe_violations(page.page) == [], tab
        page.page.click("#help-open")
        assert axe_violations(page.page) == []
        wide = page.value("document.documentElement.scrollWidth")
        assert wide <= width


def test_the_picture_is_not_blank(page: OpenPage) -> None:
    colours = page.value(
        """(() => {
            const { canvas } = app.main, c = canvas.getContext("2d");
            const { data } = c.getImageData(0, 0, canvas.width, canvas.height);
            return new Set(new Uint32Array(data.buffer)).size;
        })()"""
    )
    assert colours > 20
    assert page.text("#size") == "1,158 events, 200 messages, 5 processes"
    assert page.text("#verdict") == "3 violations"


def test_a_click_on_a_message_tells_what_became_of_it(page: OpenPage) -> None:
    page.page.mouse.click(*_arrow(page, 30))
    page.until("app.main.selection")
    told = page.text("#panel-selection")
    name = page.value("app.main.selection.title")
    assert f"sent {name} to" in told
    assert "happened before it" in told
    assert "The network took" in told
    page.page.keyboard.press("Escape")
    assert page.value("app.main.selection") is None


def test_a_violation_is_a_click_away(page: OpenPage) -> None:
    page.page.click("#tab-violations")
    assert page.page.locator("button.item").count() == 3
    page.page.click("button.item >> nth=1")
    page.until("app.main.chain && app.main.chain.size > 1")
    page.idle()
    assert page.value("app.view.width < app.view.end / 2")
    assert page.page.get_attribute("button.item >> nth=1", "aria-current") == "true"
    assert "overtook" in page.text("button.item >> nth=1")


def test_wheel_and_drag_move_through_the_run(page: OpenPage) -> None:
    x, y = _arrow(page, 60)
    page.page.mouse.move(x, y)
    before = page.value("[app.view.low, app.view.high]")
    under = page.value(f"app.main.scene().place({x})")
    page.page.mouse.wheel(0, -600)
    page.until(f"app.view.width < {0.5 * (before[1] - before[0])}")
    assert abs(page.value(f"app.main.scene().place({x})") - under) < 0.02 * (before[1] - before[0])
    low = page.value("app.view.low")
    page.page.mouse.down()
    page.page.mouse.move(x - 200, y, steps=5)
    page.page.mouse.up()
    assert page.value("app.view.low") > low
    page.page.mouse.wheel(300, 0)
    page.page.click("#fit")
    assert page.value("app.view.low <= 0 && app.view.high >= app.view.end")


def test_two_fingers_zoom(browser: Any) -> None:
    events = simulated("fifo", 60)
    with (
        serving(trace_of(events, "run")) as server,
        opened(browser, server, 390, 844, has_touch=True) as page,
    ):
        x, y = page.place("[200, 150]")
        wide = page.value("app.view.width")
        touch = page.page.context.new_cdp_session(page.page)

        def fingers(kind: str, apart: float | None) -> None:
            points = [] if apart is None else [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}]
            for number, point in enumerate(points):
                point["id"] = number
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        fingers("touchStart", 20)
        for apart in (30, 45, 60, 80):
            fingers("touchMove", apart)
        fingers("touchEnd", None)
        page.until(f"app.view.width < {0.5 * wide}")


def test_the_keyboard_alone_is_enough(page: OpenPage) -> None:
    press = page.page.keyboard.press
    for _ in range(30):
        press("Tab")
        if page.value("document.activeElement === app.main.canvas"):
            break
    else:
        raise AssertionError("Tab does not lead to the diagram")
    wide = page.value("app.view.width")
    press("+")
    press("+")
    assert page.value("app.view.width") < wide
    low = page.value("app.view.low")
    press("ArrowRight")
    assert page.value("app.view.low") > low
    press("ArrowDown")
    press(".")
    page.until("app.main.selection")
    first = page.value("app.main.selection.row")
    press(".")
    page.until(f"app.main.selection.row !== {first}")
    press("m")
    press(".")
    page.until("app.main.second")
    assert "Both happened at" in page.text(".relation")
    press("v")
    page.until("app.main.chain")
    press("Escape")
    assert page.value("app.main.selection") is None
    press("?")
    assert page.value("document.getElementById('help').open")
    press("Escape")
    for _ in range(10):
        press("Tab")
        if page.value("document.activeElement.id.startsWith('tab-')"):
            break
    press("ArrowRight")
    press("ArrowRight")
    assert page.value("document.activeElement.getAttribute('aria-selected')") == "true"


def test_latencies_are_brushed(page: OpenPage) -> None:
    page.page.click("#tab-latency")
    page.until("app.latency.data && app.latency.data.count")
    assert "200 deliveries" in page.text("#panel-latency")
    box = page.page.locator("canvas.histogram").bounding_box()
    page.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 50)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + 50, steps=4)
    page.page.mouse.up()
    page.idle()
    page.until("app.main.windows.data.messages < 200 && app.main.windows.data.messages > 0")
    page.idle()
    fastest, slowest = page.value("[app.view.fastest, app.view.slowest]")
    brushed = sum(fastest <= taken <= slowest for taken in latencies(simulated("fifo", 200)))
    assert page.value("app.main.windows.data.messages") == brushed
    page.page.click("text=Show all messages")
    page.until("app.main.windows.data.messages === 200")
    page.page.focus("canvas.histogram")
    for _ in range(8):
        page.page.keyboard.press("ArrowRight")
    page.until("app.main.windows.data.messages < 200")


def test_processes_are_filtered_and_put_in_order(page: OpenPage) -> None:
    page.page.click("#tab-processes")
    page.page.click("[aria-label='Move p0 down']")
    assert page.value("app.view.lanes") == [1, 0, 2, 3, 4]
    page.page.keyboard.press("Enter")  # the button keeps the focus
    assert page.value("app.view.lanes") == [1, 2, 0, 3, 4]
    page.page.fill("#process-filter", "/p[12]/")
    assert page.value("app.view.lanes") == [1, 2]
    page.until("app.main.windows.data.event_process.every((p) => p === 1 || p === 2)")
    page.page.get_by_role("button", name="Show all", exact=True).click()
    assert page.value("app.view.lanes.length") == 5
    page.page.uncheck("ol.processes li >> nth=0 >> input")
    assert page.value("app.view.lanes") == [2, 0, 3, 4]


def test_processes_are_grouped(page: OpenPage) -> None:
    page.page.click("#tab-processes")
    page.page.fill("#process-groups", "/p([02])|p[134]/")
    page.page.keyboard.press("Enter")
    assert page.page.locator("li.group").count() == 5
    page.page.fill("#process-groups", "[24]$")
    page.page.keyboard.press("Enter")
    assert page.value("app.view.lanes") == [0, 1, 3, 2, 4]
    assert page.text("li.group >> nth=0").startswith("others")
    page.page.uncheck("li.group >> nth=0 >> input")
    assert page.value("app.view.lanes") == [2, 4]


def test_what_is_on_screen_is_exported(page: OpenPage, tmp_path: Path) -> None:
    page.page.click("#tab-violations")
    page.page.click("button.item >> nth=0")
    page.until("app.main.chain")
    page.idle()
    for button in ("svg", "png", "trace"):
        with page.page.expect_download() as download:
            page.page.click(f"#export-{button}")
        download.value.save_as(tmp_path / f"out.{button}")
    tree = ET.fromstring((tmp_path / "out.svg").read_bytes())
    names = [e.text for e in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"p0", "p1", "p2", "p3", "p4"} <= set(names)
    assert len(set(pixels((tmp_path / "out.png").read_bytes()))) > 20  # it is not blank
    (tmp_path / "out.trace").rename(tmp_path / "out.jsonl")
    report = check(open_trace(tmp_path / "out.jsonl"))
    assert report.violations == 1
    assert report.events <= 20
    assert str(report.examples[0]) == page.text("button.item >> nth=0 >> span")


def test_a_replay_is_shown_beside_the_run(page: OpenPage) -> None:
    page.page.click("#tab-replay")
    page.page.select_option("#replay-protocol", "csps")
    page.page.get_by_role("button", name="Replay", exact=True).click()
    page.until("app.diagrams.length === 2 && app.diagrams[1].windows.data")
    page.page.wait_for_selector(".compare td")
    assert "nothing is overtaken, where this run has 3 violations" in page.text("#panel-replay")
    rows = dict(row.split("\t", 1) for row in page.text(".compare tbody").splitlines())
    taken = latencies(simulated("fifo", 200))
    assert rows["violations"] == "3\t0"
    mean = float(rows["mean latency"].split(" ms")[0])
    assert mean == pytest.approx(sum(taken) / len(taken) / 1e6, rel=0.01)
    assert rows["held at the sender"].split("\t")[0] == "0 s"  # fifo holds nothing there
    assert rows["control packets a message"].split("\t")[1] != "0.00"
    page.value("app.choose(app.main, { row: -1, copy: 20 }, false)")
    page.until("app.diagrams[1].selection")
    assert page.value("app.main.selection.title === app.diagrams[1].selection.title")
    places = page.value(
        "app.diagrams.map((d) => { const s = d.scene(); return s.x(s.selection.x) })"
    )
    assert places[0] == pytest.approx(places[1], abs=1)  # in step
    page.page.click("#tab-replay")
    page.page.click("text=Close the replay")
    assert page.value("app.diagrams.length") == 1


def test_a_run_is_gone_through_step_by_step(page: OpenPage) -> None:
    page.page.click("#tab-steps")
    page.until("app.main.step")
    first = page.text("#panel-steps .now")
    page.page.click("[aria-label='One row forward']")
    page.until("app.main.step.row === 1")
    assert page.text("#panel-steps p.now") != first
    page.page.click("[aria-label='One row back']")
    page.until("app.main.step.row === 0")
    assert page.text("#panel-steps p.now") == first
    assert page.page.locator(".state tbody tr").count() == 5
    page.page.click("text=Leave")
    assert page.value("app.main.step") is None


def test_acks_and_permits_can_be_drawn(browser: Any) -> None:
    events = simulated("csps", 60)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        assert page.value("app.main.windows.data.packet_sort") is None
        page.page.check("#control")
        page.until("app.main.windows.data.packet_sort")
        acks = sum(event.kind in ("ack_receive", "permit_receive") for event in events)
        assert page.value("app.main.windows.data.packet_sort.length") == acks
        page.page.uncheck("#control")
        page.until("!app.main.windows.data.packet_sort")


def test_what_processes_waited_for_is_a_timeline(browser: Any) -> None:
    events = simulated("csps", 120)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        page.page.click("#tab-waiting")
        page.until("app.waiting.data")
        assert "permit" in page.text("#panel-waiting .cone")
        drawn = page.value(
            """(() => {
                const { canvas, data } = app.waiting, c = canvas.getContext("2d");
                const seen = c.getImageData(0, 0, canvas.width, canvas.height).data;
                const colours = new Set();
                for (let k = 0; k < seen.length; k += 4)
                    colours.add("#" + [0, 1, 2].map((n) => seen[k + n].toString(16).padStart(2, "0")).join(""));
                const { future, sender, fault, receiver, control } = app.palette;
                return [future, sender, fault, receiver, control].map(
                    (colour, k) => [colours.has(colour), Math.max(...data.columns[k]) > 0]);
            })()"""  # noqa: E501
        )
        assert [colour for colour, _ in drawn] == [waited for _, waited in drawn]
        assert sum(waited for _, waited in drawn) >= 2


def test_a_message_is_found_by_name(page: OpenPage) -> None:
    page.page.fill("#find-text", "p3:7")
    page.page.keyboard.press("Enter")
    page.until("app.main.selection")
    assert page.value("app.main.selection.title") == "p3:7"


def test_the_axis_can_be_the_order(page: OpenPage) -> None:
    page.page.select_option("#axis", "order")
    page.until("app.info.axis === 'order' && app.main.windows.data")
    assert page.value("app.view.end") == 1157


def test_many_events_are_a_density_and_then_single_messages(browser: Any) -> None:
    events = simulated("fifo", 6000, processes=20)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        sizes: list[int] = []
        page.page.on("response", lambda r: sizes.append(int(r.headers.get("content-length", 0))))
        assert page.value("app.main.windows.data.exact") is False
        assert "Too much to draw one by one" in page.text("#in-view")
        for _ in range(6):
            page.value("app.view.zoom(2)")
            page.idle()
        page.until("app.main.windows.data.exact")
        assert "Every event" in page.text("#in-view")
        assert sizes
        assert max(sizes) < 1_500_000


def test_a_trace_that_grows_is_followed(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    with open_writer(path, live=True) as writer:
        for event in STORY[:4]:
            writer.write(event)
        writer.flush()
        with (
            serving(path, follow=[path]) as server,
            opened(browser, server) as page,
        ):
            assert page.text("#verdict") == "causally ordered"
            for event in STORY[4:]:
                writer.write(event)
            writer.flush()
            page.until("app.info.rows === 7 && app.status.report.violations === 1")
            assert page.text("#verdict") == "1 violation"
            page.until("app.main.windows.data.events === 7")


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "a\u202egnp.exe",
    "x" * 1_000_000,
    "\x00\x1b[31m",
    "{{constructor}}",
)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1440, 900)])
def test_hostile_names_are_text(browser: Any, width: int, height: int) -> None:
    events = [
        Event(HOSTILE[0], name, seq, 10 * seq + k, 6 * seq + k, "send", name, seq + 1, (other,))
        for seq in range(2)
        for k, (name, other) in enumerate(zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1], strict=True))
    ]
    events.append(Event(HOSTILE[1], HOSTILE[0], 0, 1, 1, "<b>odd kind</b>", None, None, ()))
    with (
        serving(trace_of(events, HOSTILE[0])) as server,
        opened(browser, server, width, height) as page,
    ):
        page.until("app.info.rows === 12")  # the run with messages comes first
        page.idle()
        for tab in TABS:
            page.page.click(f"#tab-{tab}")
            page.idle()
        for copy in range(len(HOSTILE)):
            page.value(f"app.choose(app.main, {{ row: -1, copy: {copy} }}, false)")
        page.page.click("#tab-processes")
        assert HOSTILE[0] in page.text("#panel-processes")
        assert "a\\u202egnp.exe" in page.text("#panel-processes")
        assert page.page.locator("#panels img, #panels script, #panels b").count() == 0
        assert page.value("document.documentElement.scrollWidth") <= width


def test_a_saved_page_needs_no_server(browser: Any, tmp_path: Path) -> None:
    dataset = Dataset(lambda: trace_of(simulated("fifo", 200), "run"), "</script><b>saved</b>")
    dataset.load()
    api = Api(dataset)
    assert api.replay(dataset, 0, "csps") == 1
    path = tmp_path / "page.html"
    path.write_text(saved(api), encoding="utf-8")
    tab = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    page = OpenPage(tab.new_page(), None)
    page.page.goto(path.as_uri())
    page.until("app && app.diagrams.length === 2 && app.diagrams[1].windows.data")
    page.idle()
    assert page.text("#title") == "</script><b>saved</b>"
    page.page.click("#tab-violations")
    page.page.click("button.item >> nth=0")
    page.until("app.main.chain && app.diagrams[1].chain")
    page.value("app.choose(app.main, { row: 0, copy: app.main.windows.data.event_copy[0] }, false)")
    page.until("app.main.selection && app.main.selection.row === 0")
    page.page.focus("figure canvas >> nth=0")
    for key in (".", "m", "."):
        page.page.keyboard.press(key)
        page.page.wait_for_timeout(50)
    page.until("app.main.second")
    assert "Both happened at one process" in page.text(".relation")
    server, seen = Api(dataset), set()
    for a, b in ((0, 300), (300, 0), (100, 110), (5, 900), (17, 450)):
        mine = page.page.evaluate(
            "([a, b]) => explorer.choose(explorer.main, { row: a, "
            "copy: explorer.main.windows.data.event_copy[a] }, false).then(() => "
            "explorer.choose(explorer.main, { row: b, "
            "copy: explorer.main.windows.data.event_copy[b] }, true)).then(() => "
            "[document.querySelector('.relation').className, explorer.main.arrows.length])",
            [a, b],
        )
        theirs = json.loads(server.answer("GET", "relate", {"a": str(a), "b": str(b)}).body)
        seen.add(theirs["relation"])
        assert mine == [f"relation {theirs['relation']}", len(theirs["chain"])]
    assert seen == {"before", "after", "concurrent"}
    for panel in ("latency", "waiting", "processes", "steps"):
        page.page.click(f"#tab-{panel}")
        page.idle()
    assert page.troubles == []
    assert all(url.startswith(("file:", "blob:", "data:")) for url in page.requests)
    tab.close()


def test_a_counterexample_shows_the_state_of_each_endpoint(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    command = ["verify", "--protocol", "sps-unsent-not-counted", "--trace", str(path)]
    assert cli.main(command) == 1
    states = EndpointStates.read(path)
    with serving(path, endpoints=states) as server, opened(browser, server, 390, 844) as page:
        page.page.click("#tab-steps")
        page.until("document.querySelector('.now').innerText.startsWith('1 of')")
        said = []
        for row, label in zip((2, 3, 4, 3, 2, 1), ["forward"] * 3 + ["back"] * 3, strict=True):
            page.page.click(f"[aria-label='One row {label}']")
            page.until(f"document.querySelector('.now').innerText.startsWith('{row} of')")
            said.append((page.text(".now"), page.text("table.state")))
        assert "Step 1 of 9: p0 sends p0:1 to p2" in said[0][0]
        assert "peers[p1]" not in said[0][1]
        assert "peers[p1]" in said[2][1]
        assert page.page.locator("tr.fields").count() == 3
        assert said[0] == said[4]
        assert axe_violations(page.page) == []
