"""Plays a run: a network, an application that reacts, and a record of everything.

Random runs (`causewire.testing.adversary`), stored cases and the Hypothesis strategies all
use `Play`. It does one step at a time and records the schedule of what it did. In the end
it lets everything arrive and reports how the run went: an `Outcome`.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any, Self

from ..protocols import Protocol
from .cases import Action, Case, Reaction
from .network import Network
from .oracle import OracleViolation, SentMessage
from .profiles import PROFILES, Profile

__all__ = ["STUCK", "WRONG", "Outcome", "Play", "payload_of", "replay", "stage"]

WRONG = frozenset({"causal", "duplicate", "misaddressed", "altered", "unsent"})
"""Kinds of failure in which the application was given something wrong."""

STUCK = frozenset({"undelivered", "leftover", "RestlessError"})
"""Kinds of failure in which a run did not end with everything done."""


class Play:
    """A run in progress.

    Args:
        protocol: A name, or a `Protocol`.
        processes: The names of the processes.
        profile: What the network may do.
        reactions: What processes send when they deliver certain messages.
        inside: Whether reactions are sent from inside deliveries.
        lazy: Whether packets stay at their endpoint until they are taken.
        ticks: Whether periodic blocks run at the end.
        protocol_options: Options of the protocol.
    """

    __slots__ = (
        "_options",
        "_reactions",
        "_ticks",
        "error",
        "inside",
        "lazy",
        "lost",
        "network",
        "profile",
        "protocol",
        "reacted",
        "reactions",
        "replayed",
        "schedule",
        "settled",
    )

    def __init__(
        self,
        protocol: str | Protocol,
        processes: tuple[str, ...],
        profile: Profile,
        *,
        reactions: Iterable[Reaction] = (),
        inside: bool = True,
        lazy: bool = False,
        ticks: bool = True,
        protocol_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.protocol = protocol
        self.profile = profile
        self.inside = inside
        self.lazy = lazy
        self.reactions = tuple(reactions)
        self.schedule: list[Action] = []
        """What was done so far."""
        self.error: Exception | None = None
        """What was raised, if anything was."""
        self.settled = False
        """Whether the end was reached with nothing left to do."""
        self.lost = 0
        self.replayed = 0
        self.reacted = 0
        self._ticks = ticks
        self._options = dict(protocol_options or {})
        self.network = Network.of(
            protocol, processes, inside=inside, lazy=lazy, protocol_options=self._options
        )
        self._reactions: dict[tuple[str, str], list[Reaction]] = {}
        if self.reactions:
            for reaction in self.reactions:
                self._reactions.setdefault((reaction.trigger, reaction.process), []).append(
                    reaction
                )
            self.network.react = self._react

    def __copy__(self) -> Self:
        """Return an independent run at the same point."""
        twin = object.__new__(type(self))
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        twin.schedule = self.schedule[:]
        twin.network = copy(self.network)
        if self.reactions:
            twin.network.react = twin._react
        return twin

    def _react(self, process: str, message: SentMessage) -> None:
        for reaction in self._reactions.get((message.name, process), ()):
            self.reacted += 1
            self.network.send(process, reaction.to, payload_of(reaction.name), reaction.name)

    # -- steps ----------------------------------------------------------------

    def send(self, process: str, to: tuple[str, ...], name: str) -> None:
        """Send a message."""
        self.schedule.append(("send", process, to, name))
        self.network.send(process, to, payload_of(name), name)

    def arrive(self, k: int) -> None:
        """Let the k-th packet in flight arrive."""
        source, destination, number, _ = self.network.in_flight[k]
        self.schedule.append(("recv", source, destination, number))
        self.network.arrive(k)

    def lose(self, k: int) -> None:
        """Lose the k-th packet in flight."""
        source, destination, number, _ = self.network.in_flight[k]
        self.schedule.append(("drop", source, destination, number))
        self.lost += 1
        self.network.lose(k)

    def replay(self, source: str, destination: str, number: int) -> None:
        """Let a packet arrive once more."""
        self.schedule.append(("recv", source, destination, number))
        self.replayed += 1
        self.network.replay(source, destination, number)

    def tick(self, process: str) -> None:
        """Run the periodic block of a process."""
        self.schedule.append(("tick", process))
        self.network.retransmit(process)

    def take(self, process: str) -> None:
        """Put the packets of a process on the network."""
        self.schedule.append(("take", process))
        self.network.collect(process)

    def oldest(self, k: int) -> int:
        """Return the index of the first packet in flight on the same link as the `k`-th."""
        in_flight = self.network.in_flight
        source, destination, _, _ = in_flight[k]
        for first, flying in enumerate(in_flight):
            if flying[0] == source and flying[1] == destination:
                return first
        raise AssertionError("the k-th packet is on its own link")

    def act(self, action: Action) -> bool:
        """Do one action of a schedule, and return whether it was possible."""
        kind = action[0]
        if kind == "send":
            self.send(*action[1:])
        elif kind == "tick":
            self.tick(action[1])
        elif kind == "take":
            if not self.lazy:
                return False
            self.take(action[1])
        else:
            return self._act_on_packet(*action)
        return True

    def _act_on_packet(self, kind: str, source: str, destination: str, number: int) -> bool:
        k = self._find(source, destination, number)
        profile = self.profile
        if k is None:
            once = number < len(self.network.links.get((source, destination), ()))
            if kind == "drop" or not once or not profile.replay:
                return False
            self.replay(source, destination, number)
        elif kind == "drop":
            if not profile.loss:
                return False
            self.lose(k)
        else:
            if profile.fifo and self.oldest(k) != k:
                return False
            self.arrive(k)
        return True

    def _find(self, source: str, destination: str, number: int) -> int | None:
        """Return the index of a packet in flight, or None."""
        for k, flying in enumerate(self.network.in_flight):
            if flying[0] == source and flying[1] == destination and flying[2] == number:
                return k
        return None

    # -- the end --------------------------------------------------------------

    def finish(self) -> None:
        """Let all packets arrive and, with `ticks`, run all periodic blocks, to the end."""
        self.settled = self.network.settle(retransmit=self._ticks)

    def case(self, title: str = "") -> Case:
        """Return what was played as a case that can be stored and replayed."""
        return Case(
            title=title,
            protocol=self.protocol,
            options=self._options,
            processes=tuple(self.network.endpoints),
            net=self.profile.name,
            inside=self.inside,
            lazy=self.lazy,
            ticks=self._ticks,
            reactions=self.reactions,
            schedule=tuple(self.schedule),
        )


class Outcome:
    """How a run went.

    `kinds` names what went wrong, in the order of appearance: the kinds of
    `OracleViolation`, the class of an exception that an endpoint raised, `RestlessError`
    (it would not end), and `leftover` (some endpoint is not done, and never will be).
    """

    __slots__ = ("kinds", "play", "violations")

    def __init__(self, play: Play) -> None:
        self.play = play
        violations: list[OracleViolation] = play.network.oracle.violations
        if play.error is None:
            undelivered = play.network.oracle.undelivered()
            if undelivered:
                violations = violations + undelivered
        self.violations = violations
        self.kinds: list[str] = []
        if violations:
            self.kinds.extend(dict.fromkeys(violation.kind for violation in violations))
        if play.error is not None:
            self.kinds.append(type(play.error).__name__)
        elif not play.settled or any(e.blocked() for e in play.network.endpoints.values()):
            self.kinds.append("leftover")

    @property
    def ok(self) -> bool:
        """Whether nothing went wrong."""
        return not self.kinds

    @property
    def messages(self) -> int:
        """The number of messages."""
        return len(self.play.network.oracle.messages)

    @property
    def deliveries(self) -> int:
        """The number of deliveries."""
        return self.play.network.oracle.deliveries

    @property
    def overtaken(self) -> int:
        """How many packets arrived after a younger one of the same link."""
        count = 0
        newest: dict[tuple[str, str], int] = {}
        for action in self.play.schedule:
            if action[0] == "recv":
                _, source, destination, number = action
                last = newest.get((source, destination), -1)
                count += number < last
                newest[source, destination] = max(number, last)
        return count

    def explain(self) -> str:
        """Return everything that went wrong, in sentences."""
        oracle = self.play.network.oracle
        lines = [oracle.explain(violation) for violation in self.violations]
        if self.play.error is not None:
            lines += traceback.format_exception(self.play.error)
        if "leftover" in self.kinds:
            for endpoint in self.play.network.endpoints.values():
                lines += [f"{endpoint.me}: {blocked}" for blocked in endpoint.blocked()]
                if not endpoint.idle:
                    lines.append(f"{endpoint.me} is not done: {endpoint!r}")
        return "\n".join(lines)


def payload_of(name: str) -> str | None:
    """Return the payload of the message of that name; some messages have no payload."""
    return None if name.isupper() else name


def replay(case: Case) -> Outcome:
    """Run a case from beginning to end and return how it went."""
    play = stage(case)
    try:
        for action in case.schedule:
            play.act(action)
        play.finish()
    except Exception as error:
        play.error = error
    return Outcome(play)


def stage(case: Case) -> Play:
    """Return a `Play` that is set up for a case, with nothing played yet."""
    return Play(
        case.protocol,
        case.processes,
        PROFILES[case.net],
        reactions=case.reactions,
        inside=case.inside,
        lazy=case.lazy,
        ticks=case.ticks,
        protocol_options=case.options,
    )
