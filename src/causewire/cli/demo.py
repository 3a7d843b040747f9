"""`causewire demo`: see causality break, hold, and why."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.endpoint import LocalProtocolError
from ..protocols import DEFAULT, describe
from ..report.page import whole
from ..report.plan import ReportError
from .errors import CommandError
from .output import colour, print_json, table
from .progress import Progress
from .spark import SparkProgress

if TYPE_CHECKING:
    from ..demo.judge import Judgement
    from ..demo.stage import DemoNetwork, Freeze, Performance

__all__ = ["configure", "run"]

PAUSE = 0.12
"""Seconds between two conversations that a friend opens, on average."""

_EPILOG = """\
examples:
  causewire demo
  causewire demo --out chat --protocol sps --loss 0.1 --seed 3
  causewire demo --engine local          (without Spark)

The output directory gets index.html, which opens offline, the diagram of a violation, and the
traces: causewire check DIR/fifo looks at one of them again.

exit status: 0 the causal protocol kept the order, 1 it did not, 2 bad usage.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("--out", default="causewire-demo", metavar="DIR", help="default: %(default)s")
    add("--protocol", default=DEFAULT, metavar="P", help="the causal one; default: %(default)s")
    add("--conversations", type=int, default=20, metavar="N", help="that each of the five opens")
    add("--loss", type=float, default=0.05, metavar="p", help="of datagrams; default: %(default)s")
    add("--seed", type=int, default=1, metavar="S", help="of what is said, and of the network")
    add(
        "--engine",
        choices=("auto", "local", "spark"),
        default="auto",
        help="who checks: Spark, if it is installed (auto), or this process",
    )
    add("--master", metavar="URL", help="the Spark master; default: local[*]")
    add(
        "--freeze",
        type=float,
        default=1.5,
        metavar="S",
        help="seconds for which one process stands still in a third chat; 0 leaves it out; "
        "default: %(default)s",
    )
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from ..demo import page, stage
    from ..demo.judge import isolation, judge_here

    _look_at(args)
    network = stage.DemoNetwork(loss=args.loss)
    out = Path(args.out)
    say = _quiet if args.json else _say
    others = None
    try:
        with whole(out) as place:
            say(page.introduction(network))
            fifo = _perform("fifo", place / "fifo", network, args)
            story = page.tell(fifo, judge_here(fifo.traces))
            if story is not None:
                say("\nfifo keeps the lines of each friend in order. That is not enough:\n")
                say("\n".join(story.lines), fill=False)
            say(f"\nNow the same chat under {args.protocol}, a causal protocol{_why(args)}:")
            causal = _perform(args.protocol, place / args.protocol, network, args)
            judgements, checked_by = _judge([fifo.traces, causal.traces], args)
            runs = list(zip([fifo, causal], judgements, strict=True))
            say(f"\n{_coloured(table(page.comparison(runs)), judgements[-1])}\n", fill=False)
            notes = []
            say(page.price(runs))
            if args.freeze:
                freeze = stage.Freeze("eve", after=0.5, lasting=args.freeze)
                folder = place / f"{args.protocol}-frozen"
                frozen = _perform(args.protocol, folder, network, args, freeze)
                if frozen.frozen is not None:
                    others = isolation(folder, freeze.who, frozen.frozen)
                    notes = [page.told_freeze(freeze, args.protocol, others)]
                    say(f"\n{notes[0]}")
            page.write_page(place, runs, network, checked_by, notes)
    except (ReportError, stage.StageError) as error:
        raise CommandError(str(error)) from None
    if args.json:
        print_json(
            {
                "page": str(out / "index.html"),
                "checked": checked_by,
                "runs": [_row(p, j) for p, j in runs],
                "freeze": None if others is None else others._asdict(),
            }
        )
        return 0 if judgements[-1].report.ordered else 1
    say(f"\nThe traces were checked {checked_by}.\n")
    if story is not None:
        print(f"the violation as a picture:  {out / page.DIAGRAM}")
    print(f"the report:                  {out / 'index.html'}")
    print(f"look around in it:           {_command()} explore {out / 'fifo'}")
    return 0 if judgements[-1].report.ordered else 1


def _why(args: argparse.Namespace) -> str:
    """Return why the chat is under this protocol, if it was not asked for."""
    if args.protocol != DEFAULT:
        return ""
    return " that goes on while one process stands still"


