"""Repair: what was lost leaves again, and no more than that."""

from __future__ import annotations

from .pair import Pair, payloads


def test_a_lost_datagram_is_repaired_without_waiting_for_a_timeout() -> None:
    pair = Pair().meet()
    for k in range(6):
        pair.send(b"%d" % k)
        data = pair.out(pair.ann)
        if k != 1:
            pair.give(pair.bob, *data)
        pair.now += 0.001
    assert pair.ann.stats.timeouts == 0
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(6)]
    assert pair.ann.stats.timeouts == 0
    assert pair.ann.stats.resent == 1


def test_messages_that_leave_again_are_counted_one_by_one() -> None:
    pair = Pair().meet()
    for k in range(5):
        pair.send(b"%d" % k)
    assert len(pair.out(pair.ann)) == 1  # and it is lost, with all of them
    for k in range(5, 9):
        pair.send(b"%d" % k)
        pair.give(pair.bob, *pair.out(pair.ann))
        pair.now += 0.001
    pair.exchange()
    assert payloads(pair.bob) == [b"%d" % k for k in range(9)]
    assert pair.ann.stats.resent == 5


def test_reordering_teaches_patience() -> None:
    pair = Pair().meet()
    for _ in range(8):
        late = []
        for _ in range(6):
            pair.send()
            late += pair.out(pair.ann)
        for data in [*late[1:], late[0]]:
            pair.give(pair.bob, data)
            pair.give(pair.ann, *pair.out(pair.bob))
        pair.exchange()
        pair.now += 0.001
    assert 1 <= pair.ann.stats.lost <= 3
    assert len(payloads(pair.bob)) == 48


def test_a_lost_permit_is_told_again() -> None:
    """Nothing else is under way, so only the datagram's ack can tell."""
    pair = Pair(protocol="csps", protocol_options={"replies_early": False}).meet()
    pair.send(b"one")
    pair.send(b"two")  # flagged: its permit follows
    pair.give(pair.bob, *pair.out(pair.ann))
    pair.give(pair.ann, *pair.out(pair.bob))
    assert pair.out(pair.ann)  # the permit, lost
    pair.bob.send("ann", b"held")
    pair.bob.datagrams_to_send(pair.now)
    assert "permit of ann" in str(pair.bob.blocked(pair.now)[0])
    for _ in range(5):
        pair.later(0.3)
        pair.exchange()
    assert payloads(pair.ann) == [b"held"]
