"""The search through all states of a small group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from causewire.core.errors import CausewireError
from causewire.protocols import describe

from .hosts import BORN, NAMES, Host, Packet, Sent, Watched, WrongError

__all__ = ["SCENARIOS", "Found", "Program", "Scenario", "Search"]

Program = tuple[tuple[tuple[int, ...], ...], ...]
"""The destinations of each message of p0, p1 and p2."""
Event = tuple[Any, ...]
"""A method of `Host`, and its arguments."""


class Scenario(NamedTuple):
    """Who is there, and what may happen.

    A slot is an incarnation; slot 3 is the second incarnation of p2.
    """

    together: tuple[int, ...] = (0, 1, 2)
    """The slots that are in one epoch at the beginning."""
    joins: bool = False
    """Whether the others of the first three slots join, at any moment."""
    forgets: int = 0
    """How many times a process gives up another one, at any moment."""
    restarts: bool = False
    """Whether p2 stops at any moment, and returns."""


SCENARIOS = {
    "forget": Scenario(forgets=1),
    "restart": Scenario(restarts=True),
    "join": Scenario(together=(0, 1), joins=True),
    "join and forget": Scenario(together=(0, 1), joins=True, forgets=1),
    "meet": Scenario(together=(), joins=True),
    "forget and restart": Scenario(forgets=1, restarts=True),
}

Station = tuple[int, tuple[tuple[Packet, ...], ...]]
"""A host, and what is under way to it from each slot."""
State = tuple[int, ...]
"""The station of each slot, 0 if there is none yet, and how often somebody was given up."""


class Found(NamedTuple):
    """What a search has found."""

    states: int
    transitions: int
    depth: int
    wrong: str
    """What is wrong; empty if nothing is."""
    story: list[str]
    """The events that lead to it."""
    seen: Counter[str]
    """How often something has happened, without which a search says little."""
    complete: bool


class Search:
    """All runs of one scenario and one program.

    Args:
        scenario: What may happen.
        protocol: The protocol.
        program: The destinations of each message of p0, p1 and p2; the second
            incarnation of p2 sends what the first one would.
        batched: Whether several events may come before a process sends what they have led
            to, as when several datagrams arrive together.
    """

    def __init__(
        self,
        scenario: Scenario,
        protocol: str,
        program: Program,
        batched: bool = False,
    ) -> None:
        self._batched = batched
        self._scenario = scenario
        self._protocol = describe(protocol).in_node()
        self._program = (*program, program[2])
        self._first = [sum(map(len, self._program[:slot])) for slot in range(4)]
        self._hosts: list[Host] = []
        self._host_ids: dict[Hashable, int] = {}
        self._stations: list[Station] = [(-1, ())]
        self._station_ids: dict[Station, int] = {(-1, ()): 0}
        self._steps: dict[tuple[int, Event], tuple[int, Sent]] = {}

    # -- states ---------------------------------------------------------------

    def _host(self, host: Host) -> int:
        value = host.value()
        if value not in self._host_ids:
            self._host_ids[value] = len(self._hosts)
            self._hosts.append(host)
        return self._host_ids[value]

    def _station(self, host: int, inbox: tuple[tuple[Packet, ...], ...]) -> int:
        station = host, inbox
        if station not in self._station_ids:
            self._station_ids[station] = len(self._stations)
            self._stations.append(station)
        return self._station_ids[station]

    def start(self) -> State:
        """Return the state at the beginning, in which some are in one epoch already."""
        state: State = (0, 0, 0, 0, 0)
        for slot in range(3):
            state = self._begin(state, slot)
        together = self._scenario.together
        for one in together:
            for other in together:
                if one != other:
                    state = self._after(state, one, ("meets", other))
        while events := [e for e in self.events(state) if e[1][0] in ("hears", "turns")]:
            state = self._after(state, *events[0])
        for slot in range(3):  # the beginning is the same cut for all
            self._hosts[self._stations[state[slot]][0]].cuts.clear()
        return state

    def _begin(self, state: State, slot: int) -> State:
        station = self._station(self._host(Host(slot, self._protocol)), ((),) * 4)
        return (*state[:slot], station, *state[slot + 1 :])

    # -- events ---------------------------------------------------------------

    def host(self, state: State, slot: int) -> Host | None:
        """Return the incarnation in a slot, if it has been started."""
        station = state[slot]
        return self._hosts[self._stations[station][0]] if station else None

    def events(self, state: State) -> Iterator[tuple[int, Event]]:
        """Yield what must happen sooner or later, each with the slot where it does."""
        hosts = [self.host(state, slot) for slot in range(4)]
        for slot, host in enumerate(hosts[: 4 if self._scenario.restarts else 3]):
            if host is None or not host.up:
                if slot == 3 and host is None and hosts[2] is not None and not hosts[2].up:
                    yield 3, ("begins",)
                continue
            for source, packets in enumerate(self._stations[state[slot]][1]):
                if packets and source in host.sessions:
                    yield slot, ("hears", source, packets[0])
            if host.pending:
                yield slot, ("turns",)
            program = self._program[slot]
            if host.made < len(program) and host.sessions:
                number = self._first[slot] + host.made
                yield slot, ("sends", program[host.made], number)
            for source, other in enumerate(hosts):
                if other is not None and source != slot:
                    yield from self._between(slot, host, source, other)

    def _between(self, slot: int, host: Host, source: int, other: Host) -> Iterator[Any]:
        """Yield what can happen at a host because of another one."""
        talk = source in host.sessions and slot in other.sessions
        for name, floor in other.floors.items():
            mine = name == NAMES[slot]
            news = floor > (BORN[slot] if mine else max(1, host.floors.get(name, 0)))
            if news and (talk or mine):
                yield slot, ("learns", name, floor)
        if source in host.sessions and not other.up:
            yield slot, ("forgets", source)  # as it does not answer
        strangers = source not in host.sessions and source not in host.over
        fine = other.floors.get(NAMES[slot], 0) <= BORN[slot] and NAMES[source] != NAMES[slot]
        alive = host.floors.get(NAMES[source], 0) <= BORN[source] and other.up
        if strangers and fine and alive and (self._scenario.joins or source == 3 or slot == 3):
            yield slot, ("meets", source)

    def choices(self, state: State) -> Iterator[tuple[int, Event]]:
        """Yield what may happen, or not."""
        for slot in range(4):
            host = self.host(state, slot)
            if host is not None and host.up:
                if state[4] < self._scenario.forgets:
                    for other in host.sessions:
                        yield slot, ("forgets", other)
                if self._scenario.restarts and slot == 2:
                    yield slot, ("stops",)

    def _step(self, host: int, event: Event) -> tuple[int, Sent]:
        """Return the host after an event, and what it sends."""
        key = host, event
        if key not in self._steps:
            twin = self._hosts[host].copied()
            kind, *args = event
            if kind == "learns":
                twin.learns({args[0]: args[1]})
            elif kind != "turns":
                getattr(twin, kind)(*args)
            sent = twin.turn() if kind == "turns" or not self._batched else []
            self._steps[key] = self._host(twin), sent
        return self._steps[key]

    def _after(self, state: State, slot: int, event: Event) -> State:
        """Return the state after an event."""
        if event[0] == "begins":
            return self._begin(state, slot)
        before, inbox = self._stations[state[slot]]
        host, sent = self._step(before, event)
        over = self._hosts[host].over if self._hosts[host].up else range(4)
        inbox = tuple(
            () if source in over else packets[1:] if event[:2] == ("hears", source) else packets
            for source, packets in enumerate(inbox)
        )
        after = list(state)
        after[slot] = self._station(host, inbox)
        for to, packet in sent:
            receiver, inbox = self._stations[after[to]]
            if self._hosts[receiver].up and slot not in self._hosts[receiver].over:
                inbox = (*inbox[:slot], (*inbox[slot], packet), *inbox[slot + 1 :])
                after[to] = self._station(receiver, inbox)
        after[4] += event[0] == "forgets" and self._hosts[self._stations[state[event[1]]][0]].up
        if len(self._hosts[host].cuts) != len(self._hosts[before].cuts):
            self._compare_cuts(tuple(after), slot)
        return tuple(after)

    # -- what must hold -------------------------------------------------------

    def _compare_cuts(self, state: State, slot: int) -> None:
        host = self.host(state, slot)
        for other in range(4):
            peer = self.host(state, other)
            if host is None or peer is None or peer is host:
                continue
            for view in host.cuts.keys() & peer.cuts.keys():
                (to, of), (peer_to, peer_of) = host.cuts[view], peer.cuts[view]
                same = to.get(other, 0) == peer_of.get(slot, 0)
                if not same or peer_to.get(slot, 0) != of.get(other, 0):
                    raise WrongError(f"p{slot} and p{other} enter an epoch at different cuts")

    def _ends_well(self, state: State) -> None:
        """Raise an error if something is missing where nothing more can happen."""
        hosts = [self.host(state, slot) for slot in range(4)]
        living = [host for host in hosts if host is not None and host.up]
        members = {NAMES[host.slot]: BORN[host.slot] for host in living}
        for host in living:
            epochs = host.link._epochs
            if epochs.changing or epochs.current.alive != members:
                raise WrongError(f"p{host.slot} does not enter the epoch of the living")
            if host.link._queue or host.link.endpoint.held_back:
                raise WrongError(f"p{host.slot} holds a message for ever")
            if host.made < len(self._program[host.slot]) and len(living) > 1:
                raise WrongError(f"p{host.slot} cannot send")
            for peer in living:
                if host.to.get(peer.slot) != peer.of.get(host.slot):
                    raise WrongError(f"p{peer.slot} lacks a message of p{host.slot}")

    # -- the search -----------------------------------------------------------

    def run(self, most: int) -> Found:
        """Search breadth first, until something is wrong or there are too many states."""
        Watched.seen = Counter()
        first = self.start()
        parents: dict[State, tuple[State, tuple[int, Event]] | None] = {first: None}
        layer, depth, transitions, wrong = [first], 0, 0, ""
        while layer and len(parents) < most:
            following: list[State] = []
            for state in layer:
                try:
                    mandatory = list(self.events(state)) or list(self._time(state))
                    step: Any = None
                    if not mandatory:
                        self._ends_well(state)
                    for step in (*mandatory, *self.choices(state)):
                        transitions += 1
                        after = self._after(state, *step)
                        if after not in parents:
                            parents[after] = state, step
                            following.append(after)
                except (WrongError, CausewireError, LookupError, AssertionError) as error:
                    story = self._story(parents, state) + ([_told(*step)] if step else [])
                    wrong = str(error) or repr(error)
                    return Found(
                        len(parents), transitions, depth, wrong, story, Watched.seen, False
                    )
            layer, depth = following, depth + 1
        return Found(len(parents), transitions, depth, "", [], Watched.seen, not layer)

    def _time(self, state: State) -> Iterator[tuple[int, Event]]:
        """Yield the hosts that do something when time passes."""
        for slot in range(4):
            host = self.host(state, slot)
            if host is not None and host.up:
                before = self._stations[state[slot]][0]
                if self._step(before, ("ticks",)) != (before, []):
                    yield slot, ("ticks",)

    def _story(self, parents: dict[State, Any], state: State) -> list[str]:
        story: list[str] = []
        while (step := parents[state]) is not None:
            state, (slot, event) = step
            story.append(_told(slot, event))
        return story[::-1]


_KINDS = {0: "a packet", 1: "a notice", 2: "stopped", 3: "drained", 4: "enters"}


def _told(slot: int, event: Event) -> str:
    kind, *args = event
    if kind == "hears":
        return f"p{slot} hears from p{args[0]}: {_KINDS[args[1][0][0]]}"
    return f"p{slot} {kind} {' '.join(map(str, args))}".strip()
