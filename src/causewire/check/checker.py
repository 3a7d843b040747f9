"""`check`: is this trace causally ordered, and if not, why?

First the rows are taken in the order in which they are stored, in one pass and in memory
that does not depend on their number. If the rows cannot be checked in that order, the
trace is sorted in memory (`order.py`) and checked again. If something was found, the
trace is read once more, to describe it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from ..core.errors import CausewireError
from ..trace.reader import Trace, open_trace, trace_of
from ..trace.schema import Event, SameSeqError, TraceError
from .assemble import describe
from .collisions import explained
from .columns import ScatteredRunError
from .kernel import OrderError
from .lives import resolve_lives, was_restarted
from .namesakes import namesakes, told_apart
from .order import Sorted
from .report import Report
from .scan import Scan, TooWideError, scan, scan_in_blocks
from .source import SomeRuns, Source, Stream

__all__ = ["MEMORY", "check"]

MEMORY = 4 << 30
"""Bytes of clocks to use at once. If all origins need more than that, they are checked in
blocks, one block after the other."""


def check(
    trace: Trace | str | os.PathLike[str] | Iterable[Event],
    *,
    examples: int = 10,
    memory: int = MEMORY,
    strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check whether a trace is causally ordered.

    >>> check("run.parquet").violations  # doctest: +SKIP
    0

    Args:
        trace: A file or directory, a `Trace`, or events in any order.
        examples: How many violations to explain, and how many bad rows to describe.
        memory: Bytes of clocks to use at once.
        strict: Refuse rows that are there twice, instead of taking them once.
        progress: Called with the number of rows done, from time to time.

    Returns:
        Counts of everything, and the first violations with the chains that prove them.

    Raises:
        TraceError: The trace cannot be read, is empty, has a cycle, or has two starts of a
            process under one name.
    """
    if isinstance(trace, (str, os.PathLike)):
        trace = open_trace(trace)
    elif not isinstance(trace, Trace):
        trace = trace_of(trace)
    try:
        return _whole(trace, examples, memory, strict, progress)
    except SameSeqError as error:
        raise explained(trace, error) from None


def _whole(
    trace: Trace,
    examples: int,
    memory: int,
    strict: bool,
    progress: Callable[[int], None] | None,
) -> Report:
    """Check a trace, as it is or with destinations that are lives of processes."""
    try:
        return _checked(trace, examples, memory, strict, progress)
    except _LivesError:
        lost = 0
    if was_restarted(trace):  # so the names are not just alike
        events, lost = resolve_lives(trace.events())
        trace = trace_of(events, trace.name)
    report = _checked(trace, examples, memory, strict, progress, resolved=True)
    report.lost = lost
    return report


class _LivesError(CausewireError):
    """Processes were restarted."""


def _checked(
    trace: Trace,
    examples: int,
    memory: int,
    strict: bool,
    progress: Callable[[int], None] | None,
    *,
    resolved: bool = False,
) -> Report:
    """Check the rows as they are stored, or sorted."""
    try:
        return _report(trace, Stream(trace), examples, memory, progress, resolved=resolved)
    except (OrderError, ScatteredRunError):
        source = Sorted(trace, strict=strict)
        return _report(trace, source, examples, memory, progress, resolved=resolved)


def _report(
    trace: Trace,
    source: Source,
    examples: int,
    memory: int,
    progress: Callable[[int], None] | None,
    *,
    resolved: bool,
) -> Report:
    found = _scanned(source, examples, memory, progress)
    if found.lives and not resolved:
        raise _LivesError
    if source.rows == 0:
        raise TraceError(source.name, None, "the trace is empty")
    report = describe(source, found, examples)
    if report.duplicates and (several := namesakes(trace, found.odd, examples)):
        for one in several.values():
            told_apart(report, one)
        order = {run: k for k, run in enumerate(found.odd)}
        report.bad_rows.sort(key=lambda row: order.get(row.run, -1))
        del report.bad_rows[examples:]
        if report.violations:
            report.doubtful = _scanned(SomeRuns(source, several), 0, memory, None).violations
    return report


def _scanned(
    source: Source, examples: int, memory: int, progress: Callable[[int], None] | None
) -> Scan:
    """Scan at once, or in blocks if the clocks of all origins need too much memory."""
    try:
        return scan(source, examples=examples, memory=memory, progress=progress)
    except TooWideError:
        return scan_in_blocks(source, examples=examples, memory=memory, progress=progress)
