"""Ghosts: what the observer records next to the protocol, to judge causal order.

Causal order is judged from outside, by what the application sends and gets, never
by what the protocol says of itself. A *ghost* is the observer's part of a local
state. It travels where causality travels: in the payload of a message, which
no protocol looks at, and in the memory of a process. So it is local, and a step
of one process can be judged on the spot.

    Plain     Nothing. What is checked is that messages are delivered once, in the
              order of their sender, and all of them in the end.

    Marked    One bit. One copy of a message, m1 to d, is marked when it is sent;
              whoever sends it or gets a message that has it in its past *knows*.
              A message sent by one who knows is *tainted*. The delivery of a
              tainted message at d is a violation: m1 happened before it, and is
              not there, since with the delivery of m1 the story ends. Which one
              is marked is left to the search, as any other choice; or given, to
              cut one search into many.

    Past      All messages at once: the set of copies (sender, number, receiver)
              in the past, as bits. Exact, and with far more states; `Marked` is
              measured against it.

    History   Nothing but the order of deliveries at each process, to compare what
              is reachable with and without a reduction.

What nobody will ever learn is forgotten, so that states that differ in nothing else
are one: what a process knows, after its last send; and what is written on a message,
in the memory of its sender, once all its copies have left and the network loses none
(`Actor.key`).

A run with a marked message has nothing left to show once no process knows of it that
still has something to send, and no tainted message is on its way; all other properties
are judged in runs without marks. Such runs are not followed any further: that is the
second of the reductions, `prune`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias

__all__ = [
    "COLD",
    "HERE",
    "ONWARD",
    "Ghost",
    "History",
    "Marked",
    "Past",
    "Plain",
    "Seen",
    "Tag",
    "retagged",
    "stripped",
    "tags_in",
    "untainted",
]

State: TypeAlias = Hashable


class Tag(NamedTuple):
    """A payload. A type of its own, so that it can be found in a protocol's state."""

    sender: int
    mid: int
    taint: Any
    """What the ghost says of this message; 0 for nothing."""


COLD, HERE, ONWARD = 0, 1, 2
"""What a taint may still lead to at a process: nothing, a violation when the message is
delivered here, or one elsewhere, if this process has something left to send."""


class Seen(NamedTuple):
    """What a delivery does to a ghost."""

    state: State
    violation: str | None = None
    over: bool = False
    """The story ends here: nothing that follows matters to this ghost."""


class Ghost(ABC):
    """The rules by which a ghost moves; its states are plain values."""

    marks: ClassVar[bool] = False
    """Whether one message of a run is marked, by the choice of the search."""

    initial: ClassVar[State] = 0

    @abstractmethod
    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        """The taint of a message that is sent, and the ghost afterwards.

        `mark` is the destination of the copy that is marked, if one is.
        """

    @abstractmethod
    def delivers(
        self, state: State, me: int, source: int, mid: int, taint: Any, gone: int = 0
    ) -> Seen:
        """Return what a delivery does.

        `gone` are the processes that the receiver has forgotten, as bits: what they sent
        may be missing, as long as it is not delivered later.
        """

    def silent(self, state: State) -> State:
        """The ghost of a process that will send no more."""
        return state

    def may_mark(self, state: State, me: int, mid: int, to: tuple[int, ...]) -> list[int]:
        """The destinations of the copies of a message that may be marked."""
        return []

    def taints(self, me: int, several: bool) -> list[int]:
        """All taints of messages that may come to a process, none first.

        `several` is whether there are messages to more than one process.
        """
        return [0]

    def agree(self, taints: Iterable[int]) -> bool:
        """Whether these taints may be met in one run."""
        return True


class Plain(Ghost):
    """No ghost at all."""

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        return 0, state

    def delivers(
        self, state: State, me: int, source: int, mid: int, taint: Any, gone: int = 0
    ) -> Seen:
        return Seen(state)


