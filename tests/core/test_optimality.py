"""`csps` and `sps` are optimal, not only safe: nothing waits a step too long.

A specification recomputes from scratch, after every step, what each process
may release and permit, from the definitions alone: what was sent to whom, what
was delivered before it, which acks and permits have come. It keeps no index, no
window and no watermark, and shares no code with the endpoints. Whatever becomes
true at a step must show in the packets of that very step.
"""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

import pytest

from causewire import protocols
from causewire.core import Packet, csps, sps

Copy = tuple[int, str]  # message number, receiver


@dataclass
class Spec:
    """One process as the definitions see it, with every fact kept for ever."""

    me: str
    rule: str
    sends: list[tuple[int, tuple[str, ...], frozenset[Any]]] = field(default_factory=list)
    """Number, receivers, and the flagged messages delivered before."""
    released: set[Copy] = field(default_factory=set)
    flagged: set[Copy] = field(default_factory=set)
    acked: set[Copy] = field(default_factory=set)
    granted: set[Copy] = field(default_factory=set)
    delivered: list[tuple[str, int]] = field(default_factory=list)
    """Messages delivered with a flag."""
    permitted: set[tuple[str, int]] = field(default_factory=set)
    """Of those, the ones whose permit has come."""

    def causal_send(self, mid: int, names: tuple[str, ...]) -> None:
        self.sends.append((mid, names, frozenset(self.delivered)))

    def may_release(self, names: frozenset[Any], to: str) -> bool:
        missing: Set[Any] = names - self.permitted
        if self.rule != "csps":  # Definition 4.1: any process k != j
            missing = {(source, mid) for source, mid in missing if source != to}
        return not missing

    def may_permit(self, mid: int, to: str) -> bool:
        """All that was sent up to `mid`, the receiver's own copy aside, is acked."""
        for other, names, _ in self.sends:
            for name in names:
                if other > mid or (other, name) in self.acked or (other, name) == (mid, to):
                    continue
                if self.rule == "sps" and name == to:  # FIFO covers it
                    continue
                return False
        return True

    def due_releases(self) -> set[Copy]:
        """What the rule lets go; CSPS keeps the order of the causal sends."""
        due = set()
        for mid, names, past in self.sends:
            ready = {(mid, to) for to in names if self.may_release(past, to)} - self.released
            if self.rule != "sps" and len(ready) < len({(mid, to) for to in names} - self.released):
                break
            due |= ready
        return due

    def waits(self) -> dict[Copy, set[tuple[str, int]]]:
        """For each copy that has not left, the permits that it waits for.

        The last of each sender: permits are cumulative.
        """
        return {
            (mid, to): {
                (source, max(number for name, number in missing if name == source))
                for source, _ in missing
                if self.rule != "sps" or source != to
            }
            for mid, names, past in self.sends
            for missing in [past - self.permitted]
            for to in names
            if (mid, to) not in self.released
        }

    def due_permits(self) -> set[Copy]:
        pending = self.flagged - self.granted
        return {(mid, to) for mid, to in pending if self.may_permit(mid, to)}


