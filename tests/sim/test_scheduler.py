"""The event queue: time, ties, events that schedule others, and taking events out."""

from __future__ import annotations

from itertools import islice
from typing import Any

from causewire.sim.scheduler import Scheduler


def rest(scheduler: Scheduler) -> list[tuple[int, Any]]:
    """Take out all events: their times, and what happens."""
    return [(event[0], event[2]) for event in scheduler]


def test_events_happen_in_the_order_of_time_and_ties_in_the_order_of_scheduling() -> None:
    scheduler = Scheduler()
    for time, what in ((5, "a"), (3, "b"), (5, "c"), (3, "d"), (0, "e")):
        scheduler.at(time, what)
    assert rest(scheduler) == [(0, "e"), (3, "b"), (3, "d"), (5, "a"), (5, "c")]


def test_nothing_but_time_and_number_is_ever_compared() -> None:
    scheduler = Scheduler()
    things: list[Any] = [{"not": "comparable"}, object(), None, 1, "x"]
    for thing in things:
        scheduler.at(7, thing, thing, thing, thing, thing)
    assert [what for _, what in rest(scheduler)] == things


def test_an_event_may_schedule_others_even_for_now() -> None:
    scheduler = Scheduler()
    seen: list[tuple[int, int]] = []
    scheduler.at(10, "again", 3)
    for now, _, _, left, *_ in scheduler:
        assert now == scheduler.now
        seen.append((now, left))
        if left:
            scheduler.at(now + left % 2, "again", left - 1)
    assert seen == [(10, 3), (11, 2), (11, 1), (12, 0)]


def test_it_goes_on_where_it_was_left() -> None:
    scheduler = Scheduler()
    for time in range(5):
        scheduler.at(time, time)
    assert [event[2] for event in islice(scheduler, 2)] == [0, 1]
    assert (len(scheduler), scheduler.now) == (3, 1)
    assert [what for _, what in rest(scheduler)] == [2, 3, 4]


def test_events_can_be_taken_out() -> None:
    scheduler = Scheduler()
    for what in range(10):
        scheduler.at(100 - what, what)
    gone = scheduler.discard(lambda event: event[2] % 2 == 1)
    assert [event[2] for event in gone] == [9, 7, 5, 3, 1]
    assert [what for _, what in rest(scheduler)] == [8, 6, 4, 2, 0]


def test_stop_leaves_nothing() -> None:
    scheduler = Scheduler()
    scheduler.at(1, "last")
    scheduler.at(2, "never")
    for _ in scheduler:
        scheduler.stop()
    assert scheduler.now == 1
    assert not scheduler
