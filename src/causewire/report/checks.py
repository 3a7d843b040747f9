"""The report of a check: is the trace causally ordered, and if not, why, in pictures.

Each violation that the check explained is described and drawn: the messages
of its chain, and what happened around them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from ..check import Report, Violation
from ..trace import Trace
from .page import page, paragraph, section, whole
from .spacetime import draw
from .tables import html_table
from .violations import Overtaking
from .window import choose

__all__ = ["DRAWN", "CheckReport", "overtaking", "report_check"]

DRAWN = 5
"""Violations that are drawn; each takes a pass over the trace."""


class CheckReport(NamedTuple):
    """What a report of a check contains."""

    page: Path
    ordered: bool
    violations: int
    drawn: int


def overtaking(violation: Violation) -> Overtaking:
    """Return a violation in the form that diagrams take."""
    chain = tuple((link.message.origin, link.message.mid) for link in violation.chain)
    first = (violation.first.origin, violation.first.mid)
    second = (violation.second.origin, violation.second.mid)
    return Overtaking(violation.process, first, second, chain or (first, second))


def report_check(
    trace: Trace, found: Report, out: Path, runs: Sequence[Mapping[str, Any]] = ()
) -> CheckReport:
    """Write the report of a check, and return what it contains.

    Args:
        trace: The trace that was checked.
        found: The result of the check.
        out: The directory of the report. It appears when the report is complete.
        runs: Rows of `metrics.RUNS`, if there are any.

    Raises:
        ReportError: The directory cannot be written, or is not a report.
    """
    with whole(out) as place:
        sections = [_verdict(found)]
        _write_csv(place / "counts.csv", ("what", "number"), _counts(found))
        sections.append(
            section(
                "In numbers",
                html_table(("", ""), [[what, f"{n:,}"] for what, n in _counts(found)]),
                _link("counts.csv"),
            )
        )
        if found.examples:
            sections += _violations(trace, found, place)
        if found.bad_rows:
            rows = [[str(row.run), row.process, str(row.seq), str(row)] for row in found.bad_rows]
            heading = ("run", "process", "seq", "what is wrong")
            sections.append(section("Rows that cannot be right", html_table(heading, rows)))
        if runs:
            from .times import write_times

            sections.append(write_times(runs, place))
        text = page(f"Check of {Path(trace.name).name}", sections)
        (place / "index.html").write_text(text, encoding="utf-8")
    drawn = min(len(found.examples), DRAWN)
    return CheckReport(out / "index.html", found.ordered, found.violations, drawn)


def _verdict(found: Report) -> str:
    if found.ordered:
        return paragraph("The trace is causally ordered.")
    number = f"{found.violations:,} violation{'s' if found.violations > 1 else ''}"
    return paragraph(f"The trace is NOT causally ordered: {number}.", "bad")


def _counts(found: Report) -> list[tuple[str, int]]:
    return [
        ("events", found.events),
        ("messages", found.messages),
        ("processes", found.processes),
        ("runs", found.runs),
        ("violations", found.violations),
        ("delivered twice", found.duplicates),
        ("copies undelivered", found.undelivered),
        *((f"bad rows: {reason}", number) for reason, number in sorted(found.bad.items())),
    ]


def _violations(trace: Trace, found: Report, place: Path) -> list[str]:
    heading = ("run", "process", "seq", "first", "second", "late", "chain")
    rows = [
        (v.run, v.process, v.seq, v.first, v.second, v.late, " ".join(str(c[0]) for c in v.chain))
        for v in found.examples
    ]
    _write_csv(place / "violations.csv", heading, rows)
    told = [[str(number), v.run, str(v)] for number, v in enumerate(found.examples, 1)]
    title = "Violations" if len(told) == found.violations else f"The first {len(told)} violations"
    sections = [section(title, html_table(("", "run", "why"), told), _link("violations.csv"))]
    for number, violation in enumerate(found.examples[:DRAWN], 1):
        shown = overtaking(violation)
        window = choose(trace, run=violation.run, violation=shown)
        svg = draw(window.events, processes=window.processes, violation=shown, start=window.start)
        name = f"violation-{number}.svg"
        (place / name).write_text(svg, encoding="utf-8")
        said = escape(str(violation))
        drawn = f'<figure>\n<img src="{name}" alt="{said}">\n<figcaption>{said} '
        drawn += f'(<a href="{name}">SVG</a>)</figcaption>\n</figure>'
        sections.append(section(f"Violation {number}", drawn))
    return sections


def _link(name: str) -> str:
    return f'<p class="small"><a href="{name}">CSV</a></p>'


def _write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heading)
        writer.writerows(rows)
