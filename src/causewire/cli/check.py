"""`causewire check`: is a trace causally ordered, and if not, why?"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..trace import TraceError, trace_files
from ..trace.formats.names import SPAN_FORMATS, TWICE
from ..trace.marks import marks_of
from .errors import CommandError
from .output import colour, count, print_json, say
from .progress import Progress
from .spark import SparkProgress, add_spark_arguments, config_of
from .traces import (
    INFERRED,
    add_trace_arguments,
    arguments_of,
    columns_of,
    format_of,
    open_input,
    passed_over,
    refusals,
    span_options,
    unreadable,
    with_remedy,
)

if TYPE_CHECKING:
    from ..check import Report
    from ..trace.formats.rows import Refused
    from ..trace.storage import Location

__all__ = ["configure", "run"]

QUARANTINE = 1000
"""Rows that were refused, with file and number, in the output as JSON."""

SPARK_FROM = 1 << 30
"""Bytes of trace files in a directory from which on Spark is the default engine."""

_EPILOG = """\
examples:
  causewire check run.parquet
  causewire check node-a.jsonl node-b.jsonl node-c.jsonl --json
  causewire check app.log --regex 'RE'     (a ShiViz log; docs/cli.md has an expression)
  causewire check traces/ --engine spark --master spark://host:7077

A directory with a gigabyte of traces or more is checked on Spark, if PySpark is there; so is what
has a --master. docs/pipeline.md tells when that is faster.

exit status: 0 in causal order, 1 violated, or cannot tell (rows that cannot be right, files that
cannot be read, messages that were inferred from clocks), 2 the trace cannot be judged at all. Rows
that are not understood, duplicates and undelivered messages are counted, and change nothing about
that.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_trace_arguments(parser)
    add = parser.add_argument
    add(
        "--engine",
        choices=("auto", "local", "spark"),
        default="auto",
        help="local: in this process; spark: on Spark; auto: spark for a directory of a gigabyte "
        "or more, or with a --master",
    )
    add_spark_arguments(parser)
    add("--examples", type=int, default=10, metavar="N", help="violations to explain; default: 10")
    add("--strict", action="store_true", help="refuse rows and spans that are there twice")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.examples < 0:
        raise CommandError(f"--examples must be from 0 upward, not {args.examples}")
    try:
        checked = _check(args)
    except TraceError as error:
        raise unreadable(error) from None
    if args.strict and checked.notes[TWICE]:
        raise CommandError(f"--strict: there are {TWICE} ({checked.notes[TWICE]:,})")
    if args.json:
        print_json(
            {
                **checked.report.to_json(),
                "quarantined": checked.refused.total(),
                "refused": dict(sorted(checked.refused.items())),
                "quarantine": [row._asdict() for row in _first(checked.quarantine)],
                "notes": dict(sorted(checked.notes.items())),
            }
        )
    else:
        say(_told(checked, args))
    return 0 if checked.report.ordered and checked.report.conclusive else 1


class _Checked(NamedTuple):
    """What a check found, and what there is to say about its input."""

    report: Report
    refused: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    quarantine: Sequence[Refused] = ()
    """The first of the rows that were refused."""


def _check(args: argparse.Namespace) -> _Checked:
    """Check the input, with the engine that the arguments or its size ask for."""
    kind = format_of(args)
    if _engine(args, kind) == "spark":
        return _on_spark(args, kind)
    if args.master is not None:
        raise CommandError("--master is for --engine spark")
    if args.conf:
        raise CommandError("--conf is for --engine spark")
    from ..check import check

    found, inferred = open_input(args)
    rows = found.trace.about_rows()
    with Progress("checking") as progress:
        report = check(
            found.trace,
            examples=args.examples,
            strict=args.strict,
            progress=lambda done: progress.about(done, rows, "events"),
        )
    report.unread += found.unread
    report.inferred = inferred
    return _Checked(report, found.refused, found.notes, found.quarantine)


def _engine(args: argparse.Namespace, kind: str) -> str:
    if args.engine != "auto":
        return str(args.engine)
    if args.master is not None:
        return "spark"
    if kind != "trace" or args.tolerate_cut:
        return "local"
    folders = [name for name in args.traces if Path(name).is_dir()]
    if not folders or find_spec("pyspark") is None:
        return "local"
    size = sum(file.stat().st_size for file in _files(folders))
    return "spark" if size >= SPARK_FROM else "local"


