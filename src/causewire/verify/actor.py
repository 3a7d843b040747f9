"""One process of the system, as tables: what each event does to it.

What a step does depends on nothing but the local state of one process and on the
event. So it is done once, on a copy of the endpoint, and remembered: a *local
state* is a number, and a table tells which local states an event leads to, and
which packets come out. The endpoint is the one that runs in a node, unchanged;
it is told apart from others by what it says of itself (`_value`).

A *station* is a local state with what lies in the inbox, a number again. With
one station for each process, and the phase, a state of the whole system is a few
small numbers, and its successors are look-ups:

    moves(station)          what may happen here: the station after it, and the
                            packets that leave, as one bundle for each receiver
    add(station, bundle)    the station after packets have come into the inbox

**The client.** It makes the sends of its program in order, at any moment: as an
event of its own, or inside a delivery, of which a handler may have several. An
event with deliveries therefore has an outcome for each way to spread sends over
them. The way taken is the outcome's *script*, a number at each point at which
there was a choice: 0 for going on, 1 to send, 2 and up to send and mark a copy. To
find all, an event is run again and again, each time with the choices of some
outcome so far up to one point, and another choice there.

To send at the end of the last delivery and to send after the handler has returned
is most often the same. Where it is (the state and the packets are compared, each
time), the former is left out of the moves: it leads nowhere that two moves do not
lead. That is the first of the reductions, `merge_reactions`.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Hashable, Iterator
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..core.endpoint import Delivery, Endpoint, Packet
from .ghost import Ghost
from .setup import FREE, LOSS, MARK, PROPERTIES, REPEAT, TICK, Setup
from .workloads import Program

__all__ = [
    "SEND",
    "TICKS",
    "Actor",
    "Local",
    "Move",
    "Numbering",
    "Outcome",
    "Post",
    "Script",
    "Sent",
]

T = TypeVar("T", bound=Hashable)

SEND = -1
TICKS = -2
"""Events that are no packets."""

Script: TypeAlias = tuple[int, ...]

Sent: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""Packets that leave, by destination: in the order of release on FIFO channels."""


class Numbering(Generic[T]):
    """Values as numbers, in the order in which they turn up."""

    __slots__ = ("ids", "values")

    def __init__(self) -> None:
        self.ids: dict[T, int] = {}
        self.values: list[T] = []

    def __call__(self, value: T) -> int:
        k = self.ids.get(value)
        if k is None:
            k = self.ids[value] = len(self.values)
            self.values.append(value)
        return k

    def __len__(self) -> int:
        return len(self.values)


Inbox: TypeAlias = tuple[Any, ...]
"""Packets by number, sorted; or, on FIFO channels, a queue of them for each sender."""


