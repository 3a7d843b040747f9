"""`causewire verify`: model-check a protocol within bounds.

Arguments become units of work in `verify_request`; here they are done, and told.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ..verify import (
    Checkpoint,
    CheckpointError,
    Counterexample,
    EndpointError,
    Result,
    Summary,
    Unit,
    WorkerLostError,
    run_units,
)
from ..verify.check import cores
from ..verify.programs import written
from ..verify.regression import case_of, repeatable
from ..verify.replay import ReplayError
from . import verify_starvation
from .errors import CommandError
from .output import colour, count, duration, print_json, say
from .progress import Progress
from .spark import SparkProgress
from .verify_request import (
    add_network_arguments,
    add_search_arguments,
    add_what_arguments,
    needs_directories,
    units_of,
)
from .verify_results import add_result_arguments, check_results, keep

__all__ = ["configure", "run"]

_EPILOG = """\
examples:
  causewire verify --protocol cykas --processes 3 --messages 3
  causewire verify --protocol cykas-as-printed --messages 5,0,1 --property 'causal order' \\
      --trace run.jsonl --draw run.svg --regression test_run.py
  causewire verify --protocol csps --messages 2 --loss 1 --duplication 1
  causewire verify --protocol sps --program mf-second --program '0>1+2,2; 1>@1 2; 2>0'
  causewire verify --protocol sps-unsent-not-counted      (one of those in docs/counterexamples.md)
  causewire verify --protocol cykas --starvation

A program says what each process sends: '0>1,2; 1>@1 2; 2>' is p0 sending to p1 and then to p2,
and p1 to p2 once it has got a message; 1+2 is a multicast. Without --program, all programs with the
given numbers of messages are checked, except for renamings of each other.

exit status: 0 it holds, 1 a counterexample (or not all was looked at, or what was looked at means
nothing, as nothing was ever concurrent, reordered or held back), 2 bad usage, or an endpoint that
cannot be checked: its copies are not independent, or its state is incomplete.
"""

PUBLISHED: dict[tuple[str, tuple[int, ...]], tuple[str, int]] = {
    ("mf", (3, 3, 3)): ("527 million", 163),
    ("cykas-secret-sends", (3, 3, 3)): ("13 million", 5),
    ("cykas", (3, 3, 3)): ("1,945 million", 709),
}
"""Table 1 of the Cykas paper: unique states, and seconds on 96 threads."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_what_arguments(parser)
    verify_starvation.add_arguments(parser)
    add_network_arguments(parser)
    add_search_arguments(parser)
    add_result_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    needs_directories(args)
    try:
        return verify_starvation.run(args) if args.starvation else _run(args)
    except (EndpointError, ReplayError) as error:
        raise CommandError(str(error)) from None


def _run(args: argparse.Namespace) -> int:
    units = units_of(args)
    check_results(args, units[0].setup)
    summary = _searched(args, units)
    found = None
    if summary.shortest is not None and summary.shortest.violation is not None:
        found = summary.shortest.violation.counterexample(units[0].setup)
        keep(args, found)
    holds = summary.passed or (args.search == "walk" and found is None and not summary.vacuous)
    if args.json:
        print_json(_as_json(args, units, summary, found))
    else:
        say(_told(args, units, summary, found))
    return 0 if holds else 1


# -- the search -----------------------------------------------------------------------


def _searched(args: argparse.Namespace, units: list[Unit]) -> Summary:
    try:
        checkpoint = Checkpoint(args.checkpoint, units) if args.checkpoint else None
    except CheckpointError as error:
        raise CommandError(str(error)) from None
    with Progress("searching") as progress:

        def show(summary: Summary, states: int, transitions: int, depth: int) -> None:
            where = f"{summary.done:,} of {_searches(args, summary.units)}"
            deepest = max(depth, summary.depth)
            if summary.units == 1:  # nobody knows how many states one search will find
                progress.done(summary.states + states, "states", f"depth {deepest}")
                return
            so_far = f"{summary.states + states:,} states, depth {deepest}, {where}"
            new = summary.done - summary.resumed
            progress.share(so_far, new, summary.units - summary.resumed)

        try:
            return run_units(
                units,
                workers=args.jobs or cores(),
                checkpoint=checkpoint,
                keep_going=args.keep_going,
                progress=show,
                elsewhere=_on_spark(args, progress) if args.master else None,
            )
        except WorkerLostError as error:
            kept = f"; {args.checkpoint} has what was done" if args.checkpoint else ""
            raise CommandError(f"{error}{kept}") from None


