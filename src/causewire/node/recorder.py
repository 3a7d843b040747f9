"""Writes the trace of what happens at a node.

    start     a start of the process; the rows of its second start have a name of their own,
              like `alice/2`, since that process knows nothing of the first
    send      causal send
    release   a message is put on the network; metadata_bytes is what it takes in a datagram
              in addition to its payload, if it is alone in it
    receive   a message arrives for the first time
    held      a message that came has to wait, and each row `held_for` that follows names a
              message that it waits for; peers: from whom the message came that waits
    lane      a message waits here for its destination alone; peers: this destination
    control   a packet without a message leaves (protocols that run on a link)
    deliver   a message is put into the application's queue

`held`, `held_for` and `lane` are written under `adaptive`.

While a node writes a trace, its datagrams carry its Lamport time, so that the column
`lamport` orders the rows of all nodes that do.

A peer that starts again with another trace file, or with none, has the same label as before.
From the first message of its new incarnation on, it is called `alice (incarnation 17)` here, so
that nobody takes its messages for those of the former one, which had the same numbers.

Writing a trace never affects messages: when it fails, for instance since the disk is full,
the trace ends, and `failure` says which and why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ..core.endpoint import Blocked, Delivery
from ..core.run import MessageRun
from ..trace import (
    DELIVER,
    HELD,
    HELD_FOR,
    LANE,
    RECEIVE,
    RELEASE,
    SEND,
    Event,
    TraceWriter,
    open_trace,
    open_writer,
)
from ..trace.schema import START
from ..transport import Session
from ..transport.frames import put_run

__all__ = ["TraceRecorder", "lives_in"]


def lives_in(path: str | os.PathLike[str], name: str) -> int:
    """Return how many starts of a process a live trace has already."""
    if Path(path).suffix != ".jsonl" or not Path(path).exists():
        return 0
    trace = open_trace(path, tolerate_cut=True)
    return sum(
        event.kind == START and event.process.partition("/")[0] == name for event in trace.events()
    )


def _label(alias: str, labels: dict[str, str]) -> str:
    """Return the label of a process; one that was not met yet has its plain name."""
    return labels.get(alias) or alias.partition("\0")[0]


class TraceRecorder:
    """An observer of a transport that writes rows of a trace."""

    def __init__(
        self,
        path: str | os.PathLike[str] | TraceWriter,
        run: str,
        name: str,
        life: int,
        message_number: Callable[[int, bytes], int | None] = lambda mid, _: mid,
        list_bytes: Callable[[bytes, bool], int] = lambda payload, per: 0,
    ) -> None:
        self._message_number = message_number
        self._list_bytes = list_bytes
        if not isinstance(path, TraceWriter):
            path = open_writer(path, live=Path(path).suffix == ".jsonl")
        self._writer = path
        self._path = os.fspath(path.path)
        self._run = run
        self._name = name
        self.clock = 0
        self.failure: str | None = None
        """Which trace ends, and why, if it could not be written."""
        self._first: dict[str, int] = {}
        """Of each label: the first incarnation that a message arrived from.

        It is never dropped: each entry has at least one row in the trace, which takes more.
        """
        self._latest: dict[str, str] = {}
        """What to call the latest incarnation with a label, if it is not the first."""
        self._renamed: dict[str, str]
        """What to call incarnations that are not the first with their label, by alias."""
        self.begin_life(life)

    def begin_life(self, life: int) -> None:
        """Record what follows under the label of a new incarnation."""
        self._process = self._name if life == 1 else f"{self._name}/{life}"
        self._seq = 0
        self._renamed = {}  # aliases begin anew
        self._row(START, None, None, ())

    def _row(
        self,
        kind: str,
        origin: str | None,
        mid: int | None,
        peers: tuple[str, ...],
        payload: int | None = None,
        metadata: int | None = None,
    ) -> None:
        self.clock += 1
        now = time.time_ns()
        who = (self._run, self._process, self._seq, now, self.clock)
        if self.failure is None:
            try:
                self._writer.write(Event(*who, kind, origin, mid, peers, payload, metadata))
            except Exception as error:
                self._failed(error)
        self._seq += 1

    def sent(self, mid: int, to: tuple[str, ...], size: int) -> None:
        """Write a row for a causal send."""
        latest = self._latest
        names = tuple(
            [self._process if name == self._name else latest.get(name, name) for name in to]
        )
        self._row(SEND, self._process, mid, names, size)

    def released(self, session: Session, run: MessageRun) -> None:
        """Write a row for each message put on the network."""
        label = self._latest.get(session.label, session.label)
        label = self._renamed.get(session.alias, label)
        pids = (run.pid, *run.mids)
        for mid, pid, payload in zip(run.mids, pids, run.payloads, strict=False):
            size = len(payload)
            alone = MessageRun((mid,), pid, (payload,), False, size)
            listed = self._list_bytes(payload, run.per)
            metadata = len(put_run(alone, (size,))) - size + listed
            size -= listed
            number = self._message_number(mid, payload)
            if number is None:
                self._row("control", None, None, (label,), None, size + metadata)
            else:
                self._row(RELEASE, self._process, number, (label,), size, metadata)

    def arrived(self, session: Session, run: MessageRun) -> None:
        """Write a row for each message that arrived."""
        label = session.label
        if self._first.setdefault(label, session.incarnation) != session.incarnation:
            label = self._rename(session)
        for mid, payload in zip(run.mids, run.payloads, strict=True):
            number = self._message_number(mid, payload)
            if number is not None:
                size = len(payload) - self._list_bytes(payload, run.per)
                self._row(RECEIVE, label, number, (label,), size)

    def _rename(self, session: Session) -> str:
        """Return what to call a peer whose label is that of an earlier incarnation."""
        name = self._renamed.get(session.alias)
        if name is None:
            name = f"{session.label} (incarnation {session.incarnation})"
            self._renamed[session.alias] = self._latest[session.label] = name
        return name

    def waiting(self, waits: list[Blocked], labels: dict[str, str]) -> None:
        """Write rows for messages that have begun to wait, and for what each waits for."""
        if self._renamed:
            labels = {**labels, **self._renamed}
        for origin, mid, to, where, reasons in waits:
            if where == "sender":
                self._row(LANE, self._process, mid, (_label(to, labels),))
                continue
            source = _label(origin, labels)
            self._row(HELD, source, mid, (source,))
            for wait in reasons:
                self._row(HELD_FOR, _label(wait.peer, labels), wait.mid, (source,))

    def delivered(self, deliveries: list[Delivery], labels: dict[str, str]) -> None:
        """Write a row for each delivery."""
        renamed = self._renamed
        if len(renamed) > len(labels):  # some are of incarnations that are gone
            renamed = self._renamed = {a: name for a, name in renamed.items() if a in labels}
        for source, mid, payload in deliveries:
            origin = renamed.get(source) or labels.get(source, self._process)
            self._row(DELIVER, origin, mid, (origin,), len(payload))

    def turn(self) -> None:
        """Write nothing: a turn is no event."""

    def flush(self) -> None:
        """Write everything to the file."""
        if self.failure is None:
            try:
                self._writer.flush()
            except Exception as error:
                self._failed(error)

    def close(self) -> None:
        """Close the file."""
        try:
            self._writer.close()
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Keep the first error that ends the trace."""
        self.failure = self.failure or f"{self._path}: {type(error).__name__}: {error}"
