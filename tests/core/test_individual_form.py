"""`csps` and `sps` understand a peer that follows the paper's print.

`Printed` is Almeida's Algorithm 1 line by line, with the sliding array and the
sliding map of section 5.3, an ack and a permit for each message by itself, and
of ERRATA 1 only what it cannot do without (ids from 1, permits that come early).
It is mixed with our endpoints, whose acks and permits are watermarks.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Hashable
from typing import Any, Self

import pytest

from causewire import protocols
from causewire.core.endpoint import Blocked, Endpoint, Footprint, Packet, Wait
from causewire.core.fifo import Ack
from causewire.core.hybrid import HybridMessage, Permit
from causewire.core.sliding import SlidingArray, SlidingMap
from causewire.testing import Network


class Printed(Endpoint):
    """Algorithm 1; each step bears the number of its line."""

    def __init__(self, me: str) -> None:
        super().__init__(me)
        self.u: SlidingArray[list[Any]] = SlidingArray(first=1)  # 22: [receiver, packet, acked]
        self.p: SlidingMap[tuple[str, int]] = SlidingMap()  # 23
        self.ls: dict[str, int] = {}  # 24
        self.ld: dict[str, int] = {}  # 25
        self.sb: deque[tuple[str, int, int, int, Any]] = deque()  # 26
        self.rb: dict[str, dict[int, Packet]] = {}  # 27
        self.early: set[tuple[str, int]] = set()  # ERRATA 1.5

    def try_send(self) -> None:
        while self.sb:  # 29
            to, mid, pid, per, payload = self.sb[0]
            if self.p.first < per:  # 31
                return
            self.sb.popleft()
            message = HybridMessage(mid, pid, payload, self.u.size > 0)  # 34
            self.u.add([to, message, False])
            self._packets.append((to, message))

    def send(self, to: Any, payload: Any) -> int:
        mid = self._mid = self._mid + 1
        self.sb.append((to, mid, self.ls.get(to, 0), self.p.next, payload))  # 38-39, 42
        self.ls[to] = mid
        self.try_send()
        return mid

    def receive(self, source: str, packet: Packet) -> None:
        if packet.kind == "msg":
            if packet[1] <= self.ld.get(source, 0):  # 45
                self._packets.append((source, Ack(packet[1])))
                return
            e = self.rb.setdefault(source, {})
            e[packet[2]] = packet
            while self.ld.get(source, 0) in e:  # 50
                b = e.pop(self.ld.get(source, 0))
                self.ld[source] = b[1]
                if b[4] and (source, b[1]) not in self.early:  # 53
                    self.p.add((source, b[1]))
                self._packets.append((source, Ack(b[1])))
                self._deliver(source, b[1], b[3])
        elif packet.kind in ("ack", "ask"):
            self.acked(source, packet[1])
        else:
            if self.p.remove((source, packet[1])) is None:  # 72
                self.early.add((source, packet[1]))
            for each in list(self.p):  # a watermark: it covers what is before it
                if each[0] == source and each[1] <= packet[1]:
                    self.p.remove(each)
            self.try_send()

    def acked(self, source: str, n: int) -> None:
        for mid in range(self.u.first, n + 1):  # a watermark, too
            if self.u[mid][0] == source:
                self.u[mid][2] = True
        if n < self.u.first:  # 58
            self._packets.append((source, Permit(n)))
            return
        if self.u.peek()[2]:  # 62
            self.u.remove()
            while self.u.size > 0:
                to, message, done = self.u.peek()
                if message[4]:  # 66
                    self._packets.append((to, Permit(message[1])))
                if not done:
                    return
                self.u.remove()

    def retransmit(self) -> None:
        self._packets += [(to, message) for to, message, done in self.u if not done]
        self._packets += [(source, Ack(mid)) for source, mid in self.p]

    def blocked(self) -> list[Blocked]:
        waits = tuple(Wait("permit", *each) for each in self.p)
        return [Blocked(self.me, mid, to, "sender", waits) for to, mid, *_ in self.sb]

    @property
    def idle(self) -> bool:
        return not (self.u or self.p or self.sb or any(self.rb.values()))

    def footprint(self) -> Footprint:
        return Footprint(0, {})

    def _state(self) -> Hashable:
        return id(self)

    def _copy_into(self, twin: Self) -> None:
        raise AssertionError("not copied here")


class Run:
    """A random run of two of our endpoints and two printed ones, up to its end."""

    def __init__(self, protocol: str, loss: float, seed: int) -> None:
        self.choose = random.Random(seed)
        self.names = ["a", "b", "c", "d"]
        self.sends = 0
        self.held = 0
        ours = self.choose.sample(self.names, 2)
        self.network = Network(
            [protocols.create(protocol, n) if n in ours else Printed(n) for n in self.names]
        )
        self.network.react = lambda process, _: self.speak(process, at_most=12)
        for _ in range(60):
            self.step(loss)
            self.held += any(each.blocked() for each in self.network.endpoints.values())
        self.settled = self.settle()

    def speak(self, process: str, at_most: int) -> None:
        if self.sends < at_most:
            self.sends += 1
            to = self.choose.choice([name for name in self.names if name != process])
            self.network.send(process, to, f"m{self.sends}")

    def step(self, loss: float) -> None:
        network, choose = self.network, self.choose
        if choose.random() < 0.3:
            self.speak(choose.choice(self.names), at_most=8)
        elif network.in_flight:
            k = choose.randrange(len(network.in_flight))
            (network.lose if choose.random() < loss else network.arrive)(k)

    def settle(self) -> bool:
        for _ in range(50):
            self.network.arrive_all()
            if all(endpoint.idle for endpoint in self.network.endpoints.values()):
                return True
            for name in self.names:
                self.network.retransmit(name)
        return False


@pytest.mark.parametrize("protocol", ["csps", "sps"])
@pytest.mark.parametrize("loss", [0.0, 0.2])
def test_a_peer_to_the_papers_letter(protocol: str, loss: float) -> None:
    held = permits = 0
    for seed in range(200):
        run = Run(protocol, loss, seed)
        assert run.settled, f"seed {seed}"
        assert run.network.oracle.violations == [], f"seed {seed}"
        assert not run.network.oracle.undelivered(), f"seed {seed}"
        held += run.held
        permits += sum(p.kind == "permit" for link in run.network.links.values() for p in link)
    assert held > 50
    assert permits > 50
