"""The campaign for the watch: it kills at random, but leaves the watch time to work."""

from __future__ import annotations

import random
from typing import Any

import pytest

from campaigns.watch import Kills, Memory, _disturbed, _quarters
from causewire.cli import watch as command


def simulated(start_takes: float, every: float, seed: int, end: float = 3600) -> tuple[int, int]:
    """Return how often a watch that starts slowly is killed in an hour, and how often it works."""
    kills = Kills(random.Random(seed), every, until=end)
    killed = worked = 0
    now = start = 0.0
    working = False
    kills.started(now)
    while now < end:
        if not working and now - start >= start_takes:
            working = True
            worked += 1
            kills.worked(now)
        if kills.due(now):
            killed, start, working = killed + 1, now, False
            kills.started(now)
        now += 0.5
    return killed, worked


@pytest.mark.parametrize("seed", range(10))
def test_a_watch_that_starts_slowly_is_not_killed_before_it_has_worked(seed: int) -> None:
    """On a busy machine a start takes longer than the time between two kills."""
    killed, worked = simulated(200, 60, seed)
    assert worked >= 3600 // (2 * 200 + 90)
    assert killed <= 2 * worked  # no two starts in succession are interrupted


def test_the_watch_is_killed_while_it_works_and_while_it_starts() -> None:
    killed, worked = simulated(15, 60, 1)
    assert 30 <= killed <= 80
    assert worked < killed + 1  # some starts were interrupted
    assert simulated(15, 0, 1) == (0, 1)


def test_no_kill_in_the_last_part_of_the_time() -> None:
    kills = Kills(random.Random(0), 10, until=100)
    kills.started(0)
    kills.worked(90)
    assert not any(kills.due(now) for now in range(100, 1000))


def test_alerts_that_waited_for_a_start_are_told_apart() -> None:
    down = [(100.0, 120.0)]
    assert _disturbed(99, 3, down)
    assert _disturbed(110, 15, down)
    assert not _disturbed(95, 3, down)
    assert not _disturbed(120, 3, down)


def test_memory_is_that_of_the_longest_life() -> None:
    """A process that is killed gives its memory back, which would hide what it leaked."""
    short = [Memory(1, at, 9_000) for at in range(50)]
    leak = [Memory(2, at, at) for at in range(50, 250)]
    told = dict(_quarters(short + leak, [(0, 10), (50, 70)]))
    assert list(told.values()) == ["2 minutes", "118, 137", "156, 174", "193, 211", "230, 249"]
    assert list(_quarters([], [])) == []


class Query:
    """A query that fails so often, and then ends, unless it is stopped."""

    def __init__(self, failures: int, reason: str) -> None:
        self.failures, self.reason = failures, reason
        self.starts = 1
        self.stopped = False

    def start(self) -> Query:
        self.starts += 1
        return self

    def wait(self, seconds: int) -> bool:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError(self.reason)
        return not self.stopped

    def stop(self) -> None:
        self.stopped = True


def run(query: Any, stopped: bool = False) -> Any:
    command._run_to_the_end(query, query.start, lambda: stopped)
    return query


def test_a_query_whose_worker_came_too_late_is_started_again() -> None:
    """Spark gives a Python process ten seconds, whatever else the machine does."""
    late = "terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
    assert run(Query(3, late)).starts == 4
    with pytest.raises(RuntimeError, match="failed to connect back"):
        run(Query(5, late))  # not for ever
    with pytest.raises(RuntimeError, match="disk full"):
        run(Query(1, "disk full"))
    with pytest.raises(RuntimeError, match="failed to connect back"):
        run(Query(1, late), stopped=True)
