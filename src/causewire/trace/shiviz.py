r"""ShiViz logs: vector-clock text, read as traces and written from them.

ShiViz draws what GoVector and its relatives log: free text in which a regular
expression with the named groups `host`, `clock` (a JSON object from hosts to
numbers) and `event` finds the events. GoVector's own form has two lines an event:

    alice {"alice":3, "bob":1}
    sending hello

An event's own entry counts the events of its host: 1, 2, 3, ... Several runs in
a file are separated by lines that a second expression matches, whose group
`trace` names the run that follows.

**Written** logs have an event for each `send` and `deliver` row (or for other
kinds too, if asked), with clocks that follow these rows alone, and a text such
as `send {"origin":"alice","mid":1,"peers":["bob"]}`. Read back, they give the
same messages, sent and delivered in the same order. ShiViz opens them with its
default expression; `DELIMITER` is what to enter for several runs. A delivery
that came too late has no arrow in ShiViz's picture: its clock brings nothing
new. (This is why ShiViz cannot show a violation, and `causewire draw` can.)

**Read** logs are of three sorts, and `ShivizLog.messages` says which:

  `text`    Ours: the text of the events tells what they are.
  `names`   The expression has groups `send` and `deliver` that capture the name
            of the message that an event sends or delivers, and perhaps `to`,
            its destinations (names, separated by commas or spaces), and `from`,
            its sender, for names that are unique for each sender only. Without
            `to`, a message counts as sent to those who delivered it. Only the
            order of each host is taken from the clocks; that they fit the
            messages is verified.
  `clocks`  Neither: messages are inferred. An event whose clock shows something
            new of other hosts has received a message from the latest events that
            it newly knows, those that no other of them knows; these are sends,
            to all who learnt from them. The mid is the sender's own entry.
            An event may deliver several messages, and send one, in that order.

Inferred messages are in causal order by construction: a message that comes after
others that depend on it brings nothing new, so its arrival cannot be told from
an internal event. Such a trace can be drawn and measured; a check of it proves
nothing. To check somebody's log, let the expression name the messages.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

from .schema import DELIVER, SEND, Event, TraceError, because
from .shiviz_messages import (
    LogEntry,
    events_from_clocks,
    events_from_names,
    events_from_text,
    written_event,
)
from .storage import Location, locate, read_bytes
from .writer import partial_name

__all__ = [
    "CLOCK_SECOND",
    "DELIMITER",
    "PATTERN",
    "ShivizLog",
    "clock_of",
    "compile_expression",
    "pattern_for",
    "read_shiviz",
    "split_runs",
    "text_of",
    "write_shiviz",
]

PATTERN = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
"""ShiViz's default, for GoVector's two lines; as JavaScript has it."""

CLOCK_SECOND = r"^(?<event>.*)\n(?<host>\S*) (?<clock>{.*})$"
"""The same for logs with the clock on the second line."""

DELIMITER = r"^=== (?<trace>.*) ===$"
"""Separates the runs in logs that we write."""


class ShivizLog(NamedTuple):
    """A log as a trace; `messages` tells how they were found: text, names or clocks."""

    events: list[Event]
    messages: str


# -- writing ------------------------------------------------------------------------


def write_shiviz(
    path: str | os.PathLike[str],
    events: Iterable[Event],
    *,
    kinds: Collection[str] | None = (SEND, DELIVER),
) -> int:
    """Write rows as a log; returns the number of events written.

    Rows are sorted by Lamport time, if they have one, and otherwise so that a message is
    sent before it is delivered. So they have to fit in memory (ShiViz is slow long before
    that). `kinds` are those to write, None for all.

    Raises:
        TraceError: The file cannot be written.
    """
    path = Path(path)
    rows = [event for event in events if kinds is None or event.kind in kinds]
    order = {run: k for k, run in enumerate(dict.fromkeys(event.run for event in rows))}
    if all(event.lamport is not None for event in rows):
        rows.sort(key=lambda e: (e.lamport, e.process, e.seq))
    rows.sort(key=lambda e: order[e.run])
    rows = [row for _, run in groupby(rows, lambda e: e.run) for row in _sends_first(list(run))]
    partial = partial_name(path)
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for line in _lines(path, rows):
                file.write(line + "\n")
        os.replace(partial, path)
    except TraceError:
        partial.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise TraceError(path, None, f"cannot be written: {because(error)}") from None
    return len(rows)


def _sends_first(rows: Sequence[Event]) -> Iterator[Event]:
    """Yield the rows of a run with each send before its deliveries, otherwise in their order.

    Rows of one process keep their order; those that cannot be ordered come last.
    """
    unsent = {(event.origin, event.mid) for event in rows if event.kind == SEND}
    waiting: dict[str, deque[Event]] = defaultdict(deque)
    blocked: dict[tuple[str | None, int | None], list[str]] = defaultdict(list)
    for event in rows:
        waiting[event.process].append(event)
        if len(waiting[event.process]) > 1:  # a row before it waits already
            continue
        ready = [event.process]
        while ready:
            process = ready.pop()
            mine = waiting[process]
            while mine:
                message = mine[0].origin, mine[0].mid
                if mine[0].kind == DELIVER and message in unsent:
                    blocked[message].append(process)
                    break
                if mine[0].kind == SEND:
                    unsent.discard(message)
                    ready += blocked.pop(message, ())
                yield mine.popleft()
    yield from chain.from_iterable(waiting.values())


def _lines(path: Path, rows: Iterable[Event]) -> Iterator[str]:
    run: str | None = None
    clocks: dict[str, dict[str, int]] = {}
    sent: dict[tuple[str | None, int | None], dict[str, int]] = {}
    for event in rows:
        if event.run != run:
            run, clocks, sent = event.run, {}, {}
            if "\n" in run:
                raise TraceError(path, None, f"a run's name with a line break: {run!r}")
            yield f"=== {run} ==="
        host = event.process
        if not host or re.search(r"\s", host):
            raise TraceError(path, None, f"ShiViz knows no hosts with white space: {host!r}")
        clock = clocks.setdefault(host, {})
        message = event.origin, event.mid
        if event.kind == DELIVER:
            if message not in sent:
                raise TraceError(
                    path, None, f"{event.origin}:{event.mid} is delivered before it is sent"
                )
            for other, known in sent[message].items():
                clock[other] = max(known, clock.get(other, 0))
        clock[host] = clock.get(host, 0) + 1
        if event.kind == SEND:
            sent.setdefault(message, dict(clock))
        about = {"origin": event.origin, "mid": event.mid, "peers": event.peers}
        yield f"{host} {_json(clock)}"
        yield f"{event.kind} {_json(about)}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# -- reading ------------------------------------------------------------------------


def read_shiviz(
    path: str | os.PathLike[str],
    pattern: str = PATTERN,
    *,
    delimiter: str | None = DELIMITER,
    run: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> ShivizLog:
    """Read a log as a trace.

    Args:
        path: The log.
        pattern: An expression for its events, as in JavaScript or as in Python.
        delimiter: An expression for what separates runs.
        run: The name of what comes before the first delimiter.
        progress: Called with the characters read so far, and all.

    Raises:
        TraceError: The file cannot be read, or the expression does not fit it.
    """
    compile_expression(path, pattern, ("host", "clock", "event"))
    try:
        text = text_of(locate(path))
    except OSError as error:
        raise TraceError(path, None, f"cannot be read: {because(error)}") from None
    except UnicodeDecodeError:
        raise TraceError(path, None, "is not text") from None
    finder = compile_expression(path, pattern_for(text, pattern), ("host", "clock", "event"))
    events: list[Event] = []
    sorts = set()
    for name, start, part in split_runs(path, text, delimiter, run):
        entries = _entries(path, text, start, part, finder, progress)
        if not entries:
            continue
        ordered = _verified(path, entries)
        if all(written_event(entry) is not None for entry in entries):
            sorts.add("text")
            events += events_from_text(name, ordered)
        elif {"send", "deliver"} <= set(finder.groupindex):
            sorts.add("names")
            events += events_from_names(path, name, ordered)
        else:
            sorts.add("clocks")
            events += events_from_clocks(name, ordered)
    if not events:
        raise TraceError(path, None, "the expression matches no events")
    for sort in ("clocks", "names", "text"):
        if sort in sorts:
            return ShivizLog(events, sort)
    raise AssertionError


def text_of(path: Location) -> str:
    """Return the text of a log, whose lines end with a line feed: expressions rely on it.

    Raises:
        OSError: The file cannot be read, or not to its end.
        UnicodeDecodeError: It is not text.
    """
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n")


def compile_expression(path: object, pattern: str, groups: Iterable[str]) -> re.Pattern[str]:
    """Compile an expression in JavaScript or Python syntax.

    Raises:
        TraceError: The expression is malformed, or lacks one of the groups.
    """
    python = re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern)
    try:
        finder = re.compile(python, re.MULTILINE)
    except re.error as error:
        raise TraceError(path, None, f"bad expression {pattern!r}: {error}") from None
    missing = [group for group in groups if group not in finder.groupindex]
    if missing:
        raise TraceError(path, None, f"the expression has no group {', '.join(missing)}")
    return finder


_CLOCK_LINE = re.compile(r"\S+ (\{.*\})\s*")


def pattern_for(text: str, pattern: str) -> str:
    """Return the default expression in the form that fits a log; any other as it is.

    GoVector writes the clock before the text of an event; others write it after.
    """
    if pattern != PATTERN:
        return pattern
    lines = [line for line in text[:65536].splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("=== "):
        lines = lines[1:]
    if len(lines) > 1 and not _has_clock(lines[0]) and _has_clock(lines[1]):
        return CLOCK_SECOND
    return pattern


def _has_clock(line: str) -> bool:
    match = _CLOCK_LINE.fullmatch(line)
    try:
        clock = clock_of(match[1]) if match else None
    except (ValueError, RecursionError):
        return False
    return isinstance(clock, dict) and all(type(n) is int for n in clock.values())


def clock_of(text: str) -> Any:
    """Return a clock from its JSON, in which quotes may be escaped.

    Raises:
        ValueError: It is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        if '\\"' not in text:
            raise
        return json.loads(text.replace('\\"', '"'))


