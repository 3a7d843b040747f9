"""What commands print and write: JSON, tables, and files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .errors import CommandError

__all__ = ["colour", "count", "duration", "fitted", "print_json", "say", "table", "write_file"]

_HANGING = re.compile(r"\s*(?:\d+\.\s+|(?:\S+ )*\S+\s{2,})?")
"""What stands before the text of a line: a number, or the first column of a table."""

_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(value, indent=2))


def say(text: str) -> None:
    """Print text; on a terminal, long lines are wrapped between words."""
    if sys.stdout.isatty():
        text = fitted(text, shutil.get_terminal_size().columns)
    print(text)


def fitted(text: str, width: int) -> str:
    """Return text whose lines have at most this width, where words permit.

    The rest of a line stands below its beginning: to the right of the number of a list, or of
    the first column of a table.
    """
    return "\n".join(_wrapped(line, width) if len(line) > width else line
                     for line in text.split("\n"))  # fmt: skip


def _wrapped(line: str, width: int) -> str:
    start = _HANGING.match(line)
    before = start[0] if start is not None and len(start[0]) <= width // 2 else ""
    lines = textwrap.wrap(
        line[len(before) :],
        width - len(before),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return before + f"\n{' ' * len(before)}".join(lines)


def table(rows: Sequence[Sequence[str]], *, gap: str = "  ") -> str:
    """Return rows as a text table with a heading; columns of numbers are right-aligned.

    A heading may have several lines; its last one stands next to the first row.
    """
    headings = [heading.split("\n") for heading in rows[0]]
    above = max(map(len, headings))
    filled = zip(*([""] * (above - len(lines)) + lines for lines in headings), strict=True)
    rows = [*filled, *rows[1:]]
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(cell) for cell in column[above:]) for column in columns]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        lines.append(gap.join(cells).rstrip())
    return "\n".join(lines)


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() or cell in ("", "-")


_COLOURS = {"red": 31, "green": 32}


def colour(text: str, name: str) -> str:
    """Return text in a colour, if standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number of things in words: "1 run", "2,000 runs"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(ns: float) -> str:
    """Return a duration in a suitable unit."""
    for size, unit in _UNITS:
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns / size < 999.5 else f"{ns / size:.0f} {unit}"
    return "0"


def write_file(path: str, text: str) -> None:
    """Write a file under another name and rename it, so that no partial file is visible.

    Raises:
        CommandError: The file cannot be written.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.partial")
    try:
        if target.is_dir():
            raise CommandError(f"{path}: is a directory")
        try:
            partial.write_text(text, encoding="utf-8", newline="\n")
            os.replace(partial, target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
