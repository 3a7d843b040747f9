"""One pass of the kernel over the runs of a trace.

`scan` feeds every run to a kernel of its own and adds up what the kernels found.
`scan_in_blocks` does the same in several passes, each for a block of origins, for runs
whose clocks do not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .._compiled import Longs
from ..core.errors import CausewireError
from .columns import RunColumns
from .kernel import Found, Kernel
from .lives import has_lives
from .source import Source

__all__ = ["CLOCK_BYTES", "Scan", "TooWideError", "scan", "scan_in_blocks"]

CLOCK_BYTES = 12
"""Bytes of state for each pair of processes, about."""


@dataclass
class Scan:
    """What one pass over a trace found, for a block of origins.

    Scans of other blocks of the same trace differ in `found` and `violations` only.
    """

    position: int = 0
    """Position of the first row."""
    messages: int = 0
    processes: int = 0
    largest: int = 0
    """Processes of the largest run."""
    runs: int = 0
    violations: int = 0
    undelivered: int = 0
    delivered: bool = False
    """Whether any delivery took part in the order."""
    found: dict[str, tuple[RunColumns, Longs]] = field(default_factory=dict)
    odd: dict[str, tuple[RunColumns, Longs]] = field(default_factory=dict)
    state: int = 0
    """Bytes of state, where it was largest."""
    lives: bool = False
    """Whether processes look as if they were restarted (`lives.py`)."""


class TooWideError(CausewireError):
    """The clocks of all origins together need more memory than was allowed."""


def scan(
    source: Source,
    origins: tuple[int, int] | None = None,
    *,
    examples: int = 10,
    every: bool = False,
    memory: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Scan:
    """Check all runs of a source in one pass.

    Args:
        source: The rows.
        origins: The block of origins, from one number up to, not including, another;
            all origins if None.
        examples: How many violations to keep: the first ones, one for each message that
            was overtaken.
        every: Keep several violations for the same overtaken message.
        memory: Bytes of clocks to use at most.
        progress: Called with the number of rows done, from time to time.

    Raises:
        TooWideError: The clocks of a run need more than `memory` bytes.
        OrderError: The rows have to be sorted first.
        ScatteredRunError: The rows of the runs are mixed.
    """
    result = Scan()
    kernel: Kernel | None = None
    run = RunColumns("")
    for chunk in source.chunks():
        if kernel is None:
            result.position = chunk.position
        if kernel is None or chunk.run is not run:
            if kernel is not None:
                _end(kernel, run, result)
            run = chunk.run
            left = examples - sum(len(rows) for _, rows in result.found.values())
            kernel = Kernel(origins, examples=left, every=every, unique=source.unique)
        if memory is not None and CLOCK_BYTES * len(run.processes) ** 2 > memory:
            raise TooWideError
        kernel.feed(chunk.columns, len(run.processes), chunk.position)
        if progress is not None:
            progress(chunk.position + len(chunk.columns.kind))
    if kernel is not None:
        _end(kernel, run, result)
    return result


def _end(kernel: Kernel, run: RunColumns, result: Scan) -> None:
    result.runs += 1
    result.messages += kernel.messages
    result.processes += len(run.processes)
    result.lives = result.lives or has_lives(run.processes)
    result.largest = max(result.largest, len(run.processes))
    result.violations += kernel.violations
    result.undelivered += kernel.undelivered
    result.delivered = result.delivered or kernel.delivered
    result.state = max(result.state, kernel.nbytes)
    if len(kernel.found):
        result.found[run.name] = run, kernel.found
    if len(kernel.odd):
        result.odd[run.name] = run, kernel.odd


def scan_in_blocks(
    source: Source,
    *,
    examples: int,
    memory: int,
    progress: Callable[[int], None] | None,
) -> Scan:
    """Check all runs in several passes, each for as many origins as fit into `memory`."""
    widest = 0
    for chunk in source.chunks():
        widest = max(widest, len(chunk.run.processes))
    width = max(32, memory // (CLOCK_BYTES * widest) // 32 * 32)
    whole = Scan()
    for lo in range(0, widest, width):
        part = scan(source, (lo, lo + width), examples=examples, progress=progress)
        violations = whole.violations + part.violations
        found = _merged(whole.found, part.found, examples)
        whole = part
        whole.violations, whole.found = violations, found
    return whole


def _merged(
    a: dict[str, tuple[RunColumns, Longs]], b: dict[str, tuple[RunColumns, Longs]], examples: int
) -> dict[str, tuple[RunColumns, Longs]]:
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
