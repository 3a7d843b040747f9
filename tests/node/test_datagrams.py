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
def test_irregular_arrivals_cost_permits_of_the_server(program: Any, protocol: str) -> None:
    counted = program.count(7, requests=20, jitter=0.0001, protocol=protocol)
    permits = counted.pop("permit alone, server")
    assert 0.9 < permits / 140 < 1.2  # when this fails because it is less: docs/measurements
    assert counted.pop("request") == counted.pop("reply") == 140
    assert counted.total() / 140 < 0.1  # acks of clients whose last request this was
