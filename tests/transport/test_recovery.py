"""Received numbers, round trips, loss, and the window."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causewire.transport.newreno import NewReno
from causewire.transport.received import MOST, Received
from causewire.transport.recovery import Probe, Recovery, RoundTrip, Sent
from causewire.transport.varint import MalformedError


@given(st.lists(st.integers(0, 60), max_size=80))
def test_received_is_a_set(numbers: list[int]) -> None:
    received, seen = Received(), set()
    for number in numbers:
        assert (number in received) == (number in seen)
        if number not in seen:
            received.add(number)
            seen.add(number)
    assert received.largest == max(seen, default=-1)
    covered = {n for low, high in received.ranges for n in range(low, high + 1)}
    assert covered == seen
    assert all(a[1] + 1 < b[0] for a, b in pairwise(received.ranges))


def test_received_stays_small_and_forgets_the_oldest() -> None:
    received = Received()
    for number in range(0, 1000, 2):
        received.add(number)
    assert len(received.ranges) == MOST
    assert 1 in received  # too old to tell: a copy, for all we know
    assert 997 not in received


def test_round_trip_as_in_rfc_6298() -> None:
    trip = RoundTrip(1.0, 0.0, 60.0)
    assert trip.timeout == 1.0
    trip.measured(0.1)
    assert trip.timeout == pytest.approx(0.1 + 4 * 0.05)
    trip.measured(0.2)
    assert trip.smoothed == pytest.approx(7 / 8 * 0.1 + 1 / 8 * 0.2)
    assert trip.variation == pytest.approx(3 / 4 * 0.05 + 1 / 4 * 0.1)
    before = trip.timeout
    trip.backoff = 3
    assert trip.timeout == pytest.approx(8 * before)
    trip.backoff = 30
    assert trip.timeout == 60.0


def recovery() -> Recovery:
    return Recovery(RoundTrip(0.2, 0.01, 2.0), NewReno(1000))


def sent(now: float, size: int = 1000) -> Sent:
    one = Sent(now)
    one.size = size
    return one


def test_three_later_ones_make_a_loss() -> None:
    r = recovery()
    ones = [sent(0.0) for _ in range(5)]
    for one in ones:
        r.departs(one)
    assert r.acknowledged([(1, 2)], 0.1) == ([ones[1], ones[2]], [])
    assert r.acknowledged([(1, 3)], 0.1) == ([ones[3]], [ones[0]])
    assert r.in_flight == 1000


def test_time_makes_a_loss_too() -> None:
    r = recovery()
    r.departs(old := sent(0.0))
    r.departs(sent(0.0))
    assert r.acknowledged([(1, 1)], 0.1)[1] == []
    assert r.deadline == pytest.approx(0.1125)
    assert r.expired(0.11) == []
    assert r.expired(0.1126) == [old]
    assert r.round_trip.backoff == 0


def test_a_timeout_takes_the_oldest_and_backs_off() -> None:
    r = recovery()
    ones = [sent(0.0) for _ in range(20)]
    for one in ones:
        r.departs(one)
    assert not r.open
    times: list[float] = []
    for k in range(5):
        assert r.deadline is not None
        times.append(r.deadline)
        assert r.expired(times[-1]) == [ones[k]]
        assert r.open  # for one
        r.departs(sent(times[-1]))
        assert not r.open
    pauses = [b - a for a, b in pairwise(times)]
    assert [b / a for a, b in pairwise(pauses)] == pytest.approx([2, 2, 1.25])


def test_the_window_doubles_then_halves_then_grows_slowly() -> None:
    w = NewReno(1000)
    start = w.size
    for number in range(16):
        w.acked(number, 1000, 0.0, 0.1)
    assert w.size == 2 * start
    w.lost(20, 30)
    w.lost(25, 30)  # the same event
    assert w.size == start
    w.acked(29, 1000, 0.0, 0.1)
    assert w.size == start  # sent before the event was known
    for number in range(30, 46):
        w.acked(number, 1000, 0.0, 0.1)
    assert start + 900 < w.size <= start + 1000
    w.expired(50, 60)
    assert w.size == 4000


def test_a_false_alarm_is_undone() -> None:
    r = recovery()
    for _ in range(16):
        r.departs(sent(0.0))
    size = r.window.size
    lost = r.acknowledged([(5, 5)], 0.1)[1]
    assert len(lost) == 3
    assert r.window.size < size
    r.acknowledged([(0, 5)], 0.1)
    assert r.window.size >= size
    assert r._reordering == 6


def test_an_ack_of_what_was_never_sent() -> None:
    r = recovery()
    r.departs(sent(0.0))
    with pytest.raises(MalformedError):
        r.acknowledged([(0, 1)], 0.1)


def test_an_ack_of_everything_is_cheap() -> None:
    r = recovery()
    r.next_number = 10**15
    r.departs(one := sent(0.0))
    assert r.acknowledged([(0, 10**15)], 0.1) == ([one], [])


def test_a_probe_that_expires_takes_no_message_with_it() -> None:
    r = recovery()
    r.departs(sent(0.0))
    r.departs(probe := Probe(0.0, 9000))
    r.acknowledged([(0, 0)], 0.05)
    due = r.deadline
    assert due is not None
    r.departs(one := sent(due - 0.001))
    assert r.expired(due) == [probe]
    assert r.expired(due) == []
    assert r.deadline == pytest.approx(due - 0.001 + r.round_trip.timeout)
    assert r.round_trip.backoff == 0
    assert r.acknowledged([(2, 2)], due + 0.049) == ([one], [])
    assert r._reordering == 3


def test_a_probe_takes_no_room_in_the_window() -> None:
    r = recovery()
    r.window.size = r.window.threshold = r.window.least
    for one in (sent(0.0), sent(0.0), Probe(0.0, 9000), sent(0.0), sent(0.0)):
        assert r.open
        r.departs(one)
    assert not r.open
    r.acknowledged([(0, 4)], 0.05)
    assert r.in_flight == 0
