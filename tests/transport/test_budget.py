"""No datagram is longer than its receiver accepts, whatever has to be said."""

from __future__ import annotations

import pytest

from causewire.transport import TransportConfig
from causewire.transport.budget import Budget
from causewire.transport.frames import put_because, read
from causewire.transport.heads import LEAST_DATAGRAM

from .pair import Pair, payloads

LONG = "n" * 250
SIZES = [LEAST_DATAGRAM, 400, 1232]


def met(limit: int, key: bytes | None) -> Pair:
    """Two transports, of which bob accepts datagrams up to a limit."""
    pair = Pair(key=key, protocol="csps")
    sizes = TransportConfig(datagram=limit, longest_datagram=limit, local_datagram=limit)
    pair.bob = pair.start("bob", 2002, config=sizes)
    return pair.meet()


@pytest.mark.parametrize("key", [None, b"sixteen bytes or more"], ids=["plain", "sealed"])
@pytest.mark.parametrize("limit", SIZES)
def test_everything_at_once(limit: int, key: bytes | None) -> None:
    """Acks with many ranges, obituaries, a long answer, messages, and a goodbye."""
    pair = met(limit, key)
    ann, session = pair.ann, pair.session
    pair.bob._peers.session("ann").recovery.next_number = 300
    for number in range(101, 300, 2):
        session.received.add(number)
    session.permit = 1 << 40
    session.answer = [LONG + str(k) for k in range(5)]
    session.obituaries = {LONG + str(k): 1 << 60 for k in range(3)}
    session.obituaries_due = session.ack_due = session.control_due = session.why_due = True
    session.ping_due = True
    for _ in range(20):
        pair.send(bytes(100))
    ann._peers.active[session] = None
    longest = 0
    for _ in range(30):
        for data in pair.out(ann):
            longest = max(longest, len(data))
            pair.give(pair.bob, data)
        for data in pair.out(pair.bob):
            pair.give(ann, data)
        pair.later(0.5)
    assert limit - 60 <= longest <= limit
    assert not session.obituaries  # all were told
    assert not session.control_due
    assert len(pair.bob.messages) == 20
    session.answer = [LONG + str(k) for k in range(5)]
    session.ack_due = session.control_due = session.bye_due = True
    session.obituaries = {LONG + str(k): 1 << 61 for k in range(3)}
    session.obituaries_due = True
    ann._peers.active[session] = None
    for _ in range(30):
        for data in pair.out(ann):
            assert len(data) <= limit
            pair.give(pair.bob, data)
        pair.give(ann, *pair.out(pair.bob))
        pair.later(0.5)
    assert not session.bye_due


@pytest.mark.parametrize("limit", SIZES)
def test_messages_wait_until_all_obituaries_are_told(limit: int) -> None:
    pair = met(limit, None)
    session = pair.session
    names = [LONG + str(k) for k in range(12)]
    session.obituaries = dict.fromkeys(names, 77)
    session.obituaries_due = True
    for k in range(30):
        pair.send(b"%d" % k)
    for _ in range(40):
        for data in pair.out(pair.ann):
            pair.give(pair.bob, data)
            told = set(names) <= pair.bob._peers.floors.keys()
            assert told or not pair.bob.messages
        pair.give(pair.ann, *pair.out(pair.bob))
    assert payloads(pair.bob) == [b"%d" % k for k in range(30)]


def test_a_budget_is_enforced() -> None:
    budget = Budget(10)
    budget.put(bytes(6))
    assert not budget.offer(bytes(5))
    with pytest.raises(OverflowError):
        budget.put(bytes(5))
    assert budget.offer(bytes(4))
    assert budget.left == 0
    assert sum(map(len, budget.frames)) == 10


def test_an_answer_names_as_many_as_fit() -> None:
    names = [f"name {k}" for k in range(40)]
    for space in range(3, 200):
        frame = put_because(names, space)
        assert len(frame) <= space
        assert read(frame).because == names[: len(read(frame).because or [])]
