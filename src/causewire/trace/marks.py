"""What a converted trace says about the input that it was made of.

    write_mark("run.parquet", InputMark(unread=("b.json: damaged",)))
    marks_of(["run.parquet"])

Some things that a check has to say are in no row: that files could not be read, that messages
were inferred from clocks, that each process has a clock of its own. `causewire convert` leaves them
next to what it writes, in `_NAME.input.json`, and commands that read the trace look for it there.
The name is one that readers of directories pass over. A mark is for one state of the
trace: it has its size, and does not count for a file of another size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .schema import TraceError, because
from .storage import expand, locate

__all__ = ["InputMark", "marks_of", "write_mark"]


class InputMark(NamedTuple):
    """What there is to say about the input of a conversion."""

    inferred: bool = False
    """Whether messages were inferred from vector clocks."""
    spans: bool = False
    """Whether rows were made of spans: then each instance has a clock of its own."""
    unread: tuple[str, ...] = ()
    """The files of which nothing, or not everything, could be read, each with the reason."""


def write_mark(path: str | os.PathLike[str], mark: InputMark) -> None:
    """Leave a mark for a trace that was written, or remove that of an earlier one.

    Raises:
        TraceError: The mark cannot be written.
    """
    place = _place(Path(path))
    try:
        if mark == InputMark():
            place.unlink(missing_ok=True)
        else:
            text = json.dumps({**mark._asdict(), "bytes": _size(Path(path))}, indent=1)
            place.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise TraceError(place, None, f"cannot be written: {because(error)}") from None


def marks_of(paths: Sequence[str | os.PathLike[str]]) -> InputMark:
    """Return the marks of the traces in some files and directories, put together.

    Raises:
        TraceError: A path does not exist.
    """
    traces = dict.fromkeys(place for path in paths for place in (locate(path), *expand(path)))
    return _together(
        mark for trace in traces if isinstance(trace, Path) and (mark := _read(trace)) is not None
    )


def _together(marks: Iterable[InputMark]) -> InputMark:
    result = InputMark()
    for mark in marks:
        result = InputMark(
            result.inferred or mark.inferred,
            result.spans or mark.spans,
            (*result.unread, *mark.unread),
        )
    return result


def _read(trace: Path) -> InputMark | None:
    try:
        fields = json.loads(_place(trace).read_text(encoding="utf-8"))
        if fields["bytes"] != _size(trace):
            return None
        unread = tuple(map(str, fields["unread"]))
        return InputMark(bool(fields["inferred"]), bool(fields["spans"]), unread)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _place(trace: Path) -> Path:
    return trace.with_name(f"_{trace.name}.input.json") if trace.name else trace / "_input.json"


def _size(trace: Path) -> int:
    files = [Path(str(file)) for file in expand(trace)] if trace.is_dir() else [trace]
    return sum(file.stat().st_size for file in files)
