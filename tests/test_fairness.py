"""Nodes share a bottleneck with each other and with TCP, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from .programs import load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> Any:
    """The program that measures shares, as a module."""
    return load("benchmarks/fairness.py")


def test_a_node_and_tcp_share_a_bottleneck(program: Any) -> None:
    node, tcp = program.shares(["node", "tcp"], program.Link(mbit=2.0, queue=10), 20.0)
    assert node + tcp > 0.85
    assert 0.4 < node / tcp < 2.5


def test_tcp_shares_with_itself(program: Any) -> None:
    """The model that nodes are compared with is fair by itself."""
    one, other = program.shares(["tcp", "tcp"], program.Link(mbit=4.0, queue=14), 40.0)
    assert one + other > 0.85
    assert 0.5 < one / other < 2.0


def test_what_does_not_fit_into_the_queue_is_lost(program: Any) -> None:
    now = 0.0
    bottleneck = program.Bottleneck(program.Link(mbit=12.0, trip=0.04, queue=2), lambda: now)
    assert bottleneck.pass_on(1500) == pytest.approx(0.021)
    assert bottleneck.pass_on(1500) == pytest.approx(0.022)
    assert bottleneck.pass_on(1500) is None
    now = 0.001  # the first has left
    assert bottleneck.pass_on(1500) == pytest.approx(0.022)
    lossy = program.Bottleneck(program.Link(loss=3), lambda: now)
    assert [lossy.pass_on(100) is None for _ in range(6)] == [False, False, True] * 2
