"""Judges a run from the definition of happened-before, and from nothing else.

The oracle observes every causal send and every delivery, in the order in which
they happen, and knows nothing of packets, acks, clocks or protocols: it shares no
code with what it judges. The definition (Almeida, section 4.1) is over messages:

    m1 hb m2, the transitive closure of
    (1) the sender of m2 delivered m1 before it sent m2;
    (2) the sender of m2 sent m1 before it sent m2.

    causal delivery: if m1 hb m2, a process that delivers both delivers m1 first.

So the oracle keeps, for each process, the set of messages that happened before anything it
would send now. A message carries that set as its causal past, and passes it on to each
process that delivers it. Sets of messages are integers here, with one bit for each message,
so "which messages of its past, addressed to this process, have not been delivered to it?"
is one expression.

A delivery may be wrong in other ways, too: the message was never sent, or not to this
process, or was delivered before, or has another payload. When a run is over, what was sent
and not delivered is `undelivered`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Self

__all__ = ["Event", "Oracle", "OracleViolation", "SentMessage"]


class SentMessage:
    """A message that was sent, with its causal past at that moment."""

    __slots__ = ("bit", "mid", "name", "origin", "past", "payload", "to")

    def __init__(
        self, origin: str, mid: int, to: tuple[str, ...], payload: Any, name: str, bit: int
    ) -> None:
        self.origin = origin
        self.mid = mid
        self.to = to
        self.payload = payload
        self.name = name
        self.bit = bit
        """This message, as a set of messages."""
        self.past = 0
        """The messages that happened before this one, as a set."""

    def __repr__(self) -> str:
        return f"<SentMessage {self.name}: {self.origin} to {', '.join(self.to)}>"

    def __str__(self) -> str:
        return self.name


class Event(NamedTuple):
    """A causal send or a delivery."""

    process: str
    kind: str
    message: SentMessage


class OracleViolation(NamedTuple):
    """One way in which a run was wrong.

    `causal`        `message` was delivered at `process`, and `earlier`, which
                    happened before it and was sent to `process` too, was not yet
    `duplicate`     `message` was delivered at `process` once more
    `misaddressed`  `message` was delivered at `process`, not a destination
    `altered`       `message` was delivered with another payload
    `unsent`        what was delivered at `process` was never sent by anybody
    `undelivered`   the run is over and `message` was never delivered at `process`
    """

    kind: str
    process: str
    message: SentMessage
    earlier: SentMessage | None = None

    @property
    def fifo(self) -> bool:
        """Whether even the order of one sender's messages was violated."""
        return self.earlier is not None and self.earlier.origin == self.message.origin


