"""A run that a search has found, once more: on fresh endpoints, with names.

What a search hands over is a list of moves in terms of its tables. `Step` says
the same without them, and `Replay` takes the steps, one by one, with a payload
that names each message, and writes down everything that happens. A message is
named by its sender and number, as everywhere: p0:1 is the first one of p0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.endpoint import Delivery, Endpoint, Packet
from ..core.errors import CausewireError
from .driver import ArrivingRun, ChainedMessage, joined
from .event import FORGETS, PUMP, SEND, TICKS, Script
from .machine import Machine
from .obituaries import Headed, Member, opened
from .programs import Program
from .search import Way
from .setup import LOSS, REPEAT, Setup

__all__ = ["Happening", "Replay", "ReplayError", "Step", "steps_of"]


class ReplayError(CausewireError):
    """Steps that are not those of a run of this setup."""


class Step(NamedTuple):
    """One step of a run, without reference to any table."""

    kind: str
    """`send`, `receive`, `repeat` (and keep the packet), `lose`, `tick`, `pump`, `forget`
    (the process in `source`) or `round`."""
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
        elif move.event <= FORGETS:
            steps.append(Step("forget", process, FORGETS - move.event, None, move.script))
        elif move.event in (TICKS, PUMP):
            kind = "tick" if move.event == TICKS else "pump"
            steps.append(Step(kind, process, -1, None, move.script))
        else:
            source, packet = machine.actors[process].post.packets[process].values[move.event]
            kind = "repeat" if move.cost & REPEAT else "lose" if move.cost & LOSS else "receive"
            steps.append(Step(kind, process, source, _bare(packet), move.script))
    return steps


def _payload(packet: Packet) -> int:
    """Return where the payload of a packet is; 0 if there is no payload."""
    return 1 + packet.fields.index("payload") if "payload" in packet.fields else 0


def _bare(packet: Packet) -> tuple[Any, ...]:
    """Return a packet as it is compared with that of a `Step`: with 0 for its payload."""
    if isinstance(packet, Headed):
        return (packet[0], packet[1], _bare(packet[2]))
    if isinstance(packet, ArrivingRun):
        return (*packet[:3], (0,) * len(packet[1]), packet[4])
    at = _payload(packet)
    return (*packet[:at], 0, *packet[at + 1 :]) if at else tuple(packet)


class Happening(NamedTuple):
    """Something that happened, in the order in which it did."""

    step: int
    kind: str
    """`send`, `release`, `receive`, `deliver`, `drop`, `tick`, `pump`, `forget` or `stop`."""
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
        self.got = [0] * run.setup.processes
        """The messages of each process that were delivered here, as bits."""
        self.script: list[int] = []
        self.reactions: list[tuple[str, str]] = []
        """(delivered message, message sent inside that delivery)."""
        self.member = Member(index, run.setup.processes, run.setup.network)
        if run.driver.reacts:
            endpoint.on_delivery = self.delivers

    def send(self, inside: str | None = None) -> None:
        """Make the next send of the program."""
        run = self.run
        send = self.left.pop(0)
        mid = len(run.program[self.index]) - len(self.left)
        name = f"{run.names[self.index]}:{mid}"
        if inside is not None:
            self.reactions.append((inside, name))
        living = self.member.living(send.to)
        run.note("send", self.index, name, living)
        if not living:
            return
        to = [run.names[j] for j in living]
        self.endpoint.send(to[0] if len(to) == 1 else to, name)

    def learn(self, obituaries: int, source: int) -> None:
        """Forget processes; or stop, if this process is one of them."""

        def forget(k: int) -> None:
            self.run.note("forget", self.index, peers=(k,))
            self.endpoint.forget(self.run.names[k])

        self.member.learn(obituaries, source, forget)
        if self.member.stopped and self.left:
            self.left = []
            self.run.note("stop", self.index)

    def delivers(self, delivery: Delivery) -> None:
        """Record a delivery, and make the sends that react to it."""
        source = self.run.names.index(delivery.source)
        self.run.note("deliver", self.index, delivery.payload, (source,))
        self.got[source] |= 1 << int(delivery.payload.rpartition(":")[2])
        while self.run.driver.reacts and self.left and self.left[0].ready(self.got):
            if not (self.script.pop(0) if self.script else 0):
                break
            self.send(delivery.payload)


class Replay:
    """The steps of a run on fresh endpoints, and all that happens in it."""

    def __init__(
        self,
        setup: Setup,
        program: Program,
        steps: Sequence[Step],
        after: Callable[[Replay], None] | None = None,
    ) -> None:
        """Take the steps; `after` is called after each of them."""
        self.setup = setup
        self.program = program
        self.driver = setup.calls
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
                for client in self.clients:
                    hash(client.endpoint.value())  # which a search could not do without
            except ReplayError:
                raise
            except Exception as error:
                self.error = error
            if after is not None:
                after(self)
            if self.error is not None:
                break

    def pending(self) -> list[tuple[int, int]]:
        """Return source and destination of each packet that may still be received."""
        return [
            (flying.source, flying.destination)
            for flying in self._flying
            if flying.destination not in self.setup.network.frozen
            and not self.clients[flying.destination].member.stopped
            and self.clients[flying.destination].member.accepts(flying.source)
        ]

    def note(
        self,
        kind: str,
        process: int,
        message: str = "",
        peers: tuple[int, ...] = (),
        packet: Packet | None = None,
        number: int = -1,
    ) -> None:
        """Record what happened."""
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
        elif step.kind == "forget":
            client.learn(1 << step.source, step.process)
            self._collect(step.process)
        elif step.kind == "pump":
            self.note("pump", step.process)
            self._release(step.process)
        else:
            self._packet(step, client)

    def _tick(self, process: int) -> None:
        self.note("tick", process)
        self.clients[process].endpoint.retransmit()
        self._collect(process)

    def _packet(self, step: Step, client: Client) -> None:
        arriving = self._arriving(step)
        if step.kind != "repeat":
            for flying in arriving:
                self._flying.remove(flying)
        kind = "drop" if step.kind == "lose" else "receive"
        for flying in arriving:
            self._note_packet(kind, step.process, step.source, flying)
        if kind == "receive":
            packet = arriving[0].packet
            if isinstance(packet, ChainedMessage):
                packet = joined([flying.packet for flying in arriving])
            obituaries, inner = opened(packet)
            client.learn(obituaries, step.source)
            if inner is not None and client.member.accepts(step.source):
                self.driver.receive(client.endpoint, self.names[step.source], inner)
            self._collect(step.process)

    def _arriving(self, step: Step) -> list[_Flying]:
        """Return the packet of a step, or the packets, if messages arrive in a run."""
        link = [flying for flying in self._flying if flying[:2] == (step.source, step.process)]
        if step.packet is not None and step.packet[0] == ArrivingRun.kind:
            run = [each for each in link if isinstance(each.packet, ChainedMessage)]
            run = run[: len(step.packet[1])]
            if run and _bare(joined([each.packet for each in run])) == step.packet:
                return run
        else:
            for flying in link:
                if step.packet in (None, _bare(flying.packet)):
                    return [flying]
        raise ReplayError(f"step {self._step + 1}: no such packet on its way: {step}")

    def _collect(self, process: int) -> None:
        """Take what the endpoint has delivered, and what it releases in the same event."""
        client = self.clients[process]
        for delivery in client.endpoint.take_deliveries():
            client.delivers(delivery)
        if not self.driver.pumps:
            self._release(process)

    def _release(self, process: int) -> None:
        client = self.clients[process]
        taken = self.driver.take(client.endpoint)
        packets = [(self.names.index(name), packet) for name, packet in taken]
        for to, packet in client.member.outgoing(packets):
            number = self._links.get((process, to), 0)
            self._links[process, to] = number + 1
            flying = _Flying(process, to, number, packet)
            self._flying.append(flying)
            self._note_packet("release", process, to, flying)

    def _note_packet(self, kind: str, process: int, peer: int, flying: _Flying) -> None:
        inner = opened(flying.packet)[1]
        at = 0 if inner is None else _payload(inner)
        message = str(inner[at]) if at and inner is not None else ""
        self.note(kind, process, message, (peer,), flying.packet, flying.number)
