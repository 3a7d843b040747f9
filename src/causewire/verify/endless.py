"""Processes that never stop sending, as a finite system.

A *round* is what a process sends again and again: its destinations, in order. A
sender sends when nothing of its own is held; one process, the victim, goes
through its list only once. Channels are FIFO.

What makes it finite: message numbers are compared relative to each other
(`renumber`), and a step that would put more than `window` packets into a channel
is left out.

A state contains no endpoints, but their descriptions: shapes and numbers. What a step
does depends on the shape of one process, on the shape of the packet that it gets, and on
the differences between their numbers. So each step is computed once, on an endpoint of
that shape, and remembered for all endpoints that differ from it by a shift of numbers.
(A packet may be about a message that is older than any message this endpoint knows, so
that the shifted number would be below 1. Then the run that led to the state is repeated,
to get the endpoint as it really is.)
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from ..core.endpoint import Endpoint, Packet
from .programs import Program, Send
from .renumber import Described, canonical, described, described_packet, with_numbers
from .replay import Replay, Step
from .setup import Setup

__all__ = ["VICTIM", "EndlessSystem", "State", "Turn"]

VICTIM = 0

Queue: TypeAlias = tuple[Described, ...]


class Turn(NamedTuple):
    """One step: a process sends its next message, or a channel is read."""

    process: int
    source: int
    """Whose channel is read; -1 for a send."""


class State(NamedTuple):
    """A state of the whole system."""

    endpoints: tuple[Described, ...]
    channels: tuple[Queue, ...]
    """By source and destination: n * source + destination."""
    phases: tuple[int, ...]
    """Where each sender is in its round; for the victim, how many it has sent."""
    held: tuple[bool, ...]
    """For each process, whether a message of its own waits there."""
    before: tuple[State, Turn] | None = None
    """How it came to be, one of the ways."""

    def key(self) -> Hashable:
        """Return a value that equivalent states share."""
        parts = [*self.endpoints, *(packet for queue in self.channels for packet in queue)]
        return (canonical(parts), tuple(map(len, self.channels)), self.phases)

    def way(self) -> list[Turn]:
        """The steps that led here."""
        turns = []
        before = self.before
        while before is not None:
            turns.append(before[1])
            before = before[0].before
        return turns[::-1]


class _Done(NamedTuple):
    """What a step does: the process after it, and the packets that leave."""

    endpoint: Described
    held: bool
    sent: tuple[tuple[int, Described], ...]


class EndlessSystem:
    """The processes, what they send, and the steps from a state."""

    def __init__(self, setup: Setup, rounds: Sequence[Sequence[int]], window: int) -> None:
        self.setup = setup
        self.n = setup.processes
        self.names = setup.names
        self.rounds = rounds
        self.window = window
        self._shapes: dict[Hashable, int] = {}
        self._endpoints: dict[Hashable, tuple[Endpoint, Described]] = {}
        """By process and what it is compared by: an endpoint like that."""
        self._packets: dict[Hashable, Packet] = {}
        """By shape: a packet like that."""
        self._done: dict[Hashable, tuple[_Done, dict[str, int]]] = {}
        self.initial = State(
            tuple([self._known(i, setup.endpoint(i)) for i in range(self.n)]),
            ((),) * (self.n * self.n),
            (0,) * self.n,
            (False,) * self.n,
        )

    def _numbered(self, apart: Described) -> Described:
        """The same with a number in place of the shape, which is quicker to compare."""
        return Described(self._shapes.setdefault(apart.shape, len(self._shapes)), apart.numbers)

    def _known(self, i: int, endpoint: Endpoint) -> Described:
        apart = self._numbered(described(endpoint))
        key = (i, canonical([apart]))
        if key not in self._endpoints:
            self._endpoints[key] = (endpoint, apart)
        return apart

    # -- steps ----------------------------------------------------------------

    def turns(self, state: State) -> Iterator[tuple[Turn, State]]:
        """All steps, and the states that they lead to, as far as the window allows."""
        turns = [Turn(i, -1) for i in range(self.n) if self._may_send(state, i)]
        for k, queue in enumerate(state.channels):
            if queue:
                source, i = divmod(k, self.n)
                turns.append(Turn(i, source))
        for turn in turns:
            then = self.after(state, turn)
            if then is not None:
                yield turn, then

    def _may_send(self, state: State, i: int) -> bool:
        if i == VICTIM:
            return state.phases[i] < len(self.rounds[i])
        return bool(self.rounds[i]) and not state.held[i]

    def after(self, state: State, turn: Turn) -> State | None:
        """The state after a step; None if a channel would get too full."""
        i, source = turn
        channels = list(state.channels)
        phases = state.phases
        if source < 0:
            to = self.rounds[i][phases[i]]
            done = self._do(i, state, to)
            phase = phases[i] + 1
            if i != VICTIM:
                phase %= len(self.rounds[i])
            phases = (*phases[:i], phase, *phases[i + 1 :])
        else:
            k = self.n * source + i
            done = self._do(i, state, source, channels[k][0])
            channels[k] = channels[k][1:]
        for to, left in done.sent:
            k = self.n * i + to
            if len(channels[k]) == self.window:
                return None
            channels[k] = (*channels[k], left)
        endpoints = (*state.endpoints[:i], done.endpoint, *state.endpoints[i + 1 :])
        held = (*state.held[:i], done.held, *state.held[i + 1 :])
        return State(endpoints, tuple(channels), phases, held, (state, turn))

    # -- one process ----------------------------------------------------------

    def _do(self, i: int, state: State, peer: int, packet: Described | None = None) -> _Done:
        """What it does to send to a process, or to get a packet from it."""
        endpoint = state.endpoints[i]
        parts = (endpoint,) if packet is None else (endpoint, packet)
        key = (i, peer, canonical(parts))
        oldest = _oldest(parts)
        known = self._done.get(key)
        if known is None:
            real, shift = self._like(i, endpoint)
            for sender, number in oldest.items():
                shift.setdefault(sender, 1 - number)
            if any(number + shift[sender] < 1 for sender, number in oldest.items()):
                real, shift = self.replay(state.way()).clients[i].endpoint, dict.fromkeys(oldest, 0)
            base = {sender: number + shift[sender] for sender, number in oldest.items()}
            known = self._done[key] = (self._really(i, real, peer, packet, shift), base)
        done, base = known
        back = {sender: oldest[sender] - number for sender, number in base.items()}
        if not any(back.values()):
            return done
        sent = tuple([(to, _shifted(left, back)) for to, left in done.sent])
        return _Done(_shifted(done.endpoint, back), done.held, sent)

    def _like(self, i: int, endpoint: Described) -> tuple[Endpoint, dict[str, int]]:
        """A process that looks like that, and by how much its numbers differ."""
        real, apart = self._endpoints[i, canonical((endpoint,))]
        pairs = zip(endpoint.numbers, apart.numbers, strict=True)
        return real, {sender: there - here for (sender, here), (_, there) in pairs}

    def _really(
        self, i: int, endpoint: Endpoint, peer: int, packet: Described | None, shift: dict[str, int]
    ) -> _Done:
        """Have a real endpoint do it."""
        real = copy.copy(endpoint)
        if packet is None:
            real.send(self.names[peer], None)
        else:
            real.receive(self.names[peer], self._packet(packet, shift))
        real.take_deliveries()
        me = self.names[i]
        sent = [
            (self.names.index(name), self._apart(me, name, left))
            for name, left in real.take_packets()
        ]
        held = any(each.where == "sender" for each in real.blocked())
        return _Done(self._known(i, real), held, tuple(sent))

    def _apart(self, source: str, destination: str, packet: Packet) -> Described:
        apart = self._numbered(described_packet(source, destination, packet))
        self._packets.setdefault(apart.shape, packet)
        return apart

    def _packet(self, apart: Described, shift: dict[str, int]) -> Packet:
        """Return a packet of that shape, with its numbers shifted."""
        like = self._packets[apart.shape]
        return with_numbers(like, [number + shift[sender] for sender, number in apart.numbers])

    # -- a run of it, for people ---------------------------------------------------------

    def program(self, turns: Sequence[Turn]) -> Program:
        """What is sent in a run."""
        parts = []
        for i, to in enumerate(self.rounds):
            count = turns.count(Turn(i, -1))
            parts.append(tuple([Send((to[k % len(to)],)) for k in range(count)]))
        return tuple(parts)

    @staticmethod
    def steps(turns: Sequence[Turn]) -> list[Step]:
        """Return turns as steps of a run."""
        return [
            Step("send", i, -1, None, (0,)) if source < 0 else Step("receive", i, source, None, ())
            for i, source in turns
        ]

    def replay(self, turns: Sequence[Turn]) -> Replay:
        """The run with real endpoints."""
        return Replay(self.setup, self.program(turns), self.steps(turns))


def _oldest(parts: Iterable[Described]) -> dict[str, int]:
    """The oldest number of each sender."""
    oldest: dict[str, int] = {}
    for part in parts:
        for sender, number in part.numbers:
            if number < oldest.get(sender, number + 1):
                oldest[sender] = number
    return oldest


def _shifted(part: Described, shift: dict[str, int]) -> Described:
    numbers = tuple([(sender, number + shift.get(sender, 0)) for sender, number in part.numbers])
    return Described(part.shape, numbers)