def _command() -> str:
    """Return how this program is called from the shell that it was called from."""
    if shutil.which("causewire") is not None:
        return "causewire"
    called = Path(sys.argv[0])
    return str(called) if called.name == "causewire" else "python -m causewire"


def _say(text: str, *, fill: bool = True) -> None:
    """Print a paragraph, wrapped unless it is a table or a list of lines."""
    if fill:
        start = text[: len(text) - len(text.lstrip("\n"))]
        end = text[len(text.rstrip("\n")) :]
        text = f"{start}{textwrap.fill(text.strip(), 80)}{end}"
    print(text, flush=True)


def _quiet(text: str, *, fill: bool = True) -> None:
    """Print nothing: the output is JSON."""


def _coloured(text: str, last: Judgement) -> str:
    """Return the table with its first line of numbers in red and green, on a terminal."""
    lines = text.splitlines()
    before, _, number = lines[1].rpartition(" ")
    good = "green" if last.report.ordered else "red"
    lines[1] = f"{before} {colour(number, good)}"
    return "\n".join(lines)


def _row(performance: Performance, judgement: Judgement) -> dict[str, Any]:
    return {
        "protocol": performance.protocol,
        **judgement.report.to_json(),
        "examples": len(judgement.report.examples),
        "latency_mean_ns": judgement.mean_ns,
        "unavoidable_mean_ns": judgement.unavoidable_ns,
        "latency_p50_ns": judgement.median_ns,
        "latency_p99_ns": judgement.p99_ns,
        "metadata_bytes": judgement.metadata,
        "lost": performance.lost,
        "copies": performance.copies,
        "damaged": performance.damaged,
    }


def _look_at(args: argparse.Namespace) -> None:
    """Refuse bad arguments, before anything is started."""
    try:
        able = describe(args.protocol)
    except LocalProtocolError as error:
        raise CommandError(str(error)) from None
    if not able.causal or not (able.multicast or able.broadcast):
        raise CommandError(
            f"--protocol must be causal, and able to tell everybody something: not {args.protocol}"
        )
    if args.conversations < 1:
        raise CommandError(f"--conversations must be from 1 upward, not {args.conversations}")
    if not 0 <= args.loss <= 0.5:
        raise CommandError(f"--loss must be from 0 to 0.5, not {args.loss:g}")
    if not 0 <= args.freeze <= 10:
        raise CommandError(f"--freeze must be from 0 to 10 seconds, not {args.freeze:g}")
    if args.master is not None and args.engine == "local":
        raise CommandError("--master is for --engine spark")


def _perform(
    protocol: str,
    traces: Path,
    network: DemoNetwork,
    args: argparse.Namespace,
    freeze: Freeze | None = None,
) -> Performance:
    from ..demo import stage

    traces.mkdir()
    what = f"they chat under {protocol}"
    conversations = args.conversations
    if freeze is not None:
        what = f"{protocol}, {freeze.who} stands still"
        conversations = freeze.conversations(conversations, PAUSE)
    with Progress(what) as progress:
        return asyncio.run(
            stage.perform(
                protocol,
                traces,
                conversations=conversations,
                pause=PAUSE,
                network=network,
                seed=args.seed,
                progress=lambda done, total: progress.of(done, total, "lines read"),
                freeze=freeze,
            )
        )


def _judge(folders: list[Path], args: argparse.Namespace) -> tuple[list[Judgement], str]:
    """Return the judgements, and where they were made."""
    from ..demo.judge import judge_here, judge_on_spark

    if args.engine == "local":
        return [judge_here(folder) for folder in folders], "in this process"
    if args.engine == "auto" and args.master is None and find_spec("pyspark") is None:
        why = 'PySpark is not installed: pip install "causewire[spark]"'
        return [judge_here(folder) for folder in folders], f"in this process, since {why}"
    from ..pipeline import PipelineError

    try:
        with Progress("the pipeline on Spark") as progress:
            shown = SparkProgress(progress)
            return judge_on_spark(folders, args.master, shown.say, shown.tasks), "on Spark"
    except PipelineError as error:
        if args.engine == "spark" or args.master is not None:
            raise CommandError(str(error)) from None
        return [judge_here(folder) for folder in folders], f"in this process, since {error}"