class Oracle:
    """Sees the sends and deliveries of a run, and collects its violations."""

    __slots__ = ("_due", "_got", "_past", "history", "messages", "violations")

    def __init__(self) -> None:
        self.messages: dict[tuple[str, int], SentMessage] = {}
        """All that was sent, by origin and number, in the order of sending."""
        self.history: list[Event] = []
        """Everything that happened, in order."""
        self.violations: list[OracleViolation] = []
        self._past: defaultdict[str, int] = defaultdict(int)
        """What happened before whatever a process sends next."""
        self._due: defaultdict[str, int] = defaultdict(int)
        """What was sent to a process."""
        self._got: defaultdict[str, int] = defaultdict(int)
        """What a process delivered."""

    def __copy__(self) -> Self:
        twin = object.__new__(type(self))
        twin.messages = self.messages.copy()
        twin.history = self.history[:]
        twin.violations = self.violations[:]
        twin._past = self._past.copy()
        twin._due = self._due.copy()
        twin._got = self._got.copy()
        return twin

    # -- what it observes -----------------------------------------------------

    def sent(
        self, process: str, mid: int, to: Iterable[str], payload: Any = None, name: str = ""
    ) -> SentMessage:
        """Record that a process sends a message; call this before it can be delivered."""
        bit = 1 << len(self.messages)
        message = SentMessage(process, mid, tuple(to), payload, name or f"{process}#{mid}", bit)
        if self.messages.setdefault((process, mid), message) is not message:
            raise ValueError(f"{process} sent message {mid} before")
        message.past = self._past[process]
        self._past[process] |= bit
        due = self._due
        for destination in message.to:
            due[destination] |= bit
        self.history.append(tuple.__new__(Event, (process, "send", message)))
        return message

    def retract(self, message: SentMessage) -> None:
        """Undo the last record, a send that was refused."""
        last = self.history.pop()
        if last.message is not message or last.kind != "send":
            self.history.append(last)
            raise ValueError(f"{message!r} is not the last thing that happened")
        del self.messages[message.origin, message.mid]
        self._past[message.origin] = message.past
        for destination in message.to:
            self._due[destination] &= ~message.bit

    def delivered(
        self, process: str, origin: str, mid: int, payload: Any = None
    ) -> SentMessage | None:
        """Record that a process delivers message `mid` of `origin`.

        Returns the message, or None if the delivery is wrong in a way other than its order.
        """
        message = self.messages.get((origin, mid))
        if message is None:
            ghost = SentMessage(origin, mid, (), payload, f"{origin}#{mid}", 0)
            self.violations.append(OracleViolation("unsent", process, ghost))
            return None
        bit = message.bit
        got = self._got[process]
        due = self._due[process]
        self.history.append(tuple.__new__(Event, (process, "deliver", message)))
        if got & bit or not due & bit:
            kind = "duplicate" if got & bit else "misaddressed"
            self.violations.append(OracleViolation(kind, process, message))
            return None
        overtaken = message.past & due & ~got
        if overtaken:
            self.violations.extend(
                OracleViolation("causal", process, message, earlier)
                for earlier in self._set(overtaken)
            )
        if payload is not message.payload and payload != message.payload:
            self.violations.append(OracleViolation("altered", process, message))
        self._got[process] = got | bit
        self._past[process] |= message.past | bit
        return message

    # -- what it is asked -----------------------------------------------------

    def undelivered(self) -> list[OracleViolation]:
        """Return what was sent and not delivered, as violations, for a run that is over."""
        return [
            OracleViolation("undelivered", process, message)
            for process, due in self._due.items()
            if due != self._got[process]
            for message in self._set(due & ~self._got[process])
        ]

    @property
    def deliveries(self) -> int:
        """How many messages were delivered, counting each destination."""
        return sum(map(int.bit_count, self._got.values()))

    def concurrent(self) -> int:
        """Return the number of pairs of messages of which neither happened before the other."""
        ordered = sum(message.past.bit_count() for message in self.messages.values())
        n = len(self.messages)
        return n * (n - 1) // 2 - ordered

    def chain(self, first: SentMessage, second: SentMessage) -> list[SentMessage]:
        """Return a shortest chain of messages from `first` to `second`.

        Each happened before the next by clause (1) or (2) of the definition. The list is
        empty if there is no chain.
        """
        paths = [[second]]
        seen = second.bit
        for path in paths:
            for message in self._direct(path[0]):
                if message is first:
                    return [first, *path]
                if not message.bit & seen:
                    seen |= message.bit
                    paths.append([message, *path])
        return []

    def explain(self, violation: OracleViolation) -> str:
        """Return what was wrong, and for causal order why, in sentences."""
        kind, process, message, earlier = violation
        if kind == "causal" and earlier is not None:
            chain = self.chain(earlier, message)
            lines = [
                f"{process} delivered {message} before {earlier}, which happened before it:",
                *(f"    {self._step(a, b)}" for a, b in pairwise(chain)),
            ]
            return "\n".join(lines)
        sender = message.origin
        return {
            "duplicate": f"{process} delivered {message} of {sender} more than once",
            "misaddressed": f"{process} delivered {message} of {sender}, not sent to it",
            "altered": f"{process} delivered {message} of {sender} with another payload",
            "unsent": f"{process} delivered {message} of {sender}, which was never sent",
            "undelivered": f"{process} never delivered {message} of {sender}",
        }[kind]

    def _set(self, messages: int) -> Iterator[SentMessage]:
        """The members of a set, in the order in which they were sent."""
        if messages:
            for message in self.messages.values():
                if message.bit & messages:
                    yield message

    def _direct(self, message: SentMessage) -> Iterator[SentMessage]:
        """What happened before `message` by (1) or (2), the first to happen first."""
        for process, kind, other in self.history:
            if process == message.origin:
                if other is message and kind == "send":
                    return
                yield other

    def _step(self, first: SentMessage, second: SentMessage) -> str:
        """Why `first` happened before `second`, by clause (1) or (2)."""
        did = "sent" if first.origin == second.origin else "delivered"
        return f"{second.origin} {did} {first} before it sent {second}"
