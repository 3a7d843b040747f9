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

**Stations are odd or even.** An odd one has something in it that may still lead to a
violation of causal order; it is *hot* (see `ghost`). So the state of a whole system
shows with one operation whether it is worth while to go on.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Hashable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ..core.endpoint import Delivery, Endpoint, Packet
from .ghost import HERE, ONWARD, Ghost, Marked, Tag, tags_in, untainted
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
        self._heats: list[dict[int, int]] = [{} for _ in range(n)]

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

    def heat(self, j: int, inbox: int) -> int:
        """What the messages in an inbox may lead to, all together."""
        heat = self._heats[j].get(inbox)
        if heat is None:
            heat = 0
            queues = self.inboxes[j].values[inbox]
            for packet in chain.from_iterable(queues) if self.setup.network.fifo else queues:
                for tag in tags_in(self.packets[j].values[packet][1]):
                    heat |= Marked.heat(tag.taint, self.setup.processes, j)
            self._heats[j][inbox] = heat
        return heat

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
    out: int = 0
    """The copies of own messages that have left, as bits."""
    touched: bool = False
    """Whether a taint has ever been here; if not, there is none to look for."""

    @property
    def delivered(self) -> int:
        return sum(bits.bit_count() for bits in self.got)


class Stations:
    """Local states with inboxes, as numbers: odd for those that are hot."""

    __slots__ = ("_next", "ids", "values")

    def __init__(self) -> None:
        self.ids: dict[tuple[int, int], int] = {}
        self.values: list[tuple[int, int]] = []
        self._next = [0, 1]

    def number(self, station: tuple[int, int], hot: bool) -> int:
        k = self.ids[station] = self._next[hot]
        self._next[hot] += 2
        while len(self.values) <= k:
            self.values.append(station)
        self.values[k] = station
        return k


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
        forget: bool = True,
        judged: Collection[str] = PROPERTIES,
    ) -> None:
        self.post = post
        self.forget = forget and ghost.marks and post.setup.network.silent
        """Whether what is written on messages that have left is forgotten."""
        self.judged = frozenset(judged)
        """What counts as a violation."""
        self.index = index
        self.program = program
        self.ghost = ghost
        self.merge_reactions = merge_reactions
        self.names = post.setup.names
        self.numbers = {name: k for k, name in enumerate(self.names)}
        self.locals: list[Local] = []
        self.hot: list[bool] = []
        """By local state: whether it may lead to a violation, whatever the inbox."""
        self.ids: dict[Hashable, int] = {}
        self.stations = Stations()
        self.calls = 0
        """How often the endpoint was called."""
        self._outcomes: dict[tuple[int, int], tuple[Outcome, ...]] = {}
        self._moves: dict[int, list[Move]] = {}
        self._adds: dict[tuple[int, int], int] = {}
        self._to_come = [
            frozenset(j for send in program[len(program) - left :] for j in send.to)
            for left in range(len(program) + 1)
        ]
        """By the number of sends that are left: where they go."""
        start = post.setup.endpoint(index)
        none = (0,) * len(self.names)
        local = self._number(Local(start, len(program), none, ghost.initial))
        self.initial = self.station(local, post.empty)

    # -- local states ---------------------------------------------------------

    def _number(self, local: Local) -> int:
        ghost = self.ghost.fades(local.ghost, self._to_come[local.left])
        if ghost != local.ghost:
            local = local._replace(ghost=ghost)
        key = self.key(local)
        k = self.ids.get(key)
        if k is None:
            k = self.ids[key] = len(self.locals)
            self.locals.append(local)
            self.hot.append(self._holds_heat(local, key[0]))
        return k

    def key(self, local: Local) -> tuple[Hashable, ...]:
        """What two local states must have in common to be one.

        What is written on a message may be forgotten by a sender that never sends it
        again; and by a receiver that has nothing more to send, if it is about others.
        """
        value = local.endpoint._value()
        if self.forget and local.touched:
            value = untainted(value, partial(self._is_dead, local))
        return (value, local.left, local.got, local.ghost, local.out)

    def _is_dead(self, local: Local, tag: Tag) -> bool:
        if tag.sender == self.index:
            return not self.copies(tag.mid) & ~local.out
        return not local.left and Marked.heat(tag.taint, len(self.names), self.index) == ONWARD

    def copies(self, mid: int) -> int:
        """The copies of a message that are to leave, as bits."""
        n = len(self.names)
        bits = sum(1 << j for j in self.program[mid - 1].to if j != self.index)
        return bits << n * (mid - 1)

    def _holds_heat(self, local: Local, value: Hashable) -> bool:
        """Whether what a process knows, or has in its buffers, may lead to a violation."""
        if not local.touched:
            return False
        if local.ghost:
            return True
        for tag in tags_in(value):
            to = self.program[tag.mid - 1].to if tag.sender == self.index else (self.index,)
            for j in to:
                heat = Marked.heat(tag.taint, len(self.names), j)
                if heat == HERE or (heat == ONWARD and (j != self.index or local.left)):
                    return True
        return False

    def is_hot(self, local: int, inbox: int) -> bool:
        """Whether anything at a station may still lead to a violation of causal order."""
        if self.hot[local] or not self.ghost.marks:
            return self.hot[local]
        heat = self.post.heat(self.index, inbox)
        return bool(heat & HERE or (heat & ONWARD and self.locals[local].left))

    def outcomes(self, local: int, event: int) -> tuple[Outcome, ...]:
        """All that may come of an event; the one with the fewest sends comes first."""
        key = (local, event)
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = tuple(self._run_all(local, event))
        return known

    def known_events(self) -> Iterable[tuple[int, int]]:
        """The local states and events that were looked at so far."""
        return self._outcomes.keys()

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
        return self.station_at(local, self.post.inboxes[self.index](inbox))

    def station_at(self, local: int, inbox: int) -> int:
        """The station of a local state and the number of an inbox."""
        k = self.stations.ids.get((local, inbox))
        if k is None:
            k = self.stations.number((local, inbox), self.is_hot(local, inbox))
        return k

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
        bundles = tuple(
            [(j, self.post.bundles[j](sent)) for j, sent in outcome.sent if j != self.index]
        )
        for j, sent in outcome.sent:
            if j == self.index:  # no protocol that is right sends itself packets
                inbox = self.post.put(j, inbox, sent)
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
        "out",
        "over",
        "script",
        "touched",
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
        self.out = local.out
        self.touched = local.touched
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
                self.touched |= any(tag.taint for tag in tags_in(packet))
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
            if actor.forget:
                self._left(j, packet)
        if not actor.post.setup.network.fifo:
            for numbers in sent.values():
                numbers.sort()
        if self.violation is not None and self.violation.startswith("error"):
            k = 0
        else:
            touched = actor.ghost.marks and (self.touched or self.marked)
            k = actor._number(
                Local(endpoint, self.left, tuple(self.got), self.ghost, self.out, touched)
            )
        return Outcome(
            k,
            tuple(sorted((j, tuple(numbers)) for j, numbers in sent.items())),
            MARK if self.marked else FREE,
            tuple(self.choices),
            self.over,
            self.violation,
        )

    def _left(self, j: int, packet: Packet) -> None:
        """A packet has left: what is written on its message may be forgotten here."""
        for tag in tags_in(packet):
            if tag.sender != self.actor.index:
                continue
            bit = 1 << len(self.actor.names) * (tag.mid - 1) + j
            if self.out & bit:
                raise RuntimeError(f"{packet} leaves a second time: do not use `forget`")
            self.out |= bit

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
        taint, self.ghost = actor.ghost.sends(self.ghost, actor.index, mid, to, mark)
        names = actor.names[to[0]] if len(to) == 1 else [actor.names[j] for j in to]
        self.endpoint.send(names, Tag(actor.index, mid, taint))

    def _delivered(self, delivery: Delivery) -> None:
        """Judged by what was sent, and by whom: not by what the protocol says of it."""
        source, mid, taint = delivery.payload
        bit = 1 << mid
        got = self.got[source]
        judged = self.actor.judged
        if self.violation is None and not self.over:
            if got & bit and "duplicate" in judged:
                self.violation = "duplicate"
            elif got > bit and "FIFO order" in judged:
                self.violation = "FIFO order"
            else:
                seen = self.actor.ghost.delivers(self.ghost, self.actor.index, source, mid, taint)
                self.ghost, violation, self.over = seen
                if violation in judged:
                    self.violation = violation
        self.got[source] = got | bit
        while (options := self._options()) > 1:
            how = self._choose(options)
            if not how:
                break
            self._send(how)