def split_runs(
    path: object, text: str, delimiter: str | None, first: str
) -> Iterator[tuple[str, int, str]]:
    """Name, place and text of each run."""
    if delimiter is None:
        yield first, 0, text
        return
    finder = compile_expression(path, delimiter, ())
    name, start = first, 0
    for number, match in enumerate(finder.finditer(text), 1):
        yield name, start, text[start : match.start()]
        name = match["trace"] if "trace" in finder.groupindex else str(number)
        start = match.end()
    yield name, start, text[start:]


def _entries(
    path: object,
    text: str,
    start: int,
    part: str,
    finder: re.Pattern[str],
    progress: Callable[[int, int], None] | None,
) -> list[LogEntry]:
    entries = []
    line, counted = text.count("\n", 0, start) + 1, 0
    for match in finder.finditer(part):
        line += part.count("\n", counted, match.start())
        counted = match.start()
        groups = match.groupdict()
        host = groups["host"] or ""
        try:
            clock = clock_of(groups["clock"] or "")
        except (ValueError, RecursionError):
            raise TraceError(path, line, f"the clock is not JSON: {groups['clock']}") from None
        if not (isinstance(clock, dict) and all(type(n) is int for n in clock.values())):
            raise TraceError(path, line, "the clock must be a JSON object of integers")
        if host not in clock:
            raise TraceError(path, line, f"the clock has no entry for its host {host!r}")
        known = {other: n for other, n in clock.items() if n > 0}
        entries.append(LogEntry(line, host, known, groups["event"] or "", groups))
        if progress is not None:
            progress(start + counted, len(text))
    return entries