class Post:
    """Packets, bundles and inboxes of all processes, as numbers.

    Shared by all workloads, so that stations of one can be stations of another.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        n = setup.processes
        self.packets: list[Numbering[tuple[int, Packet]]] = [Numbering() for _ in range(n)]
        """For each destination: sender and packet."""
        self.bundles: list[Numbering[tuple[int, ...]]] = [Numbering() for _ in range(n)]
        self.inboxes: list[Numbering[Inbox]] = [Numbering() for _ in range(n)]
        self.empty: Inbox = ((),) * n if setup.network.fifo else ()

    def put(self, j: int, inbox: Inbox, packets: tuple[int, ...]) -> Inbox:
        """The inbox of process j with packets added."""
        if not self.setup.network.fifo:
            return tuple(sorted(inbox + packets))
        queues = list(inbox)
        for packet in packets:
            sender = self.packets[j].values[packet][0]
            queues[sender] = (*queues[sender], packet)
        return tuple(queues)

    def ready(self, inbox: Inbox) -> Iterator[tuple[int, Inbox]]:
        """What may be taken next from an inbox, and what it leaves behind."""
        if self.setup.network.fifo:
            for sender, queue in enumerate(inbox):
                if queue:
                    yield queue[0], (*inbox[:sender], queue[1:], *inbox[sender + 1 :])
        else:
            for k, packet in enumerate(inbox):
                if not k or inbox[k - 1] != packet:
                    yield packet, inbox[:k] + inbox[k + 1 :]

    def merged(self, first: Sent, then: Sent) -> Sent:
        """What two steps in a row put on the network."""
        if not first or not then:
            return first or then
        sent = dict(first)
        for j, packets in then:
            both = sent.get(j, ()) + packets
            sent[j] = both if self.setup.network.fifo else tuple(sorted(both))
        return tuple(sorted(sent.items()))


class Local(NamedTuple):
    """A local state: the endpoint, and what client and ghost keep beside it."""

    endpoint: Endpoint
    left: int
    """Sends of the program that are still to come."""
    got: tuple[int, ...]
    """For each sender, which of its messages were delivered here, as bits."""
    ghost: Hashable

    @property
    def delivered(self) -> int:
        return sum(bits.bit_count() for bits in self.got)


class Outcome(NamedTuple):
    """One of the things that come of an event."""

    local: int
    sent: Sent
    cost: int
    script: Script
    over: bool = False
    violation: str | None = None


class Move(NamedTuple):
    """One of the things that may happen at a station."""

    event: int
    script: Script
    cost: int
    station: int
    bundles: tuple[tuple[int, int], ...]
    """Destination and number of the bundle that leaves for it."""
    over: bool
    violation: str | None


class Actor:
    """The tables of one process with one program."""

    def __init__(
        self,
        post: Post,
        index: int,
        program: Program,
        ghost: Ghost,
        *,
        merge_reactions: bool = True,
        judged: Collection[str] = PROPERTIES,
    ) -> None:
        self.post = post
        self.judged = frozenset(judged)
        """What counts as a violation."""
        self.index = index
        self.program = program
        self.ghost = ghost
        self.merge_reactions = merge_reactions
        self.names = post.setup.names
        self.numbers = {name: k for k, name in enumerate(self.names)}
        self.locals: list[Local] = []
        self.ids: dict[Hashable, int] = {}
        self.stations: Numbering[tuple[int, int]] = Numbering()
        self.calls = 0
        """How often the endpoint was called."""
        self._outcomes: dict[tuple[int, int], tuple[Outcome, ...]] = {}
        self._moves: dict[int, list[Move]] = {}
        self._adds: dict[tuple[int, int], int] = {}
        start = post.setup.endpoint(index)
        none = (0,) * len(self.names)
        local = self._number(Local(start, len(program), none, ghost.initial))
        self.initial = self.station(local, post.empty)

    # -- local states ---------------------------------------------------------

    def _number(self, local: Local) -> int:
        if not local.left:
            local = local._replace(ghost=self.ghost.silent(local.ghost))
        key = self.key(local)
        k = self.ids.get(key)
        if k is None:
            k = self.ids[key] = len(self.locals)
            self.locals.append(local)
        return k

    @staticmethod
    def key(local: Local) -> Hashable:
        """What two local states must have in common to be one."""
        return (local.endpoint._value(), local.left, local.got, local.ghost)

    def outcomes(self, local: int, event: int) -> tuple[Outcome, ...]:
        """All that may come of an event; the one with the fewest sends comes first."""
        key = (local, event)
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = tuple(self._run_all(local, event))
        return known

    def _run_all(self, local: int, event: int) -> Iterator[Outcome]:
        seen = set()
        scripts: list[Script] = [()]
        for script in scripts:
            run = _Run(self, self.locals[local], script)
            outcome = run.perform(event)
            self.calls += 1
            scripts += run.others
            if outcome[:3] + outcome[4:] not in seen:
                seen.add(outcome[:3] + outcome[4:])
                yield outcome

    def sends_now(self, local: int) -> bool:
        """Whether the client may make its next send."""
        state = self.locals[local]
        return bool(state.left) and self.next_send(state).after <= state.delivered

    def next_send(self, state: Local) -> Any:
        return self.program[len(self.program) - state.left]

    def said_after(self, local: int, outcome: Outcome, all_of_it: tuple[Outcome, ...]) -> bool:
        """Whether an outcome is another one, with one send less, and then that send."""
        script = _trimmed(outcome.script)
        if not script or outcome.violation is not None:
            return False
        shorter = _trimmed(script[:-1])
        for other in all_of_it:
            if _trimmed(other.script) == shorter and other.violation is None and not other.over:
                for then in self.outcomes(other.local, SEND):
                    if (
                        then.local == outcome.local
                        and then.cost | other.cost == outcome.cost
                        and then.over == outcome.over
                        and then.violation is None
                        and self.post.merged(other.sent, then.sent) == outcome.sent
                    ):
                        return True
        return False

    # -- stations -------------------------------------------------------------

    def station(self, local: int, inbox: Inbox) -> int:
        return self.stations((local, self.post.inboxes[self.index](inbox)))

    def inbox(self, station: int) -> Inbox:
        return self.post.inboxes[self.index].values[self.stations.values[station][1]]

    def local(self, station: int) -> Local:
        return self.locals[self.stations.values[station][0]]

    def moves(self, station: int) -> list[Move]:
        """All that may happen at a station."""
        moves = self._moves.get(station)
        if moves is None:
            moves = self._moves[station] = list(self._all_moves(station))
        return moves

    def _all_moves(self, station: int) -> Iterator[Move]:
        local = self.stations.values[station][0]
        inbox = self.inbox(station)
        network = self.post.setup.network
        if self.sends_now(local):
            yield from self._of_event(local, SEND, inbox, FREE)
        if network.ticks:
            yield from self._of_event(local, TICKS, inbox, TICK)
        for packet, rest in self.post.ready(inbox):
            yield from self._of_event(local, packet, rest, FREE)
            if network.duplicates:
                yield from self._of_event(local, packet, inbox, REPEAT)
            if network.loss:
                yield Move(packet, (), LOSS, self.station(local, rest), (), False, None)

    def _of_event(self, local: int, event: int, inbox: Inbox, cost: int) -> Iterator[Move]:
        outcomes = self.outcomes(local, event)
        for outcome in outcomes:
            if event == SEND or self.counts(local, outcome, outcomes):
                yield self.move(event, outcome, inbox, cost)

    def counts(self, local: int, outcome: Outcome, all_of_it: tuple[Outcome, ...]) -> bool:
        """Whether an outcome is among the moves, or left to two moves in a row."""
        return not (self.merge_reactions and self.said_after(local, outcome, all_of_it))

    def move(self, event: int, outcome: Outcome, inbox: Inbox, cost: int = FREE) -> Move:
        bundles = tuple([(j, self.post.bundles[j](packets)) for j, packets in outcome.sent])
        station = self.station(outcome.local, inbox)
        return Move(
            event,
            outcome.script,
            outcome.cost | cost,
            station,
            bundles,
            outcome.over,
            outcome.violation,
        )

    def add(self, station: int, bundle: int) -> int:
        """The station after a bundle of packets has come in."""
        key = (station, bundle)
        k = self._adds.get(key)
        if k is None:
            local, _ = self.stations.values[station]
            packets = self.post.bundles[self.index].values[bundle]
            inbox = self.post.put(self.index, self.inbox(station), packets)
            k = self._adds[key] = self.station(local, inbox)
        return k

    # -- the end --------------------------------------------------------------

    def unfinished(self, station: int, expected: int) -> str | None:
        """What is wrong if nothing more happens; None if all is done."""
        state = self.local(station)
        if state.delivered < expected:
            return "undelivered"
        if state.left:
            return "unsent"
        if not state.endpoint.idle:
            return "left over"
        return None


def _trimmed(script: Script) -> Script:
    """A script without the choices at its end to do nothing."""
    end = len(script)
    while end and not script[end - 1]:
        end -= 1
    return script[:end]


class _Run:
    """One event, with the client's choices given as far as `script` goes."""

    __slots__ = (
        "actor",
        "choices",
        "endpoint",
        "ghost",
        "got",
        "left",
        "marked",
        "others",
        "over",
        "script",
        "violation",
    )

    def __init__(self, actor: Actor, local: Local, script: Script) -> None:
        self.actor = actor
        self.script = script
        self.choices: list[int] = []
        self.others: list[Script] = []
        self.endpoint = copy.copy(local.endpoint)
        self.endpoint.on_delivery = self._delivered
        self.left = local.left
        self.got = list(local.got)
        self.ghost = local.ghost
        self.marked = False
        self.over = False
        self.violation: str | None = None

    def perform(self, event: int) -> Outcome:
        actor = self.actor
        endpoint = self.endpoint
        try:
            if event == SEND:
                self._send(self._choose(self._options() - 1) + 1)
            elif event == TICKS:
                endpoint.retransmit()
            else:
                sender, packet = actor.post.packets[actor.index].values[event]
                endpoint.receive(actor.names[sender], packet)
            packets = endpoint.take_packets()
        except Exception as error:
            self.violation = f"error: {type(error).__name__}: {error}"
            packets = []
        endpoint.on_delivery = None
        sent: dict[int, list[int]] = {}
        for name, packet in packets:
            j = actor.numbers[name]
            sent.setdefault(j, []).append(actor.post.packets[j]((actor.index, packet)))
        if not actor.post.setup.network.fifo:
            for numbers in sent.values():
                numbers.sort()
        if self.violation is not None and self.violation.startswith("error"):
            k = 0
        else:
            k = actor._number(Local(endpoint, self.left, tuple(self.got), self.ghost))
        return Outcome(
            k,
            tuple(sorted((j, tuple(numbers)) for j, numbers in sent.items())),
            MARK if self.marked else FREE,
            tuple(self.choices),
            self.over,
            self.violation,
        )

    def _options(self) -> int:
        """How many ways there are to go on: not sending, sending, marking."""
        program = self.actor.program
        if not self.left:
            return 1
        send = program[len(program) - self.left]
        if send.after > sum(bits.bit_count() for bits in self.got):
            return 1
        return 2 + len(self._may_mark())

    def _may_mark(self) -> list[int]:
        """Which copies of the next message may be marked."""
        if self.marked:
            return []
        actor = self.actor
        mid = len(actor.program) - self.left + 1
        return actor.ghost.may_mark(self.ghost, actor.index, mid, actor.program[mid - 1].to)

    def _choose(self, options: int) -> int:
        k = len(self.choices)
        if k < len(self.script):
            self.choices.append(self.script[k])
        else:
            self.others += [(*self.choices, other) for other in range(1, options)]
            self.choices.append(0)
        return self.choices[-1]

    def _send(self, how: int) -> None:
        actor = self.actor
        mark = self._may_mark()[how - 2] if how > 1 else None
        self.marked |= mark is not None
        self.left -= 1
        mid = len(actor.program) - self.left
        to = actor.program[mid - 1].to
        payload, self.ghost = actor.ghost.sends(self.ghost, actor.index, mid, to, mark)
        names = actor.names[to[0]] if len(to) == 1 else [actor.names[j] for j in to]
        self.endpoint.send(names, payload)

    def _delivered(self, delivery: Delivery) -> None:
        source = self.actor.numbers[delivery.source]
        bit = 1 << delivery.mid
        got = self.got[source]
        judged = self.actor.judged
        if self.violation is None and not self.over:
            if got & bit and "duplicate" in judged:
                self.violation = "duplicate"
            elif got > bit and "FIFO order" in judged:
                self.violation = "FIFO order"
            else:
                seen = self.actor.ghost.delivers(
                    self.ghost, self.actor.index, source, delivery.mid, delivery.payload
                )
                self.ghost, violation, self.over = seen
                if violation in judged:
                    self.violation = violation
        self.got[source] = got | bit
        while (options := self._options()) > 1:
            how = self._choose(options)
            if not how:
                break
            self._send(how)
