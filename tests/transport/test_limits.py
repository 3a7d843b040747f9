"""Limits that recover: members that come and go, idle processes, long datagrams."""

from __future__ import annotations

from typing import Any

import pytest

from causewire import protocols
from causewire.core.run import MessageRun
from causewire.transport import (
    Transport,
    TransportConfig,
)
from causewire.transport.frames import put_run
from causewire.transport.listing import Listing

from .hostile import Target
from .pair import A, B, Pair, payloads
from .three import transport


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_members_that_come_and_leave_are_forgotten(protocol: str) -> None:
    """Four hundred of them, one after the other: memory does not grow."""
    config = TransportConfig(peers=50, linger=5.0)
    hub = transport("hub", incarnation=1 << 20, config=config, protocol=protocol)
    now = 100.0
    for k in range(400):
        name = f"member {k}"
        member = transport(name, incarnation=(k + 2) << 20, config=config, protocol=protocol)
        member.add_peer("hub", A, now)
        member.timer_fired(now)
        member.send("hub", b"hello")
        for step in range(8):
            for data, _ in member.datagrams_to_send(now):
                hub.datagram_received(data, B, now)
            for message in list(hub.messages):
                hub.messages.clear()
                hub.send(message.source, b"welcome")
            for data, _ in hub.datagrams_to_send(now):
                member.datagram_received(data, A, now)
            if step == 5:
                assert [m.payload for m in member.messages] == [b"welcome"]
                member.close()
        assert not member.unheard
        while hub.next_event() is not None:
            pass
        now += 0.5
        due = hub.next_timer()
        if due is not None and due <= now:
            hub.timer_fired(now)
    assert hub.status().counters["delivered"] == 400
    assert "too_many_peers" not in hub.stats.dropped
    assert len(hub._peers.known) <= 50
    assert len(hub._peers.floors) <= 50
    assert len(hub._peers.by_alias) <= 50
    assert len(hub._peers.departed) <= 50
    assert len(hub._carrier.endpoint._peers) <= 50  # type: ignore[attr-defined]
    assert len(hub._carrier.endpoint._forgotten) <= 50  # type: ignore[attr-defined]
    if isinstance(hub._carrier, Listing):
        identities = hub._carrier._identities
        assert len(identities.floors) <= 50
        assert len(identities._strings) == len(identities._processes) <= 50
        assert len(identities.retired) <= 256


@pytest.mark.slow
@pytest.mark.parametrize(("size", "most"), [(16, 15 / 1.2), (48, 4.0)])
def test_idle_processes_send_few_datagrams(size: int, most: float) -> None:
    """In a mesh, each pings a peer every 1.2 seconds, or is pinged by it; a large one, rarely."""
    seconds = 60
    places = {f"p{k:02}": ("127.0.0.1", 1000 + k) for k in range(size)}
    mesh: dict[Any, Transport[Any]] = {}
    now = 100.0
    for k, (name, place) in enumerate(places.items()):
        mesh[place] = transport(name, incarnation=(k + 1) << 20)
        for other, there in places.items():
            mesh[place].add_peer(other, there, now)
    count = 0
    for step in range(10 * (seconds + 20)):
        now += 0.1
        for place, one in mesh.items():
            due = one.next_timer()
            if due is not None and due <= now:
                one.timer_fired(now)
            for data, to in one.datagrams_to_send(now):
                mesh[to].datagram_received(data, place, now)
                count += step >= 200
    for one in mesh.values():
        assert sum(peer.up for peer in one.status().peers.values()) == size - 1
    assert 0.5 < count / size / seconds < most


def test_a_path_that_does_not_carry_long_datagrams() -> None:
    """A loopback address behind which datagrams above 1,500 bytes vanish."""
    pair = Pair(config=TransportConfig()).meet()
    sent = [bytes(5000), bytes(200_000), *[b"%d" % k * 300 for k in range(200)]]
    for payload in sent:
        pair.send(payload)
    got: list[bytes] = []
    for _ in range(400):
        for one in (pair.ann, pair.bob):
            for data in pair.out(one):
                if len(data) <= 1500:
                    pair.give(pair.other(one), data)
        got += payloads(pair.bob)
        if len(got) == len(sent):
            break
        pair.later(0.1)
    assert got == sent


def test_long_datagrams_stay_where_they_arrive() -> None:
    pair = Pair(config=TransportConfig()).meet()
    for _ in range(30):
        pair.send(bytes(20_000))
    pair.exchange()
    assert len(payloads(pair.bob)) == 30
    pair.send(bytes(20_000))
    pair.out(pair.ann)  # lost, and again
    for _ in range(3):
        pair.later(1.0)
        pair.out(pair.ann)
    pair.send(bytes(20_000))
    pair.later(3.0)
    assert max(map(len, pair.out(pair.ann))) > 16_000


def test_what_a_member_sends_out_of_order_is_limited() -> None:
    """Under a protocol on a link, too: messages whose past never arrives."""
    config = TransportConfig(peer_messages=10)
    target = Target("rst", config=config)
    endpoint: Any = target.bob._carrier.endpoint  # type: ignore[attr-defined]
    link: Any = target.bob._carrier
    rst = protocols.create("rst", "ann", group=["ann", "bob"])
    for _ in range(3):
        rst.send("bob", b"never arrives")
    rst.take_packets()
    tail = target.bob._peers.session("ann").inbound.tail
    for k in range(100):
        rst.send("bob", b"")
        ((_, packet),) = rst.take_packets()
        payload = b"\0" + link._codec.encode(packet)
        run = MessageRun([tail + 1 + k], tail + k, [payload], False, len(payload))
        target.hit(put_run(run, [len(payload)]))
    assert len(endpoint.blocked()) <= 20
    assert target.bob.stats.dropped["protocol_violation"] >= 70
