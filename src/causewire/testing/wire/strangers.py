"""What others do to a system: strangers on its network, a process that is set up wrongly, a name
behind which there is nobody, and disks that are full.

    flood       a stranger sends many datagrams to one process: noise, and copies of datagrams
                that he has seen, some of them damaged
    diversion   a stranger copies what two processes send to each other. For a while, his copies
                arrive first, from an address of his own, and nothing that is sent there arrives
    misfit      a process with another protocol or another key writes to all, and all write to it
    absent      some write to a process that never was
    full disk   the trace of a process cannot be written any more

None of this may change anything between the processes of the system: the judge is the same. A
stranger must not be sent more than three times what comes from him, lest somebody else is flooded
in his name.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from ...node.recorder import TraceRecorder
from ...trace import Event, TraceWriter
from ...transport import (
    Accepted,
    Address,
    PeerGone,
    PeerRefused,
    Superseded,
    Transport,
    UnknownPeer,
)

if TYPE_CHECKING:
    from .host import Host
    from .settings import Faults
    from .wire import Wire

__all__ = ["MISFIT", "NOBODY", "Strangers", "damaged", "fill_disk"]

NOBODY, MISFIT = "nobody", "misfit"
"""The names of a process that never was, and of one that is set up wrongly."""

SEEN = 200
"""Datagrams that a stranger remembers."""

FLOOD, SPAN = (20, 300), 0.3
"""How many datagrams a flood has, from least to most, and for how many seconds it lasts."""

DIVERTED = 1.0
"""How long a diversion lasts, at most."""

AWAY = 0.001
"""Seconds that a datagram to or from a misfit takes."""


def damaged(data: bytes, random: Random) -> bytes:
    """Return a datagram of which some bytes are wrong; the end may be missing."""
    copy = bytearray(data)
    for _ in range(random.randint(1, 3)):
        copy[random.randrange(len(copy))] ^= random.randint(1, 255)
    if random.random() < 0.2:
        del copy[random.randrange(len(copy)) :]
    return bytes(copy)


class FullDisk(TraceWriter):
    """A writer that fails after some rows, for good."""

    def __init__(self, rows: int) -> None:
        super().__init__("full disk")
        self._room = rows

    def write(self, event: Event) -> None:
        """Add a row while there is room."""
        self.rows += 1
        if self.rows > self._room:
            raise OSError(28, "No space left on device")

    def flush(self) -> None:
        """Do nothing."""

    def _finish(self) -> None:
        pass

    def _discard(self) -> None:
        pass


def fill_disk(host: Host, rows: int) -> None:
    """Let a process write a trace to a disk that has room for some rows."""
    transport = host.transport
    number, lists = transport.message_number, transport.list_bytes
    transport.observer = TraceRecorder(FullDisk(rows), "run", host.name, 1, number, lists)


class Strangers:
    """All that is not a process of the system; draws from a generator of its own."""

    def __init__(self, wire: Wire, seed: int, faults: Faults) -> None:
        self._wire = wire
        self._random = random = Random(f"strangers {seed}")
        self._seen: list[tuple[str, bytes]] = []
        """Datagrams, and for whom they were."""
        self._diverted: dict[frozenset[str], tuple[Address, float]] = {}
        """The two ends of a diversion: where the copies come from, and until when."""
        self._misfit: _Misfit | None = None
        self._came: Counter[Address] = Counter()
        self._went: Counter[Address] = Counter()
        """Bytes that came from each address of a stranger, and that were sent there."""
        self.informed: set[str] = set()
        """Processes that know why they and the misfit do not get together."""
        span = wire.workload.span
        for times, happening in ((faults.floods, self._flood), (faults.diversions, self._divert)):
            for _ in range(times):
                wire.at(random.uniform(0, span), happening)
        if faults.misfit:
            self._misfit = _Misfit(wire, self, random)
        for name, there in ((NOBODY, faults.absent), (MISFIT, bool(faults.misfit))):
            for _ in range(random.randint(1, 3) if there else 0):
                wire.at(random.uniform(0, span), lambda name=name: self._write_to(name))  # type: ignore[misc]

    # -- what a stranger sees and does ----------------------------------------

    def sees(self, host: Host, data: bytes, address: Address) -> bool:
        """A process of the system sends a datagram; return whether it leaves the system."""
        owner = self._wire.owners.get(address)
        if owner is None:
            self._takes(data, host.address, address)
            return True
        self._saw(host.name, owner, data, address)
        return False

    def _saw(self, source: str, target: str, data: bytes, address: Address) -> None:
        """A process of the system has sent a datagram to another one."""
        if len(self._seen) < SEEN:
            self._seen.append((target, data))
        else:
            self._seen[self._random.randrange(SEEN)] = (target, data)
        diversion = self._diverted.get(frozenset((source, target)))
        if diversion is not None and self._wire.now < diversion[1]:
            place = diversion[0]
            self._wire.at(self._wire.now, lambda: self._send(target, data, place, address))

    def _takes(self, data: bytes, source: Address, address: Address) -> None:
        """A datagram is for an address that is nobody's in the system."""
        if address in self._came:
            self._went[address] += len(data)
            if self._went[address] > 3 * self._came[address]:
                self._wire.judge.complain(
                    f"{address} gets more than three times what came from there"
                )
        elif self._misfit is not None and address == self._misfit.address:
            misfit = self._misfit
            self._wire.at(self._wire.now + AWAY, lambda: misfit.receive(data, source))

    def _place(self) -> Address:
        return "127.0.0.2", self._random.randint(1, 60000)

    def _flood(self) -> None:
        random, wire = self._random, self._wire
        victim = random.choice(list(wire.hosts))
        places = [self._place() for _ in range(random.choice((1, 1, 50)))]
        for _ in range(random.randint(*FLOOD)):
            data, place = self._datagram(), random.choice(places)
            when = wire.now + random.uniform(0, SPAN)
            wire.at(when, lambda data=data, place=place: self._send(victim, data, place))  # type: ignore[misc]

    def _send(
        self, target: str, data: bytes, place: Address, address: Address | None = None
    ) -> None:
        self._came[place] += len(data)
        self._wire.intrude(target, data, place, address)

    def _datagram(self) -> bytes:
        random = self._random
        kind = random.choice(("noise", "copy", "damaged"))
        if kind == "noise" or not self._seen:
            return bytes((random.randrange(6),)) + random.randbytes(random.randrange(100))
        data = random.choice(self._seen)[1]
        return damaged(data, random) if kind == "damaged" else data

    def _divert(self) -> None:
        random = self._random
        ends = frozenset(random.sample(list(self._wire.hosts), 2))
        until = self._wire.now + random.uniform(0, DIVERTED)
        self._diverted[ends] = self._place(), until

    # -- wrong names ----------------------------------------------------------

    def _write_to(self, name: str) -> None:
        """A process writes to one that never answers, alone or together with another one."""
        wire, random = self._wire, self._random
        host = random.choice(list(wire.hosts.values()))
        if host.gone or not host.up or host.paused_until > wire.now:
            return
        place = self._misfit.address if name == MISFIT and self._misfit else ("127.0.0.4", 1)
        try:
            host.transport.add_peer(name, place, wire.now)
        except (PeerGone, Superseded):
            return
        others = [n for n, other in wire.hosts.items() if n != host.name and not other.gone]
        wire.send(host, [name] if random.random() < 0.5 else [name, random.choice(others)])
        wire.turn(host)

    def notice(self, host: Host, event: object) -> None:
        """Remember who has learnt why it and the misfit do not get together."""
        if isinstance(event, PeerRefused) and event.name == MISFIT:
            self.informed.add(host.name)


