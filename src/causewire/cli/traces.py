"""Arguments of commands that read traces, in any supported format."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..trace import (
    NAMES,
    Event,
    Trace,
    TraceBatch,
    TraceError,
    open_trace,
)
from ..trace.formats.documents import documents
from ..trace.formats.names import FORMATS, PROCESS_BY, RUN_BY, SPAN_FORMATS
from ..trace.marks import marks_of
from ..trace.reader import other_files
from ..trace.schema import INFERRED
from ..trace.storage import locate, read_bytes
from .errors import CommandError
from .output import count
from .progress import Progress

if TYPE_CHECKING:
    from ..trace.formats.foreign import Foreign
    from ..trace.formats.rows import Refused
    from ..trace.formats.spans import SpanOptions

__all__ = [
    "INFERRED",
    "SHIVIZ",
    "Counted",
    "add_trace_arguments",
    "arguments_of",
    "columns_of",
    "format_of",
    "is_shiviz",
    "open_input",
    "open_traces",
    "passed_over",
    "refusals",
    "span_options",
    "unreadable",
    "with_remedy",
]

SHIVIZ = (".shiviz", ".log", ".txt")
"""Suffixes of ShiViz logs, for which nobody has agreed on one."""

_FEW = 3
"""Rows that are named with the reason why they were refused."""

_LONG = 4_000_000
"""Bytes of a file from which on reading it takes a noticeable time before its first row."""


_CUT = "the last line is cut short"
"""What the reader of JSON lines says about a line that `--tolerate-cut` leaves out."""

_OTHER = "neither .parquet nor .jsonl, in a directory of traces"


class Counted(Trace):
    """A trace that reports how many of its rows have been read."""

    def __init__(self, trace: Trace, progress: Callable[[int], None]) -> None:
        self.name = trace.name
        self._trace = trace
        self._progress = progress

    def events(self) -> Iterator[Event]:
        for rows, event in enumerate(self._trace.events(), 1):
            yield event
            if rows % 1024 == 0:
                self._progress(rows)

    def batches(self, columns: Sequence[str] = NAMES) -> Iterator[TraceBatch]:
        rows = 0
        for batch in self._trace.batches(columns):
            yield batch
            rows += batch.columns.num_rows
            self._progress(rows)

    def about_rows(self) -> int | None:
        return self._trace.about_rows()


def add_trace_arguments(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Add the arguments that name traces and say how to read them.

    Args:
        parser: The parser of the command.
        also: What else the argument can name, for its help.
    """
    parser.add_argument(
        "traces",
        nargs="+",
        metavar="TRACE",
        help=f"{also} a file, a directory, a pattern or a URL (s3://, gs://, hdfs://, https://): "
        "a trace (.parquet, .jsonl), spans (OTLP, Jaeger, Zipkin), a ShiViz log or a table; "
        "several are taken together (one file for each node, say)",
    )
    parser.add_argument(
        "--format",
        choices=("auto", *FORMATS),
        default="auto",
        help=f"auto: by content; ShiViz if the name ends in {', '.join(SHIVIZ)}, or with --regex; "
        "table with --columns",
    )
    parser.add_argument(
        "--columns",
        metavar="FILE",
        help="how a table is to be read: a JSON file that maps the columns of a trace to its own, "
        'for instance {"process": "host", "seq": "n", "origin": "sender", ...} '
        "(docs/foreign-traces.md)",
    )
    parser.add_argument(
        "--process-by",
        choices=PROCESS_BY,
        help="spans: what is a process; default: request, or instance with --run-by all",
    )
    parser.add_argument(
        "--run-by", choices=RUN_BY, help="spans: a run for each trace (the default), or one for all"
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
        help="accept a .jsonl file whose last line is incomplete: its node was killed, or still "
        "writes: read what is before it",
    )


def arguments_of(args: argparse.Namespace) -> str:
    """Return the arguments that name traces and say how to read them, as for a shell."""
    words = list(args.traces)
    for name in ("format", "columns", "process_by", "run_by", "regex", "delimiter"):
        value = getattr(args, name)
        if value not in (None, "auto"):
            words += [f"--{name.replace('_', '-')}", value]
    if args.tolerate_cut:
        words.append("--tolerate-cut")
    return shlex.join(words)


def is_shiviz(args: argparse.Namespace) -> bool:
    """Return whether the arguments name ShiViz logs."""
    if args.format == "auto":
        return args.regex is not None or all(map(_is_log, args.traces))
    return bool(args.format == "shiviz")


def _is_log(name: str) -> bool:
    """Return whether a file has the name of a ShiViz log, compressed or not."""
    return name.removesuffix(".gz").removesuffix(".zst").endswith(SHIVIZ)


def format_of(args: argparse.Namespace) -> str:
    """Return the format of the input, which is looked into if nobody says what it is.

    Raises:
        TraceError: An input does not exist, or cannot be read.
    """
    from ..trace.formats.foreign import format_of_paths

    if args.format != "auto":
        return str(args.format)
    if args.columns is not None:
        return "table"
    if is_shiviz(args):
        return "shiviz"
    return format_of_paths(args.traces)


def span_options(args: argparse.Namespace) -> SpanOptions:
    """Return what the arguments say about processes and runs."""
    from ..trace.formats.spans import SpanOptions

    return SpanOptions.checked(args.process_by, args.run_by, None)


