"""Space-time diagrams: everything is there, once, and joins what belongs together."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations, pairwise
from math import dist

import pytest

from causewire.report import draw, overtakings
from causewire.report.picture import Picture
from causewire.report.style import LABEL, SMALL
from causewire.report.svg import text_width
from causewire.trace import DELIVER, RECEIVE, RELEASE, SEND, Event

from .diagrams import TANGLED, Drawing, simulated

PROTOCOLS = ["fifo", "csps", "sps", "cykas", "mf", "rst"]
SIZES = [3, 5, 12]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("processes", SIZES)
def test_every_event_has_its_mark(protocol: str, processes: int) -> None:
    rows = simulated(protocol, processes)
    drawing = Drawing(draw(rows))
    happened = Counter(row.kind for row in rows)
    for kind, tag in ((SEND, "circle"), (RELEASE, "circle"), (RECEIVE, "rect"), (DELIVER, "rect")):
        assert len(drawing.of(kind, tag)) == happened[kind] > 0
    names = [e.text for e in drawing.of("process")]
    assert len(names) == len(set(names)) == processes
    assert len(drawing.of("line")) >= processes


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrows_join_the_release_with_the_arrival(protocol: str) -> None:
    rows = simulated(protocol, 5)
    drawing = Drawing(draw(rows))
    arrows = drawing.of("message", "line")
    assert len(arrows) == sum(row.kind == RECEIVE for row in rows)
    for arrow in arrows:
        found = re.fullmatch(r"(\S+) from (\S+) to (\S+)", arrow.title)
        assert found is not None
        message, source, target = found.groups()
        begin = drawing.mark(source, RELEASE, message).centre
        end = drawing.mark(target, RECEIVE, message).centre
        assert dist(begin, (arrow.number("x1"), arrow.number("y1"))) < 5
        assert dist(end, (arrow.number("x2"), arrow.number("y2"))) < 6
        assert begin[0] < end[0]
        assert arrow.attributes["marker-end"].startswith("url(#head")


def test_acks_and_permits_are_dotted_and_dashed() -> None:
    rows = simulated("csps", 4)
    drawing = Drawing(draw(rows))
    for kind in ("ack", "permit"):
        assert len(drawing.of(kind, "line")) == sum(row.kind == kind for row in rows) > 0
    style = next(e.text for e in drawing.elements if e.tag == "style")
    assert re.search(r"\.ack \{[^}]*stroke-dasharray: 1", style)
    assert re.search(r"\.permit \{[^}]*stroke-dasharray: 6", style)
    assert {"ack", "permit"} <= set(drawing.legend())
    without = Drawing(draw(rows, control=False))
    assert not without.of("ack")
    assert not without.of("permit")
    assert len(without.of(SEND)) == len(drawing.of(SEND))


@pytest.mark.parametrize(
    ("protocol", "sort", "begin", "end"),
    [
        ("csps", "held", SEND, RELEASE),
        ("cykas", "held", SEND, RELEASE),
        ("rst", "waits", RECEIVE, DELIVER),
    ],
)
def test_bars_are_the_times_in_buffers(protocol: str, sort: str, begin: str, end: str) -> None:
    rows = simulated(protocol, 5, 40, network=TANGLED)
    first = {(r.process, r.origin, r.mid): r.time_ns for r in rows if r.kind == begin}
    last = {(r.process, r.origin, r.mid): r.time_ns for r in rows if r.kind == end}
    waited = {f"{k[1]}:{k[2]}": k[0] for k in first if first[k] != last[k]}
    drawing = Drawing(draw(rows))
    bars = drawing.of(sort, "rect")
    assert len(bars) == len(waited) > 0
    for bar in bars:
        message = bar.title.split(" ")[0]
        process = waited[message]
        left = drawing.mark(process, begin, message).centre
        right = drawing.mark(process, end, message).centre
        assert bar.number("x") == pytest.approx(left[0], abs=0.2)
        assert bar.number("x") + bar.number("width") == pytest.approx(right[0], abs=0.2)
        above = bar.number("y") < left[1]
        assert above == (sort == "held")


@pytest.mark.parametrize("axis", ["time", "order"])
@pytest.mark.parametrize("protocol", ["csps", "fifo"])
def test_what_is_further_right_happened_later(axis: str, protocol: str) -> None:
    rows = simulated(protocol, 6, 60)
    drawing = Drawing(draw(rows, axis=axis))
    placed: dict[str, list[tuple[int, float]]] = {}
    moments: dict[int, float] = {}
    for row in rows:
        if row.kind not in (SEND, RECEIVE, DELIVER):
            continue
        x = drawing.mark(row.process, row.kind, f"{row.origin}:{row.mid}").centre[0]
        moments[row.time_ns or 0] = min(x, moments.get(row.time_ns or 0, x))
        if row.kind != RECEIVE:
            placed.setdefault(row.process, []).append((row.seq, x))
    for marks in placed.values():
        for (_, x), (_, y) in pairwise(sorted(marks)):
            assert y - x >= 11  # a place of its own for each
    in_order = [x for _, x in sorted(moments.items())]
    assert all(a <= b + 0.1 for a, b in pairwise(in_order))


def test_time_is_to_scale_where_there_is_room() -> None:
    rows = [
        Event("r", "a", k, 1_000_000 * t, k + 1, SEND, "a", k + 1, ("b",))
        for k, t in enumerate([0, 10, 20, 60, 100])
    ]
    drawing = Drawing(draw(rows))
    x = [drawing.mark("a", SEND, f"a:{k}").centre[0] for k in range(1, 6)]
    assert [round((v - x[0]) / (x[4] - x[0]), 2) for v in x] == [0, 0.1, 0.2, 0.6, 1]
    ticks = [e.text for e in drawing.of("tick")]
    assert ticks == ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100", "time in ms"]


def test_uneven_times_stay_readable() -> None:
    """A burst, an hour of nothing, a burst: no two marks of a process on one spot."""
    hour = 3600 * 10**9
    times = [0, 10, 20, 30, hour, hour + 10, hour + 20]
    rows = [Event("r", "a", k, t, k + 1, SEND, "a", k + 1, ("b",)) for k, t in enumerate(times)]
    for axis in ("time", "order"):
        drawing = Drawing(draw(rows, axis=axis))
        x = [drawing.mark("a", SEND, f"a:{k}").centre[0] for k in range(1, 8)]
        assert min(b - a for a, b in pairwise(x)) >= 11
        assert float(drawing.root.attrib["width"]) < 1600


# -- violations -----------------------------------------------------------------------


def _violating() -> list[Event]:
    return simulated("fifo", 3, 14, seed=0, network=TANGLED)


def test_the_violating_chain_is_red() -> None:
    rows = _violating()
    found = overtakings(Picture.of(rows).rows)[0]
    drawing = Drawing(draw(rows))
    red = {e.title for e in drawing.of("red", "line") if e.title}
    assert red == {f"{o}:{m} from {o} to {to}" for (o, m), to in found.copies()}
    assert len(found.chain) >= 2
    labels = [e.text for e in drawing.of("name") if "red" in e.classes]
    first, second = (f"{o}:{m}" for o, m in (found.first, found.second))
    assert {f"{first} too late", f"{second} too early"} <= set(labels)
    for origin, mid in found.chain:
        assert f"{origin}:{mid}" in labels
        assert "red" in drawing.mark(origin, SEND, f"{origin}:{mid}").classes
    between = [e for e in drawing.of("red", "line") if "line" in e.classes]
    assert len(between) == len(found.chain) - 1
    story = " ".join(e.text for e in drawing.of("red", "text"))
    assert f"{found.process} delivered {second} first" in story


@pytest.mark.slow
def test_a_chosen_violation_is_shown_instead() -> None:
    rows = simulated("fifo", 4, 200, seed=1, network=TANGLED)
    found = overtakings(Picture.of(rows).rows)
    assert len(found) > 1
    for violation in found[:3]:
        drawing = Drawing(draw(rows, violation=violation))
        red = {e.title for e in drawing.of("red", "line") if e.title}
        assert red == {f"{o}:{m} from {o} to {to}" for (o, m), to in violation.copies()}


def test_nothing_is_red_in_a_causal_run() -> None:
    assert not Drawing(draw(simulated("csps", 5, 60, network=TANGLED))).of("red")


def test_the_message_chosen_is_blue() -> None:
    rows = simulated("csps", 4)
    drawing = Drawing(draw(rows, around=("p1", 2)))
    assert {e.title.split(" ")[0] for e in drawing.of("blue", "line")} == {"p1:2"}
    assert "the message chosen" in drawing.legend()


# -- foreign and difficult traces ---------------------------------------------------------


def test_sends_and_deliveries_alone() -> None:
    """Somebody's log: no releases, no receipts, no times."""
    rows = [
        row._replace(time_ns=None, lamport=None)
        for row in simulated("csps", 4)
        if row.kind in (SEND, DELIVER)
    ]
    drawing = Drawing(draw(rows))
    arrows = drawing.of("message", "line")
    assert len(arrows) == sum(row.kind == DELIVER for row in rows)
    for arrow in arrows:
        message, _, source, _, target = arrow.title.split(" ")
        begin = drawing.mark(source, SEND, message).centre
        end = drawing.mark(target, DELIVER, message).centre
        assert begin[0] < end[0]
        assert dist(end, (arrow.number("x2"), arrow.number("y2"))) < 6
    assert not drawing.of("held")
    assert any("the trace has no times" in e.text for e in drawing.of("tick"))


