"""What a check found, for programs and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..trace.schema import INFERRED, ONE_FILE

__all__ = [
    "NEVER_SENT",
    "RECEIVED_AGAIN",
    "BadRow",
    "Link",
    "MessageId",
    "Report",
    "Violation",
]

NEVER_SENT = "delivered, but never sent"
"""The reason of a bad row: a delivery whose send is not in the trace."""

RECEIVED_AGAIN = "received again, from another incarnation with the same name"
"""The reason of a bad row: a node received a message of this number from both incarnations."""


class MessageId(NamedTuple):
    """A message: who sent it, and its number there."""

    origin: str
    mid: int

    def __str__(self) -> str:
        return f"{self.origin}:{self.mid}"

    def to_json(self) -> dict[str, Any]:
        """Return the message as values for JSON."""
        return self._asdict()


class Link(NamedTuple):
    """One message of a chain, and whom it was sent to.

    The next message of the chain was sent by the same process later, or by a
    process that had delivered this one.
    """

    message: MessageId
    to: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the link as values for JSON."""
        return {**self.message.to_json(), "to": list(self.to)}


class BadRow(NamedTuple):
    """A row that cannot be right, and took no part in the order."""

    run: str
    process: str
    seq: int
    origin: str
    mid: int
    reason: str

    def __str__(self) -> str:
        where = f"process {self.process!r} of run {self.run!r}, seq {self.seq}"
        return f"{where}: message {self.origin}:{self.mid} {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """Return the row as values for JSON."""
        return self._asdict()


@dataclass(frozen=True)
class Violation:
    """`first` happened before `second`; `process` delivered `second` without it.

    `seq` is the row of that delivery. `late` says whether `first` was delivered
    there later, or never. `chain` is a shortest chain of messages that leads
    from `first` to `second`, both included; empty if it reaches back too far to
    be looked for.
    """

    run: str
    process: str
    seq: int
    first: MessageId
    second: MessageId
    late: bool
    chain: tuple[Link, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As in the output of `causewire check --json`."""
        return {
            "run": self.run,
            "process": self.process,
            "seq": self.seq,
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "late": self.late,
            "chain": [link.to_json() for link in self.chain],
        }

    def __str__(self) -> str:
        """The argument, step by step."""
        steps = []
        before: Link | None = None
        for link in self.chain:
            message, sender = link.message, link.message.origin
            to = _listed(link.to)
            if before is None:
                steps.append(f"{sender} sent {message} to {to}")
            elif before.message.origin == sender:
                steps.append(f"{sender} then sent {message} to {to}")
            else:
                steps.append(f"{sender} delivered {before.message} and then sent {message} to {to}")
            before = link
        story = "; ".join(steps) + "; so " if steps else ""
        rest = f"{self.first} only later" if self.late else f"{self.first} never"
        return (
            f"{story}{self.first} happened before {self.second}, "
            f"but {self.process} delivered {self.second} first, and {rest}"
        )


def _listed(names: tuple[str, ...]) -> str:
    """A few names in words."""
    if len(names) > 6:
        names = (*names[:5], f"{len(names) - 5} more")
    if len(names) < 2:
        return "".join(names) or "nobody"
    return ", ".join(names[:-1]) + " and " + names[-1]


