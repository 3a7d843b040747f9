"""Faults: what goes wrong with the network and the processes, and when, as data.

    partition   processes on different sides cannot reach each other
    crash       links fail, and the packets on them are lost
    heal        ends partitions, crashes and slowness
    hold        packets are held back where they would arrive
    release     ends holds: packets held back arrive now, in the order of their arrival
    slow        latency is multiplied by a factor
    freeze      processes stand still: they take no packets and no step
    thaw        ends freezes: a process takes the packets that have waited for it,
                in order, and then does what it would have done meanwhile

A fault acts where packets arrive. A packet that would arrive while its link is cut
(by a partition or a crash) is lost, and one that would arrive while its link is held
waits. So a packet that leaves during a partition and would arrive after the heal gets
through, and a packet that is on its way when a partition begins is lost unless the
partition is over when it arrives. A crash also destroys the packets that are on their
way at that moment. `slow` concerns packets that leave while it lasts. Packets that a
process had sent before it froze arrive as usual.

Links are chosen by `sides` (all links between processes on different sides; a process
on no side keeps all its links), by `links` (pairs of processes, in both directions
unless `oneway` is set), or by `processes` (all links from and to them). With none of
the three, every link is meant. A process is given by its name or by its index, and
`sides` may be a number: the processes, in order, are divided into that many parts. A
fault may have a name, by which `heal`, `release` and `thaw` can end that fault alone.

A partition or a crash that is never healed, a hold that is never released and a freeze
that is never thawed may leave messages undelivered for ever. The summary of the run
says so, and does not blame the protocol.
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
    "Freeze",
    "Heal",
    "Hold",
    "Partition",
    "Release",
    "Rule",
    "Slow",
    "Thaw",
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
    """Something that happens to the network or to processes at one moment."""

    kind: ClassVar[str]
    cuts: ClassVar[bool] = False
    """Whether packets are lost because of it."""
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
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        given = [name for name in ("sides", "links", "processes") if getattr(self, name)]
        if len(given) > 1:
            raise SimulationError(f"{self.label} takes one of {', '.join(given)}, not several")

    def rule(self, names: Sequence[str]) -> Rule:
        """Return the rule for a run with these processes.

        Raises:
            SimulationError: The fault names a process that does not exist.
        """
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
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        if not self.sides or self.links or self.processes:
            raise SimulationError("partition needs sides, and nothing else that names links")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(LinkFault):
    """Links fail, and the packets on them are lost."""

    label: ClassVar[str] = "crash"
    kind: ClassVar[str] = "crash"
    cuts: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(LinkFault):
    """Hold packets back where they would arrive."""

    label: ClassVar[str] = "hold"
    kind: ClassVar[str] = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(LinkFault):
    """Multiply the latency of packets that leave from now on."""

    label: ClassVar[str] = "slow"
    kind: ClassVar[str] = "slow"
    factor: float = field(metadata=by(number(0, 1e6)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze(LinkFault):
    """Processes stand still; what arrives for them waits."""

    label: ClassVar[str] = "freeze"
    kind: ClassVar[str] = "freeze"

    def check(self) -> None:
        """Check rules that concern several settings at once.

        Raises:
            SimulationError: The settings contradict each other.
        """
        if not self.processes or self.sides or self.links:
            raise SimulationError("freeze needs processes, and nothing else that names links")

    def rule(self, names: Sequence[str]) -> Rule:
        rule = LinkFault.rule(self, names)
        frozen = set(rule.processes)
        return Rule(self, frozen, lambda p, q: q in frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thaw(Fault):
    """End the freezes of that name, or all of them."""

    label: ClassVar[str] = "thaw"
    kind: ClassVar[str] = "thaw"


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


fault = one_of(Partition, Crash, Heal, Hold, Release, Slow, Freeze, Thaw)
"""Reads a fault: one of these classes, or a table with its kind."""


class Rule:
    """A fault and the links that it concerns."""

    __slots__ = ("concerns", "fault", "processes")

    def __init__(
        self, fault: LinkFault, processes: Iterable[int], concerns: Callable[[int, int], bool]
    ) -> None:
        self.fault = fault
        self.processes = sorted(processes)
        """The processes that the fault names, by index; all processes, if it names none."""
        self.concerns = concerns
        """Whether it concerns the link from one process to another, by index."""


class Timeline:
    """The faults of a run that are in force.

    The network consults it for each packet. The lists are empty most of the time.
    """

    __slots__ = ("_rules", "cut", "frozen", "held", "pending", "slow")

    def __init__(self, faults: Sequence[Fault], names: Sequence[str]) -> None:
        started = {fault.name for fault in faults if isinstance(fault, LinkFault)}
        for fault in faults:
            if fault.name and fault.name not in started:
                raise SimulationError(f"{fault.kind}: no fault is called {fault.name!r}")
        self._rules = [fault.rule(names) for fault in faults if isinstance(fault, LinkFault)]
        self.pending = len(faults)
        """The number of faults that are still to happen."""
        self.cut: list[Rule] = []
        self.held: list[Rule] = []
        """Holds and freezes: both keep packets waiting."""
        self.slow: list[Rule] = []
        self.frozen: frozenset[int] = frozenset()
        """The processes that stand still, by index."""

    def apply(self, fault: Fault) -> list[Rule]:
        """Let a fault happen, and return the rules that begin or end with it."""
        self.pending -= 1
        if isinstance(fault, Heal | Release | Thaw):
            return self._end(fault)
        rule = next(rule for rule in self._rules if rule.fault is fault)
        if isinstance(fault, Hold | Freeze):
            self.held.append(rule)
        elif isinstance(fault, Slow):
            self.slow.append(rule)
        else:
            self.cut.append(rule)
        self._note_frozen()
        return [rule]

    def _end(self, fault: Heal | Release | Thaw) -> list[Rule]:
        """End the rules that a fault concerns, and return them."""
        ends: dict[type[Fault], tuple[type[Fault], ...]] = {
            Heal: (Partition, Crash, Slow),
            Release: (Hold,),
            Thaw: (Freeze,),
        }
        ended = [
            rule
            for rule in self.cut + self.slow + self.held
            if isinstance(rule.fault, ends[type(fault)]) and fault.name in ("", rule.fault.name)
        ]
        self.cut = [rule for rule in self.cut if rule not in ended]
        self.slow = [rule for rule in self.slow if rule not in ended]
        self.held = [rule for rule in self.held if rule not in ended]
        self._note_frozen()
        return ended

    def _note_frozen(self) -> None:
        freezes = [rule for rule in self.held if isinstance(rule.fault, Freeze)]
        self.frozen = frozenset(i for rule in freezes for i in rule.processes)

    def is_cut(self, p: int, q: int) -> bool:
        """Return whether a packet from p that arrives at q now is lost."""
        return any(rule.concerns(p, q) for rule in self.cut)

    def is_held(self, p: int, q: int) -> bool:
        """Return whether a packet from p that arrives at q now has to wait."""
        return any(rule.concerns(p, q) for rule in self.held)

    def slowed(self, p: int, q: int, latency: int) -> int:
        """Return the latency of a packet that leaves p for q now."""
        for rule in self.slow:
            if isinstance(rule.fault, Slow) and rule.concerns(p, q):
                latency = int(latency * rule.fault.factor)
        return latency

    def lasting(self) -> list[str]:
        """Return the faults that cut or hold links now, in words."""
        words = []
        for rule in self.cut + self.held:
            fault = rule.fault
            name = f" {fault.name!r}" if fault.name else ""
            never = {"hold": "released", "freeze": "thawed"}.get(fault.kind, "healed")
            words.append(f"{fault.kind}{name} at {fault.at} ns was never {never}")
        return words
