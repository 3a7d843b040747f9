"""What the check itself keeps, beside the protocol: who knows of which message.

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

After the last send of a process nobody will learn from it what it knows: the
ghost forgets it, so that states that differ in nothing else are one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, ClassVar, NamedTuple, TypeAlias

__all__ = ["Ghost", "History", "Marked", "Past", "Plain", "Seen", "Tag", "retagged", "stripped"]

State: TypeAlias = Hashable


class Tag(int):
    """A payload. A type of its own, so that it can be found in a protocol's state."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Tag({int(self)})"


CLEAN = Tag(0)


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
        """The payload of a message that is sent, and the ghost afterwards.

        `mark` is the destination of the copy that is marked, if one is.
        """

    @abstractmethod
    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        """What comes of a delivery."""

    def silent(self, state: State) -> State:
        """The ghost of a process that will send no more."""
        return state

    def may_mark(self, state: State, me: int, mid: int, to: tuple[int, ...]) -> list[int]:
        """The destinations of the copies of a message that may be marked."""
        return []

    def tags(self) -> list[Tag]:
        """All tags that a payload may have, none first."""
        return [CLEAN]


class Plain(Ghost):
    """No ghost at all."""

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        return CLEAN, state

    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        return Seen(state)


class Marked(Ghost):
    """One marked copy; the state is 0, or 1 + d for one who knows of m1 to d.

    Payloads: 0, 1 + d for a tainted message, 1 + n + d for m1 itself.
    """

    marks = True

    def __init__(self, processes: int, m1: tuple[int, int] | None = None) -> None:
        self.processes = processes
        self.m1 = m1
        """The message to mark, by sender and number; None for any."""

    def sends(
        self, state: Any, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        if mark is not None:
            return Tag(1 + self.processes + mark), 1 + mark
        return Tag(state), state

    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        if payload == 0:
            return Seen(state)
        is_m1, d = divmod(payload - 1, self.processes)
        if me != d:
            return Seen(1 + d)
        if is_m1:
            return Seen(state, over=True)
        return Seen(state, "causal order")

    def silent(self, state: State) -> State:
        return 0

    def may_mark(self, state: State, me: int, mid: int, to: tuple[int, ...]) -> list[int]:
        if state or (self.m1 is not None and self.m1 != (me, mid)):
            return []
        return [j for j in to if j != me]

    def tags(self) -> list[Tag]:
        return [Tag(k) for k in range(1 + 2 * self.processes)]


class Past(Ghost):
    """The whole causal past, as bits; `copies` numbers (sender, mid, receiver).

    The state is (known, got): all copies in the past, and those delivered here.
    """

    initial = (0, 0)

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
        known, got = state
        own = sum(self._bit(me, mid, j) for j in to)
        return (Tag(known), Tag(own)), (known | own, got)

    def delivers(self, state: Any, me: int, source: int, mid: int, payload: Any) -> Seen:
        known, got = state
        past, own = payload
        if past & self.addressed[me] & ~got:
            return Seen(state, "causal order")
        return Seen((known | past | own, got | self._bit(source, mid, me)))

    def silent(self, state: Any) -> State:
        return (0, state[1])


class History(Ghost):
    """What was delivered here, in order."""

    initial = ()

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: int | None
    ) -> tuple[Any, State]:
        return CLEAN, state

    def delivers(self, state: Any, me: int, source: int, mid: int, payload: Any) -> Seen:
        return Seen((*state, (source, mid)))


def stripped(value: Any) -> Any:
    """A protocol's state without its ghost: every tag becomes `CLEAN`."""
    if isinstance(value, Tag):
        return CLEAN
    if isinstance(value, tuple):
        return tuple([stripped(each) for each in value])
    if isinstance(value, frozenset):
        return frozenset([stripped(each) for each in value])
    return value


def retagged(packet: Any, tags: list[Tag]) -> list[Any]:
    """The packets that a packet may be with other tags; itself, if it carries none."""
    fields = type(packet).fields
    if "payload" not in fields:
        return [packet]
    at = 1 + fields.index("payload")
    kind = type(packet)
    return [
        tuple.__new__(kind, (*packet[:at], tag, *packet[at + 1 :]))
        for tag in tags
    ]
