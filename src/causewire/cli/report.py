"""`causewire report`: the results of a sweep or of a check, as a page with figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report.plan import ReportError
from ..trace import Trace, TraceError
from ..trace.storage import is_pattern
from .errors import CommandError
from .output import count, print_json
from .progress import Progress
from .spark import SparkProgress
from .traces import Counted, add_trace_arguments, format_of, open_traces, unreadable

if TYPE_CHECKING:
    from ..check import Report

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire sweep experiments/cykas-fig5.toml --out fig5
  causewire report fig5              (and look at fig5/report/index.html)
  causewire report run.parquet       (checks the trace; run-report/index.html)
  causewire report traces --master 'local[*]'
  causewire report spans.json

index.html is one file that opens offline. Next to it are the figures as PNG and SVG, and the
numbers of each as CSV. The report of a trace says whether it is causally ordered, explains and
draws violations, and shows where the time of messages went. Its exit status is that of a check.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add_trace_arguments(parser, "the output of a sweep; or traces, to be checked:")
    add(
        "-o",
        "--out",
        metavar="DIR",
        help="where the report goes; default: TRACE-report, SWEEP/report",
    )
    add(
        "--master", metavar="URL", help="check the trace on Spark: local[4], spark://host:7077, ..."
    )
    add("--examples", type=int, default=10, metavar="N", help="violations to explain; default: 10")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from ..report.sweeps import is_sweep

    path = Path(args.traces[0])
    try:
        return _sweep(path, args) if is_sweep(path) else _trace(args)
    except (ReportError, TraceError) as error:
        raise unreadable(error) from None


def _sweep(path: Path, args: argparse.Namespace) -> int:
    if args.master is not None:
        raise CommandError("--master is for the check of a trace")
    if len(args.traces) > 1:
        raise CommandError("one sweep at a time")
    from ..report.sweeps import report_sweep

    with Progress("writing the report") as progress:
        progress.say("figures and tables")
        told = report_sweep(
            path,
            Path(args.out) if args.out else path / "report",
            lambda done, total: progress.of(done, total, "figures and tables"),
        )
    if args.json:
        print_json({**told._asdict(), "page": str(told.page)})
    else:
        shown = f"{count(told.figures, 'figure')} and {count(told.tables, 'table')}"
        print(f"{told.page}: {shown} of {count(told.runs, 'run')}")
    return 0


def _trace(args: argparse.Namespace) -> int:
    from ..report.checks import report_check

    out = Path(args.out) if args.out else _default(args.traces)
    read = open_traces(args)
    trace = read.trace
    found, rows = _here(trace, args) if args.master is None else _on_spark(args)
    found.unread += read.unread
    found.inferred = read.inferred
    with Progress("writing the report") as progress:
        told = report_check(
            trace,
            found,
            out,
            rows,
            refused=read.refused,
            notes=read.notes,
            one_clock=not read.spans,
            progress=lambda done, total: progress.of(done, total, "pictures"),
        )
    if args.json:
        print_json(
            {
                **told._asdict(),
                "page": str(told.page),
                "quarantined": read.refused.total(),
                "refused": dict(sorted(read.refused.items())),
                "unread": found.unread,
                "inferred": read.inferred,
            }
        )
    else:
        print(f"{told.page}: {found.verdict} in {count(found.events, 'event')}")
    return 0 if found.ordered and found.conclusive else 1


def _default(traces: Sequence[str]) -> Path:
    """Return where a report goes: next to a file, or next to the directory of several."""
    first = Path(traces[0])
    if len(traces) == 1 and not first.is_dir() and not is_pattern(traces[0]):
        near = first if first.exists() else Path(first.name)
        return near.with_name(f"{near.stem}-report")
    folder = first if first.is_dir() else first.parent
    name = f"{folder.resolve().name}-report"
    return Path(name) if Path.cwd().is_relative_to(folder.resolve()) else folder.with_name(name)


def _here(trace: Trace, args: argparse.Namespace) -> tuple[Report, list[dict[str, Any]]]:
    """Return the result of the check, and the measurements of each run."""
    from ..check import check
    from ..metrics import measure

    total = trace.about_rows()
    with Progress("checking") as progress:
        found = check(
            trace,
            examples=args.examples,
            progress=lambda done: progress.about(done, total, "events"),
        )
    with Progress("measuring") as progress:
        read = Counted(trace, lambda done: progress.about(done, total, "events"))
        rows = [run.summary() for run in measure(read)]
    return found, sorted(rows, key=lambda row: str(row["run"]))


def _on_spark(args: argparse.Namespace) -> tuple[Report, list[dict[str, Any]]]:
    """Return the result of the check, and the measurements of each run."""
    from ..pipeline import PipelineError
    from ..pipeline.check import check_paths
    from ..pipeline.metrics import measure_paths

    if format_of(args) != "trace":
        raise CommandError("--master is for .parquet and .jsonl traces (see causewire convert)")
    try:
        with Progress("on Spark") as progress:
            shown = SparkProgress(progress)
            with shown.session(args.master):
                found = check_paths(
                    args.traces, master=args.master, examples=args.examples, progress=shown.say
                )
                shown.say("measuring")
                return found, measure_paths(args.traces, master=args.master).to_pylist()
    except PipelineError as error:
        raise CommandError(str(error)) from None
