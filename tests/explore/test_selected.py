"""What is selected: its causal past and future in the picture, and two events compared."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from causewire.trace import trace_of

from ..browser import launched, require_browser
from .browser import OpenPage, opened, serving
from .stories import STORY, simulated

require_browser()

pytestmark = pytest.mark.slow

ANN_TELLS_CID, ANN_TELLS_BOB, BOB_HEARS, BOB_TELLS_CID, CID_HEARS_BOB, CID_HEARS_ANN, DAN = range(7)
ANN_FIRST = "The send of ann:1 at ann happened before the deliver of bob:1 at cid."
BY_BOB = "ann sent ann:2, and bob delivered it; then bob sent bob:1, and cid delivered it"
ANN_TWICE = "The send of ann:1 at ann happened before the send of ann:2 at ann."
UNRELATED = "The send of dan:1 at dan and the deliver of ann:2 at bob are concurrent"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@pytest.fixture
def story(browser: Any) -> Iterator[OpenPage]:
    with serving(trace_of(STORY, "story")) as server, opened(browser, server) as page:
        yield page


def _marks(page: OpenPage) -> Counter[str]:
    """Return how many events are drawn in the colour of each role, faint ones apart."""
    names = page.value("Object.fromEntries(Object.entries(app.palette).map(([k, v]) => [v, k]))")
    drawn: Counter[str] = Counter()
    clipped = next(g for g in page.svg().iter(f"{SVG}g") if "clip-path" in g.attrib)
    for part in clipped:
        faint = "faint " if float(part.get("opacity", "1")) < 0.5 else ""
        if part.tag == f"{SVG}path" and part.get("stroke-width") == "1.3":  # rings: sends
            drawn[faint + names[part.get("stroke")]] += part.get("d", "").count("A") // 2
        elif part.tag == f"{SVG}rect" and part.get("width") == part.get("height"):  # deliveries
            drawn[faint + names[part.get("fill")]] += 1
    return drawn


def _arrows(svg: ET.Element, colour: str) -> int:
    """Return how many lines are drawn in a colour."""
    paths = (p for p in svg.iter(f"{SVG}path") if p.get("stroke") == colour)
    return sum(p.get("d", "").count("L") for p in paths)


def test_past_and_future_light_up_and_everything_else_recedes(story: OpenPage) -> None:
    assert _marks(story) == {"ink": 7}
    story.page.mouse.click(*story.event(BOB_TELLS_CID))
    story.until("app.main.selection")
    assert story.value("app.main.selection.row") == BOB_TELLS_CID
    assert _marks(story) == {"past": 3, "chosen": 1, "future": 2, "faint quiet": 1}
    assert story.text(".cone tbody").split("\n") == [
        "happened before it\t3 events",
        "concurrent with it\t1 event",
        "depend on it\t2 events",
    ]


@pytest.mark.parametrize(
    ("first", "second", "relation", "words", "chain"),
    [
        (
            ANN_TELLS_CID,
            CID_HEARS_BOB,
            "before",
            f"{ANN_FIRST} The chain: {BY_BOB}.",
            ["ann:2", "bob:1"],
        ),
        (
            CID_HEARS_BOB,
            ANN_TELLS_CID,
            "after",
            f"{ANN_FIRST} The chain: {BY_BOB}.",
            ["ann:2", "bob:1"],
        ),
        (
            ANN_TELLS_CID,
            ANN_TELLS_BOB,
            "before",
            f"{ANN_TWICE} Both happened at ann, in this order.",
            [],
        ),
        (
            BOB_HEARS,
            DAN,
            "concurrent",
            f"{UNRELATED}: no chain of messages leads from one to the other.",
            [],
        ),
    ],
)
def test_two_events_are_compared_by_shift_and_click(
    story: OpenPage, first: int, second: int, relation: str, words: str, chain: list[str]
) -> None:
    story.page.mouse.click(*story.event(first))
    story.until(f"app.main.selection?.row === {first}")
    story.page.keyboard.down("Shift")
    story.page.mouse.click(*story.event(second))
    story.page.keyboard.up("Shift")
    story.until("app.main.second")
    assert story.value("app.main.second.row") == second
    assert story.text("#panel-selection .relation") == words
    assert story.page.get_attribute(".relation", "class") == f"relation {relation}"
    assert story.value("app.main.arrows.map((hop) => hop.message)") == chain
    assert _arrows(story.svg(), story.value("app.palette.violation")) == len(chain)


def test_what_held_a_message_back_is_in_the_picture(browser: Any) -> None:
    events = simulated("csps", 60)
    with serving(trace_of(events, "run")) as server, opened(browser, server) as page:
        held = page.value(
            "app.main.windows.data.copy.findLast((copy, k) => "
            "app.main.windows.data.copy_release[k] - app.main.windows.data.copy_send[k] > 1e6)"
        )
        page.value(f"app.choose(app.main, {{ row: -1, copy: {held} }}, false)")
        page.until(f"app.main.selection?.copy === {held}")
        wait = page.value("app.main.selection.waits.find((wait) => wait.held_at === 'sender')")
        assert "held" in page.text("#panel-selection .held")
        assert wait["cause"] is not None
        svg, colour = page.svg(), page.value("app.palette.sender")
        bars = [
            rect
            for rect in svg.iter(f"{SVG}rect")
            if rect.get("fill") == colour and "opacity" not in rect.attrib
        ]
        wide = page.value(f"app.main.scene().x({wait['to']}) - app.main.scene().x({wait['from']})")
        assert any(float(bar.get("width", "0")) == pytest.approx(wide, abs=0.1) for bar in bars)
        rings = [p for p in svg.iter(f"{SVG}path") if p.get("stroke") == colour]
        assert any("A8 8" in ring.get("d", "") for ring in rings)  # where the wait ended


def test_the_pointer_tells_what_lies_under_it(story: OpenPage) -> None:
    story.page.mouse.move(*story.event(BOB_HEARS))
    story.page.wait_for_selector("#tip:not([hidden])")
    assert story.text("#tip") == "bob delivers ann:2 at 2 µs"
    story.page.mouse.move(5, 5)
    story.page.wait_for_selector("#tip", state="hidden")


def test_on_a_phone_the_picture_stays_in_sight_while_its_details_are_read(browser: Any) -> None:
    run = trace_of(simulated("fifo", 200), "run")
    with serving(run) as server, opened(browser, server, 390, 844) as page:
        page.page.click("#tab-violations")
        page.page.locator("button.item").last.click()
        page.until("app.main.chain")
        shown = page.page.locator("figure canvas").first.bounding_box()
        assert shown["y"] >= 0
        assert shown["y"] + shown["height"] <= 844
        told = page.page.locator("button.item").last.bounding_box()
        assert told["y"] >= shown["y"] + shown["height"]  # and does not cover them
