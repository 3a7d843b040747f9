"""The report of a check: is the trace causally ordered, and if not, why, in pictures.

Each violation that the check explained is described and drawn: the messages
of its chain, and what happened around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..check import BadRow, MessageId, Report, Violation
from ..trace import Event, Trace
from .names import shown
from .page import csv_link, details, diagram, markup, page, section, whole, write_csv
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
    verdict: str


def overtaking(violation: Violation) -> Overtaking:
    """Return a violation in the form that diagrams take."""
    chain = tuple((link.message.origin, link.message.mid) for link in violation.chain)
    first = (violation.first.origin, violation.first.mid)
    second = (violation.second.origin, violation.second.mid)
    return Overtaking(violation.process, first, second, chain or (first, second))


def report_check(
    trace: Trace,
    found: Report,
    out: Path,
    runs: Sequence[Mapping[str, Any]] = (),
    *,
    refused: Mapping[str, int] | None = None,
    notes: Mapping[str, int] | None = None,
    one_clock: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> CheckReport:
    """Write the report of a check, and return what it contains.

    Args:
        trace: The trace that was checked.
        found: The result of the check.
        out: The directory of the report. It appears when the report is complete.
        runs: Rows of `metrics.RUNS`, if there are any.
        refused: How many rows and files of the input were not understood, by reason.
        notes: What else there is to say about the input, with numbers.
        one_clock: Whether times of different processes can be compared.
        progress: Called with the pictures that are drawn so far, and all.

    Raises:
        ReportError: The directory cannot be written, or is not a report.
    """
    name = Path(trace.name).name
    with whole(out) as place:
        sections = _violations(trace, found, place, progress) if found.examples else []
        if runs:
            from .times import write_times

            sections.append(write_times(runs, place, one_clock=one_clock))
        numbers = [*_counts(found), *_of_input(refused or {}, notes or {})]
        counts = [(what, f"{number:,}", source) for what, number, source in numbers]
        text = write_csv(place / "counts.csv", ("what", "number"), [row[:2] for row in numbers])
        heading = ("what", "number", "where it comes from")
        table = html_table(heading, counts, "In numbers")
        link = f'<p class="small">Save: {csv_link("counts.csv", text)}.</p>'
        sections.append(section("In numbers", table, link))
        if found.bad_rows:
            rows = [
                [shown(row.run), shown(row.process), str(row.seq), str(_shortened(row))]
                for row in found.bad_rows
            ]
            head = ("run", "process", "seq", "what is wrong")
            sections.append(section("Rows that cannot be right", html_table(head, rows)))
        question = f"Is {shown(name)} causally ordered?"
        whole_page = page(
            "A trace, checked",
            question,
            _answer(found),
            sections,
            good=found.ordered and found.conclusive,
        )
        (place / "index.html").write_text(whole_page, encoding="utf-8")
    drawn = min(len(found.examples), DRAWN)
    return CheckReport(
        out / "index.html",
        found.ordered and found.conclusive,
        found.violations,
        drawn,
        found.verdict,
    )


def _answer(found: Report) -> str:
    seen = f"{found.messages:,} messages among {found.processes:,} processes"
    if found.ordered and not found.conclusive:
        verdict = markup(found.verdict.removeprefix("cannot tell: "))
        return f"Cannot tell: {verdict}. In {seen}, no violation was found."
    if found.ordered:
        return f"Yes. In {seen}, nothing was delivered before something that it may depend on."
    times = "once" if found.violations == 1 else f"{found.violations:,} times"
    return (
        f"No. In {seen}, it happened {times} that a message was delivered before one that it "
        "may depend on."
    )


def _counts(found: Report) -> list[tuple[str, int, str]]:
    delivers = "rows of kind deliver"
    return [
        ("events", found.events, "rows of the trace"),
        ("messages", found.messages, "rows of kind send"),
        ("processes", found.processes, "names in the column process"),
        ("runs", found.runs, "names in the column run"),
        ("violations", found.violations, f"{delivers} that the check refused"),
        ("delivered twice", found.duplicates, f"{delivers} with the same message and process"),
        ("duplicate rows", found.identical, "rows that are there again, counted once"),
        ("copies lost", found.lost, "copies to processes that were restarted"),
        ("copies undelivered", found.undelivered, f"destinations of sends, without {delivers}"),
        *(
            (f"bad rows: {why}", number, "rows left out")
            for why, number in sorted(found.bad.items())
        ),
    ]


def _of_input(refused: Mapping[str, int], notes: Mapping[str, int]) -> list[tuple[str, int, str]]:
    return [
        *(
            (f"not understood: {why}", number, "rows and files of the input, left out")
            for why, number in sorted(refused.items())
        ),
        *((what, number, "the input") for what, number in sorted(notes.items())),
    ]


def _violations(
    trace: Trace, found: Report, place: Path, progress: Callable[[int, int], None] | None
) -> list[str]:
    heading = ("run", "process", "seq", "first", "second", "late", "chain")
    rows = [
        (v.run, v.process, v.seq, v.first, v.second, v.late, " ".join(str(c[0]) for c in v.chain))
        for v in found.examples
    ]
    text = write_csv(place / "violations.csv", heading, rows)
    drawn = []
    for number, violation in enumerate(found.examples[:DRAWN], 1):
        shows = overtaking(violation)
        window = choose(trace, run=violation.run, violation=shows)
        svg = draw(
            [_event(event) for event in window.events],
            processes=[shown(name) for name in window.processes],
            violation=overtaking(_named(violation)),
            start=window.start,
        )
        name = f"violation-{number}.svg"
        (place / name).write_text(svg, encoding="utf-8")
        drawn.append(diagram(svg, f"{_named(violation)}.", name))
        if progress is not None:
            progress(number, min(DRAWN, len(found.examples)))
    first, *others = drawn
    more = details("More violations as pictures", *others) if others else ""
    sections = [section("What went wrong, for example", first, more)]
    told = [
        [str(number), shown(v.run), str(_named(v))] for number, v in enumerate(found.examples, 1)
    ]
    title = "Violations" if len(told) == found.violations else f"The first {len(told)} violations"
    link = f'<p class="small">Save: {csv_link("violations.csv", text)}.</p>'
    sections.append(section(title, html_table(("number", "run", "why"), told, title), link))
    return sections


def _named(violation: Violation) -> Violation:
    """Return a violation with names that can be shown."""

    def message(key: MessageId) -> MessageId:
        return key._replace(origin=shown(key.origin))

    return replace(
        violation,
        run=shown(violation.run),
        process=shown(violation.process),
        first=message(violation.first),
        second=message(violation.second),
        chain=tuple(
            link._replace(message=message(link.message), to=tuple(map(shown, link.to)))
            for link in violation.chain
        ),
    )


def _shortened(row: BadRow) -> BadRow:
    """Return a bad row with names that can be shown."""
    return row._replace(run=shown(row.run), process=shown(row.process), origin=shown(row.origin))


def _event(event: Event) -> Event:
    """Return an event with names that can be shown."""
    return event._replace(
        run=shown(event.run),
        process=shown(event.process),
        origin=None if event.origin is None else shown(event.origin),
        peers=tuple(map(shown, event.peers)),
    )
