"""Idle peers cost next to nothing: memory, timers and datagrams, counted in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ..programs import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> Any:
    """The program that counts, as a module."""
    return load("benchmarks/idle.py")


def test_idle_processes_that_know_each_other(program: Any) -> None:
    size, timers, datagrams = program.measure(22, mesh=True, seconds=30.0)
    # For each of 21 peers, a ping or its ack every 1.2 seconds: nobody sends more than that.
    assert 0 < datagrams <= 21 / 1.2
    assert timers <= 4
    assert 1000 < size < 15_000  # 10,000 on CPython 3.11


def test_more_idle_processes_send_each_other_less(program: Any) -> None:
    size, timers, datagrams = program.measure(50, mesh=True, seconds=30.0)
    # Half a second for each peer beyond 20: about two pings a second, and as many acks.
    assert 0 < datagrams <= 4
    assert timers <= 4
    assert 1000 < size < 15_000  # 10,000 on CPython 3.11


def test_a_process_with_many_idle_peers_only_answers_their_pings(program: Any) -> None:
    size, timers, datagrams = program.measure(40, mesh=False, seconds=30.0)
    # Each of the others knows one process, and pings it every 1.2 seconds, or every 1.5.
    assert 0 < datagrams <= 39 / 1.2
    assert timers <= 39 / 1.2  # to see that none of these pings is missing
    assert 1000 < size < 15_000


def test_nodes_in_processes_of_their_own_are_counted_too(program: Any) -> None:
    found = asyncio.run(program.measure_real(7, processes=2, seconds=0.3))
    assert found.answers == 6
    assert found.cpu > 0
    assert found.cpu_of_others > 0
