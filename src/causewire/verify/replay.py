"""A run that a search has found, once more: on fresh endpoints, with names.

What a search hands over is a list of moves in terms of its tables. `Step` says
the same without them, and `Replay` takes the steps, one by one, with a payload
that names each message, and writes down everything that happens. A message is
named by its sender and number, as everywhere: p0:1 is the first one of p0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.endpoint import Delivery, Endpoint, Packet
from ..core.errors import CausewireError
from .event import SEND, TICKS, Script
from .machine import Machine
from .programs import Program
from .search import Way
from .setup import LOSS, REPEAT, Setup

__all__ = ["Happening", "Replay", "ReplayError", "Step", "steps_of"]


class ReplayError(CausewireError):
    """Steps that are not those of a run of this setup."""


class Step(NamedTuple):
    """One step of a run, without reference to any table."""

    kind: str
    """`send`, `receive`, `repeat` (and keep the packet), `lose`, `tick`, or `round`."""
    process: int
    source: int
    """Where the packet comes from; -1 if there is none."""
    packet: Any
    """The packet, with 0 for its payload; None if there is none, or for the oldest."""
    script: Script
    """What the client chose, wherever it had a choice."""


def steps_of(machine: Machine, way: Way) -> list[Step]:
    """The steps of a run of a machine."""
    steps = []
    for process, move in way:
        if move is None:
            steps.append(Step("round", -1, -1, None, ()))
        elif move.event == SEND:
            steps.append(Step("send", process, -1, None, move.script))
        elif move.event == TICKS:
            steps.append(Step("tick", process, -1, None, move.script))
        else:
            source, packet = machine.actors[process].post.packets[process].values[move.event]
            kind = "repeat" if move.cost & REPEAT else "lose" if move.cost & LOSS else "receive"
            steps.append(Step(kind, process, source, _bare(packet), move.script))
    return steps


def _payload(packet: Packet) -> int:
    """Where the payload of a packet is; 0 if it has none."""
    fields = type(packet).fields
    return 1 + fields.index("payload") if "payload" in fields else 0


def _bare(packet: Packet) -> tuple[Any, ...]:
    """A packet as it is compared with that of a `Step`: with 0 for its payload."""
    at = _payload(packet)
    return (*packet[:at], 0, *packet[at + 1 :]) if at else tuple(packet)


class Happening(NamedTuple):
    """Something that happened, in the order in which it did."""

    step: int
    kind: str
    """`send`, `release`, `receive`, `deliver`, `drop` or `tick`."""
    process: int
    message: str = ""
    """The message that it is about, by name."""
    peers: tuple[int, ...] = ()
    packet: Packet | None = None
    number: int = -1
    """Which packet of its link this is, from 0."""


class _Flying(NamedTuple):
    source: int
    destination: int
    number: int
    packet: Packet


class Client:
    """The application of one process, which follows a script."""

    def __init__(self, run: Replay, index: int, endpoint: Endpoint) -> None:
        self.run = run
        self.index = index
        self.endpoint = endpoint
        self.left = list(run.program[index])
        self.delivered = 0
        self.script: list[int] = []
        self.reactions: list[tuple[str, str]] = []
        """(delivered message, message sent inside that delivery)."""
        endpoint.on_delivery = self._on_delivery

    def send(self, inside: str | None = None) -> None:
        run = self.run
        send = self.left.pop(0)
        mid = len(run.program[self.index]) - len(self.left)
        name = f"{run.names[self.index]}:{mid}"
        if inside is not None:
            self.reactions.append((inside, name))
        run.note("send", self.index, name, send.to)
        to = [run.names[j] for j in send.to]
        self.endpoint.send(to[0] if len(to) == 1 else to, name)

    def _on_delivery(self, delivery: Delivery) -> None:
        self.delivered += 1
        source = self.run.names.index(delivery.source)
        self.run.note("deliver", self.index, delivery.payload, (source,))
        while self.left and self.left[0].after <= self.delivered:
            if not (self.script.pop(0) if self.script else 0):
                break
            self.send(delivery.payload)


class Replay:
    """The steps of a run on fresh endpoints, and all that happens in it."""

    def __init__(self, setup: Setup, program: Program, steps: Sequence[Step]) -> None:
        self.setup = setup
        self.program = program
        self.names = setup.names
        self.happened: list[Happening] = []
        self.error: Exception | None = None
        """What an endpoint raised; the run ends there."""
        self._step = -1
        self._links: dict[tuple[int, int], int] = {}
        self._flying: list[_Flying] = []
        self.clients = [Client(self, i, setup.endpoint(i)) for i in range(setup.processes)]
        for self._step, step in enumerate(steps):
            try:
                self._take(step)
            except ReplayError:
                raise
            except Exception as error:
                self.error = error
                break

    def note(
        self,
        kind: str,
        process: int,
        message: str = "",
        peers: tuple[int, ...] = (),
        packet: Packet | None = None,
        number: int = -1,
    ) -> None:
        self.happened.append(Happening(self._step, kind, process, message, peers, packet, number))

    def _take(self, step: Step) -> None:
        if step.kind == "round":
            for i in range(self.setup.processes):
                self._tick(i)
            return
        client = self.clients[step.process]
        client.script = list(step.script)
        if step.kind == "send":
            client.script.pop(0)  # that it sends now
            client.send()
            self._collect(step.process)
        elif step.kind == "tick":
            self._tick(step.process)
        else:
            self._packet(step, client)

    def _tick(self, process: int) -> None:
        self.note("tick", process)
        self.clients[process].endpoint.retransmit()
        self._collect(process)

    def _packet(self, step: Step, client: Client) -> None:
        link = (step.source, step.process)
        for flying in self._flying:
            if flying[:2] == link and step.packet in (None, _bare(flying.packet)):
                break
        else:
            raise ReplayError(f"step {self._step + 1}: no such packet on its way: {step}")
        if step.kind != "repeat":
            self._flying.remove(flying)
        kind = "drop" if step.kind == "lose" else "receive"
        self._note_packet(kind, step.process, step.source, flying)
        if kind == "receive":
            client.endpoint.receive(self.names[step.source], flying.packet)
            self._collect(step.process)

    def _collect(self, process: int) -> None:
        for name, packet in self.clients[process].endpoint.take_packets():
            to = self.names.index(name)
            number = self._links.get((process, to), 0)
            self._links[process, to] = number + 1
            flying = _Flying(process, to, number, packet)
            self._flying.append(flying)
            self._note_packet("release", process, to, flying)

    def _note_packet(self, kind: str, process: int, peer: int, flying: _Flying) -> None:
        at = _payload(flying.packet)
        message = str(flying.packet[at]) if at else ""
        self.note(kind, process, message, (peer,), flying.packet, flying.number)
