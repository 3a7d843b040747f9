"""The rows of the trace of a run, in an order that agrees with causality.

The recorder keeps, for each process, the number of its rows and its Lamport
time, which grows with each row; a packet carries the Lamport time of the row of
its departure to the row of its arrival. So sorting by it orders the rows of each
process as they happened, each delivery after its send, and each arrival after
its departure.

    send         causal send; peers: the destinations
    release      a message leaves for the first time; peers: to whom
    retransmit   it leaves once more
    receive      it arrives for the first time; peers: from whom
    duplicate    it arrives once more
    held_for     after `receive`: it has to wait, and this is a message that it waits for;
                 peers: from whom the message came that waits
    lane         a message waits at its sender, for a peer alone; peers: this peer
    deliver      the application gets it; peers: from whom
    ack, permit, control                        such a packet leaves
    ack_receive, permit_receive, control_receive  and arrives
    drop         a packet that this process sent is lost; peers: to whom
    job_start, job_end                          the message's job
    fault_partition, fault_heal, ...            a fault that names this process, or all

`held_for` and `lane` are written for the protocols in `TELLING`.
An ack names the message that it is about, of the process it goes to; a permit
one of the process it comes from; other packets name none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..core.endpoint import Packet
from ..trace import DELIVER, HELD_FOR, LANE, RECEIVE, RELEASE, SEND, Event
from .faults import Fault
from .process import SENT, Process, SimMessage
from .scheduler import Scheduler
from .sizes import Shape

__all__ = ["SimulationRecorder", "Sink"]

_new = tuple.__new__

TELLING = frozenset({"adaptive"})
"""Protocols whose traces say what a message waits for. In the others, the arrival that ends a
wait shows it: an ack, a permit or a predecessor."""


class Sink(Protocol):
    """Where rows go: a writer of traces, or anything that takes events."""

    def write(self, event: Event) -> None:
        """Take one row."""


class SimulationRecorder:
    """Writes the rows of one run."""

    __slots__ = ("_fresh", "_run", "_scheduler", "_telling", "_write")

    def __init__(self, sink: Sink, run: str, scheduler: Scheduler, protocol: str) -> None:
        self._telling = protocol in TELLING
        self._write: Callable[[Any], None] = sink.write
        self._run = run
        self._scheduler = scheduler
        self._fresh: list[SimMessage] = []
        """What was sent since packets were last taken from an endpoint."""

    def _row(
        self,
        p: Process,
        kind: str,
        origin: str | None,
        mid: int | None,
        peers: tuple[str, ...],
        payload: int | None = None,
        metadata: int | None = None,
    ) -> None:
        clock = p.clock = p.clock + 1
        row = (
            self._run,
            p.name,
            p.seq,
            self._scheduler.now,
            clock,
            kind,
            origin,
            mid,
            peers,
            payload,
            metadata,
        )
        p.seq += 1
        self._write(_new(Event, row))

    def send(self, p: Process, message: SimMessage, to: tuple[str, ...]) -> None:
        """Write the row of a causal send."""
        self._row(p, SEND, p.name, message.mid, to, message.size)
        self._fresh.append(message)

    def packets_left(self, p: Process) -> None:
        """Write which of the messages that p has just sent wait."""
        fresh, self._fresh = self._fresh, []
        for message in fresh:
            names = (message.to,) if isinstance(message.to, str) else message.to
            for name in names:
                copy = message if message.copies is None else message.copies[name]
                if copy.state == SENT and name != p.name:
                    self.held(p, message, name)

    def departs(
        self, p: Process, q: Process, packet: Packet, shape: Shape, metadata: int, again: bool
    ) -> int:
        """Write the row of a packet that leaves, and return the stamp that it carries."""
        origin, mid, payload = self._about(p, q, packet, shape)
        kind = shape.sort
        if shape.payload:
            kind = "retransmit" if again else RELEASE
        self._row(p, kind, origin, mid, (q.name,), payload, metadata)
        return p.clock

    def arrives(
        self, p: Process, q: Process, packet: Packet, shape: Shape, again: bool, stamp: int
    ) -> None:
        """Write the row of a packet that arrives."""
        q.clock = max(q.clock, stamp)
        origin, mid, payload = self._about(p, q, packet, shape)
        kind = f"{shape.sort}_receive"
        if shape.payload:
            kind = "duplicate" if again else RECEIVE
        self._row(q, kind, origin, mid, (p.name,), payload, shape.metadata(packet))

    def held(self, p: Process, message: SimMessage, destination: str) -> None:
        """Write what a message that is held at p waits for, if the protocol tells."""
        if not self._telling:
            return
        held = (message.origin.name, message.mid, destination)
        waits = next((b.waits for b in p.endpoint.blocked() if b[:3] == held), ())
        if waits and destination != p.name:
            self._row(p, LANE, p.name, message.mid, (destination,))
        for wait in waits if destination == p.name else ():
            self._row(p, HELD_FOR, wait.peer, wait.mid, (message.origin.name,))

    def drop(self, p: Process, q: Process, packet: Packet, shape: Shape) -> None:
        """Write the row of a packet that is lost."""
        origin, mid, payload = self._about(p, q, packet, shape)
        self._row(p, "drop", origin, mid, (q.name,), payload, shape.metadata(packet))

    def deliver(self, p: Process, message: SimMessage) -> None:
        """Write the row of a delivery."""
        origin = message.origin.name
        self._row(p, DELIVER, origin, message.mid, (origin,), message.size)

    def job(self, p: Process, message: SimMessage, kind: str) -> None:
        """Write the row of a job that begins or ends."""
        origin = message.origin.name
        self._row(p, kind, origin, message.mid, (origin,))

    def fault(self, p: Process, fault: Fault) -> None:
        """Write the row of a fault that concerns p."""
        self._row(p, f"fault_{fault.kind}", None, None, ())

    @staticmethod
    def _about(
        p: Process, q: Process, packet: Packet, shape: Shape
    ) -> tuple[str | None, int | None, int | None]:
        """Return the message that a packet from p to q is about, and the bytes of its payload."""
        if shape.payload:
            message: SimMessage = packet[shape.payload]
            return message.origin.name, message.mid, message.size
        if not shape.mid:
            return None, None, None
        if shape.sort == "control":
            return None, None, None
        return (q if shape.sort == "ack" else p).name, packet[shape.mid], None
