"""Run the study, or what is left of it, and write its page: see `python -m campaigns.study -h`."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from campaigns.record import commit, machine
from causewire.cli.progress import Progress
from causewire.cli.spark import SparkProgress
from causewire.pipeline import PipelineError, session
from causewire.pipeline.sweep import finished, sweep

from . import __doc__ as about
from .effort import measure, read_effort
from .figure import write_figure
from .page import filled, tables
from .parts import FOLDER, PARTS, WHOLE, Size, experiment
from .results import Results
from .spans import SPANS, write_spans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = Size(seeds=2, processes=100, messages=300)
DOCS = Path(__file__).parents[2] / "docs"


def run_parts(spark: SparkSession | None, out: Path, size: Size, parts: Sequence[str]) -> None:
    """Run what is left to run of some parts.

    Args:
        spark: The session, or None to start one if there is anything to run.
        out: The directory of the study.
        size: How much of the study.
        parts: Names of parts.
    """
    spans = out / SPANS
    if "replay" in parts and not spans.exists():
        write_spans(spans, requests=300 if size.messages is None else 20)
    asked = {part: experiment(part, size, spans) for part in parts}
    left = [part for part in parts if finished(asked[part], out / part) is None]
    if not left:
        return
    if spark is None:
        with session() as own:
            run_parts(own, out, size, left)
        return
    for part in left:
        with Progress(f"{part}, {left.index(part) + 1} of {len(left)} parts") as progress:
            told = sweep(spark, asked[part], out / part, progress=SparkProgress(progress).runs)
        print(f"{part}: {told.runs:,} runs, {told.kept:,} of them from before", file=sys.stderr)


def write_page(out: Path, page: Path, figures: Path, said: str, *, effort: bool = True) -> None:
    """Write the page and its figure from what is in the directory of a study.

    Args:
        out: The directory of the study.
        page: The page.
        figures: The directory of its figure.
        said: How it was run.
        effort: Whether to show what was computed, if that has been measured.
    """
    results = Results(out, [part for part in PARTS if (out / part / "_SUCCESS").exists()])
    if effort and (out / "effort.jsonl").exists():
        for row in read_effort(out / "effort.jsonl"):
            results.effort[row["protocol"], row["processes"]] = row
    write_figure(results, figures)
    template = (FOLDER / "page.md").read_text(encoding="utf-8")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(filled(template, tables(results, said)), encoding="utf-8")


def main() -> int:
    """Run the study as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m campaigns.study",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="default: out/study, or out/study-quick")
    add("--page", type=Path, metavar="FILE", help="default: docs/study.md, or DIR/study.md")
    add("--quick", action="store_true", help="few and small runs: about a minute")
    add("--seeds", type=int, metavar="N", help="at most N seeds for each cell")
    add("--processes", type=int, metavar="N", help="at most N processes")
    add("--part", action="append", choices=PARTS, help="only this one; may be repeated")
    add("--write", action="store_true", help="run nothing: write the page from what is there")
    args = parser.parse_args()
    size = QUICK if args.quick else Size(args.seeds, args.processes)
    out: Path = args.out or Path("out", "study-quick" if args.quick else "study")
    page: Path = args.page or (out / "study.md" if args.quick else DOCS / "study.md")
    try:
        if not args.write:
            run_parts(None, out, size, args.part or PARTS)
            if not args.part:
                print("computation and state", file=sys.stderr)
                scale = experiment("scale", size, out)
                measure(scale, out / "effort.jsonl", len(os.sched_getaffinity(0)))
    except PipelineError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    except KeyboardInterrupt:
        parser.exit(130, f"{parser.prog}: stopped; the same command continues\n")
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    said = f"Written on {day}, at commit {commit()}, on {machine()}."
    said += "" if size == WHOLE else f" The study was reduced: {size.said()}."
    write_page(out, page, page.parent / "figures", said)
    print(f"see {page}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
