"""What repeats while it lasts is logged at once, and then less and less often."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from causewire.node import NameInUse, Node
from causewire.node.logs import LONGEST_INTERVAL, QUIET, Repeats
from causewire.testing.virtual import VirtualLoop, run

from .test_node import node, watch


def logged(repeats: Repeats, times: list[float]) -> dict[float, str]:
    """The reports at these times that are logged, and what is added to their lines."""
    lines = {time: repeats.log("it", time) for time in times}
    return {time: line for time, line in lines.items() if line is not None}


def test_the_first_report_is_logged_and_then_after_intervals_that_double() -> None:
    lines = logged(Repeats(), [float(second) for second in range(40)])
    assert lines == {
        0.0: "",
        2.0: " (2 reports in the last 2 s)",
        6.0: " (4 reports in the last 4 s)",
        14.0: " (8 reports in the last 8 s)",
        30.0: " (16 reports in the last 16 s)",
    }


def test_no_interval_is_longer_than_the_longest() -> None:
    times = list(logged(Repeats(), [float(second) for second in range(10_000)]))
    assert times[-1] - times[-2] == times[-2] - times[-3] == LONGEST_INTERVAL


def test_what_had_been_quiet_is_logged_at_once() -> None:
    repeats = Repeats()
    for second in range(1000):
        repeats.log("it", float(second))
    assert repeats.log("it", 999 + QUIET) == ""
    assert repeats.log("it", 1000 + QUIET) is None
    assert repeats.log("something else", 1000 + QUIET) == ""


def test_two_living_processes_of_one_name_have_many_events_and_few_log_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(loop: VirtualLoop) -> tuple[list[Any], list[Any]]:
        sock: Any = loop.network.socket(9)
        bob: Any = {"bob": "127.0.0.1:2"}
        async with node(loop, "bob"), node(loop, "carol") as former:
            await asyncio.sleep(1)
            async with Node("carol", sock=sock, incarnation=9000, peers=bob) as latter:
                both = watch(former), watch(latter)
                await asyncio.sleep(120)
        return both

    with caplog.at_level(logging.ERROR, "causewire.security"):
        told = run(main)
    for events in told:
        assert sum(isinstance(event, NameInUse) for event in events) > 60
    lines = [record.getMessage() for record in caplog.records if "has the name" in record.msg]
    assert 6 <= len(lines) <= 16  # after 0, 2, 6, 14, 30 and 62 seconds at least, at each of them
    assert any("reports in the last" in line for line in lines)


def test_a_peer_without_an_address_is_logged_less_and_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = 0

    async def main(loop: VirtualLoop) -> None:
        def resolver(name: str) -> str:
            nonlocal asked
            asked += 1
            raise KeyError(name)

        async with node(loop, "alice", resolver=resolver):
            await asyncio.sleep(300)

    with caplog.at_level(logging.WARNING, "causewire.resolver"):
        run(main)
    assert asked > 100
    assert 5 <= len(caplog.records) < asked / 4
