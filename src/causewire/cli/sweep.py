"""`causewire sweep`: simulate every run of an experiment, on Spark."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CommandError
from .output import count, duration, print_json
from .progress import Progress
from .spark import SparkProgress, add_spark_arguments, config_of

if TYPE_CHECKING:
    from ..pipeline.sweep import Sweep

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire sweep experiments/cykas-fig4.toml --out fig4
  (then open fig4/report/index.html)
  causewire sweep big.toml --out /shared/big --master spark://host:7077

A sweep that was stopped goes on where it was when it is started again with the same --out. A run
that fails has its error in the table, and the others go on. docs/sweeps.md tells about experiment
files and about what is in the directory.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("experiment", metavar="EXPERIMENT.toml", help="which runs there are to be")
    add("--out", required=True, metavar="DIR", help="where the table of runs goes")
    add_spark_arguments(parser)
    add("--memory", metavar="SIZE", help="for Spark: 4g; default: a quarter of the machine's")
    add("--traces", action="store_true", default=None, help="write the trace of each run as well")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    from ..pipeline import PipelineError
    from ..pipeline.sweep import finished, read_experiment, sweep

    try:
        experiment = read_experiment(args.experiment)
        told = finished(experiment, args.out, args.traces)
        if told is None:
            with Progress("sweeping") as progress:
                shown = SparkProgress(progress)
                with shown.session(
                    args.master, config_of(args), memory=args.memory, tasks=False
                ) as spark:
                    shown.say("simulating")
                    told = sweep(
                        spark, experiment, args.out, traces=args.traces, progress=shown.runs
                    )
    except PipelineError as error:
        raise CommandError(str(error)) from None
    except (KeyboardInterrupt, SystemExit):  # the latter on SIGTERM
        print("interrupted: the same command goes on where this one was", file=sys.stderr)
        raise
    page, trouble = _reported(args.out)
    if args.json:
        print_json({**told.to_dict(), "page": page})
        return 0
    print(_said(told, args.out))
    print(f"see {page}" if page else f"no report: {trouble}")
    return 0


def _reported(out: str) -> tuple[str | None, str]:
    """Return the page of the report, or None and why there is none."""
    from ..report.plan import ReportError
    from ..report.sweeps import report_sweep

    try:
        with Progress("writing the report") as progress:
            progress.say("figures and tables")
            told = report_sweep(
                Path(out),
                Path(out) / "report",
                lambda done, total: progress.of(done, total, "figures and tables"),
            )
            return str(told.page), ""
    except ReportError as error:
        return None, str(error)
    except ModuleNotFoundError as error:
        return None, f'it needs {error.name}: pip install "causewire[report]"'


def _said(told: Sweep, out: str) -> str:
    lines = [f"{count(told.runs, 'run')} in {out}/runs"]
    if told.kept:
        lines[0] += f", {told.kept:,} of them from before"
    if told.failed:
        lines.append(f"{count(told.failed, 'run')} FAILED: see the column error")
    if told.busy is not None:
        took = duration(told.elapsed_s * 1e9)
        lines.append(
            f"{took} on {count(told.slots, 'core')}, {100 * told.busy:.0f} % of it in simulations"
        )
    return "\n".join(lines)