class System:
    """Endpoints and specifications in lock-step over a hostile network."""

    def __init__(self, rule: str, seed: int) -> None:
        self.random = random.Random(seed)
        names = [f"p{k}" for k in range(self.random.randint(2, 5))]
        about = protocols.describe(rule.removesuffix(", early"))
        if rule.endswith(", early"):
            about = about.with_options(replies_early=True)
        self.endpoints = {name: protocols.create(about, me=name) for name in names}
        self.specs = {name: Spec(name, rule) for name in names}
        self.network: list[tuple[str, str, Packet]] = []
        self.multicast = self.random.random() < 0.6
        self.loss = self.random.choice([0.0, 0.0, 0.2])
        self.sent = 0
        self.early: dict[str, set[tuple[str, int]]] = {}
        """Permits that came to a process, for what was delivered there or not."""
        self.flags: dict[tuple[str, str, int], bool] = {}
        """Of the copy of a message that came first: one that left again, permitted, has none."""
        self.seen = dict.fromkeys(
            ("held", "flagged", "permit", "lost", "repeated", "unflagged again"), 0
        )
        for name, endpoint in self.endpoints.items():
            endpoint.on_delivery = lambda delivery, name=name: self.deliver(name, delivery)

    def deliver(self, name: str, delivery: Any) -> None:
        spec = self.specs[name]
        if delivery.source != name and self.flags[name, delivery.source, delivery.mid]:
            spec.delivered.append((delivery.source, delivery.mid))
            if (delivery.source, delivery.mid) in self.early.get(name, set()):
                spec.permitted.add((delivery.source, delivery.mid))
        if self.sent < 14 and self.random.random() < 0.5:
            self.send(name)

    def send(self, name: str) -> None:
        names = sorted(self.endpoints)
        size = self.random.randint(1, len(names)) if self.multicast else 1
        to = self.random.sample(names, size)
        self.sent += 1
        # Happened-before is cut at the call; the deliveries inside follow it.
        mid = self.endpoints[name]._mid + 1
        self.specs[name].causal_send(mid, tuple(each for each in to if each != name))
        assert self.endpoints[name].send(to, b"m%d" % mid) == mid

    def settle(self, name: str, asked: str | None = None) -> None:
        """Compare what the endpoint gave out with what the definitions ask for."""
        spec = self.specs[name]
        releases: set[Copy] = set()
        permits: dict[str, int] = {}
        for to, packet in self.endpoints[name].take_packets():
            if packet.kind == "msg":
                releases.add((packet[1], to))
            elif packet.kind == "permit":
                permits[to] = packet[1]
            self.network.append((name, to, packet))
        due = spec.due_releases()
        assert releases - spec.released == due
        self.seen["held"] += len(spec.released) < sum(len(names) for _, names, _ in spec.sends)
        for to, packet in [(to, p) for s, to, p in self.network if s == name and p.kind == "msg"]:
            copy = (packet[1], to)
            if copy in due:
                assert packet[4] == (not spec.may_permit(*copy)), "flagged iff not permitted yet"
                if packet[4]:
                    spec.flagged.add(copy)
                    self.seen["flagged"] += 1
                else:
                    spec.granted.add(copy)
        spec.released |= due
        assert self.blocked(name) == spec.waits()
        granted = spec.due_permits()
        # Permits are cumulative: the highest one due goes out now, once, and
        # the last one again for somebody who asks; nothing else.
        for to in self.endpoints:
            news = max((mid for mid, each in granted if each == to), default=0)
            before = max((mid for mid, each in spec.granted if each == to), default=0)
            if news:
                self.seen["permit"] += 1
            elif to == asked and before:
                self.seen["repeated"] += 1
            expected = news or (before if to == asked else 0)
            assert permits.pop(to, 0) == expected, f"permit of {expected} to {to}"
        assert not permits
        spec.granted |= granted

    def blocked(self, name: str) -> dict[Copy, set[tuple[str, int]]]:
        """What the endpoint says that its own messages wait for."""
        held = [each for each in self.endpoints[name].blocked() if each.where == "sender"]
        assert all(wait.kind == "permit" for each in held for wait in each.waits)
        waits = {(b.mid, b.destination): {wait[1:] for wait in b.waits} for b in held}
        assert len(waits) == len(held)
        return waits

    def receive(self, source: str, to: str, packet: Any) -> None:
        spec = self.specs[to]
        asked = None
        if packet.kind in ("ack", "ask"):
            stale = (packet[1], source) in spec.acked
            asked = source if packet.kind == "ask" or stale else None
            spec.acked |= {
                (mid, each) for mid, each in spec.released if each == source and mid <= packet[1]
            }
        elif packet.kind == "msg":
            if not self.flags.setdefault((to, source, packet[1]), packet[4]):
                self.seen["unflagged again"] += (packet[1], to) in self.specs[source].flagged
        elif packet.kind == "permit":
            early = self.early.setdefault(to, set())
            early |= {(source, mid) for mid in range(1, packet[1] + 1)}
            spec.permitted |= {each for each in spec.delivered if each in early}
        self.endpoints[to].receive(source, packet)
        self.settle(to, asked)

    def run(self) -> None:
        for _ in range(80):
            if self.sent < 8 and self.random.random() < 0.3:
                name = self.random.choice(sorted(self.endpoints))
                self.send(name)
                self.settle(name)
            elif self.network:
                k = self.random.randrange(len(self.network))
                packet = self.network[k]
                chance = self.random.random()
                if chance < self.loss:
                    self.network.pop(k)
                    self.seen["lost"] += 1
                elif chance < 0.9:
                    self.network.pop(k)
                    self.receive(*packet)
                else:
                    self.receive(*packet)  # and once more later
        for _ in range(200):
            while self.network:
                self.receive(*self.network.pop(self.random.randrange(len(self.network))))
            if all(endpoint.idle for endpoint in self.endpoints.values()):
                break
            for name, endpoint in self.endpoints.items():
                endpoint.retransmit()
                self.settle(name)
        for name, endpoint in self.endpoints.items():
            assert endpoint.idle, endpoint.blocked()
            spec = self.specs[name]
            assert spec.released == spec.acked
            assert len(spec.released) == sum(len(names) for _, names, _ in spec.sends)


@pytest.mark.parametrize("many", [32, 1])
@pytest.mark.parametrize("rule", ["csps", "csps, early", "sps"])
def test_every_release_and_permit_at_the_first_possible_step(
    rule: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`many`: also with departures of two messages on, where few ever are together."""
    monkeypatch.setattr(csps.Csps, "many", many)
    monkeypatch.setattr(sps.Sps, "many", many)
    seen: dict[str, int] = {}
    for seed in range(600):
        system = System(rule, seed)
        try:
            system.run()
        except AssertionError as error:
            raise AssertionError(f"{rule}, seed {seed}: {error}") from error
        for what, count in system.seen.items():
            seen[what] = seen.get(what, 0) + count
    assert all(seen.values()), f"some of it never happened: {seen}"