def test_clocks_that_disagree() -> None:
    """A receiver whose clock is behind: drawn as it says, or in order if order is asked for."""
    rows = [
        Event("r", "a", 0, 5_000_000, 1, SEND, "a", 1, ("b",)),
        Event("r", "b", 0, 1_000_000, 2, DELIVER, "a", 1, ("a",)),
    ]
    for axis, later in (("time", False), ("order", True)):
        drawing = Drawing(draw(rows, axis=axis))
        sent = drawing.mark("a", SEND, "a:1").centre[0]
        assert (drawing.mark("b", DELIVER, "a:1").centre[0] > sent) == later


def test_loss_duplication_jobs_and_faults() -> None:
    rows = simulated(
        "csps",
        processes={"count": 4, "jobs": {"share": 0.5, "length": "8ms"}},
        messages=40,
        network={"loss": 0.2, "duplicate": 0.2},
        faults=[{"kind": "partition", "at": "12ms", "sides": 2}, {"kind": "heal", "at": "40ms"}],
    )
    drawing = Drawing(draw(rows))
    happened = Counter(row.kind for row in rows)
    assert 0 < len(drawing.of("lost", "path")) <= happened["drop"]  # of two copies, one is shown
    assert len(drawing.of("job", "rect")) == happened["job_start"] > 0
    assert len(drawing.of("retransmit", "circle")) == happened["retransmit"] > 0
    assert len(drawing.of("duplicate", "circle")) == happened["duplicate"] > 0
    assert [e.text for e in drawing.of("fault-name")] == ["partition", "heal"]
    assert [e.title for e in drawing.of("fault")] == [
        "partition: p0, p1, p2, p3",
        "heal: p0, p1, p2, p3",
    ]
    assert {"lost", "job", "sent or arriving once more"} <= set(drawing.legend())


