"""Choosing what to draw, and finding the violations in it."""

from __future__ import annotations

import pytest

from causewire.check import check
from causewire.report import Overtaking, choose, overtakings
from causewire.report.picture import Picture, natural
from causewire.trace import DELIVER, SEND, Event, TraceError, trace_of

from .diagrams import TANGLED, simulated

LONG = simulated("fifo", 20, 2000, network=TANGLED)


def _times(events: list[Event]) -> list[int]:
    return [event.time_ns or 0 for event in events]


def test_a_short_run_is_shown_whole() -> None:
    rows = simulated("csps", 4)
    window = choose(trace_of(rows))
    assert sorted(window.events) == sorted(rows)
    assert (window.left_out, window.hidden, window.runs) == (0, [], 1)
    assert window.processes == ["p0", "p1", "p2", "p3"]


def test_a_long_run_is_shown_from_its_beginning() -> None:
    window = choose(trace_of(LONG), limit=100, most=20)
    assert len(window.events) == 100
    assert max(_times(window.events)) <= sorted(_times(LONG))[100]
    assert window.left_out == len(LONG) - 100


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_span_of_time(shuffled: bool) -> None:
    rows = sorted(LONG, key=lambda row: (row.process, row.seq)) if shuffled else LONG
    begin = min(_times(rows))
    window = choose(trace_of(rows), begin=10**7, end=2 * 10**7, limit=10**6, most=100)
    inside = [row for row in rows if 10**7 <= (row.time_ns or 0) - begin <= 2 * 10**7]
    assert sorted(window.events) == sorted(inside)
    assert inside


def test_a_window_by_rows_of_a_process() -> None:
    window = choose(trace_of(LONG), begin=("p03", 20), end=("p03", 30), limit=10**6, most=100)
    assert [e.seq for e in window.events if e.process == "p03"] == list(range(20, 31))


def test_around_a_message() -> None:
    window = choose(trace_of(LONG), around=("p04", 9), limit=120)
    own = [e for e in LONG if (e.origin, e.mid) == ("p04", 9) and e.kind in (SEND, DELIVER)]
    assert set(own) <= set(window.events)
    assert len(window.events) <= 120
    assert len(window.processes) <= 12
    assert {e.process for e in own} <= set(window.processes)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5))
def test_around_a_violation(number: int) -> None:
    v = check(LONG).examples[number]
    chain = tuple((link.message.origin, link.message.mid) for link in v.chain)
    first, second = (v.first.origin, v.first.mid), (v.second.origin, v.second.mid)
    sought = Overtaking(v.process, first, second, chain)
    window = choose(trace_of(LONG), violation=sought, limit=150)
    assert {e for e in LONG if sought.concerns(e)} <= set(window.events)
    assert sought in [
        o._replace(chain=sought.chain) for o in overtakings(Picture.of(window.events).rows)
    ]


def test_no_holes() -> None:
    """Within the window, a process is shown with all its rows or not at all."""
    window = choose(trace_of(LONG), around=("p04", 9), limit=60)
    low, high = min(_times(window.events)), max(_times(window.events))
    shown = set(window.processes)
    for row in LONG:
        if row.process in shown and low < (row.time_ns or 0) < high:
            assert row in window.events
    assert set(window.hidden).isdisjoint(shown)


def test_rows_without_times_are_chosen_by_lamport_time() -> None:
    rows = [row._replace(time_ns=None) for row in LONG]
    window = choose(trace_of(rows), limit=50, most=20)
    assert max(e.lamport or 0 for e in window.events) <= sorted(r.lamport or 0 for r in rows)[50]
    with pytest.raises(TraceError, match="PROCESS:SEQ"):
        choose(trace_of(rows), begin=5)


@pytest.mark.slow
def test_violations_that_are_seen_are_those_that_the_check_finds() -> None:
    seen = 0
    for seed in range(25):
        rows = simulated("fifo", 4, 60, seed=seed, network=TANGLED)
        found = overtakings(Picture.of(rows).rows)
        judged = check(rows, examples=1000)
        assert {(o.process, *o.first) for o in found} == {
            (v.process, *v.first) for v in judged.examples
        }, f"seed {seed}"
        lengths = {(v.process, *v.first, *v.second): len(v.chain) for v in judged.examples}
        for o in found:
            assert (o.chain[0], o.chain[-1]) == (o.first, o.second)
            key = (o.process, *o.first, *o.second)
            assert lengths.get(key, len(o.chain)) == len(o.chain), f"seed {seed}"
        seen += len(found)
    assert seen > 50


def test_names_with_numbers_in_their_order() -> None:
    names = ["p10", "p9", "a", "p1", "cart.2", "cart.10", "7"]
    assert sorted(names, key=natural) == ["7", "a", "cart.2", "cart.10", "p1", "p9", "p10"]


def test_who_has_least_to_do_with_it_is_hidden_first() -> None:
    def sends(process: str, to: str, begin: int) -> list[Event]:
        return [
            Event("r", process, k, begin + 2 * k, None, SEND, process, k + 1, (to,))
            for k in range(6)
        ]

    rows = [
        Event("r", "a", 0, 0, None, SEND, "a", 1, ("b",)),
        Event("r", "b", 0, 100, None, DELIVER, "a", 1, ("a",)),
        *sends("far", "away", 10),
        *sends("near", "b", 40),
    ]
    assert choose(trace_of(rows), around=("a", 1), limit=14).hidden == []
    window = choose(trace_of(rows), around=("a", 1), limit=8)
    assert (window.processes, window.hidden) == (["a", "b", "near"], ["far"])
    assert choose(trace_of(rows), around=("a", 1), most=3).hidden == ["far"]
