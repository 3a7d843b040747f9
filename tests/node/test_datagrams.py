"""How many datagrams a request and its reply cost, and which, counted in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from ..programs import load


@pytest.fixture(scope="module")
def program() -> Any:
    """The program that counts, as a module."""
    return load("benchmarks/datagrams.py")


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_a_request_and_its_reply_are_two_datagrams(program: Any, protocol: str) -> None:
    assert program.count(1, protocol=protocol).total() / 50 < 2.1


@pytest.mark.parametrize(
    ("protocol", "jitter"), [("csps", 0.0), ("sps", 0.0), ("fifo", 0.0), ("fifo", 0.0001)]
)
def test_so_they_are_with_seven_clients(program: Any, protocol: str, jitter: float) -> None:
    # The acks of one turn ride on its replies, although timers of sessions fire in between.
    assert program.count(7, jitter=jitter, protocol=protocol).total() / 350 <= 2.2


@pytest.mark.parametrize("protocol", ["csps", "sps"])
@pytest.mark.parametrize("jitter", [0.0001, 0.001])
def test_irregular_arrivals_cost_nothing_either(program: Any, protocol: str, jitter: float) -> None:
    # Permits wait for the next reply, since no client waits for them; they were 1.05 once.
    counted = program.count(7, requests=20, jitter=jitter, protocol=protocol)
    assert counted["request"] == counted["reply"] == 140
    assert counted.total() / 140 < 2.2
