"""`causewire watch`: follow traces that nodes are still writing."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..trace import TraceError
from ..trace.formats.names import FORMATS, PROCESS_BY, SPAN_FORMATS
from .errors import CommandError
from .output import count, duration, print_json, say
from .progress import Progress
from .quantities import nanoseconds
from .spark import SparkProgress, add_spark_arguments, config_of
from .traces import columns_of

if TYPE_CHECKING:
    from ..pipeline.watch import Tell, Watching, WatchSettings

__all__ = ["configure", "run"]

_JAVA = "-XX:TieredStopAtLevel=1 -Xms384m -XX:+AlwaysPreTouch"
"""Java starts with two thirds of the CPU time if it compiles quickly, not well.

A restart is the longest time for which nobody watches, and the batches are small. The heap has
from the start the size at which it would arrive within half an hour.
"""
_SERIAL = "-XX:+UseSerialGC"
"""A collector that uses the heap that it has before it asks for more."""
_SETTINGS = {
    # What lives is a fifth of this. With a larger heap, Java collects late, and grows for hours.
    "spark.driver.memory": "1g",
    # Each batch is several queries and jobs, whose plans Spark keeps for its user interface.
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
}
"""Settings of Spark that keep a watch small for as long as it runs."""

_COUNTS = ("events", "violations", "windows", "late", "quarantine", "unread")

_ATTEMPTS = 5
_NOT_IN_TIME = "Python worker failed to connect back"

_EPILOG = """\
examples:
  causewire watch traces/
  causewire watch traces/ --window 1s --late 5s --out found/
  causewire watch traces/ --once --json
  causewire watch spans/ --format otlp --idle 10s
  causewire watch log/ --columns columns.json

Lines that are added to .jsonl files and .parquet files that appear are taken as they come (of spans
and tables also lines of .json files). The spans of a trace are checked when none has come for
--idle. What is found goes to Parquet tables below --out: violations, windows, late, quarantine;
each row once, also if the command is stopped, or killed, and started again. docs/pipeline.md tells
what is in them.

exit status (with --once, or when interrupted): 0 no violation was found since the first start, and
what is there was read; 1 violated, or a file could not be read; 2 bad input.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("directory", metavar="DIR", help="where nodes write their traces")
    add(
        "--format",
        choices=("auto", *FORMATS),
        default="auto",
        help="auto: by the first line that is there, or table with --columns",
    )
    add(
        "--columns",
        metavar="FILE",
        help="how a table is to be read: a JSON file that maps the columns of a trace to its own",
    )
    add("--process-by", choices=PROCESS_BY, help="spans: what is a process; default: request")
    add("--out", metavar="DIR", help="where the tables go; default: _watch in the directory")
    add("--window", default="10s", metavar="D", help="metrics are for windows of this length")
    add("--late", default="10s", metavar="D", help="rows may be this late; default: 10s")
    add(
        "--idle", default="30s", metavar="D", help="a run has ended when nothing came for this long"
    )
    add("--every", default="2s", metavar="D", help="time between two batches; default: 2s")
    add("--webhook", metavar="URL", help="post violations to this URL, as JSON")
    add(
        "--prometheus",
        metavar="[HOST:]PORT",
        help="serve counters at /metrics; HOST is 127.0.0.1 if none is given",
    )
    add("--once", action="store_true", help="check every row that is there, and end")
    add_spark_arguments(parser)
    add("--json", action="store_true", help="print one JSON object at the end")


