"""The event loop: time, ties, slices, and taking events out."""

from __future__ import annotations

from typing import Any

from causewire.sim.scheduler import Scheduler


def test_events_happen_in_the_order_of_time_and_ties_in_the_order_of_scheduling() -> None:
    scheduler = Scheduler()
    seen: list[Any] = []

    def note(what: object, *_: object) -> None:
        seen.append((scheduler.now, what))

    for time, what in ((5, "a"), (3, "b"), (5, "c"), (3, "d"), (0, "e")):
        scheduler.at(time, note, what)
    assert not scheduler.run(100)
    assert seen == [(0, "e"), (3, "b"), (3, "d"), (5, "a"), (5, "c")]


def test_nothing_but_time_and_number_is_ever_compared() -> None:
    scheduler = Scheduler()
    seen: list[object] = []

    def note(what: object, *_: object) -> None:
        seen.append(what)

    things = [{"not": "comparable"}, object(), None, 1, "x"]
    for thing in things:
        scheduler.at(7, note, thing)
    scheduler.run(100)
    assert seen == things


def test_an_event_may_schedule_others_even_for_now() -> None:
    scheduler = Scheduler()
    seen: list[tuple[int, int]] = []

    def again(left: int, *_: object) -> None:
        seen.append((scheduler.now, left))
        if left:
            scheduler.at(scheduler.now + left % 2, again, left - 1)

    scheduler.at(10, again, 3)
    scheduler.run(100)
    assert seen == [(10, 3), (11, 2), (11, 1), (12, 0)]


def test_a_run_goes_on_where_the_last_one_ended() -> None:
    scheduler = Scheduler()
    seen: list[int] = []
    for time in range(5):
        scheduler.at(time, lambda a, *_: seen.append(a), time)
    assert scheduler.run(2)
    assert seen == [0, 1]
    assert len(scheduler) == 3
    assert not scheduler.run(3)
    assert seen == [0, 1, 2, 3, 4]


def test_events_can_be_taken_out() -> None:
    scheduler = Scheduler()
    seen: list[int] = []

    def note(what: int, *_: object) -> None:
        seen.append(what)

    for what in range(10):
        scheduler.at(100 - what, note, what)
    gone = scheduler.discard(lambda event: event[3] % 2 == 1)
    assert [event[3] for event in gone] == [9, 7, 5, 3, 1]
    scheduler.run(100)
    assert seen == [8, 6, 4, 2, 0]


def test_stop_leaves_nothing() -> None:
    scheduler = Scheduler()
    scheduler.at(1, lambda *_: scheduler.stop())
    scheduler.at(2, lambda *_: 1 / 0)
    assert not scheduler.run(10)
    assert scheduler.now == 1
