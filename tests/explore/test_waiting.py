"""What messages waited for, and what of their latency was unavoidable."""

from __future__ import annotations

import numpy as np
import pytest

from causewire.explore.causality import Causality
from causewire.explore.causes import REASONS, causes_of, waiting
from causewire.explore.faults import fault_spans
from causewire.explore.held import story
from causewire.explore.unavoidable import unavoidable
from causewire.explore.window import View, Window
from causewire.trace import Event

from .stories import STORY, run_of, simulated


def test_causes_are_those_that_stories_tell() -> None:
    run = run_of(simulated("csps"))
    axis, causality = run.axis(), Causality(run)
    causes = causes_of(run)
    held = 0
    for copy in range(len(run.copies)):
        for wait in story(run, axis, causality, [], copy).waits:
            row = causes.sender[copy] if wait["held_at"] == "sender" else causes.receiver[copy]
            assert wait["cause"] == (None if row < 0 else row)
            held += 1
    assert held > 20


def test_waiting_adds_up_to_the_time_held() -> None:
    run = run_of(simulated("csps", 200))
    view = View(run, run.axis())
    result = waiting(view, causes_of(run), Window(0.0, view.axis.end))
    total = sum(sum(map(sum, reasons)) for _, reasons in result["processes"])
    assert total == pytest.approx(np.nansum(view.parts.sender + view.parts.receiver))
    column = view.axis.end / len(result["columns"][0])
    assert np.sum(result["columns"]) * column == pytest.approx(total)
    by_reason = np.sum([reasons for _, reasons in result["processes"]], axis=(0, 2))
    assert by_reason[REASONS.index("a permit")] > 0.5 * total


def test_a_trace_without_control_packets_has_unknown_causes_only() -> None:
    run = run_of(STORY)
    view = View(run, run.axis())
    result = waiting(view, causes_of(run), Window(0.0, view.axis.end))
    assert result["processes"] == []


@pytest.mark.parametrize("protocol", ["fifo", "csps"])
def test_unavoidable_latency_is_that_of_the_definition(protocol: str) -> None:
    run = run_of(simulated(protocol, 60))
    axis, causality = run.axis(), Causality(run)
    parts = View(run, axis).parts
    least = unavoidable(run, axis, parts)
    assert least is not None
    c, x = run.copies, axis.x
    arrival = x[c.send] + parts.network
    beyond = 0
    for copy in range(len(c)):
        past = causality.past(int(c.send[copy]))
        before = (run.place[c.send] < past[c.source]) & (c.target == c.target[copy])
        earliest = arrival[before].max() - x[c.send[copy]]
        assert least[copy] == pytest.approx(min(earliest, parts.total[copy]))
        beyond += parts.total[copy] > least[copy] + 1
    assert (beyond > 20) == (protocol == "csps")


def test_unavoidable_latency_is_unknown_without_network_times() -> None:
    run = run_of(STORY)
    assert unavoidable(run, run.axis(), View(run, run.axis()).parts) is None
    assert unavoidable(run, run.axis("order"), View(run, run.axis("order")).parts) is None


def test_time_that_nothing_arrived_in_is_not_a_wait() -> None:
    """The clock of a live node goes on between two rows."""
    rows = [
        ("a", 0, 10, "send", "a", 1, "b"),
        ("a", 1, 12, "release", "a", 1, "b"),
        ("a", 2, 20, "send", "a", 2, "b"),
        ("a", 3, 22, "release", "a", 2, "b"),
        ("b", 0, 30, "receive", "a", 2, "a"),
        ("b", 1, 90, "receive", "a", 1, "a"),
        ("b", 2, 93, "deliver", "a", 1, "a"),
        ("b", 3, 95, "deliver", "a", 2, "a"),
    ]
    run = run_of([Event("r", p, s, t, t, k, o, m, (q,)) for p, s, t, k, o, m, q in rows])
    causality = Causality(run)
    first, second = (story(run, run.axis(), causality, [], copy) for copy in (0, 1))
    assert first.waits == []
    assert "It left a after 2 ns." in first.sentences
    assert "It was delivered 3 ns after its arrival." in first.sentences
    (wait,) = second.waits
    assert wait["held_at"] == "receiver"
    assert any("until a:1, which happened before it, arrived" in s for s in second.sentences)


def test_a_frozen_process_is_named() -> None:
    faults = [
        {"kind": "freeze", "at": "20ms", "processes": ["p2"]},
        {"kind": "thaw", "at": "60ms"},
    ]
    run = run_of(simulated("csps", 120, seed=4, faults=faults))
    axis, causality = run.axis(), Causality(run)
    (span,) = fault_spans(run, axis)
    assert (run.shown[span.process], span.kind) == ("p2", "freeze")
    assert span.high - span.low == 40e6
    told = [
        text
        for copy in range(len(run.copies))
        for text in story(run, axis, causality, [span], copy).sentences
    ]
    assert sum("Meanwhile p2 was frozen" in text for text in told) > 3