def columns_of(args: argparse.Namespace) -> str:
    """Return the mapping of the columns of a table, as JSON."""
    if args.columns is None:
        raise TraceError(args.traces[0], None, "a table needs --columns FILE")
    try:
        return Path(args.columns).read_text(encoding="utf-8")
    except OSError as error:
        raise TraceError(args.columns, None, error.strerror or str(error)) from None


def open_input(args: argparse.Namespace) -> tuple[Foreign, bool]:
    """Return the trace, with what was refused, and whether its messages are only inferred."""
    from ..trace.formats.foreign import Foreign, read_foreign

    kind = format_of(args)
    if kind == "trace":  # which is read when it is used
        try:
            trace = open_trace(*args.traces, tolerate_cut=args.tolerate_cut)
            return marked(Foreign(trace, passed_over(args.traces)), args)
        except TraceError as error:
            raise with_remedy(error) from None
    with Progress("reading") as progress:
        if _bytes_of(args.traces) >= _LONG:
            progress.say("the files")
        if kind == "shiviz":
            log = read_foreign(
                args.traces,
                kind,
                pattern=args.regex,
                delimiter=args.delimiter,
                reading=lambda done, total: progress.share("the log", done, total),
            )
            return marked(log, args)
        if kind == "table":
            return read_foreign(
                args.traces,
                kind,
                columns=columns_of(args),
                progress=lambda done: progress.done(done, "rows"),
            ), False
        return read_foreign(
            args.traces,
            kind if args.format != "auto" else "auto",
            options=span_options(args),
            progress=lambda done: progress.done(done, "spans"),
        ), False


def passed_over(names: Sequence[str]) -> list[Refused]:
    """Return the files in directories that are not read as traces, each with the reason."""
    from ..trace.formats.rows import Refused

    return [Refused(str(file), None, _OTHER) for file in other_files(*names)]


def marked(found: Foreign, args: argparse.Namespace) -> tuple[Foreign, bool]:
    """Return a trace with what `convert` noted about its input, and whether it is inferred."""
    mark = marks_of(args.traces)
    found.inferred |= mark.inferred
    found.spans |= mark.spans
    found.unread += mark.unread
    return found, found.inferred


def open_traces(args: argparse.Namespace) -> Foreign:
    """Return the trace; what it lacks is said on standard error."""
    found, inferred = open_input(args)
    lines = [INFERRED] if inferred else []
    for line in [*lines, *refusals(found.refused, found.quarantine)]:
        print(line, file=sys.stderr)
    return found


def unreadable(error: Exception) -> CommandError:
    """Return the error of a command that cannot read its input, with the option that helps."""
    cut = str(error).endswith(_CUT)
    hint = " (its node was killed, or still writes: --tolerate-cut reads what is before it)"
    return CommandError(f"{error}{hint if cut else ''}")


def with_remedy(error: TraceError) -> TraceError:
    """Return the error of a trace that cannot be opened, with what would help."""
    return TraceError(error.file, error.row, f"{error.reason}{_remedy(error)}")


def _remedy(error: TraceError) -> str:
    """Return what a file that is not a trace looks like, and how to read it."""
    if error.reason.startswith("a directory without"):
        return "; logs need --format shiviz, tables --columns FILE"
    if not error.reason.startswith("neither .parquet"):
        return ""
    from ..trace.formats.foreign import detect_bytes

    try:
        data = read_bytes(locate(error.file))
    except OSError:
        return ""
    start = data[:4096].lstrip()
    if start.startswith(b"PAR1"):
        return "; Parquet by its content: name it .parquet, or give --columns FILE for a table"
    if start[:1] in (b"{", b"["):
        if any(isinstance(document, bytes) for document in documents(data)):
            return "; JSON, damaged or cut short? (--format otlp, jaeger or zipkin says where)"
        if (kind := detect_bytes(data)) in SPAN_FORMATS:
            return f"; spans ({kind}), which are checked apart from traces"
        return "; JSON, but no spans in a format that is known; a table needs --columns FILE"
    if b"," in start.partition(b"\n")[0]:
        return "; a table needs --columns FILE"
    return "; a table needs --columns FILE, a log --format shiviz"


def refusals(refused: Mapping[str, int], quarantine: Sequence[Refused]) -> list[str]:
    """Return lines on the rows and files that were refused: how many, why, and the first few.

    Args:
        refused: How many, by reason.
        quarantine: The rows themselves, or the first of them.
    """
    lines = []
    for reason, number in sorted(refused.items()):
        alike = [one for one in quarantine if one.reason == reason]
        where = [
            one.file if one.row is None else f"{one.file} row {one.row:,}" for one in alike[:_FEW]
        ]
        more = ", ..." if number > len(where) else ""
        files = bool(alike) and all(one.row is None for one in alike)
        what = count(number, "file" if files else "row")
        at = f" ({', '.join(where)}{more})" if where else ""
        lines.append(f"{what} not understood: {reason}{at}")
    return lines


def _bytes_of(names: Sequence[str]) -> int:
    """Return the size of those that are files here."""
    return sum(Path(name).stat().st_size for name in names if Path(name).is_file())
