"""What `causewire verify` keeps of a counterexample: a trace, a picture, a test."""

from __future__ import annotations

import argparse
import json

from ..report import draw
from ..trace import TraceError, write_trace
from ..verify import Counterexample
from ..verify.regression import regression_test, repeatable
from ..verify.setup import Setup
from ..verify.states import states_path
from .errors import CommandError
from .output import write_file

__all__ = ["add_result_arguments", "check_results", "keep"]


def add_result_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a counterexample, if there is one")
    add = group.add_argument
    add(
        "--trace",
        metavar="PATH",
        help="save it as a trace, .jsonl or .parquet, with the states of the endpoints next to it; "
        "causewire explore PATH shows both, step by step",
    )
    add("--draw", metavar="OUT.svg", help="draw it as a space-time diagram")
    add("--regression", metavar="TEST.py", help="write a test for pytest that replays it")


def check_results(args: argparse.Namespace, setup: Setup) -> None:
    """Refuse before the search what could not be kept after it."""
    if args.regression is not None and not repeatable(setup):
        raise CommandError(
            "--regression: the testing kit drives packets, not runs, and forgets nobody"
        )


def _states(found: Counterexample) -> str:
    """Return what each step does and the state of the endpoints after it, as JSON."""
    steps = zip(found.lines(), found.states(), strict=False)  # a step that fails is the last
    return json.dumps([{"words": words, "endpoints": state} for words, state in steps])


def _import_of(protocol: str) -> tuple[str, str] | None:
    """Return the module and the name of a protocol that is given as MODULE:NAME."""
    module, colon, name = protocol.partition(":")
    return (module, name) if colon else None


def keep(args: argparse.Namespace, found: Counterexample) -> None:
    """Write what was asked for."""
    if args.trace is not None:
        try:
            write_trace(args.trace, found.events())
            write_file(str(states_path(args.trace)), _states(found))
        except TraceError as error:
            raise CommandError(str(error)) from None
    if args.draw is not None:
        write_file(args.draw, draw(found.events(), axis="order", note=found.verdict()))
    if args.regression is not None:
        write_file(args.regression, regression_test(found, _import_of(args.protocol)))
