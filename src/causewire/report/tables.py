"""Tables, as CSV for programs and as HTML for people."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Any

from .names import shown, visible
from .numbers import Estimate
from .plan import Cell, TablePlan

__all__ = [
    "cell_text",
    "compared",
    "html_table",
    "plan_html",
    "row_name",
    "significant",
    "table_csv",
]


def table_csv(plan: TablePlan, rows: Sequence[tuple[Any, ...]]) -> tuple[list[str], list[Any]]:
    """Return the heading and the rows of a table, with a column for the error of each mean."""
    names = len(plan.rows)
    cells = []
    for cell in plan.column:
        cells += [cell.label, f"{cell.label} error_95"]
        cells += [f"{cell.label} paper"] if cell.paper else []
    lines = []
    for row in rows:
        out: list[Any] = list(row[:names])
        for cell, value in zip(plan.column, row[names:], strict=True):
            mean = "" if value is None else f"{value.mean:.9g}"
            none = value is None or value.error is None
            out += [mean, "" if none else f"{value.error:.9g}"]
            out += [cell.paper.get(str(row[0]), "")] if cell.paper else []
        lines.append(out)
    return [*plan.rows, *cells], lines


def plan_html(plan: TablePlan, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return a table as HTML: means, with their errors where these are not negligible."""
    names = len(plan.rows)
    heading = [*(plan.row_labels or plan.rows), *(cell.label for cell in plan.column)]
    body = [
        [
            *map(str, row[:names]),
            *(
                compared(value, cell, row[0])
                for value, cell in zip(row[names:], plan.column, strict=True)
            ),
        ]
        for row in rows
    ]
    return html_table(heading, body, plan.title)


def row_name(values: Sequence[Any]) -> str:
    """Return what a row is called in a figure."""
    return ", ".join(shown(f"{v:,g}" if isinstance(v, float) else str(v)) for v in values)


def cell_text(value: Estimate | None, digits: int) -> str:
    """Return a mean as text, with its error where that is not negligible."""
    if value is None:
        return ""
    text = significant(value.mean, digits)
    # An error that would not change the digits shown is not worth showing.
    if value.error and value.error > abs(value.mean) * 0.5 * 10 ** (1 - digits):
        text += f" ± {significant(value.error, 2)}"
    return text


def compared(value: Estimate | None, cell: Cell, row: Any) -> str:
    """Return a mean as text, with what a paper says about it in parentheses.

    Args:
        value: The mean.
        cell: The column of the table.
        row: The first name of the row.
    """
    said = cell.paper.get(str(row))
    text = cell_text(value, cell.digits)
    return f"{text} ({said})" if text and said is not None else text


def significant(value: float, digits: int) -> str:
    """Return a number with that many significant digits, without an exponent."""
    if value == 0:
        return "0"
    places = digits - 1 - floor(log10(abs(value)))
    return f"{round(value, places):,.{max(places, 0)}f}"


def html_table(heading: Sequence[str], rows: Sequence[Sequence[str]], label: str = "") -> str:
    """Return a table as HTML that scrolls if it is wide; columns of numbers are right-aligned.

    Args:
        heading: What is above the columns.
        rows: The cells. The first of each row is its heading.
        label: What the table is called by a screen reader.
    """
    right = [all(_is_number(row[k]) for row in rows) for k in range(len(heading))]

    def line(cells: Sequence[str], *, head: bool) -> str:
        parts = []
        for k, cell in enumerate(cells):
            kind = "th" if head or k == 0 else "td"
            scope = "" if kind == "td" else ' scope="col"' if head else ' scope="row"'
            mark = ' class="number"' if right[k] else ""
            if head and not cell:
                parts.append("<td></td>")
            else:
                text = escape(visible(cell)).replace("_", "_<wbr>")  # where a long name may break
                parts.append(f"<{kind}{scope}{mark}>{text}</{kind}>")
        return f"<tr>{''.join(parts)}</tr>"

    head = f"<thead>{line(heading, head=True)}</thead>"
    body = [line(row, head=False) for row in rows]
    name = escape(visible(label or ", ".join(filter(None, heading))))
    opened = f'<div class="wide" role="region" tabindex="0" aria-label="{name}">\n<table>'
    return "\n".join([opened, head, "<tbody>", *body, "</tbody>", "</table>\n</div>"])


def _is_number(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] == "-"
