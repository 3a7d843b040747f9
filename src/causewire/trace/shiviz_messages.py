"""Messages in the events of a ShiViz log: from their texts, their names, or their clocks.

`shiviz.py` finds the events of a log, and says in which of the three ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .schema import DELIVER, SEND, Event, TraceError

__all__ = [
    "LogEntry",
    "events_from_clocks",
    "events_from_names",
    "events_from_text",
    "written_event",
]

LOCAL = "local"
"""Kind of the rows for events that neither send nor deliver."""


class LogEntry(NamedTuple):
    """One event of a log."""

    line: int
    host: str
    clock: dict[str, int]
    text: str
    groups: dict[str, str | None]

    @property
    def own(self) -> int:
        """The host's own component of the clock."""
        return self.clock[self.host]


class _Rows:
    """Makes rows with `seq` and Lamport times of their own."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.events: list[Event] = []
        self._seq: dict[str, int] = {}
        self._lamport: dict[str, int] = {}
        self._sent: dict[tuple[str, int], int] = {}

    def add(
        self,
        host: str,
        kind: str,
        origin: str | None = None,
        mid: int | None = None,
        peers: Iterable[str] = (),
    ) -> None:
        lamport = self._lamport.get(host, 0) + 1
        if origin is not None and mid is not None:
            if kind == DELIVER:
                lamport = max(lamport, self._sent.get((origin, mid), 0) + 1)
            elif kind == SEND:
                self._sent.setdefault((origin, mid), lamport)
        seq = self._seq.get(host, 0)
        self._seq[host] = seq + 1
        self._lamport[host] = lamport
        self.events.append(
            Event(self.run, host, seq, None, lamport, kind, origin, mid, tuple(peers))
        )


# -- ours ---------------------------------------------------------------------------

_TEXT = re.compile(r"(\S+) (\{.*\})")


def written_event(entry: LogEntry) -> tuple[str, Mapping[str, Any]] | None:
    """Kind and message, if the text is one that we write."""
    match = _TEXT.fullmatch(entry.text.strip())
    if match is None:
        return None
    try:
        about = json.loads(match[2])
    except ValueError:
        return None
    if not isinstance(about, dict) or about.keys() != {"origin", "mid", "peers"}:
        return None
    origin, mid, peers = about["origin"], about["mid"], about["peers"]
    if not (origin is None or isinstance(origin, str)) or not (mid is None or type(mid) is int):
        return None
    if match[1] in (SEND, DELIVER) and (origin is None or mid is None):
        return None
    if not isinstance(peers, list) or not all(isinstance(peer, str) for peer in peers):
        return None
    return match[1], about


def events_from_text(run: str, entries: Iterable[LogEntry]) -> list[Event]:
    """Return the events of a log that `write_shiviz` wrote."""
    rows = _Rows(run)
    for entry in entries:
        found = written_event(entry)
        assert found is not None
        kind, about = found
        rows.add(entry.host, kind, about["origin"], about["mid"], about["peers"])
    return rows.events


# -- messages with names ----------------------------------------------------------------


def events_from_names(path: object, run: str, entries: list[LogEntry]) -> list[Event]:
    """Return the events of entries whose expression names their messages.

    Raises:
        TraceError: A message is sent twice by a host, delivered without having been sent,
            or its sender is not clear.
    """
    sends: dict[str, dict[str, LogEntry]] = {}  # by name, then by sender
    for entry in entries:
        name, got = entry.groups["send"], entry.groups["deliver"]
        if name is not None and got is not None:
            raise TraceError(path, entry.line, "an event cannot both send and deliver")
        if name is not None:
            before = sends.setdefault(name, {}).get(entry.host)
            if before is not None:
                raise TraceError(
                    path, entry.line, f"message {name!r} is sent twice (line {before.line})"
                )
            sends[name][entry.host] = entry
    previous: dict[str, LogEntry] = {}
    taken: dict[int, LogEntry] = {}  # line of a delivery -> its send
    delivered: dict[int, list[str]] = {}  # line of a send -> who delivered it
    for entry in entries:
        if (got := entry.groups["deliver"]) is not None:
            send = _send_of(path, entry, got, sends.get(got, {}), previous.get(entry.host))
            taken[entry.line] = send
            delivered.setdefault(send.line, []).append(entry.host)
        previous[entry.host] = entry
    rows = _Rows(run)
    for entry in entries:
        if entry.groups["send"] is not None:
            to = entry.groups.get("to")
            peers = dict.fromkeys(delivered.get(entry.line, ()) if to is None else _names(to))
            rows.add(entry.host, SEND, entry.host, entry.own, peers)
        elif entry.groups["deliver"] is not None:
            send = taken[entry.line]
            rows.add(entry.host, DELIVER, send.host, send.own, [send.host])
        else:
            rows.add(entry.host, LOCAL)
    return rows.events


def _send_of(
    path: object,
    entry: LogEntry,
    name: str,
    sends: Mapping[str, LogEntry],
    before: LogEntry | None,
) -> LogEntry:
    """Return the send of the message that an entry delivers.

    Names may be unique for each sender only. Then the expression tells the sender (group
    `from`), or it is the one that the clock has just come to know.
    """
    if not sends:
        raise TraceError(path, entry.line, f"message {name!r} is never sent")
    sender = entry.groups.get("from")
    if sender is not None:
        if sender not in sends:
            raise TraceError(path, entry.line, f"message {name!r} is never sent by {sender!r}")
        found = [sends[sender]]
    else:
        found = list(sends.values())
    known = [send for send in found if entry.clock.get(send.host, 0) >= send.own]
    if not known:
        send = found[0]
        raise TraceError(
            path,
            entry.line,
            f"message {name!r} is delivered, but the clock knows nothing of its send "
            f"(event {send.own} of {send.host!r})",
        )
    earlier = before.clock if before is not None else {}
    new = [send for send in known if earlier.get(send.host, 0) < send.own]
    here = [send for send in known if entry.host in _names(send.groups.get("to") or "")]
    for some in (known, here, new, [send for send in new if send in here]):
        if len(some) == 1:
            return some[0]
    hosts = " and ".join(sorted(send.host for send in known))
    raise TraceError(
        path,
        entry.line,
        f"message {name!r} is sent by {hosts}: the expression should tell the sender (group from)",
    )


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", text) if name]


# -- messages inferred from clocks ----------------------------------------------------------


def events_from_clocks(run: str, entries: list[LogEntry]) -> list[Event]:
    """Infer messages from vector clocks alone, and return the events."""
    known = {(entry.host, entry.own): entry for entry in entries}
    learnt: dict[tuple[str, int], list[tuple[str, int]]] = {}  # event -> sends that it received
    to: dict[tuple[str, int], dict[str, None]] = {}  # send -> who learnt from it
    for entry in entries:
        before = known[entry.host, entry.own - 1].clock if entry.own > 1 else {}
        new = [
            (other, number)
            for other, number in sorted(entry.clock.items())
            if other != entry.host and number > before.get(other, 0)
        ]
        latest = [
            event
            for event in new
            if not any(
                known[other].clock.get(event[0], 0) >= event[1] for other in new if other != event
            )
        ]
        learnt[entry.host, entry.own] = latest
        for event in latest:
            to.setdefault(event, {})[entry.host] = None
    rows = _Rows(run)
    for entry in entries:
        me = entry.host, entry.own
        for origin, mid in learnt[me]:
            rows.add(entry.host, DELIVER, origin, mid, [origin])
        if me in to:
            rows.add(entry.host, SEND, *me, to[me])
        elif not learnt[me]:
            rows.add(entry.host, LOCAL)
    return rows.events