def test_what_is_lost_is_crossed_out() -> None:
    rows = simulated("csps", 4, 40, network={"loss": 0.3})
    drawing = Drawing(draw(rows))
    lost = [e.title for e in drawing.elements if e.title.endswith(" is lost")]
    assert len(drawing.of("lost", "path")) == len(lost) == sum(r.kind == "drop" for r in rows) > 0
    whole = [e for e in drawing.of("message", "line") if not e.title.endswith(" is lost")]
    assert len(whole) == sum(row.kind in (RECEIVE, "duplicate") for row in rows)
    assert all("marker-end" in e.attributes for e in whole)


def test_names_are_escaped() -> None:
    name = '<a & "b">'
    rows = [Event("<run>", name, 0, 0, 1, SEND, name, 1, ("c",))]
    drawing = Drawing(draw(rows))
    assert [e.text for e in drawing.of("process")] == [name]
    assert drawing.mark(name, SEND, f"{name}:1").title.startswith(name)


def test_crash_restart_and_kinds_that_nobody_knows() -> None:
    kinds = ["send", "crash", "restart", "coffee"]
    rows = [Event("r", "a", k, k, k + 1, kind, "a", 1, ("b",)) for k, kind in enumerate(kinds)]
    drawing = Drawing(draw(rows))
    assert len(drawing.of("restart")) == len(drawing.of("lost")) == 1


def test_an_axis_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="time, order"):
        draw([], axis="round")


# -- as a page ------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", SIZES)
@pytest.mark.parametrize("protocol", ["fifo", "csps", "rst"])
def test_labels_do_not_collide(protocol: str, processes: int) -> None:
    rows = simulated(protocol, processes, 60, network=TANGLED)
    drawing = Drawing(draw(rows))
    boxes = []
    for label in drawing.of("name"):
        size = LABEL if len(label.classes) > 1 else SMALL
        half = text_width(label.text, size) / 2
        x, y = label.number("x"), label.number("y")
        boxes.append((x - half, y - 0.7 * size, x + half, y))
    assert len(boxes) > 20
    for a, b in combinations(boxes, 2):
        assert not (a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
    ticks = sorted(e.number("x") for e in drawing.of("tick")[:-1])
    assert all(b - a >= 50 for a, b in pairwise(ticks))


@pytest.mark.parametrize("processes", SIZES)
def test_everything_is_on_the_page(processes: int) -> None:
    drawing = Drawing(draw(simulated("csps", processes, 60, network=TANGLED)))
    width, height = (float(drawing.root.attrib[name]) for name in ("width", "height"))
    for e in drawing.elements:
        for name, most in (("x", width), ("x1", width), ("x2", width), ("cx", width)):
            if name in e.attributes:
                assert 0 <= e.number(name) <= most
        for name in ("y", "y1", "y2", "cy"):
            if name in e.attributes:
                assert 0 <= e.number(name) <= height


def test_the_same_rows_give_the_same_bytes_in_any_order() -> None:
    rows = simulated("csps", 5, 40)
    assert draw(rows) == draw(rows[::-1]) == draw(sorted(rows, key=lambda r: (r.process, r.seq)))


def test_no_rows_at_all() -> None:
    assert Drawing(draw([])).root.attrib["role"] == "img"
