"""Arguments of commands that read traces, in any supported format."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..trace import Trace, open_trace, read_shiviz, trace_of
from ..trace.shiviz import DELIMITER, PATTERN

__all__ = ["SHIVIZ", "add_trace_arguments", "is_shiviz", "open_traces"]

SHIVIZ = (".shiviz", ".log", ".txt")
"""Suffixes of ShiViz logs, for which nobody has agreed on one."""


def add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name traces and say how to read them."""
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help="a .parquet or .jsonl file, a directory of them, or a ShiViz log; "
        "several are taken together (one file for each node, say)",
    )
    parser.add_argument(
        "--format",
        choices=("auto", "trace", "shiviz"),
        default="auto",
        help=f"auto: ShiViz if the name ends in {', '.join(SHIVIZ)}, or with --regex",
    )
    parser.add_argument(
        "--regex",
        metavar="RE",
        help="how a ShiViz log is to be read: an expression with the groups host, clock and "
        "event, and best of all send and deliver (names of messages) and to",
    )
    parser.add_argument(
        "--delimiter", metavar="RE", help="what separates the runs of a ShiViz log (group trace)"
    )
    parser.add_argument(
        "--tolerate-cut",
        action="store_true",
        help="accept a .jsonl file whose last line is incomplete (a node that still writes)",
    )


def is_shiviz(args: argparse.Namespace) -> bool:
    """Return whether the arguments name ShiViz logs."""
    if args.format == "auto":
        return args.regex is not None or all(Path(name).suffix in SHIVIZ for name in args.traces)
    return bool(args.format == "shiviz")


def open_traces(args: argparse.Namespace) -> tuple[Trace, bool]:
    """Return the trace, and whether its messages are only inferred from vector clocks."""
    if not is_shiviz(args):
        return open_trace(*args.traces, tolerate_cut=args.tolerate_cut), False
    events = []
    inferred = False
    for name in args.traces:
        log = read_shiviz(
            name,
            PATTERN if args.regex is None else args.regex,
            delimiter=DELIMITER if args.delimiter is None else args.delimiter,
            run=Path(name).stem,
        )
        events += log.events
        inferred = inferred or log.messages == "clocks"
    return trace_of(events, args.traces[0]), inferred
