"""An application that does not read: both sides say so, and for how long."""

from __future__ import annotations

import pytest

from causewire.transport import MessageBlocked, Reason, TransportConfig

from .pair import Pair, events, payloads


def stalled(protocol: str = "csps") -> Pair:
    """Bob's application takes nothing, and its queue has room for one message."""
    pair = Pair(protocol=protocol, config=TransportConfig(queue_messages=1)).meet()
    for _ in range(5):
        pair.send()
    pair.exchange()
    return pair


def wait(pair: Pair, seconds: float) -> None:
    """Let time pass, in which datagrams travel."""
    end = pair.now + seconds
    while pair.now < end:
        pair.later(0.1)
        pair.exchange()


def reported(pair: Pair) -> list[tuple[str, Reason]]:
    """What has been reported as blocked, and by whom."""
    return [
        (side, event.reason)
        for side, transport in (("ann", pair.ann), ("bob", pair.bob))
        for event in events(transport)
        if isinstance(event, MessageBlocked)
    ]


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive", "ks"])
def test_both_sides_count_the_seconds_and_report_it(protocol: str) -> None:
    pair = stalled(protocol)
    wait(pair, 4.0)
    assert not reported(pair)
    (here,), (there,) = pair.ann.blocked(pair.now), pair.bob.blocked(pair.now)
    for reason, where in ((here, "under way"), (there, "queue")):
        assert reason.where == where
        assert 2.5 <= reason.seconds <= 4.0
    wait(pair, 3.0)
    found = reported(pair)
    assert [(side, reason.where) for side, reason in found] == [
        ("ann", "under way"),
        ("bob", "queue"),
    ]
    assert "bob answers, and its application does not read" in found[0][1].why
    wait(pair, 30.0)
    assert len(reported(pair)) == 2  # once each


def test_an_application_that_reads_now_and_then_is_not_reported() -> None:
    pair = stalled()
    for _ in range(5):
        wait(pair, 3.0)
        assert payloads(pair.bob) == [b"x"]
        pair.exchange()
    wait(pair, 3.0)
    assert not reported(pair)
    assert not pair.ann.blocked(pair.now)


def test_one_that_reads_again_and_stops_again_is_reported_again() -> None:
    pair = stalled()
    wait(pair, 8.0)
    payloads(pair.bob)
    wait(pair, 8.0)
    assert len(reported(pair)) == 4
