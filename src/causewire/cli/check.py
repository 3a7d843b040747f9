"""`causewire check`: is a trace causally ordered, and if not, why?"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..trace import Trace, TraceError, open_trace
from .errors import CommandError
from .output import count, print_json
from .progress import Progress
from .traces import add_trace_arguments, is_shiviz, open_traces

if TYPE_CHECKING:
    from ..check import Report

__all__ = ["configure", "run"]

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

exit status: 0 in causal order, 1 violated, 2 the trace cannot be judged. Duplicates, bad rows and
undelivered messages are counted, and change nothing about that.
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
    add("--master", metavar="URL", help="the Spark master: local[4], spark://host:7077, ...")
    add("--examples", type=int, default=10, metavar="N", help="violations to explain; default: 10")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    if args.examples < 0:
        raise CommandError(f"--examples must be from 0 upward, not {args.examples}")
    try:
        trace, inferred = open_traces(args)
        report = _check(trace, args)
    except TraceError as error:
        raise CommandError(str(error)) from None
    if args.json:
        print_json({**report.to_json(), "inferred": inferred})
    else:
        print(_told(report, args.traces, inferred))
    return 0 if report.ordered else 1


def _check(trace: Trace, args: argparse.Namespace) -> Report:
    """The one place where it is decided who does the work."""
    if _engine(args) == "spark":
        return _on_spark(args)
    if args.master is not None:
        raise CommandError("--master is for --engine spark")
    from ..check import check

    with Progress("checking") as progress:
        return check(
            trace,
            examples=args.examples,
            progress=lambda rows: progress.done(rows, "events"),
        )


def _engine(args: argparse.Namespace) -> str:
    if args.engine != "auto":
        return str(args.engine)
    if args.master is not None:
        return "spark"
    if is_shiviz(args) or args.tolerate_cut:
        return "local"
    folders = [name for name in args.traces if Path(name).is_dir()]
    if not folders or find_spec("pyspark") is None:
        return "local"
    files = open_trace(*folders).files  # type: ignore[attr-defined]
    size = sum(file.stat().st_size for file in files)
    return "spark" if size >= SPARK_FROM else "local"


def _on_spark(args: argparse.Namespace) -> Report:
    if is_shiviz(args):
        raise CommandError("--engine spark reads no ShiViz logs: causewire convert makes traces")
    if args.tolerate_cut:
        raise CommandError("--tolerate-cut is for --engine local")
    from ..pipeline import PipelineError
    from ..pipeline.check import check_paths

    try:
        with Progress("checking on Spark") as progress:
            return check_paths(
                args.traces, master=args.master, examples=args.examples, progress=progress.say
            )
    except PipelineError as error:
        other = " (--engine local needs no Spark)" if args.engine == "auto" else ""
        raise CommandError(f"{error}{other}") from None


def _told(report: Report, traces: list[str], inferred: bool) -> str:
    size = ", ".join(
        [
            count(report.events, "event"),
            count(report.messages, "message"),
            count(report.processes, "process", "processes"),
            count(report.runs, "run"),
        ]
    )
    lines = [size]
    if inferred:
        lines.append(
            "messages were inferred from vector clocks: that they are in order proves nothing"
        )
    if report.ordered:
        lines.append("causally ordered")
    else:
        lines.append(f"NOT causally ordered: {count(report.violations, 'violation')}")
    if report.duplicates:
        lines.append(f"{count(report.duplicates, 'message was', 'messages were')} delivered twice")
    if report.undelivered:
        lines.append(f"{count(report.undelivered, 'copy', 'copies')} undelivered")
    for reason, number in sorted(report.bad.items()):
        lines.append(f"{count(number, 'bad row')}: {reason}")
    lines += [f"  {row}" for row in report.bad_rows]
    for number, violation in enumerate(report.examples, 1):
        where = f"in run {violation.run}: " if report.runs > 1 else ""
        lines += ["", f"{number}. {where}{violation}"]
    if report.examples:
        lines += ["", f"causewire draw {' '.join(traces)} --violation 1 shows the first"]
    return "\n".join(lines)