@dataclass
class Report:
    """The outcome of a check.

    `violations` counts triples: a message, one that happened before it, and a
    process that delivered the former without the latter. `undelivered` counts
    copies: a message and a destination. `identical` counts rows that are there more than
    once, and were taken once; `lost`, copies that were lost with a process that was
    restarted, and cannot be overtaken. `delivered` says whether any delivery took part in
    the order. `bad` counts rows that cannot be right,
    by reason; `duplicates`, second deliveries, are not among them. `doubtful` counts the
    violations of runs in which messages came from two incarnations with one name. `examples`
    has, for the first messages that were overtaken, the first time that it
    happened to each; `bad_rows` has the first of those. `unread` names the files, with
    the reason, of which nothing, or not everything, could be read. `inferred` says whether
    messages were inferred from vector clocks, with which they agree by construction.
    """

    events: int = 0
    messages: int = 0
    processes: int = 0
    runs: int = 0
    violations: int = 0
    duplicates: int = 0
    undelivered: int = 0
    identical: int = 0
    lost: int = 0
    doubtful: int = 0
    delivered: bool = False
    bad: Counter[str] = field(default_factory=Counter)
    examples: list[Violation] = field(default_factory=list)
    bad_rows: list[BadRow] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    inferred: bool = False

    @property
    def ordered(self) -> bool:
        """Whether no violation was found."""
        return self.violations == 0

    @property
    def conclusive(self) -> bool:
        """Whether the input is complete and consistent, so that finding no violation means order.

        It is not if files could not be read, if there are rows that cannot be right, if messages
        were inferred, or if nothing was delivered, so that there is nothing to order.
        """
        return self.delivered and not (self.bad or self.unread or self.inferred)

    @property
    def verdict(self) -> str:
        """The outcome in one line: in order, violated, or why the check cannot tell."""
        if certain := self.violations - self.doubtful:
            return f"NOT causally ordered: {_count(certain, 'violation')}"
        if self.conclusive:
            return "causally ordered"
        reasons = []
        if self.unread:
            more = "; ..." if len(self.unread) > 1 else ""
            files = _count(len(self.unread), "file")
            reasons.append(f"{files} could not be read ({self.unread[0]}{more})")
        if missing := self.bad[NEVER_SENT]:
            senders = sorted({row.origin for row in self.bad_rows if row.reason == NEVER_SENT})
            of = f" of {_listed(tuple(senders))}" if senders else ""
            reasons.append(
                f"the sends of {_count(missing, 'delivery', 'deliveries')}{of} are missing "
                "(give the files of all nodes)"
            )
        if again := self.bad[RECEIVED_AGAIN]:
            seeming = _count(self.doubtful, "violation")
            reasons.append(
                f"{_count(again, 'message')} came from another incarnation with the same name "
                f"({ONE_FILE}){'' if self.ordered else f', which may explain {seeming}'}"
            )
        if others := self.bad.total() - missing - again:
            reasons.append(f"{_count(others, 'row')} cannot be right")
        if self.inferred:
            reasons.append(INFERRED)
        if not reasons:
            reasons.append("no message was delivered" if self.messages else "there are no messages")
        return f"cannot tell: {', and '.join(reasons)}"

    def to_json(self) -> dict[str, Any]:
        """As in the output of `causewire check --json`."""
        return {
            "events": self.events,
            "messages": self.messages,
            "processes": self.processes,
            "runs": self.runs,
            "violations": self.violations,
            "duplicates": self.duplicates,
            "undelivered": self.undelivered,
            "identical": self.identical,
            "lost": self.lost,
            "bad": self.bad.total(),
            "reasons": dict(sorted(self.bad.items())),
            "verdict": self.verdict,
            "unread": list(self.unread),
            "inferred": self.inferred,
            "examples": [violation.to_json() for violation in self.examples],
            "bad_rows": [row.to_json() for row in self.bad_rows],
        }

    def __str__(self) -> str:
        size = [
            _count(self.events, "event"),
            _count(self.messages, "message"),
            _count(self.processes, "process", "processes"),
            _count(self.runs, "run"),
        ]
        lines = [", ".join(size)]
        lines.append(self.verdict)
        if self.duplicates:
            lines.append(_count(self.duplicates, "duplicate"))
        if self.undelivered:
            lines.append(f"{_count(self.undelivered, 'copy', 'copies')} undelivered")
        for reason, count in sorted(self.bad.items()):
            lines.append(f"{_count(count, 'bad row')}: {reason}")
        lines += [f"  {row}" for row in self.bad_rows]
        lines += [f"in run {v.run!r}: {v}" for v in self.examples]
        return "\n".join(lines)


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
