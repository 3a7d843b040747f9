"""One process of the system, as tables: what each event does to it.

What a step does depends only on the local state of one process and on the event. So
each step is computed once, on a copy of the endpoint, and remembered: a *local state*
is a number, and a table says to which local states an event leads, and which packets
leave. The endpoint is the one that runs in a node, unchanged. Two endpoints are the
same local state if their values are equal (`Endpoint.value`).

A *station* is a local state together with an inbox, and again a number. A state of the
whole system is one station for each process, and the phase, so its successors are found
by looking numbers up:

    moves(station)          what may happen here: the station after it, and the
                            packets that leave, as one bundle for each receiver
    add(station, bundle)    the station after packets have come into the inbox

**Reactions.** Sending at the end of the last delivery usually has the same effect as
sending after the handler has returned. Where it has (the states and the packets are
compared each time), the former is left out of the moves, because two other moves lead to
the same state. This is the first of the reductions, `merge_reactions`.

**Stations are odd or even.** The number of a station is odd if something in it may
still lead to a violation of causal order; the station is *hot* (see `ghost`). So one
operation on a state of the whole system shows whether the search has to go on from it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from .event import (
    FORGETS,
    PUMP,
    SEND,
    ExecutedEvent,
    Local,
    Outcome,
    Script,
    trimmed,
    unasked_events,
)
from .ghost import HERE, ONWARD, Ghost, Marked, Tag, tags_in, untainted
from .post import Inbox, Post
from .programs import Sends
from .selfcheck import WATCHED, asked, check_original, examine
from .setup import FREE, LOSS, PROPERTIES, REPEAT
from .states import fields

__all__ = ["Actor", "Move"]


class Stations:
    """Local states with inboxes, as numbers: odd for those that are hot."""

    __slots__ = ("_next", "ids", "values")

    def __init__(self) -> None:
        self.ids: dict[tuple[int, int], int] = {}
        self.values: list[tuple[int, int]] = []
        self._next = [0, 1]

    def number(self, station: tuple[int, int], hot: bool) -> int:
        """Give a station its number; hot stations have odd numbers."""
        k = self.ids[station] = self._next[hot]
        self._next[hot] += 2
        while len(self.values) <= k:
            self.values.append(station)
        self.values[k] = station
        return k


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
    """The tables of one process that makes given sends."""

    def __init__(
        self,
        post: Post,
        index: int,
        sends: Sends,
        ghost: Ghost,
        *,
        merge_reactions: bool = True,
        forget: bool = True,
        judged: Collection[str] = PROPERTIES,
    ) -> None:
        self.post = post
        self.forget = forget and ghost.marks and post.setup.network.silent
        """Whether the taints of messages that have left are dropped from the state."""
        self.judged = frozenset(judged)
        """The properties whose violation is reported."""
        self.index = index
        self.sends = sends
        self.ghost = ghost
        self.merge_reactions = merge_reactions
        self.names = post.setup.names
        self.unasked = unasked_events(post.setup)
        self.frozen = index in post.setup.network.frozen
        self.numbers = {name: k for k, name in enumerate(self.names)}
        self.locals: list[Local] = []
        self.hot: list[bool] = []
        """By local state: whether it may lead to a violation, whatever the inbox."""
        self.ids: dict[Hashable, int] = {}
        self.stations = Stations()
        self.calls = 0
        """How often the endpoint was called."""
        self._outcomes: dict[tuple[int, int], tuple[Outcome, ...]] = {}
        self._counting: dict[tuple[int, int], list[Outcome]] = {}
        self._moves: dict[int, list[Move]] = {}
        self._adds: dict[tuple[int, int], int] = {}
        n = len(self.names)
        self._copies = [sum(1 << n * k + j for j in send.to) for k, send in enumerate(sends)]
        """By message: its copies, as bits (one to oneself never leaves, and stays known)."""
        start = post.setup.endpoint(index)
        examine(start)
        none = (0,) * len(self.names)
        local = self.number(Local(start, len(sends), none, ghost.initial))
        self.initial = self.station(local, post.empty)

    # -- local states ---------------------------------------------------------

    def number(self, local: Local) -> int:
        """Return the number of a local state, a new one if it was not reached before."""
        if not local.left:
            local = local._replace(ghost=self.ghost.silent(local.ghost))
        key = self.key(local)
        k = self.ids.get(key)
        if k is None:
            k = self.ids[key] = len(self.locals)
            self.locals.append(local)
            self.hot.append(self._holds_heat(local, key[0]))
        return k

    def key(self, local: Local) -> tuple[Hashable, ...]:
        """Return the value by which local states are compared.

        What is written on a message may be forgotten by a sender that never sends it
        again; and by a receiver that has nothing more to send, if it is about others.
        """
        value = local.endpoint.value()
        if self.forget and local.touched:
            value = untainted(value, partial(self._is_dead, local))
        return (value, local.left, local.got, local.ghost, local.out, local.known)

    def _is_dead(self, local: Local, tag: Tag) -> bool:
        if tag.sender == self.index:
            return not self._copies[tag.mid - 1] & ~local.out
        return not local.left and Marked.heat(tag.taint, len(self.names), self.index) == ONWARD

    def _holds_heat(self, local: Local, value: Hashable) -> bool:
        """Whether what a process knows, or has in its buffers, may lead to a violation."""
        if not local.touched:
            return False
        if local.ghost:
            return True
        for tag in tags_in(value):
            to = self.sends[tag.mid - 1].to if tag.sender == self.index else (self.index,)
            for j in to:
                heat = Marked.heat(tag.taint, len(self.names), j)
                if heat == HERE or (heat == ONWARD and (j != self.index or local.left)):
                    return True
        return False

    def is_hot(self, local: int, inbox: int) -> bool:
        """Return whether a station may still lead to a violation of causal order."""
        if self.hot[local] or not self.ghost.marks:
            return self.hot[local]
        heat = self.post.heat(self.index, inbox)
        return bool(heat & HERE or (heat & ONWARD and self.locals[local].left))

    def outcomes(self, local: int, event: int) -> tuple[Outcome, ...]:
        """Return all outcomes of an event; the one with the fewest sends comes first."""
        key = (local, event)
        known = self._outcomes.get(key)
        if known is None:
            known = self._outcomes[key] = tuple(self._run_all(local, event))
        return known

    def known_events(self) -> Iterable[tuple[int, int]]:
        """Return the local states and events whose outcomes have been computed."""
        return self._outcomes.keys()

    def _run_all(self, local: int, event: int) -> Iterator[Outcome]:
        seen = set()
        scripts: list[Script] = [()]
        for script in scripts:
            original = self.locals[local].endpoint
            before = original.value() if self.calls < WATCHED else None
            run = ExecutedEvent(self, self.locals[local], script)
            outcome = run.perform(event)
            self.calls += 1
            if before is not None:
                check_original(original, before)
            scripts += run.others
            if outcome[:3] + outcome[4:] not in seen:
                seen.add(outcome[:3] + outcome[4:])
                yield outcome

    def lost_fields(self) -> set[str]:
        """Return the attributes in which endpoints differ that are one local state."""
        lost: set[str] = set()
        for local, event in list(self._outcomes):
            run = ExecutedEvent(self, self.locals[local], ())
            outcome = run.perform(event)
            if outcome.violation is None:
                kept = dict(fields(self.locals[outcome.local].endpoint))
                new = dict(fields(run.endpoint))
                lost |= {name for name in kept if repr(kept[name]) != repr(new.get(name))}
        return lost

    def sends_now(self, local: int) -> bool:
        """Return whether the client may make its next send."""
        state = self.locals[local]
        return bool(state.left) and bool(self.next_send(state).ready(state.got))

    def next_send(self, state: Local) -> Any:
        """Return the next send of the program."""
        return self.sends[len(self.sends) - state.left]

    def said_after(self, local: int, outcome: Outcome, all_of_it: tuple[Outcome, ...]) -> bool:
        """Return whether an outcome equals another one with one send less, then that send."""
        script = trimmed(outcome.script)
        if not script or outcome.violation is not None:
            return False
        shorter = trimmed(script[:-1])
        for other in all_of_it:
            if trimmed(other.script) == shorter and other.violation is None and not other.over:
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
        """Return the number of the station with a local state and an inbox."""
        return self.station_at(local, self.post.inboxes[self.index](inbox))

    def station_at(self, local: int, inbox: int) -> int:
        """Return the station of a local state and the number of an inbox."""
        k = self.stations.ids.get((local, inbox))
        if k is None:
            k = self.stations.number((local, inbox), self.is_hot(local, inbox))
        return k

    def inbox(self, station: int) -> Inbox:
        """Return the inbox of a station."""
        return self.post.inboxes[self.index].values[self.stations.values[station][1]]

    def local(self, station: int) -> Local:
        """Return the local state of a station."""
        return self.locals[self.stations.values[station][0]]

    def moves(self, station: int) -> list[Move]:
        """Return all moves from a station."""
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
        for event, cost in self.unasked:
            yield from self._of_event(local, event, inbox, cost)
        for packet, rest in self.post.ready(self.index, inbox):
            yield from self._of_event(local, packet, rest, FREE)
            if network.duplicates:
                yield from self._of_event(local, packet, inbox, REPEAT)
            if network.loss and not self.frozen:
                yield Move(packet, (), LOSS, self.station(local, rest), (), False, None)

    def _of_event(self, local: int, event: int, inbox: Inbox, cost: int) -> Iterator[Move]:
        for outcome in self.counting(local, event):
            yield self.move(event, outcome, inbox, cost)

    def counting(self, local: int, event: int) -> list[Outcome]:
        """Return the outcomes of an event that are moves of their own.

        Left out are outcomes that are two moves in a row, and events that do nothing.
        """
        key = (local, event)
        outcomes = self._counting.get(key)
        if outcomes is None:
            outcomes = self._counting[key] = self._that_count(local, event)
        return outcomes

    def _that_count(self, local: int, event: int) -> list[Outcome]:
        known = self.locals[local].known
        if known >> self.index & 1 or (event >= 0 and self.frozen):
            return []
        if event <= FORGETS and (FORGETS - event == self.index or known >> FORGETS - event & 1):
            return []
        outcomes = self.outcomes(local, event)
        if event == SEND or event <= FORGETS:
            return list(outcomes)
        if event == PUMP:
            return [each for each in outcomes if each.violation or each.local != local or each.sent]
        if not self.merge_reactions:
            return list(outcomes)
        return [each for each in outcomes if not self.said_after(local, each, outcomes)]

    def move(self, event: int, outcome: Outcome, inbox: Inbox, cost: int = FREE) -> Move:
        """Return the move that an outcome of an event is."""
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
        """Return the station after a bundle of packets has arrived in its inbox."""
        key = (station, bundle)
        k = self._adds.get(key)
        if k is None:
            local, _ = self.stations.values[station]
            packets = self.post.bundles[self.index].values[bundle]
            inbox = self.post.put(self.index, self.inbox(station), packets)
            k = self._adds[key] = self.station(local, inbox)
        return k

    # -- the end --------------------------------------------------------------

    def unfinished(self, station: int, expected: Sequence[int], gone: int) -> list[str]:
        """Return the properties that are violated here if nothing more happens.

        Args:
            station: Where the process is.
            expected: For each sender, the messages that it has sent here, as bits.
            gone: Processes that are forgotten or frozen, as bits: nothing is expected of
                them, and nothing from them.
        """
        if gone >> self.index & 1:
            return []
        state = self.local(station)
        lacking = [
            messages & ~got
            for k, (messages, got) in enumerate(zip(expected, state.got, strict=True))
            if not gone >> k & 1
        ]
        wrong = {
            "undelivered": any(lacking),
            "unsent": state.left > 0 and not gone,  # it may wait for one that is gone
            "left over": not self.post.setup.network.frozen and not asked(state.endpoint, "idle"),
        }
        return [kind for kind, holds in wrong.items() if holds]