def run(args: argparse.Namespace) -> int:
    from ..pipeline import PipelineError
    from ..pipeline.watch import WatchSettings
    from ..pipeline.watch_tables import totals

    if os.path.isfile(args.directory):
        raise CommandError(
            f"{args.directory} is a file: watch follows a directory; check reads a file"
        )
    if not os.path.isdir(args.directory):
        raise CommandError(f"{args.directory}: no such directory")
    try:
        kind, options = _input(args)
    except TraceError as error:
        raise CommandError(str(error)) from None
    window, every = nanoseconds(args.window, "--window"), nanoseconds(args.every, "--every")
    if window < 1:
        raise CommandError("--window must be more than nothing")
    settings = WatchSettings(
        window_ns=window,
        late_ns=nanoseconds(args.late, "--late"),
        idle_ms=max(1, nanoseconds(args.idle, "--idle") // 10**6),
    )
    out = Path(args.out) if args.out else Path(args.directory) / "_watch"
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{out}: cannot be written: {error.strerror}") from None
    seen: Counter[str] = Counter()

    def tell(table: str, row: dict[str, Any]) -> None:
        seen[table] += 1
        if not args.json:
            progress.clear()
            say(_said(table, row))
            sys.stdout.flush()
        for other in others:
            other(table, row)

    try:
        with ExitStack() as stack, Progress("watching") as progress:
            others = _others(args, stack)
            _follow(args, kind, options, out, settings, every / 1e9, tell, progress)
    except PipelineError as error:
        raise CommandError(str(error)) from None
    total = totals(out)
    before = total["violations"] - seen["violations"]
    if args.json:
        print_json({name: total[name] for name in _COUNTS})
    elif before > 0:
        say(f"found before: {count(before, 'violation')}, in {out / 'violations'}")
    return 1 if total["violations"] or total["unread"] else 0


def _input(args: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return the format of the directory, and the options with which the source reads it.

    Raises:
        TraceError: The format cannot be followed, or a table has no mapping.
    """
    kind = args.format
    if kind == "auto":
        kind = "table" if args.columns is not None else _format_there(args.directory)
    if kind == "shiviz":
        raise TraceError(args.directory, None, "ShiViz logs cannot be followed; `check` reads them")
    if kind == "table":
        from ..trace.formats.tables import mapper

        args.traces = [args.directory]
        columns = columns_of(args)
        mapper(columns)  # raises if it is wrong
        return kind, {"columns": columns}
    if kind in SPAN_FORMATS and args.process_by is not None:
        return kind, {"processBy": args.process_by}
    return kind, {}


def _format_there(directory: str) -> str:
    """Return the format of the first line in a directory; `trace` if there is none yet."""
    from ..trace.formats.foreign import detect_bytes
    from ..trace.storage import expand

    files = [Path(str(file)) for file in expand(directory)]
    for suffix in (".jsonl", ".json"):
        for file in files:
            if file.suffix == suffix:
                with file.open("rb") as stream:
                    found = detect_bytes(stream.readline())
                return found if found in SPAN_FORMATS else "trace"
    return "trace"


def _others(args: argparse.Namespace, stack: ExitStack) -> list[Tell]:
    """Return what else gets each row: the webhook, the counters."""
    from ..pipeline.alerts import Counters, Webhook

    result: list[Tell] = []
    webhook = None
    if args.webhook is not None:
        webhook = stack.enter_context(Webhook(args.webhook))
        result.append(webhook)
    if args.prometheus is not None:
        host, _, port = args.prometheus.rpartition(":")
        if not port.isdigit():
            raise CommandError(f"--prometheus must be [HOST:]PORT, not {args.prometheus!r}")
        result.append(stack.enter_context(Counters(host or "127.0.0.1", int(port), webhook)))
    return result


def _follow(
    args: argparse.Namespace,
    kind: str,
    options: dict[str, str],
    out: Path,
    settings: WatchSettings,
    every: float,
    tell: Any,
    progress: Progress,
) -> None:
    from ..pipeline import PipelineError
    from ..pipeline.errors import reason
    from ..pipeline.watch import waiting, watch

    shown = SparkProgress(progress)
    config = _settings(config_of(args))
    with shown.session(args.master, config, tasks=args.once) as spark:
        progress.clear()
        if sys.stderr.isatty():
            print(f"watching {args.directory}; what is found goes to {out}", file=sys.stderr)

        def start() -> Watching:
            try:
                return watch(
                    spark,
                    args.directory,
                    out,
                    settings,
                    kind=kind,
                    options=options,
                    every=every,
                    once=args.once,
                    final=args.once,
                    tell=tell,
                )
            except Exception as error:  # Py4J, gRPC and the JVM raise what they like
                raise PipelineError(f"cannot watch {args.directory}: {reason(error)}") from None

        watching = start()
        interrupted: list[int] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda got, _: interrupted.append(got))
        try:
            _run_to_the_end(watching, start, lambda: bool(interrupted))
        except PipelineError:
            raise
        except Exception as error:
            told = reason(error)
            if told.startswith(BrokenPipeError.__name__):  # nobody reads what we print
                raise BrokenPipeError from None
            raise PipelineError(f"watching {args.directory} failed: {told}") from None
        if args.once and (left := waiting(spark, out)):
            raise PipelineError(
                f"{sum(left.values())} rows of run {min(left)!r} that came earlier still wait for "
                f"others: remove {out} to check everything from its beginning"
            )


def _settings(given: dict[str, str]) -> dict[str, str]:
    """Return the settings of Spark for a watch, with those that were given before all others.

    Java refuses to start with two collectors, so one that was given is the only one.
    """
    collected = "GC" in given.get("spark.driver.extraJavaOptions", "")
    options = _JAVA if collected else f"{_JAVA} {_SERIAL}"
    return {**_SETTINGS, "spark.driver.defaultJavaOptions": options, **given}


def _run_to_the_end(
    watching: Watching, start: Callable[[], Watching], stopped: Callable[[], bool]
) -> None:
    """Wait for the end of a query, or stop it; start it again if a worker was not there in time.

    Spark gives a Python process ten seconds to start, which is not enough on a machine that is
    very busy, and then ends the query. What it had done is in the checkpoint, so another
    one continues there.
    """
    attempts = 1
    while True:
        try:
            while not watching.wait(1):
                if stopped():
                    watching.stop()
                    break
            return
        except Exception as error:
            if attempts == _ATTEMPTS or _NOT_IN_TIME not in str(error) or stopped():
                raise
        attempts += 1
        watching = start()


def _said(table: str, row: dict[str, Any]) -> str:
    if table == "violations":
        first = f"{row['first_origin']}:{row['first_mid']}"
        second = f"{row['second_origin']}:{row['second_mid']}"
        return (
            f"VIOLATION in run {row['run']}: {row['process']} delivered {second} (seq {row['seq']})"
            f" without {first}, which happened before it"
        )
    if table == "windows":
        latency = ""
        if row["latency_p50_ns"] is not None:
            p50, p99 = duration(row["latency_p50_ns"]), duration(row["latency_p99_ns"])
            latency = f", latency {p50} (p99 {p99})"
        return (
            f"run {row['run']} at {duration(row['start_ns'])}: {count(row['sent'], 'send')},"
            f" {count(row['delivered'], 'delivery', 'deliveries')}{latency},"
            f" {count(row['in_flight'], 'copy', 'copies')} in flight,"
            f" {count(row['violations'], 'violation')}"
        )
    if table == "late":
        seq = "" if row["seq"] is None else f", seq {row['seq']}"
        return f"late in run {row['run']}: {row['process']}{seq}: {row['reason']}"
    where = row["file"] if row["row"] is None else f"{row['file']}: row {row['row']}"
    return f"not understood: {where}: {row['reason']}"
