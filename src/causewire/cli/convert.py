"""`causewire convert`: the same trace in another format."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ..trace import Event, Trace, TraceError, open_writer, write_shiviz
from ..trace.marks import InputMark, write_mark
from .output import count
from .progress import Progress
from .traces import SHIVIZ, add_trace_arguments, open_traces, unreadable

__all__ = ["configure", "run"]

_EPILOG = f"""\
examples:
  causewire convert run.jsonl -o run.parquet
  causewire convert run.parquet --run fifo-relay-7 -o run.shiviz    (opens in ShiViz)
  causewire convert govector.log -o run.jsonl

The format follows the name: .parquet, .jsonl, a directory of Parquet files without a suffix, and
{", ".join(SHIVIZ)} for ShiViz, which keeps sends and deliveries, but neither times nor sizes.

What no row says (files that could not be read, messages inferred from clocks) is noted next to the
output, in _NAME.input.json, so that a check of it gives the verdict of a check of the input.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    add_trace_arguments(parser)
    parser.add_argument("--run", metavar="R", help="this run only")
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="where to write")


def run(args: argparse.Namespace) -> int:
    output = Path(args.output)
    try:
        found = open_traces(args)
        trace = found.trace
        total = trace.about_rows() if args.run is None else None
        with Progress("converting") as progress:
            if output.suffix in SHIVIZ:
                read = []
                for event in _rows(trace, args.run):
                    read.append(event)
                    progress.about(len(read), total, "rows read")
                rows = write_shiviz(output, read)
            else:
                with open_writer(output) as writer:
                    for event in _rows(trace, args.run):
                        writer.write(event)
                        progress.about(writer.rows, total, "rows")
                rows = writer.rows
        write_mark(output, InputMark(found.inferred, found.spans, tuple(found.unread)))
    except TraceError as error:
        raise unreadable(error) from None
    print(f"{args.output}: {count(rows, 'row')}")
    return 0


def _rows(trace: Trace, run: str | None) -> Iterator[Event]:
    """Yield the rows of the trace, or of one run; raise `TraceError` if there is none."""
    some = False
    for event in trace.events():
        if run is None or event.run == run:
            some = True
            yield event
    if not some:
        what = "the trace is empty" if run is None else f"there is no run {run!r}"
        raise TraceError(trace.name, None, what)
