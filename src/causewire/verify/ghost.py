"""What the check itself keeps, beside the protocol: who knows of which message.

Causal order is judged from outside, by what the application sends and gets, never
by what the protocol says of itself. A *ghost* is the observer's part of a local
state. It travels where causality travels: in the payload of a message, which
no protocol looks at, and in the memory of a process. So it is local, and a step
of one process can be judged on the spot.

    Plain     Nothing. What is checked is that messages are delivered once, in the
              order of their sender, and all of them in the end.

    Marked    One bit. One message to process d, m1, is marked when it is sent;
              whoever sends it or gets a message that has it in its past *knows*.
              A message sent by one who knows is *tainted*. The delivery of a
              tainted message at d is a violation: m1 happened before it, and is
              not there, since with the delivery of m1 the story ends. Which
              message is marked is left open, so one search covers all m1 to d.

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
TAINTED = Tag(1)
M1 = Tag(2)


class Seen(NamedTuple):
    """What a delivery does to a ghost."""

    state: State
    violation: str | None = None
    over: bool = False
    """The story ends here: nothing that follows matters to this ghost."""


class Ghost(ABC):
    """The rules by which a ghost moves; its states are plain values."""

    marks: ClassVar[bool] = False
    """Whether a send may mark its message, which is the client's to choose."""

    initial: ClassVar[State] = 0

    @abstractmethod
    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: bool
    ) -> tuple[Any, State]:
        """The payload of a message that is sent, and the ghost afterwards."""

    @abstractmethod
    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        """What comes of a delivery."""

    def silent(self, state: State) -> State:
        """The ghost of a process that will send no more."""
        return state

    def may_mark(self, state: State, to: tuple[int, ...]) -> bool:
        """Whether the next message may be the one that is marked."""
        return False


class Plain(Ghost):
    """No ghost at all."""

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: bool
    ) -> tuple[Any, State]:
        return CLEAN, state

    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        return Seen(state)


class Marked(Ghost):
    """One marked message to process `d`; the state is whether it is known."""

    marks = True

    def __init__(self, d: int) -> None:
        self.d = d

    def sends(
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: bool
    ) -> tuple[Any, State]:
        if mark:
            return M1, 1
        return (TAINTED if state else CLEAN), state

    def delivers(self, state: State, me: int, source: int, mid: int, payload: Any) -> Seen:
        if payload == CLEAN:
            return Seen(state)
        if me != self.d:
            return Seen(1)
        if payload == M1:
            return Seen(state, over=True)
        return Seen(state, "causal order")

    def silent(self, state: State) -> State:
        return 0

    def may_mark(self, state: State, to: tuple[int, ...]) -> bool:
        return not state and self.d in to


class Past(Ghost):
    """The whole causal past, as bits; `copies` numbers (sender, mid, receiver).

    The state is (known, got): all copies in the past, and those delivered here.
    """

    initial = (0, 0)

    def __init__(self, processes: int, messages: int) -> None:
        self.processes = processes
        self.messages = messages
        step = (1 << processes) - 1
        unit = sum(1 << (k * processes) for k in range(processes * messages))
        self.addressed = [unit << d for d in range(processes)]
        assert step

    def _bit(self, sender: int, mid: int, receiver: int) -> int:
        return 1 << ((sender * self.messages + mid - 1) * self.processes + receiver)

    def sends(
        self, state: Any, me: int, mid: int, to: tuple[int, ...], mark: bool
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
        self, state: State, me: int, mid: int, to: tuple[int, ...], mark: bool
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


def retagged(packet: Any) -> list[Any]:
    """The packets that a packet may be with other tags, itself included.

    One that carries no payload has no others.
    """
    fields = type(packet).fields
    if "payload" not in fields:
        return [packet]
    at = 1 + fields.index("payload")
    kind = type(packet)
    return [
        tuple.__new__(kind, (*packet[:at], tag, *packet[at + 1 :]))
        for tag in (CLEAN, TAINTED, M1)
    ]