class Marked(Ghost):
    """One marked copy; the state is 0, or 1 + d for one who knows of m1 to d.

    A taint is 0, or 1 + n * what + d, and what is one of

        PAST    a message with m1 in its past
        ONLY    m1, which goes to d alone
        ALSO    m1, which goes to others as well: they will know
    """

    marks = True

    PAST, ONLY, ALSO = range(3)

    OVERTAKEN = -1
    """The state at d if m1 is missing because d has forgotten its sender: the delivery of
    m1 would be a violation now."""

    def __init__(self, processes: int, m1: tuple[int, int] | None = None) -> None:
        self.processes = processes
        self.m1 = m1
        """The message to mark, by sender and number; None for any."""

    def sends(
        self, state: Any, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        if mark is None:
            return (0, state) if state == self.OVERTAKEN else (state, state)
        what = self.ONLY if to == (mark,) else self.ALSO
        return 1 + self.processes * what + mark, 1 + mark

    def delivers(
        self, state: State, me: int, source: int, mid: int, taint: Any, gone: int = 0
    ) -> Seen:
        if not taint:
            return Seen(state)
        what, d = divmod(taint - 1, self.processes)
        if me != d:
            return Seen(1 + d)
        if what == self.PAST:
            if self.m1 is not None and gone >> self.m1[0] & 1:
                return Seen(self.OVERTAKEN)
            return Seen(state, "causal order")
        if state == self.OVERTAKEN:
            return Seen(state, "causal order")
        return Seen(state, over=True)

    def silent(self, state: State) -> State:
        return state if state == self.OVERTAKEN else 0

    def may_mark(self, state: State, me: int, mid: int, to: tuple[int, ...]) -> list[int]:
        if self.m1 is not None and self.m1 != (me, mid):
            return []
        return list(to)

    def taints(self, me: int, several: bool) -> list[int]:
        n = self.processes
        return [0, *range(1, n + 1), 1 + n + me, *(range(1 + 2 * n, 1 + 3 * n) if several else ())]

    def agree(self, taints: Iterable[int]) -> bool:
        return len({(taint - 1) % self.processes for taint in taints if taint}) < 2

    @classmethod
    def heat(cls, taint: Any, processes: int, me: int) -> int:
        """What a message with a taint, on its way to `me` or held there, may lead to."""
        if not taint or not isinstance(taint, int):
            return COLD
        what, d = divmod(taint - 1, processes)
        if me == d:
            return HERE if what == cls.PAST else COLD
        return COLD if what == cls.ONLY else ONWARD


class Past(Ghost):
    """The whole causal past, as bits; `copies` numbers (sender, mid, receiver).

    The state is (known, got, lost): all copies in the past, those delivered here, and
    those that are missing because their sender was forgotten.
    """

    initial = (0, 0, 0)

    def __init__(self, processes: int, messages: int) -> None:
        self.processes = processes
        self.messages = messages
        unit = sum(1 << (k * processes) for k in range(processes * messages))
        self.addressed = [unit << d for d in range(processes)]

    def _bit(self, sender: int, mid: int, receiver: int) -> int:
        return 1 << ((sender * self.messages + mid - 1) * self.processes + receiver)

    def sends(
        self, state: Any, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        known, got, lost = state
        own = sum(self._bit(me, mid, j) for j in to)
        return (known, own), (known | own, got, lost)

    def delivers(
        self, state: Any, me: int, source: int, mid: int, taint: Any, gone: int = 0
    ) -> Seen:
        known, got, lost = state
        past, own = taint
        bit = self._bit(source, mid, me)
        missing = past & self.addressed[me] & ~got
        if lost & bit or (missing and missing & ~self._sent_by(gone)):
            return Seen(state, "causal order")
        return Seen((known | past | own, got | bit, lost | missing))

    def _sent_by(self, processes: int) -> int:
        """Return all copies of messages of these processes."""
        each = (1 << self.messages * self.processes) - 1
        width = self.messages * self.processes
        return sum(each << k * width for k in range(self.processes) if processes >> k & 1)

    def silent(self, state: Any) -> State:
        return (0, *state[1:])


class History(Ghost):
    """What was delivered here, in order."""

    initial = ()

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        return 0, state

    def delivers(
        self, state: Any, me: int, source: int, mid: int, taint: Any, gone: int = 0
    ) -> Seen:
        return Seen((*state, (source, mid)))


def stripped(value: Any) -> Any:
    """A packet, or a protocol's state, with 0 for every payload."""
    if isinstance(value, Tag):
        return 0
    if isinstance(value, tuple):
        return tuple([stripped(each) for each in value])
    return value


_ATOMS = frozenset([int, str, bool, type(None)])


def untainted(value: Any, forget: Callable[[Tag], bool]) -> Any:
    """A protocol's state with the taints wiped off that may be forgotten."""
    kind = type(value)
    if kind is Tag:
        return Tag(value[0], value[1], 0) if value[2] and forget(value) else value
    if kind is frozenset:
        return frozenset([untainted(each, forget) for each in value])
    if isinstance(value, tuple):
        return tuple([each if type(each) in _ATOMS else untainted(each, forget) for each in value])
    return value


def tags_in(value: Any) -> Iterator[Tag]:
    """The payloads in a packet, or in a protocol's state."""
    if type(value) is Tag:
        yield value
    elif isinstance(value, tuple | frozenset):
        for each in value:
            if type(each) not in _ATOMS:
                yield from tags_in(each)


def retagged(packet: Any, taints: Iterable[Any]) -> list[Any]:
    """The packets that a packet may be with other taints; itself, if it is no message."""
    fields = type(packet).fields
    if "payload" not in fields:
        return [packet]
    at = 1 + fields.index("payload")
    kind = type(packet)
    sender, mid, _ = packet[at]
    return [
        tuple.__new__(kind, (*packet[:at], Tag(sender, mid, taint), *packet[at + 1 :]))
        for taint in taints
    ]