def _files(names: Sequence[str]) -> list[Location]:
    try:
        return trace_files(*names)
    except TraceError as error:
        raise with_remedy(error) from None


def _on_spark(args: argparse.Namespace, kind: str) -> _Checked:
    if args.tolerate_cut:
        raise CommandError("--tolerate-cut is for --engine local")
    from ..pipeline import PipelineError
    from ..pipeline.check import check_paths
    from ..pipeline.foreign import check_foreign

    config = config_of(args)
    if kind == "trace":
        _files(args.traces)  # before Spark starts, if there is something wrong with them
    try:
        with Progress("checking on Spark") as progress:
            shown = SparkProgress(progress)
            with shown.session(args.master, config):
                if kind == "trace":
                    report = check_paths(
                        args.traces,
                        master=args.master,
                        examples=args.examples,
                        progress=shown.say,
                        strict=args.strict,
                    )
                    mark = marks_of(args.traces)
                    report.unread += mark.unread
                    skipped = passed_over(args.traces)
                    refused = Counter(one.reason for one in skipped)
                    report.inferred = mark.inferred
                    return _Checked(report, refused, quarantine=skipped)
                checked = check_foreign(
                    args.traces,
                    "spans" if kind in SPAN_FORMATS and args.format == "auto" else kind,
                    master=args.master,
                    examples=args.examples,
                    progress=shown.say,
                    strict=args.strict,
                    config=config,
                    **_options(args, kind),
                )
                return _Checked(*checked)
    except PipelineError as error:
        other = " (--engine local needs no Spark)" if args.engine == "auto" else ""
        raise CommandError(f"{error}{other}") from None


def _options(args: argparse.Namespace, kind: str) -> dict[str, Any]:
    """Return the options of the source `causewire` that the arguments stand for."""
    if kind == "table":
        return {"columns": columns_of(args)}
    if kind == "shiviz":
        given = {"pattern": args.regex, "delimiter": args.delimiter}
        return {name: value for name, value in given.items() if value is not None}
    how = span_options(args)
    return {"processBy": how.process_by, "runBy": how.run_by}


def _first(quarantine: Sequence[Refused]) -> list[Refused]:
    """Return the first rows that were refused, in the same order on every engine."""
    return sorted(quarantine, key=lambda one: (one.row or 0, one.file, one.reason))[:QUARANTINE]


def _told(checked: _Checked, args: argparse.Namespace) -> str:
    report = checked.report
    size = ", ".join(
        [
            count(report.events, "event"),
            count(report.messages, "message"),
            count(report.processes, "process", "processes"),
            count(report.runs, "run"),
        ]
    )
    lines = [size]
    if report.inferred and not report.ordered:
        lines.append(INFERRED)
    good = report.ordered and report.conclusive
    lines.append(colour(report.verdict, "green" if good else "red"))
    if report.duplicates:
        lines.append(f"{count(report.duplicates, 'message was', 'messages were')} delivered twice")
    if report.identical:
        lines.append(f"{count(report.identical, 'duplicate row')}, counted once")
    if report.lost:
        copies = count(report.lost, "copy", "copies")
        lines.append(f"{copies} lost with processes that were restarted")
    if report.undelivered:
        lines.append(f"{count(report.undelivered, 'copy', 'copies')} undelivered")
    for reason, number in sorted(report.bad.items()):
        lines.append(f"{count(number, 'bad row')}: {reason}")
    lines += [f"  {row}" for row in report.bad_rows]
    lines += refusals(checked.refused, checked.quarantine)
    for note, number in sorted(checked.notes.items()):
        lines.append(f"note: {number:,} {note}")
    for number, violation in enumerate(report.examples, 1):
        where = f"in run {violation.run}: " if report.runs > 1 else ""
        lines += ["", f"{number}. {where}{violation}"]
    if report.examples:
        lines += ["", f"causewire draw {arguments_of(args)} --violation 1 shows the first"]
    return "\n".join(lines)
