"""`causewire draw`: a space-time diagram of a trace, or of a window on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..report import Overtaking, choose, draw
from ..report.window import Edge, TimeWindow
from ..trace import Trace, TraceError, trace_of
from .errors import CommandError
from .output import count, write_file
from .progress import Progress
from .quantities import nanoseconds
from .traces import add_trace_arguments, open_traces, unreadable

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire draw run.parquet -o run.svg
  causewire draw run.parquet --violation 1 -o violation.svg
  causewire draw run.parquet --around p3:17
  causewire draw run.parquet --from 20ms --to 60ms --process p1 p2 p5
  causewire draw run.parquet --from p1:100 --to p1:140 --axis order

Without -o the SVG goes to standard output, or, on a terminal, to a file named after the trace.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_trace_arguments(parser)
    add = parser.add_argument
    add("--run", metavar="R", help="which run; default: the first of the trace")
    add("--around", metavar="ORIGIN:MID", help="point out this message, and show what is around it")
    add(
        "--violation",
        type=int,
        nargs="?",
        const=1,
        metavar="N",
        help="show the Nth violation that causewire check explains; default: 1",
    )
    add(
        "--process",
        nargs="+",
        action="extend",
        metavar="P",
        help="draw these processes only, in this order",
    )
    add("--from", dest="begin", metavar="WHEN", help="5ms after the run began, or PROCESS:SEQ")
    add("--to", dest="end", metavar="WHEN", help="the same")
    add("--axis", choices=("time", "order"), default="time", help="order: not to scale")
    add(
        "--events",
        type=int,
        default=300,
        metavar="N",
        help="the most rows to draw; default: 300",
    )
    add("--no-control", action="store_true", help="leave out acks and permits")
    add("-o", "--output", metavar="OUT.svg", help="where to write; - is standard output")


def run(args: argparse.Namespace) -> int:
    if args.events < 1:
        raise CommandError(f"--events must be from 1 upward, not {args.events}")
    if args.around is not None and args.violation is not None:
        raise CommandError("--around and --violation exclude each other")
    around = _named(args.around, "--around", "ORIGIN:MID") if args.around is not None else None
    begin, end = _edge(args.begin, "--from"), _edge(args.end, "--to")
    try:
        trace = open_traces(args).trace
        run, violation = args.run, None
        if args.violation is not None:
            run, violation = _violation(trace, args.violation, args.run)
        total = trace.about_rows()
        with Progress("reading") as progress:
            window = choose(
                trace,
                run=run,
                around=around,
                violation=violation,
                processes=list(dict.fromkeys(args.process or ())),
                begin=begin,
                end=end,
                limit=args.events,
                progress=lambda rows: progress.about(rows, total, "rows"),
            )
    except TraceError as error:
        raise unreadable(error) from None
    svg = draw(
        window.events,
        axis=args.axis,
        processes=window.processes,
        violation=violation,
        around=around,
        control=not args.no_control,
        start=window.start,
        note=_note(window),
    )
    output = args.output
    if output is None:
        output = f"{Path(args.traces[0]).stem}.svg" if sys.stdout.isatty() else "-"
    if output == "-":
        sys.stdout.write(svg)
    else:
        write_file(output, svg)
        drawn = f"{count(len(window.events), 'event')} of run {window.run}"
        print("; ".join(filter(None, [f"{output}: {drawn}", _note(window)])))
    return 0


def _note(window: TimeWindow) -> str:
    """Return a note on what the picture leaves out."""
    notes = []
    if window.left_out:
        notes.append(f"{window.left_out:,} more rows are not shown")
    if window.hidden:
        notes.append(f"{count(len(window.hidden), 'more process', 'more processes')} hidden")
    if window.runs > 1:
        notes.append(f"one of {window.runs:,} runs")
    return ", ".join(notes)


def _named(text: str, what: str, form: str) -> tuple[str, int]:
    """Return name and number of `p1:17`; a process's name may contain colons."""
    name, colon, number = text.rpartition(":")
    if not colon or not name or not number.isascii() or not number.isdecimal():
        raise CommandError(f"{what} takes {form}, not {text!r}")
    return name, int(number)


def _edge(text: str | None, what: str) -> Edge | None:
    if text is None:
        return None
    if ":" in text:
        return _named(text, what, "PROCESS:SEQ")
    return nanoseconds(text, what)


def _violation(trace: Trace, number: int, run: str | None) -> tuple[str, Overtaking]:
    """Return the run and the violation with that number, as `causewire check` counts."""
    from ..check import check

    if number < 1:
        raise CommandError(f"--violation counts from 1, not {number}")
    name = trace.name
    if run is not None:
        trace = trace_of((event for event in trace.events() if event.run == run), name)
    total = trace.about_rows()
    with Progress("checking") as progress:
        found = check(
            trace,
            examples=number,
            progress=lambda done: progress.about(done, total, "events"),
        ).examples
    if len(found) < number:
        raise CommandError(f"{name}: no violation {number} to draw: there {_only(len(found))}")
    v = found[number - 1]
    chain = tuple((link.message.origin, link.message.mid) for link in v.chain)
    first, second = (v.first.origin, v.first.mid), (v.second.origin, v.second.mid)
    return v.run, Overtaking(v.process, first, second, chain or (first, second))


def _only(found: int) -> str:
    return "is none" if not found else "is one" if found == 1 else f"are {found}"