def _verified(path: object, entries: list[LogEntry]) -> list[LogEntry]:
    """The entries in an order that fits their clocks, which make sense.

    The sum of a clock's entries grows along every chain of events.
    """
    hosts: dict[str, list[LogEntry]] = {}
    for entry in entries:
        hosts.setdefault(entry.host, []).append(entry)
    for host, mine in hosts.items():
        mine.sort(key=lambda entry: entry.clock.get(host, 0))
        for number, entry in enumerate(mine, 1):
            if entry.clock.get(host, 0) != number:
                raise TraceError(
                    path,
                    entry.line,
                    f"the own entries of {host!r} must be 1, 2, 3, ...: "
                    f"{entry.clock.get(host, 0)} where {number} was due",
                )
    for entry in entries:
        before = hosts[entry.host][entry.own - 2].clock if entry.own > 1 else {}
        for other, known in entry.clock.items():
            if other not in hosts or known > len(hosts[other]):
                raise TraceError(
                    path, entry.line, f"the clock knows event {known} of {other!r}, which is absent"
                )
        for other, known in before.items():
            if entry.clock.get(other, 0) < known:
                raise TraceError(path, entry.line, f"the clock forgets what it knew of {other!r}")
    return sorted(entries, key=lambda e: (sum(e.clock.values()), e.host))
