"""What goes wrong with the network, and when: faults as data on a timeline.

    partition   processes on different sides cannot reach each other
    crash       links die, and whatever travels on them dies with them
    heal        ends partitions, crashes and slowness
    hold        packets are kept back where they would arrive
    release     ends holds: what was kept arrives now, in the order it was kept
    slow        latency is multiplied by a factor

A fault acts where packets arrive: a packet that would arrive while its link is
cut (by a partition or a crash) is lost, and one that would arrive while its link
is held waits. So a packet that leaves during a partition and arrives after the
heal gets through, and a packet that travels when a partition begins does not,
unless the partition is over by the time it arrives. A crash, on top of that,
destroys at once what is on its way. `slow` concerns packets that leave while it
lasts.

Links are chosen by `sides` (all links between processes on different sides;
whoever is on no side keeps all links), by `links` (pairs of processes, both
directions unless `oneway`), or by `processes` (all links from and to them); with
none of the three, every link. A process is given by its name or by its index,
and `sides` may be a number: the processes in order, cut into so many parts. A
fault may have a name, by which `heal` and `release` can end it alone.

A partition or a crash that is never healed, or a hold that is never released,
may leave messages undelivered for ever. That is the fault's doing, and the
summary of the run says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .errors import SimulationError
from .settings import Settings, by, duration, flag, integer, many, number, one_of, text

__all__ = [
    "Crash",
    "Fault",
    "Heal",
    "Hold",
    "Partition",
    "Release",
    "Rule",
    "Slow",
    "Timeline",
    "fault",
]

Who = str | int
"""A process, by its name or its index."""


def _who(value: Any, what: str) -> Who:
    if type(value) is int:
        return integer(0)(value, what)
    return text(value, what)


def _pair(value: Any, what: str) -> tuple[Who, Who]:
    ends = many(_who)(value, what)
    if len(ends) != 2:
        raise SimulationError(f"{what} must be a pair of processes, not {value!r}")
    return ends[0], ends[1]


def _sides(value: Any, what: str) -> int | tuple[tuple[Who, ...], ...]:
    if type(value) is int:
        return integer(2)(value, what)
    return many(many(_who))(value, what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Settings):
    """Something that happens to the network at one moment."""

    kind: ClassVar[str]
    cuts: ClassVar[bool] = False
    """Whether packets get lost by it."""
    at: int = field(metadata=by(duration))
    name: str = field(default="", metadata=by(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFault(Fault):
    """A fault that lasts, on some links or on all."""

    sides: int | tuple[tuple[Who, ...], ...] = field(default=(), metadata=by(_sides))
    links: tuple[tuple[Who, Who], ...] = field(default=(), metadata=by(many(_pair)))
    processes: tuple[Who, ...] = field(default=(), metadata=by(many(_who)))
    oneway: bool = field(default=False, metadata=by(flag))

    def check(self) -> None:
        given = [name for name in ("sides", "links", "processes") if getattr(self, name)]
        if len(given) > 1:
            raise SimulationError(f"{self.label} takes one of {', '.join(given)}, not several")

    def rule(self, names: Sequence[str]) -> Rule:
        """The links that are meant, for a run with these processes."""
        index = {name: i for i, name in enumerate(names)}

        def resolve(who: Who) -> int:
            i = index.get(who) if isinstance(who, str) else who
            if i is None or i >= len(names):
                raise SimulationError(f"{self.label}: there is no process {who!r}")
            return i

        if self.sides:
            side = self._side_of(len(names), resolve)
            return Rule(self, side, lambda p, q: p in side and q in side and side[p] != side[q])
        if self.links:
            pairs = {(resolve(a), resolve(b)) for a, b in self.links}
            if not self.oneway:
                pairs |= {(b, a) for a, b in pairs}
            return Rule(self, {i for pair in pairs for i in pair}, lambda p, q: (p, q) in pairs)
        if self.processes:
            ends = {resolve(who) for who in self.processes}
            return Rule(self, ends, lambda p, q: p in ends or q in ends)
        return Rule(self, range(len(names)), lambda p, q: True)

    def _side_of(self, n: int, resolve: Callable[[Who], int]) -> dict[int, int]:
        if isinstance(self.sides, int):
            return {i: i * self.sides // n for i in range(n)}
        side: dict[int, int] = {}
        for k, members in enumerate(self.sides):
            for who in members:
                if side.setdefault(resolve(who), k) != k:
                    raise SimulationError(f"{self.label}: {who!r} is on two sides")
        return side


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(LinkFault):
    """Cut all links between processes on different sides."""

    label: ClassVar[str] = "partition"
    kind: ClassVar[str] = "partition"
    cuts: ClassVar[bool] = True

    def check(self) -> None:
        if not self.sides or self.links or self.processes:
            raise SimulationError("partition needs sides, and nothing else that names links")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(LinkFault):
    """Links die, with what travels on them."""

    label: ClassVar[str] = "crash"
    kind: ClassVar[str] = "crash"
    cuts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(LinkFault):
    """Keep packets back where they would arrive."""

    label: ClassVar[str] = "hold"
    kind: ClassVar[str] = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(LinkFault):
    """Multiply the latency of packets that leave from now on."""

    label: ClassVar[str] = "slow"
    kind: ClassVar[str] = "slow"
    factor: float = field(metadata=by(number(0, 1e6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal(Fault):
    """End the partitions, crashes and slowness of that name, or all of them."""

    label: ClassVar[str] = "heal"
    kind: ClassVar[str] = "heal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Fault):
    """End the holds of that name, or all of them."""

    label: ClassVar[str] = "release"
    kind: ClassVar[str] = "release"


fault = one_of(Partition, Crash, Heal, Hold, Release, Slow)
"""Read a fault: one of these classes, or a table with its kind."""


class Rule:
    """A fault that is in force, and the links that it concerns."""

    __slots__ = ("concerns", "fault", "processes")

    def __init__(
        self, fault: LinkFault, processes: Iterable[int], concerns: Callable[[int, int], bool]
    ) -> None:
        self.fault = fault
        self.processes = sorted(processes)
        """The processes that it names, by index; all, if it names none."""
        self.concerns = concerns
        """Whether it is about the link from one process to another, by index."""


class Timeline:
    """The faults of a run that are in force.

    The network asks it about each packet, and only while there is a rule: the
    lists are empty most of the time.
    """

    __slots__ = ("_rules", "cut", "held", "pending", "slow")

    def __init__(self, faults: Sequence[Fault], names: Sequence[str]) -> None:
        started = {fault.name for fault in faults if isinstance(fault, LinkFault)}
        for fault in faults:
            if fault.name and fault.name not in started:
                raise SimulationError(f"{fault.kind}: no fault is called {fault.name!r}")
        self._rules = [fault.rule(names) for fault in faults if isinstance(fault, LinkFault)]
        self.pending = len(faults)
        """How many faults are still to come."""
        self.cut: list[Rule] = []
        self.held: list[Rule] = []
        self.slow: list[Rule] = []

    def apply(self, fault: Fault) -> list[Rule]:
        """The fault happens; returns the rules that begin or end with it."""
        self.pending -= 1
        if isinstance(fault, Heal):
            ended = self._ended(fault, self.cut + self.slow)
            self.cut = [rule for rule in self.cut if rule not in ended]
            self.slow = [rule for rule in self.slow if rule not in ended]
            return ended
        if isinstance(fault, Release):
            ended = self._ended(fault, self.held)
            self.held = [rule for rule in self.held if rule not in ended]
            return ended
        rule = next(rule for rule in self._rules if rule.fault is fault)
        if isinstance(fault, Hold):
            self.held.append(rule)
        elif isinstance(fault, Slow):
            self.slow.append(rule)
        else:
            self.cut.append(rule)
        return [rule]

    @staticmethod
    def _ended(fault: Fault, rules: Sequence[Rule]) -> list[Rule]:
        return [rule for rule in rules if fault.name in ("", rule.fault.name)]

    def is_cut(self, p: int, q: int) -> bool:
        """Whether what arrives at q from p is lost now."""
        return any(rule.concerns(p, q) for rule in self.cut)

    def is_held(self, p: int, q: int) -> bool:
        """Whether what arrives at q from p has to wait now."""
        return any(rule.concerns(p, q) for rule in self.held)

    def slowed(self, p: int, q: int, latency: int) -> int:
        """The latency of what leaves p for q now."""
        for rule in self.slow:
            if isinstance(rule.fault, Slow) and rule.concerns(p, q):
                latency = int(latency * rule.fault.factor)
        return latency

    def lasting(self) -> list[str]:
        """What cuts or holds links now, in words."""
        words = []
        for rule in self.cut + self.held:
            fault = rule.fault
            name = f" {fault.name!r}" if fault.name else ""
            never = "released" if isinstance(fault, Hold) else "healed"
            words.append(f"{fault.kind}{name} at {fault.at} ns was never {never}")
        return words
