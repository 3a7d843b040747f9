"""The receive buffer: what is freed by which delivery, and in which order."""

from __future__ import annotations

from typing import Any

from causewire.core.endpoint import Blocked, Wait
from causewire.core.fifo import FifoMessage
from causewire.core.held import HoldingBuffer


def packet(mid: int) -> Any:
    return FifoMessage(mid, 0, "x")


def taken(held: Any) -> Any:
    return [(source, message[1]) for source, message in held.take()]


def test_ready_at_once() -> None:
    held = HoldingBuffer()
    held.hold("a", 1, packet(1), [])
    assert held.blocked("me") == []
    assert taken(held) == [("a", 1)]
    assert taken(held) == []


def test_needs_are_met_one_by_one() -> None:
    held = HoldingBuffer()
    held.hold("a", 5, packet(5), [("b", 2), ("c", 7)])
    assert held.get("a", 5) == packet(5)
    assert held.get("a", 4) is None
    held.delivered("b", 1)
    held.delivered("d", 9)
    b, c = Wait("predecessor", "b", 2), Wait("predecessor", "c", 7)
    assert held.blocked("me") == [Blocked("a", 5, "me", "receiver", (b, c))]
    held.delivered("c", 7)
    assert held.blocked("me") == [Blocked("a", 5, "me", "receiver", (b,))]
    assert taken(held) == []
    held.delivered("b", 3)  # a later one will do
    assert taken(held) == [("a", 5)]
    assert held.get("a", 5) is None


def test_order_does_not_depend_on_arrival() -> None:
    orders = []
    for messages in ([("a", 3), ("b", 1), ("c", 2)], [("c", 2), ("b", 1), ("a", 3)]):
        held = HoldingBuffer()
        for source, mid in messages:
            held.hold(source, mid, packet(mid), [("d", 4 - mid)])
        held.delivered("d", 9)
        orders.append(taken(held))
    assert orders == [[("a", 3), ("c", 2), ("b", 1)]] * 2


def test_what_is_taken_may_free_more() -> None:
    held = HoldingBuffer()
    held.hold("a", 3, packet(3), [("a", 2)])
    held.hold("a", 2, packet(2), [("a", 1)])
    held.hold("a", 1, packet(1), [])
    seen = []
    for source, message in held.take():
        seen.append(message[1])
        held.delivered(source, message[1])
    assert seen == [1, 2, 3]


def test_copies_and_state() -> None:
    held = HoldingBuffer()
    held.hold("a", 2, packet(2), [("a", 1)])
    twin = held.copy()
    assert twin.state() == held.state()
    assert hash(twin.state()) == hash(held.state())
    twin.delivered("a", 1)
    assert taken(twin) == [("a", 2)]
    assert twin.state() != held.state()
    assert len(held.blocked("me")) == 1
    assert held.footprint() == 1 + 2
    assert twin.footprint() == 0


def test_copy_of_what_is_ready() -> None:
    held = HoldingBuffer()
    held.hold("a", 1, packet(1), [])
    twin = held.copy()
    assert taken(twin) == taken(held) == [("a", 1)]