class _Misfit:
    """A process with another protocol, or another key."""

    def __init__(self, wire: Wire, strangers: Strangers, random: Random) -> None:
        self._wire = wire
        self._strangers = strangers
        self.address: Address = ("127.0.0.3", 1)
        protocol, key = wire.protocol, wire.key
        if random.random() < 0.5:
            protocol = "fifo" if protocol != "fifo" else "csps"
        else:
            key = random.randbytes(32)
        self._transport: Transport[Accepted] = Transport(
            MISFIT,
            incarnation=1 << 40,
            give_up_after=wire.faults.give_up_after,
            entropy=Random("misfit").randbytes,
            protocol=protocol,
            key=key,
            config=wire.config,
        )
        self._timer_at: float | None = None
        for delay in (random.uniform(0, wire.workload.span) for _ in range(3)):
            wire.at(delay, lambda: self._write(random))

    def _write(self, random: Random) -> None:
        name, host = random.choice(list(self._wire.hosts.items()))
        try:
            self._transport.add_peer(name, host.address, self._wire.now)
            self._transport.send(name, b"0:")
        except (PeerGone, Superseded, UnknownPeer):
            return
        self._turn()

    def receive(self, data: bytes, source: Address) -> None:
        """Process a datagram."""
        self._transport.datagram_received(data, source, self._wire.now)
        self._turn()

    def _turn(self) -> None:
        wire, transport = self._wire, self._transport
        assert not transport.messages, "a process that is set up wrongly has got a message"
        for data, address in transport.datagrams_to_send(wire.now):
            target = wire.owners.get(address)
            if target is not None:
                when = wire.now + AWAY
                wire.at(
                    when,
                    lambda data=data, target=target, address=address: wire.intrude(  # type: ignore[misc]
                        target, data, self.address, address
                    ),
                )
        while transport.next_event() is not None:
            pass
        due = transport.next_timer()
        if due is not None and (self._timer_at is None or due < self._timer_at):
            self._timer_at = due
            wire.at(due, lambda: self._timer(due))

    def _timer(self, due: float) -> None:
        if self._timer_at == due:
            self._timer_at = None
            self._transport.timer_fired(max(self._wire.now, due))
            self._turn()
