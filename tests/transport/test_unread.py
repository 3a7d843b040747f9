"""An application that promised to read, and does not: its process stands down."""

from __future__ import annotations

import pytest

from causewire.transport import (
    NodeSuperseded,
    NodeUnread,
    PeerForgotten,
    PeerGone,
    Superseded,
    TransportConfig,
)

from .pair import events, payloads
from .three import PLACES, Three, transport

REASON = "its application has stopped reading"


def gone(three: Three, name: str) -> list[PeerForgotten]:
    return [event for event in events(three[name]) if isinstance(event, PeerForgotten)]


@pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive", "fifo", "ks"])
def test_a_process_whose_application_does_not_read_stands_down(protocol: str) -> None:
    three = Three(protocol=protocol, read_within=4.0)
    ann, bob, carol = three["ann"], three["bob"], three["carol"]
    ann.send("bob", b"unread")
    three.run(3.9)
    assert not bob.me.superseded
    three.run(0.7)
    assert bob.me.superseded
    told = [event for event in events(bob) if isinstance(event, NodeUnread | NodeSuperseded)]
    assert [type(event) for event in told] == [NodeUnread, NodeSuperseded]
    assert 4.0 <= told[0][1] <= 4.5
    for name in ("ann", "carol"):
        assert [(event.name, event.failed) for event in gone(three, name)] == [("bob", 0)]
    assert gone(three, "ann") == [PeerForgotten("bob", 0, REASON)]
    with pytest.raises(PeerGone):
        ann.send("bob", b"no more")
    with pytest.raises(Superseded):
        bob.send("ann", b"no more")
    ann.send("carol", b"we go on")
    three.run(1.0)
    assert payloads(carol) == [b"we go on"]
    assert payloads(bob) == [b"unread"]  # what was delivered can still be read


def test_nobody_waits_for_messages_that_it_has_no_room_for() -> None:
    """Under csps its full queue would hold back everybody who depends on it."""
    three = Three(
        protocol="csps",
        protocol_options={"replies_early": False},
        config=TransportConfig(queue_messages=1),
        read_within=4.0,
    )
    ann = three["ann"]
    receipts = [ann.send("bob", b"%d" % number) for number in range(3)]
    three.run(1.0)
    ann.send("carol", b"flagged")
    three.run(1.0)
    assert payloads(three["carol"]) == [b"flagged"]
    three["carol"].send("ann", b"held back")
    three.run(1.0)
    assert payloads(ann) == []
    three.run(2.0)
    assert payloads(ann) == [b"held back"]
    assert gone(three, "ann") == [PeerForgotten("bob", 2, REASON)]
    assert [receipt and receipt.failed for receipt in receipts] == [(), ("bob",), ("bob",)]


def test_one_that_reads_slowly_does_not_stand_down() -> None:
    three = Three(read_within=4.0)
    bob = three["bob"]
    for number in range(10):
        three["ann"].send("bob", b"%d" % number)
    for _ in range(8):
        three.run(3.0)
        bob.messages.popleft()
    assert not bob.me.superseded
    assert not gone(three, "ann")


def test_one_with_nothing_to_read_does_not_stand_down() -> None:
    three = Three(read_within=4.0)
    three["ann"].send("bob", b"x")
    three.run(1.0)
    assert payloads(three["bob"]) == [b"x"]
    three.run(20.0)
    assert not three["bob"].me.superseded


def test_it_is_off_by_default() -> None:
    three = Three(give_up_after=3.0)
    three["ann"].send("bob", b"x")
    three.run(60.0)
    assert not three["bob"].me.superseded
    assert not gone(three, "ann")


def test_time_in_which_the_process_did_not_run_does_not_count() -> None:
    three = Three(read_within=4.0)
    three["ann"].send("bob", b"x")
    three.run(1.0)
    bob = three["bob"]
    three.now += 60.0
    bob.timer_fired(three.now)
    assert not bob.me.superseded
    three.run(4.0)
    assert bob.me.superseded


def test_a_process_that_leaves_does_not_stand_down() -> None:
    three = Three(read_within=4.0)
    three["ann"].send("bob", b"x")
    three.run(1.0)
    three["bob"].close()
    three.run(10.0)
    assert not three["bob"].me.superseded
    assert not gone(three, "ann")


def test_who_reaches_it_later_is_told_as_well() -> None:
    three = Three(read_within=4.0)
    three["ann"].send("bob", b"x")
    three.run(1.0)
    three.isolate("carol")
    three.run(5.0)
    assert three["bob"].me.superseded
    del three.all["ann"]
    three.all["carol"] = carol = transport("carol", 9 << 20, read_within=4.0)
    three.cut.clear()
    carol.add_peer("bob", PLACES["bob"], three.now)
    three.run(1.0)
    assert gone(three, "carol") == [PeerForgotten("bob", 0, REASON)]


def test_the_flag_ends_when_the_application_reads_again() -> None:
    three = Three(read_within=4.0)
    for payload in (b"1", b"2"):
        three["ann"].send("bob", payload)
    three.run(6.0)
    bob = three["bob"]
    assert bob.me.unread
    bob.messages.popleft()
    three.run(1.0)
    assert not bob.me.unread
    assert bob.me.superseded


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_the_time_must_be_positive(seconds: float) -> None:
    with pytest.raises(ValueError, match="read_within must be above 0"):
        Three(read_within=seconds)
