"""The one place where a `Report` is put together.

`describe` looks again at what a scan found, in the same rows, and makes the report of a
trace. `assemble` makes it from parts, for those who looked at the rows in another way
(many tasks, each at its own rows). `merged` adds up the reports of several runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .explain import explain
from .oddities import Judged, judge
from .report import BadRow, Report, Violation
from .scan import Scan
from .source import Source

__all__ = ["SENT_TWICE", "assemble", "describe", "merged"]

SENT_TWICE = "sent a second time"


def describe(source: Source, found: Scan, limit: int) -> Report:
    """Return the report of a scan, with at most `limit` examples of each sort.

    Raises:
        OrderError: A message is delivered before it is sent, in the order of the rows.
    """
    return assemble(
        found,
        judge(source, found.odd, limit),
        explain(source, found.found) if found.found else [],
        events=source.rows,
        identical=source.identical,
        repeated=source.repeated,
        repeated_rows=source.repeated_rows(limit),
        limit=limit,
    )


def assemble(
    found: Scan,
    judged: Judged,
    violations: Sequence[Violation],
    *,
    events: int,
    identical: int = 0,
    repeated: int = 0,
    repeated_rows: Sequence[BadRow] = (),
    limit: int,
) -> Report:
    """Return the report that these parts make.

    Args:
        found: Counts of messages, processes, violations and undelivered copies.
        judged: What became of the rows that the kernel set aside.
        violations: The violations to show, explained.
        events: How many rows there were; identical ones count once.
        identical: How many rows were identical to others.
        repeated: How many rows sent a message again, and were left out of the scan.
        repeated_rows: The first of these rows.
        limit: How many bad rows to show.
    """
    bad = Counter(judged.bad)
    if repeated:
        bad[SENT_TWICE] += repeated
    return Report(
        events=events,
        messages=found.messages,
        processes=found.processes,
        runs=found.runs,
        violations=found.violations,
        duplicates=judged.duplicates,
        undelivered=found.undelivered,
        delivered=found.delivered,
        identical=identical,
        bad=bad,
        examples=list(violations),
        bad_rows=[*repeated_rows, *judged.rows][:limit],
    )


def merged(reports: Iterable[Report], limit: int) -> Report:
    """Return one report for several runs, with the first `limit` examples of each sort."""
    whole = Report()
    for report in reports:
        whole.events += report.events
        whole.messages += report.messages
        whole.processes += report.processes
        whole.runs += report.runs
        whole.violations += report.violations
        whole.duplicates += report.duplicates
        whole.undelivered += report.undelivered
        whole.identical += report.identical
        whole.lost += report.lost
        whole.delivered = whole.delivered or report.delivered
        whole.bad.update(report.bad)
        whole.examples += report.examples[: limit - len(whole.examples)]
        whole.unread += report.unread
        whole.inferred = whole.inferred or report.inferred
        whole.bad_rows += report.bad_rows[: limit - len(whole.bad_rows)]
    return whole