def _on_spark(
    args: argparse.Namespace, progress: Progress
) -> Callable[[list[tuple[int, Unit]]], Iterable[tuple[int, Result]]]:
    from ..pipeline import PipelineError
    from ..pipeline.verify import check_units

    def elsewhere(todo: list[tuple[int, Unit]]) -> Iterable[tuple[int, Result]]:
        try:
            shown = SparkProgress(progress)
            with shown.session(args.master) as spark:
                shown.say("searching")
                return check_units(spark, todo)
        except PipelineError as error:
            raise CommandError(str(error)) from None

    return elsewhere


def peak_bytes() -> int:
    """The most memory that this process, or one of its workers, has had."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    scale = 1 if sys.platform == "darwin" else 1024
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) * scale


# -- results -----------------------------------------------------------------------


def _as_json(
    args: argparse.Namespace, units: list[Unit], summary: Summary, found: Counterexample | None
) -> dict[str, Any]:
    setup = units[0].setup
    example = None
    if found is not None:
        example = {
            "kind": found.kind,
            "workload": written(found.program),
            "length": len(found),
            "verdict": found.verdict(),
            "words": found.words().splitlines(),
            "case": case_of(found) if repeatable(setup) else None,
        }
    return {
        "protocol": setup.name,
        "processes": setup.processes,
        "messages": None if args.program else list(map(len, units[0].program)),
        "network": str(setup.network),
        "driver": setup.driver,
        "properties": list(units[0].options.properties),
        "search": args.search,
        "workloads": summary.units,
        "checked": summary.done,
        "resumed": summary.resumed,
        "complete": summary.complete and summary.done == summary.units,
        "passed": summary.passed,
        "violations": summary.violating,
        "vacuous": summary.vacuous,
        "met": sorted(summary.met),
        "states": summary.states,
        "transitions": summary.transitions,
        "depth": summary.depth,
        "seconds": round(summary.seconds, 3),
        "state_bytes": summary.bytes,
        "peak_bytes": peak_bytes(),
        "example": example,
    }


def _told(
    args: argparse.Namespace, units: list[Unit], summary: Summary, found: Counterexample | None
) -> str:
    setup = units[0].setup
    rate = summary.states / max(summary.seconds, 1e-9)
    where = "driven in runs" if setup.calls.pumps else setup.network
    what = f"{setup.name}, {setup.processes} processes, {where}"
    size = f"{summary.states:,} states, {summary.transitions:,} transitions, depth {summary.depth}"
    cost = f"{duration(summary.seconds * 1e9)} ({rate:,.0f} states a second)"
    most = f"at most {peak_bytes() / 1e6:,.0f} MB in a process"
    lines = [
        f"{what}: {summary.done:,} of {_searches(args, summary.units)}",
        f"{size}, {cost}, {most}",
    ]
    if summary.resumed:
        lines.append(f"{_searches(args, summary.resumed)} of these from the checkpoint")
    bound = (setup.name, tuple(map(len, units[0].program)))
    published = None if args.program else PUBLISHED.get(bound)
    if published is not None:
        lines.append(
            f"published for this bound: {published[1]} s on 96 threads, {published[0]} states (of "
            "another encoding, with vector clocks and histories in them: only times compare)"
        )
    return "\n".join([*lines, *_verdict(args, units, summary, found)])


def _searches(args: argparse.Namespace, number: int) -> str:
    """What is counted: programs, or with --split the messages that may be marked."""
    if args.split:
        return count(number, "marked message")
    return count(number, "program")


def _verdict(
    args: argparse.Namespace, units: list[Unit], summary: Summary, found: Counterexample | None
) -> list[str]:
    judged = ", ".join(units[0].options.properties)
    if found is not None:
        where = f"in {summary.violating} of {_searches(args, summary.done)} looked at"
        violated = f"{colour('VIOLATED', 'red')} ({found.kind.partition(':')[0]})"
        return [
            "",
            f"{violated} {where}; a shortest run:",
            found.words(),
        ]
    if summary.vacuous:
        return [f"VACUOUS, it proves nothing; never met: {', '.join(summary.vacuous)}"]
    if args.search == "walk":
        return [f"no violation in {count(args.walks, 'random run')} of each program: {judged}"]
    if not summary.passed:
        return [
            "INCOMPLETE: no violation in what was looked at, but memory did not suffice for all"
        ]
    return [f"{colour('HOLDS', 'green')} in every run of every program: {judged}"]
