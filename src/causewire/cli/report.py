"""`causewire report`: the results of a sweep or of a check, as a page with figures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..report.plan import ReportError
from ..trace import TraceError, open_trace
from .errors import CommandError
from .output import count, print_json
from .progress import Progress

if TYPE_CHECKING:
    from ..check import Report

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire sweep experiments/cykas-fig5.toml --out fig5
  causewire report fig5              (and look at fig5/report/index.html)
  causewire report run.parquet       (checks the trace; run-report/index.html)
  causewire report traces --master 'local[*]'

The figures of a sweep are written as PNG and SVG, with the numbers behind each as CSV. Of a trace,
violations are listed, explained and drawn, and with --master it is shown where the time of messages
went. The exit status of the latter is that of a check.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("directory", metavar="DIR", help="the output of a sweep; or a trace, to be checked")
    add("--out", metavar="DIR", help="where the report goes; default: DIR/report")
    add(
        "--master", metavar="URL", help="check the trace on Spark: local[4], spark://host:7077, ..."
    )
    add("--examples", type=int, default=10, metavar="N", help="violations to explain; default: 10")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from ..report.sweeps import is_sweep

    path = Path(args.directory)
    try:
        if not path.exists():
            raise ReportError(f"{path}: no such file or directory")
        if is_sweep(path):
            return _sweep(path, args)
        return _trace(path, args)
    except (ReportError, TraceError) as error:
        raise CommandError(str(error)) from None


def _sweep(path: Path, args: argparse.Namespace) -> int:
    if args.master is not None:
        raise CommandError("--master is for the check of a trace")
    from ..report.sweeps import report_sweep

    told = report_sweep(path, Path(args.out) if args.out else path / "report")
    if args.json:
        print_json({**told._asdict(), "page": str(told.page)})
    else:
        shown = f"{count(told.figures, 'figure')} and {count(told.tables, 'table')}"
        print(f"{told.page}: {shown} of {count(told.runs, 'run')}")
    return 0


def _trace(path: Path, args: argparse.Namespace) -> int:
    from ..check import check
    from ..report.checks import report_check

    default = path / "report" if path.is_dir() else path.with_name(f"{path.stem}-report")
    trace = open_trace(path)
    rows: list[dict[str, Any]] = []
    if args.master is None:
        with Progress("checking") as progress:
            found = check(
                trace,
                examples=args.examples,
                progress=lambda rows: progress.done(rows, "events"),
            )
    else:
        found, rows = _on_spark(path, args)
    told = report_check(trace, found, Path(args.out) if args.out else default, rows)
    if args.json:
        print_json({**told._asdict(), "page": str(told.page)})
    else:
        verdict = "causally ordered" if told.ordered else count(told.violations, "violation")
        print(f"{told.page}: {verdict} in {count(found.events, 'event')}")
    return 0 if told.ordered else 1


def _on_spark(path: Path, args: argparse.Namespace) -> tuple[Report, list[dict[str, Any]]]:
    """Return the result of the check, and the metrics of each run."""
    from ..pipeline import PipelineError, session
    from ..pipeline.check import check_paths
    from ..pipeline.errors import reason
    from ..pipeline.metrics import copies, runs
    from ..pipeline.sources import register

    path = path.absolute()  # executors are somewhere else
    try:
        with session(args.master) as spark:
            found = check_paths([path], master=args.master, examples=args.examples)
            register(spark)
            try:
                # Metrics look at these tables many times; they are to be read once.
                events = spark.read.format("causewire").load(str(path)).localCheckpoint()
                rows = runs(events, copies(events).localCheckpoint()).orderBy("run").collect()
            except Exception as error:  # Spark raises what it likes
                raise PipelineError(reason(error)) from None
            return found, [row.asDict() for row in rows]
    except PipelineError as error:
        raise CommandError(str(error)) from None
