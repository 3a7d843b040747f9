"""Runs in which nothing is sent: there is little to see, so they are not shown first."""

from __future__ import annotations

from causewire.explore.table import read
from causewire.trace import Event, trace_of


def test_runs_without_messages_come_last() -> None:
    events = [
        Event("a", "p", 0, 0, 1, "span"),
        Event("r10", "p", 0, 0, 1, "send", "p", 1, ("q",)),
        Event("r2", "p", 0, 0, 1, "send", "p", 1, ("q",)),
    ]
    table = read(trace_of(events))
    assert table.runs == ["r2", "r10", "a"]
    assert [table.rows_in(run) for run in table.runs] == [1, 1, 1]
