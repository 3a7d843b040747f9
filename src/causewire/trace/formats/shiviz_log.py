r"""ShiViz and GoVector logs: text, in which a regular expression finds the events.

The groups of the expression, and how messages are found, are described in
`trace/shiviz.py`, which reads a correct log as a whole. Here each event
stands for itself: an inconsistent one goes to the quarantine, and with it
those that build on it: later events of its host, and events whose clocks know
it. So do lines that belong to no event, unless they are blank.

An event of a log whose messages are inferred from clocks may become several
rows (it delivers two messages, and sends one); those have no row number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..schema import TraceError, because
from ..shiviz import (
    DELIMITER,
    PATTERN,
    clock_of,
    compile_expression,
    pattern_for,
    split_runs,
    text_of,
)
from ..shiviz_messages import (
    LogEntry,
    events_from_clocks,
    events_from_names,
    events_from_text,
    written_event,
)
from ..storage import Location, locate
from .rows import Refused, Row, batches_of_rows, shown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["NO_EVENTS", "STRAY", "consistent", "log_rows", "read_log"]

STRAY = "the expression does not match"
"""Why a line between events was refused."""

NO_EVENTS = "the expression matches no events"
"""Why a file was refused."""


def read_log(
    file: str, pattern: str = PATTERN, delimiter: str | None = DELIMITER, run: str | None = None
) -> Iterator[pa.RecordBatch]:
    """A log; `run` names what comes before the first delimiter, or the file does.

    Raises `TraceError` if an expression is none.
    """
    return batches_of_rows(log_rows(file, pattern, delimiter, run))


def log_rows(
    file: str,
    pattern: str = PATTERN,
    delimiter: str | None = DELIMITER,
    run: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[Row | Refused]:
    """Return the events of a log, and what is refused; rows without a number were inferred.

    Args:
        file: The log.
        pattern: The expression for its events.
        delimiter: The expression for what separates runs, or None.
        run: The name of what comes before the first delimiter; by default that of the file.
        progress: Called with the characters read so far, and all.

    Raises:
        TraceError: An expression is none.
    """
    path = locate(file)
    compile_expression(path, pattern, ("host", "clock", "event"))
    if delimiter is not None:
        compile_expression(path, delimiter, ())
    return _rows(file, path, pattern, delimiter, path.stem if run is None else run, progress)


def consistent(item: Row | Refused) -> Row | Refused:
    """Return what `log_rows` gives, if it does not contradict the rest of the log.

    A check needs this: without an event of a log, clocks and messages of others make no sense.

    Raises:
        TraceError: It is an event that cannot be right.
    """
    if isinstance(item, Refused) and item.row is not None and item.reason != STRAY:
        raise TraceError(item.file, item.row, item.reason)
    return item


def _rows(
    file: str,
    path: Location,
    pattern: str,
    delimiter: str | None,
    first: str,
    progress: Callable[[int, int], None] | None,
) -> Iterator[Row | Refused]:
    try:
        text = text_of(path)
    except OSError as error:
        yield Refused(file, None, f"cannot be read: {because(error)}")
        return
    except UnicodeDecodeError:
        yield Refused(file, None, "is not text")
        return
    finder = compile_expression(path, pattern_for(text, pattern), ("host", "clock", "event"))
    if finder.search(text) is None:
        yield Refused(file, None, NO_EVENTS if text.strip() else "empty")
    for name, start, part in split_runs(path, text, delimiter, first):
        line = text.count("\n", 0, start) + 1
        found, refused = _entries(file, line, part, finder)
        good, more = _sensible(file, found)
        yield from sorted([*refused, *more], key=lambda r: r.row or 0)
        if good:
            yield from _events(file, name, good, finder)
        if progress is not None:
            progress(start + len(part), len(text))


def _entries(
    file: str, line: int, part: str, finder: re.Pattern[str]
) -> tuple[list[LogEntry], list[Refused]]:
    """The events of a run, and what is none."""
    entries: list[LogEntry] = []
    refused: list[Refused] = []
    end = 0
    for match in finder.finditer(part):
        refused += _stray(file, line, part[end : match.start()])
        line += part.count("\n", end, match.start())
        groups = match.groupdict()
        host = groups["host"] or ""
        problem = ""
        clock: object = None
        try:
            clock = clock_of(groups["clock"] or "")
        except (ValueError, RecursionError):
            problem = "the clock is not JSON"
        else:
            if not isinstance(clock, dict) or not all(type(n) is int for n in clock.values()):
                problem = "the clock must be a JSON object of integers"
            elif host not in clock:
                problem = f"the clock has no entry for its host {host!r}"
        if problem:
            refused.append(Refused(file, line, problem, shown(match[0])))
        elif isinstance(clock, dict):
            known = {other: n for other, n in clock.items() if n > 0}
            entries.append(LogEntry(line, host, known, groups["event"] or "", groups))
        line += part.count("\n", match.start(), match.end())
        end = match.end()
    refused += _stray(file, line, part[end:])
    return entries, refused


def _stray(file: str, line: int, text: str) -> Iterator[Refused]:
    """Lines between events."""
    for k, stray in enumerate(text.split("\n")):
        if stray.strip():
            yield Refused(file, line + k, STRAY, shown(stray))


def _sensible(file: str, entries: list[LogEntry]) -> tuple[list[LogEntry], list[Refused]]:
    """Entries in an order that fits their clocks, and those that do not fit.

    The sum of a clock's entries grows along every chain of events, so what an
    entry builds on comes before it.
    """
    good: dict[tuple[str, int], LogEntry] = {}
    refused = []
    for entry in sorted(entries, key=lambda e: (sum(e.clock.values()), e.host, e.line)):
        own = entry.clock.get(entry.host, 0)
        before = good.get((entry.host, own - 1))
        unknown = [
            f"{n} of {other!r}"
            for other, n in entry.clock.items()
            if other != entry.host and (other, n) not in good
        ]
        if own < 1:
            reason = f"the own entry of {entry.host!r} is less than 1"
        elif (entry.host, own) in good:
            reason = f"a second event {own} of {entry.host!r}"
        elif own > 1 and before is None:
            reason = f"event {own - 1} of {entry.host!r}, the one before, is missing"
        elif unknown:
            reason = f"the clock knows event {unknown[0]}, which is missing"
        elif before and any(entry.clock.get(k, 0) < n for k, n in before.clock.items()):
            reason = "the clock forgets what it knew"
        else:
            good[entry.host, own] = entry
            continue
        refused.append(Refused(file, entry.line, reason, shown(entry.text)))
    return list(good.values()), refused


def _events(
    file: str, run: str, entries: list[LogEntry], finder: re.Pattern[str]
) -> Iterator[Row | Refused]:
    if all(written_event(entry) is not None for entry in entries):
        events = events_from_text(run, entries)
    elif {"send", "deliver"} <= set(finder.groupindex):
        while True:
            try:
                events = events_from_names(file, run, entries)
                break
            except TraceError as error:
                (bad,) = [entry for entry in entries if entry.line == error.row]
                yield Refused(file, bad.line, error.rule, shown(bad.text))
                entries = [entry for entry in entries if entry is not bad]
    else:
        for event in events_from_clocks(run, entries):
            yield Row(file, None, event)
        return
    for entry, event in zip(entries, events, strict=True):
        yield Row(file, entry.line, event)
