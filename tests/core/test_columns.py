"""What leaves in runs is what leaves in packets: the same messages, acks and permits."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from typing import Any

import pytest

from causewire import protocols
from causewire.core import csps, sps
from causewire.core.endpoint import Packet, RemoteProtocolError
from causewire.core.fifo import Ack, FifoEndpoint
from causewire.core.hybrid import Permit
from causewire.core.run import MessageRun


def by_peer(
    endpoint: FifoEndpoint[Any],
) -> tuple[dict[str, list[tuple[Any, ...]]], dict[Any, Any], dict[Any, Any]]:
    """Messages, acks and permits, taken as packets."""
    messages: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    acks: dict[str, int] = {}
    permits: dict[str, int] = {}
    for to, packet in endpoint.take_packets():
        if packet.kind == "msg":
            messages[to].append((*packet[1:4], *(packet[4:] or (False,))))
        elif packet.kind == "ack":
            acks[to] = packet[1]
        else:
            assert packet.kind == "permit"
            permits[to] = packet[1]
    return messages, acks, permits


def by_run(
    endpoint: FifoEndpoint[Any],
) -> tuple[dict[str, list[tuple[Any, ...]]], dict[Any, Any], dict[Any, Any]]:
    """The same, taken as runs."""
    messages: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for to, (mids, pid, payloads, per, _) in endpoint.take_runs():
        for mid, payload in zip(mids, payloads, strict=True):
            messages[to].append((mid, pid, payload, per))
            pid = mid
    return messages, endpoint.take_acks(), endpoint.take_permits()


@pytest.mark.parametrize(
    ("protocol", "many"), [("csps", 32), ("csps", 2), ("sps", 32), ("sps", 2), ("fifo", 0)]
)
def test_runs_are_the_packets(protocol: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csps.Csps, "many", many)
    monkeypatch.setattr(sps.Sps, "many", many)
    longest = flagged = held = 0
    for seed in range(30):
        chance = random.Random(seed)
        names = ["a", "b", "c", "d"]
        endpoints: dict[str, Any] = {name: protocols.create(protocol, name) for name in names}
        wire: list[tuple[str, str, Packet]] = []
        for _ in range(150):
            name = chance.choice(names)
            endpoint = endpoints[name]
            if chance.random() < 0.6:
                for _ in range(chance.randint(1, 5)):
                    to = chance.sample(names, chance.choice([1, 1, 1, 2, 3]))
                    endpoint.send(to, chance.randbytes(2))
            else:
                here = [k for k, packet in enumerate(wire) if packet[1] == name]
                for k in sorted(chance.sample(here, len(here) // 2), reverse=True):
                    source, _, packet = wire.pop(k)
                    endpoint.receive(source, packet)
            held += bool(endpoint.blocked())
            if chance.random() < 0.5:
                continue
            twin, again = copy.copy(endpoint), copy.copy(endpoint)
            taken = by_peer(endpoint)
            assert by_run(twin) == taken
            assert twin == endpoint
            wire += [(name, to, packet) for to, packet in again.take_packets()]
            messages = taken[0].values()
            longest = max(longest, *map(len, messages), 0)
            flagged += any(message[3] for some in messages for message in some)
    assert longest > 4
    assert protocol == "fifo" or (flagged and held)


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_what_nobody_took_cannot_be_acked(protocol: str) -> None:
    endpoint = protocols.create(protocol, me="a")
    endpoint.send("b", b"one")
    before = copy.copy(endpoint)
    with pytest.raises(RemoteProtocolError):
        endpoint.receive("b", Ack(1))
    assert endpoint == before
    endpoint.take_packets()
    endpoint.receive("b", Ack(1))
    assert endpoint.idle


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_acked_messages_do_not_stay(protocol: str) -> None:
    """However acks come: at most as many acked messages are kept as others."""
    endpoint: Any = protocols.create(protocol, me="a")
    chance = random.Random(1)
    sent = acked = 0
    for _ in range(2000):
        if chance.random() < 0.5 or sent == acked:
            sent = endpoint.send("b", b"x")
            endpoint.take_packets()
        else:
            acked = chance.randint(acked + 1, sent)
            endpoint.receive("b", Ack(acked))
        peer = endpoint._peers["b"]
        assert len(peer.mids) == len(peer.payloads) <= max(2 * (sent - acked), 0)


@pytest.mark.parametrize("protocol", ["csps", "sps", "fifo"])
def test_a_sender_does_what_send_does(protocol: str) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        one, other = (protocols.create(protocol, me="a") for _ in range(2))
        assert isinstance(one, FifoEndpoint)
        assert isinstance(other, FifoEndpoint)
        senders = {name: one.sender_to(name) for name in ("b", "c")}
        for name, sender in senders.items():
            assert sender(b"first") == other.send(name, b"first")
        received = 0
        for _ in range(60):
            name = chance.choice(["b", "c"])
            if chance.random() < 0.2:
                received += 1
                run = MessageRun([received], received - 1, [b""], protocol != "fifo")
                for endpoint in (one, other):
                    endpoint.receive_run("b", run)
            if chance.random() < 0.1 and received and protocol != "fifo":
                for endpoint in (one, other):
                    endpoint.receive("b", Permit(received))
            assert senders[name](b"x") == other.send(name, b"x")
            if chance.random() < 0.3:
                assert one.take_runs() == other.take_runs()
            assert one == other
