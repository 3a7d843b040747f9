"""`check`: is this trace causally ordered, and if not, why?

First the rows are taken as they are stored, in one pass and in memory that does
not depend on their number. If that is not an order in which they can be checked,
the trace is sorted in memory (`order.py`) and checked again. If something was
found, the trace is read once more, to say what it is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from ..trace.reader import Trace, open_trace, trace_of
from ..trace.schema import Event, TraceError
from .columns import Run, ScatteredRunError
from .compiled import Longs
from .explain import explain
from .kernel import Found, Kernel, OrderError
from .oddities import judge
from .order import Sorted
from .report import Report
from .source import Source, Stream

__all__ = ["MEMORY", "Scan", "check", "scan"]

MEMORY = 4 << 30
"""Bytes of clocks to use at once. Where that is not enough for all origins, they
are checked in blocks, one after the other."""


@dataclass
class Scan:
    """What one pass over a trace found, for a block of origins.

    Of another block of the same trace, `found` and `violations` are different,
    and all else is the same.
    """

    messages: int = 0
    processes: int = 0
    largest: int = 0
    """Processes of the largest run."""
    runs: int = 0
    violations: int = 0
    undelivered: int = 0
    found: dict[str, tuple[Run, Longs]] = field(default_factory=dict)
    odd: dict[str, tuple[Run, Longs]] = field(default_factory=dict)
    state: int = 0
    """Bytes of state, where it was largest."""


class _TooWideError(Exception):
    """The clocks of all origins together need too much memory."""


def scan(
    source: Source,
    origins: tuple[int, int] | None = None,
    *,
    examples: int = 10,
    every: bool = False,
    memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Scan:
    """One pass over all runs, for a block of origins of each, or all.

    Keeps at most `examples` violations, the first ones: one for each message
    that was overtaken, or with `every` all of them. `progress` is told the
    number of rows done.
    """
    result = Scan()
    kernel: Kernel | None = None
    run = Run("")
    for chunk in source.chunks():
        if kernel is None or chunk.run is not run:
            if kernel is not None:
                _end(kernel, run, result)
            run = chunk.run
            left = examples - sum(len(rows) for _, rows in result.found.values())
            kernel = Kernel(origins, examples=left, every=every, unique=source.unique)
        if memory is not None and 12 * len(run.processes) ** 2 > memory:
            raise _TooWideError
        kernel.feed(chunk.columns, len(run.processes), chunk.position)
        if progress is not None:
            progress(chunk.position + len(chunk.columns.kind))
    if kernel is not None:
        _end(kernel, run, result)
    return result


def _end(kernel: Kernel, run: Run, result: Scan) -> None:
    result.runs += 1
    result.messages += kernel.messages
    result.processes += len(run.processes)
    result.largest = max(result.largest, len(run.processes))
    result.violations += kernel.violations
    result.undelivered += kernel.undelivered
    result.state = max(result.state, kernel.nbytes)
    if len(kernel.found):
        result.found[run.name] = run, kernel.found
    if len(kernel.odd):
        result.odd[run.name] = run, kernel.odd


def _scan_in_blocks(
    source: Source,
    *,
    examples: int,
    memory: int,
    progress: Callable[[int], None] | None,
) -> Scan:
    """Several passes, each for a part of the origins, put together."""
    widest = 0
    for chunk in source.chunks():
        widest = max(widest, len(chunk.run.processes))
    width = max(32, memory // (12 * widest) // 32 * 32)
    whole = Scan()
    for lo in range(0, widest, width):
        part = scan(source, (lo, lo + width), examples=examples, progress=progress)
        violations = whole.violations + part.violations
        found = _merged(whole.found, part.found, examples)
        whole = part
        whole.violations, whole.found = violations, found
    return whole


def _merged(
    a: dict[str, tuple[Run, Longs]], b: dict[str, tuple[Run, Longs]], examples: int
) -> dict[str, tuple[Run, Longs]]:
    """The first violations of two blocks, in the order in which one would find them."""
    every = [(name, row) for found in (a, b) for name, (_, rows) in found.items() for row in rows]
    every.sort(
        key=lambda item: item[1][[Found.POSITION, Found.FIRST_ORIGIN, Found.FIRST_SENT]].tolist()
    )
    runs = {name: run for found in (a, b) for name, (run, _) in found.items()}
    rows: dict[str, list[Longs]] = {}
    for name, row in every[:examples]:
        rows.setdefault(name, []).append(row)
    return {name: (runs[name], np.array(of_it)) for name, of_it in rows.items()}


def check(
    trace: Trace | str | os.PathLike[str] | Iterable[Event],
    *,
    examples: int = 10,
    memory: int = MEMORY,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Check a trace: a file or directory, a `Trace`, or events.

    At most `examples` violations, and as many bad rows, are described. Raises
    `TraceError` if the trace cannot be read, is empty, or has a cycle.
    """
    if isinstance(trace, (str, os.PathLike)):
        trace = open_trace(trace)
    elif not isinstance(trace, Trace):
        trace = trace_of(trace)
    try:
        return _report(Stream(trace), examples, memory, progress)
    except (OrderError, ScatteredRunError):
        return _report(Sorted(trace), examples, memory, progress)


def _report(
    source: Source, examples: int, memory: int, progress: Callable[[int], None] | None
) -> Report:
    try:
        result = scan(source, examples=examples, memory=memory, progress=progress)
    except _TooWideError:
        result = _scan_in_blocks(source, examples=examples, memory=memory, progress=progress)
    if source.rows == 0:
        raise TraceError(source.name, None, "the trace is empty")
    judged = judge(source, result.odd, examples)
    bad = judged.bad
    if source.repeated:
        bad = bad + Counter({"sent a second time": source.repeated})
    return Report(
        events=source.rows,
        messages=result.messages,
        processes=result.processes,
        runs=result.runs,
        violations=result.violations,
        duplicates=judged.duplicates,
        undelivered=result.undelivered,
        bad=bad,
        examples=explain(source, result.found) if result.found else [],
        bad_rows=[*source.repeated_rows(examples), *judged.rows][:examples],
    )
