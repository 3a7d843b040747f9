"""`causewire demo`: see causality break, hold, and why."""

from __future__ import annotations

import argparse
import asyncio
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.endpoint import LocalProtocolError
from ..protocols import describe
from ..report.page import whole
from ..report.plan import ReportError
from .errors import CommandError
from .output import print_json, table
from .progress import Progress

if TYPE_CHECKING:
    from ..demo.judge import Judgement
    from ..demo.stage import DemoNetwork, Performance

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
    add(
        "--protocol",
        default="csps",
        metavar="P",
        help="the causal protocol to compare with fifo; default: %(default)s",
    )
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
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from ..demo import page, stage

    _look_at(args)
    network = stage.DemoNetwork(loss=args.loss)
    out = Path(args.out)
    try:
        with whole(out) as place:
            if not args.json:
                print(textwrap.fill(page.introduction(network), 88), flush=True)
            performances = [
                _perform(name, place, network, args) for name in ("fifo", args.protocol)
            ]
            judgements, checked_by = _judge([p.traces for p in performances], args)
            runs = list(zip(performances, judgements, strict=True))
            story = page.write_page(place, runs, network, checked_by)
    except (ReportError, stage.StageError) as error:
        raise CommandError(str(error)) from None
    if args.json:
        print_json(
            {
                "page": str(out / "index.html"),
                "checked": checked_by,
                "runs": [
                    {
                        "protocol": p.protocol,
                        **j.report.to_json(),
                        "examples": len(j.report.examples),
                        "latency_p50_ns": j.median_ns,
                        "latency_p99_ns": j.p99_ns,
                        "metadata_bytes": j.metadata,
                        "lost": p.lost,
                        "copies": p.copies,
                        "damaged": p.damaged,
                    }
                    for p, j in runs
                ],
            }
        )
    else:
        print(f"\n{table(page.comparison(runs))}\n\nchecked {checked_by}\n")
        print(textwrap.fill(page.PRICE, 88))
        if story is not None:
            print(f"\nOne violation of run {story.violation.run}:\n")
            print("\n".join(story.lines))
            print(f"\n{textwrap.fill(f'That is: {story.violation}.', 88)}")
            print(f"\nas a picture:  {out / page.DIAGRAM}")
        print(f"the report:    {out / 'index.html'}")
    return 0 if judgements[-1].report.ordered else 1


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
    if args.master is not None and args.engine == "local":
        raise CommandError("--master is for --engine spark")


def _perform(
    protocol: str, place: Path, network: DemoNetwork, args: argparse.Namespace
) -> Performance:
    from ..demo import stage

    traces = place / protocol
    traces.mkdir()
    with Progress(f"they talk under {protocol}") as progress:
        return asyncio.run(
            stage.perform(
                protocol,
                traces,
                conversations=args.conversations,
                pause=PAUSE,
                network=network,
                seed=args.seed,
                progress=lambda done, total: progress.of(done, total, "deliveries"),
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
            return judge_on_spark(folders, args.master, progress.say), "on Spark"
    except PipelineError as error:
        if args.engine == "spark" or args.master is not None:
            raise CommandError(str(error)) from None
        return [judge_here(folder) for folder in folders], f"in this process, since {error}"
