"""The failure matrix: what counts as the goal, and two of its cells with real processes."""

from __future__ import annotations

import asyncio
import math

import pytest

from campaigns.failures.matrix import HEAD, Cell, Start, _judge, play, row
from campaigns.failures.worker import BUCKET

STRUCK = 1000.0
USUAL = 10


def judged(*after: tuple[int, float], fault: str = "killed", usual: int = USUAL) -> Cell:
    """A cell in which traffic after the fault had these shares, each for some intervals."""
    cell = Cell("group", fault, "adaptive")
    at = round(STRUCK / BUCKET)
    rates = {at - k: usual for k in range(1, 31)} | {at: 0}
    for intervals, share in after:
        last = max(rates)
        rates |= {last + k: round(share * usual) for k in range(1, intervals + 1)}
    _judge(cell, rates, STRUCK, (max(rates) + 1) * BUCKET)
    return cell


def test_traffic_that_does_not_change_is_as_good_as_can_be() -> None:
    cell = judged((80, 1.0), fault="left")
    assert (cell.before, cell.worst, cell.after, cell.recovery) == (USUAL / BUCKET, 1.0, 1.0, 0.0)
    assert cell.held(3.0)


def test_a_gap_may_last_as_long_as_it_takes_to_give_the_victim_up() -> None:
    cell = judged((30, 0.0), (50, 1.0))
    assert cell.worst == 0.0
    assert cell.recovery == pytest.approx(3.0)
    assert cell.held(3.0)
    assert cell.held(2.0)
    assert not cell.held(1.5)


def test_a_process_that_left_may_cost_a_second() -> None:
    assert judged((10, 0.0), (70, 1.0), fault="left").held(3.0)
    assert not judged((20, 0.0), (60, 1.0), fault="left").held(3.0)
    assert judged((20, 0.0), (60, 1.0)).held(3.0)


def test_who_never_comes_back_misses_the_goal() -> None:
    cell = judged((200, 0.8))
    assert cell.recovery is None
    assert not cell.held(math.inf)


def test_messages_that_arrive_all_at_once_are_no_recovery() -> None:
    cell = judged((30, 0.0), (1, 80.0), (60, 0.5))
    assert cell.recovery is None
    assert not cell.held(math.inf)


def test_traffic_that_falls_at_the_end_misses_the_goal() -> None:
    cell = judged((400, 1.0), (20, 0.5))
    assert cell.recovery == 0.0  # on average, that is
    assert cell.after == 0.5
    assert not cell.held(math.inf)


def test_without_traffic_before_the_fault_nothing_is_shown() -> None:
    cell = judged((80, 1.0), usual=0)
    assert cell.problem == "no traffic before the fault"
    assert not cell.held(math.inf)


def test_a_cell_that_could_not_be_played_misses_the_goal() -> None:
    cell = judged((80, 1.0))
    cell.problem = "RuntimeError: process p1 ended"
    assert not cell.held(math.inf)


def test_a_row_says_what_was_lost() -> None:
    cell = judged((80, 1.0))
    columns = HEAD.splitlines()[0].split(" | ")
    at = columns.index("messages lost")
    assert row(cell, 3.0).split(" | ")[at] == "0"
    cell.lost = 7
    assert row(cell, 3.0).split(" | ")[at] == "7"
    cell.lost_among = 2
    assert row(cell, 3.0).split(" | ")[at] == "7, and **2** between the others"
    broken = Cell("hub", "left", "sps", problem="TimeoutError")
    assert (
        row(cell, 3.0).count("|") == row(broken, 3.0).count("|") == HEAD.split("\n")[0].count("|")
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "fault", "told"), [("group", "killed", "PeerForgotten"), ("hub", "left", "PeerLeft")]
)
def test_two_cells_with_real_processes(shape: str, fault: str, told: str) -> None:
    """The time to recover is for the campaign to judge, on a machine that does nothing else."""
    for _ in range(3):  # processors may be busy with other tests
        cell = Cell(shape, fault, "adaptive")
        asyncio.run(play(cell, give_up=1.5, frozen=1.0, start=Start(1)))
        assert told in cell.told
        assert cell.problem == ""
        assert cell.lost_among == 0
        if fault == "killed":
            assert cell.lost > 0
        if cell.recovery is not None and cell.after >= 0.9:
            return
    pytest.fail(f"the living do not recover: {cell}")
