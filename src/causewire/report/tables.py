"""Tables, as CSV for programs and as HTML for people."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from math import floor, log10
from pathlib import Path
from typing import Any

from .numbers import Estimate
from .plan import TablePlan

__all__ = ["html_table", "plan_html", "significant", "write_table"]


def write_table(plan: TablePlan, rows: Sequence[tuple[Any, ...]], folder: Path) -> None:
    """Write a table as NAME.csv, with a column for the error of each mean."""
    names = len(plan.rows)
    with (folder / f"{plan.name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        cells = [text for c in plan.column for text in (c.label, f"{c.label} error_95")]
        writer.writerow([*plan.rows, *cells])
        for row in rows:
            out: list[Any] = list(row[:names])
            for value in row[names:]:
                mean = "" if value is None else f"{value.mean:.9g}"
                none = value is None or value.error is None
                out += [mean, "" if none else f"{value.error:.9g}"]
            writer.writerow(out)


def plan_html(plan: TablePlan, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return a table as HTML: means, with their errors where these are not negligible."""
    names = len(plan.rows)
    heading = [*(plan.row_labels or plan.rows), *(cell.label for cell in plan.column)]
    body = [
        [
            *map(str, row[:names]),
            *(
                _cell(value, cell.digits)
                for value, cell in zip(row[names:], plan.column, strict=True)
            ),
        ]
        for row in rows
    ]
    return html_table(heading, body)


def _cell(value: Estimate | None, digits: int) -> str:
    if value is None:
        return ""
    text = significant(value.mean, digits)
    # An error that would not change the digits shown is not worth showing.
    if value.error and value.error > abs(value.mean) * 0.5 * 10 ** (1 - digits):
        text += f" ± {significant(value.error, 2)}"
    return text


def significant(value: float, digits: int) -> str:
    """Return a number with that many significant digits, without an exponent."""
    if value == 0:
        return "0"
    places = digits - 1 - floor(log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}"


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML; columns of numbers are right-aligned."""
    right = [all(_is_number(row[k]) for row in rows) for k in range(len(heading))]

    def line(kind: str, cells: Sequence[str]) -> str:
        marks = [' class="number"' if to_right else "" for to_right in right]
        pairs = zip(marks, map(escape, cells), strict=True)
        return "<tr>" + "".join(f"<{kind}{mark}>{cell}</{kind}>" for mark, cell in pairs) + "</tr>"

    head = f"<thead>{line('th', heading)}</thead>"
    body = [line("td", row) for row in rows]
    return "\n".join(["<table>", head, "<tbody>", *body, "</tbody>", "</table>"])


def _is_number(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] == "-"
