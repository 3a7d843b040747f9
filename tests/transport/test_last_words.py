"""What a process sent before it died: who still delivers it, and before what."""

from __future__ import annotations

from typing import Any

import pytest

from causewire.transport import PeerForgotten, TransportConfig

from .pair import A, B, events, payloads
from .three import C, Three, transport

ALL = pytest.mark.parametrize("protocol", ["csps", "sps", "adaptive"])


def orphaned(**settings: Any) -> tuple[Three, list[bytes], list[bytes]]:
    """carol multicasts, and dies; ann has the message, and reacts to it; bob has neither.

    Returns the datagrams to bob: those of carol with the cause, and those of ann with the
    obituary and the effect.
    """
    three = Three(**settings)
    ann, carol = three["ann"], three["carol"]
    carol.send(["ann", "bob"], b"cause")
    sent = carol.datagrams_to_send(three.now)
    causes = [data for data, place in sent if place not in (A, C)]
    for data, place in sent:
        if place == A:
            ann.datagram_received(data, C, three.now)
    assert payloads(ann) == [b"cause"]
    ann.send("bob", b"effect")
    early = [data for data, place in ann.datagrams_to_send(three.now) if place not in (A, C)]
    assert bool(early) == (settings["protocol"] == "adaptive")  # others wait for a permit of carol
    three.isolate("carol")
    ann.forget("carol", three.now)
    late = [data for data, place in ann.datagrams_to_send(three.now) if place not in (A, C)]
    assert late
    effects = early + late
    assert causes
    assert effects
    return three, causes, effects


@ALL
def test_a_cause_that_has_arrived_is_delivered_before_its_effect(protocol: str) -> None:
    """Both are in the socket of bob, the obituary first: he reads them in one turn."""
    three, causes, effects = orphaned(protocol=protocol)
    bob = three["bob"]
    for data in effects:
        bob.datagram_received(data, A, three.now)
    assert bob.postponed
    for data in causes:
        bob.datagram_received(data, C, three.now)
    bob.datagrams_to_send(three.now)
    assert not bob.postponed
    assert payloads(bob) == [b"cause", b"effect"]
    assert PeerForgotten("carol", 0) in events(bob)


@ALL
def test_a_cause_that_arrives_later_is_not_delivered_after_its_effect(protocol: str) -> None:
    three, causes, effects = orphaned(protocol=protocol)
    bob = three["bob"]
    for data in effects:
        bob.datagram_received(data, A, three.now)
    bob.datagrams_to_send(three.now)
    for data in causes:
        bob.datagram_received(data, C, three.now)
    bob.datagrams_to_send(three.now)
    assert payloads(bob) == [b"effect"]


@ALL
def test_a_cause_that_waits_for_room_is_delivered_before_its_effect(protocol: str) -> None:
    config = TransportConfig(queue_messages=1)
    three, causes, effects = orphaned(config=config, protocol=protocol)
    bob = three["bob"]
    bob.send("bob", b"the queue is full")
    bob.datagrams_to_send(three.now)
    for data in causes:
        bob.datagram_received(data, C, three.now)
    bob.datagrams_to_send(three.now)
    assert [message.payload for message in bob.messages] == [b"the queue is full"]
    for data in effects:
        bob.datagram_received(data, A, three.now)
    bob.datagrams_to_send(three.now)
    taken = payloads(bob)
    bob.datagrams_to_send(three.now)
    assert taken + payloads(bob) == [b"the queue is full", b"cause", b"effect"]


def test_who_gives_a_peer_up_takes_what_has_arrived_from_it_first() -> None:
    three = Three(config=TransportConfig(queue_messages=1))
    bob = three["bob"]
    bob.send("bob", b"the queue is full")
    three["carol"].send("bob", b"arrived")
    three.run(0.1)
    bob.forget("carol", three.now)
    assert payloads(bob) == [b"the queue is full", b"arrived"]
    assert bob.status().waiting_bytes == 0


@ALL
def test_who_comes_back_tells_others_that_its_former_life_is_over(protocol: str) -> None:
    """carol gave bob up, told only bob, who is back, and was restarted: nobody else knows.

    What bob's former life sent to ann is still on its way, and the effect reaches her first.
    """
    three = Three(protocol=protocol)
    three.cut = {("bob", "ann")}
    bob = three["bob"]
    bob.send("ann", b"cause")
    causes = [data for data, place in bob.datagrams_to_send(three.now) if place == A]
    bob.send("carol", b"news")
    three.exchange()
    three["carol"].forget("bob", three.now)
    assert payloads(three["carol"]) == [b"news"]
    three.cut |= {("carol", "ann")}
    three.all["bob"] = bob = transport("bob", 8 << 20, protocol=protocol)
    three.introduce("bob")
    three.run(0.5)
    three["carol"].send("bob", b"old news")
    three.run(0.5)
    assert payloads(bob) == [b"old news"]
    three.all["carol"] = carol = transport("carol", 9 << 20, protocol=protocol)
    three.cut = {("bob", "ann")}
    three.introduce("carol")
    three.run(0.5)
    bob.send("carol", b"older news")
    three.run(0.5)
    assert payloads(carol) == [b"older news"]
    carol.send("ann", b"effect")
    three.run(0.5)
    assert payloads(three["ann"]) == [b"effect"]
    for data in causes:
        three["ann"].datagram_received(data, B, three.now)
    assert payloads(three["ann"]) == []
