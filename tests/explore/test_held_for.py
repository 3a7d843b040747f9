"""Traces of simulated runs say what a message waited for; explore and draw show it."""

from __future__ import annotations

from collections import Counter

import pytest

from causewire.explore.causality import Causality
from causewire.explore.held import story
from causewire.report import draw
from causewire.report.picture import Picture
from causewire.trace import HELD_FOR, LANE, RECEIVE, Event

from .stories import run_of, simulated

ROWS = [
    ("a", 0, 10, "send", "a", 1, "c"),
    ("a", 1, 10, "release", "a", 1, "c"),
    ("a", 2, 20, "send", "a", 2, "b"),
    ("a", 3, 20, "release", "a", 2, "b"),
    ("b", 0, 30, "receive", "a", 2, "a"),
    ("b", 1, 30, "deliver", "a", 2, "a"),
    ("b", 2, 30, "send", "b", 1, "c"),
    ("b", 3, 30, "lane", "b", 1, "c"),
    ("b", 4, 35, "control_receive", None, None, "c"),
    ("b", 5, 35, "release", "b", 1, "c"),
    ("c", 0, 40, "receive", "b", 1, "b"),
    ("c", 1, 40, "held_for", "a", 1, "b"),
    ("c", 2, 90, "receive", "a", 1, "a"),
    ("c", 3, 90, "deliver", "a", 1, "a"),
    ("c", 4, 90, "deliver", "b", 1, "b"),
]
LANE_OF_C = (
    "It waited in the lane of c, for nobody but c: it lists more messages than one message "
    "carries, or comes behind one that does."
)
AT_ITS_RECEIVER = (
    "It was held at its receiver c for 50 ns, until a:1, which happened before it, arrived at c."
)
EVENTS = [Event("r", p, s, t, t, k, o, m, (q,)) for p, s, t, k, o, m, q in ROWS]


def test_an_entry_and_a_lane_are_told() -> None:
    run = run_of(EVENTS)
    copy = next(k for k in range(len(run.copies)) if run.message(int(run.copies.send[k])) == "b:1")
    assert story(run, run.axis(), Causality(run), [], copy).sentences == [
        "b sent b:1 to c at 20 ns; c delivered it 60 ns later.",
        "It was held at its sender b for 5 ns, until a control packet from c arrived.",
        LANE_OF_C,
        "The network took 5 ns.",
        AT_ITS_RECEIVER,
        "It lists a:1, which was not delivered to c.",
    ]


def test_an_entry_and_a_lane_are_drawn() -> None:
    svg = draw(EVENTS)
    assert "b:1 in the receive buffer for 50 ns, held for a:1" in svg
    assert "b:1 in the send buffer for 5 ns, in the lane of c" in svg
    assert ">b:1 after a:1<" in draw(EVENTS, axis="order")
    plain = draw([event for event in EVENTS if event.kind not in (HELD_FOR, LANE)])
    assert "held for" not in plain
    assert " after " not in plain


@pytest.mark.parametrize("cap", [0, 2, 128])
def test_a_simulated_run_says_what_every_message_waited_for(cap: int) -> None:
    events = simulated("adaptive", 150, seed=5, options={"cap": cap})
    kinds = Counter(event.kind for event in events)
    assert kinds[HELD_FOR] > 5
    assert (kinds[LANE] > 5) == (cap < 100)
    picture = Picture.of(events)
    rows = picture.rows
    got: dict[str, list[tuple[str | None, int | None]]] = {}
    for row in rows:
        if row.kind == "deliver":
            got.setdefault(row.process, []).append((row.origin, row.mid))
    for (process, message), waits in picture.held_for.items():
        order = got[process]
        assert all(order.index(before) < order.index(message) for before in waits)
    waited = 0
    for bar in picture.bars:
        if bar.sort == "waits" and bar.message is not None:
            assert bar.begin is not None
            assert bar.end is not None
            if rows[bar.begin].time_ns != rows[bar.end].time_ns:
                assert picture.held_for[bar.process, bar.message]
                waited += 1
    assert waited > 5


def test_a_protocol_that_does_not_tell_has_the_rows_that_it_had() -> None:
    events = simulated("ks", 100)
    kinds = {event.kind for event in events}
    assert RECEIVE in kinds
    assert not kinds & {HELD_FOR, LANE}
