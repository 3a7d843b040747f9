"""What a sweep says in a sentence: the answer of its experiment, and readings of its figures.

The answer is written in the experiment file, with names of numbers in braces. The
numbers come from the runs, and each is listed with its origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from .charts import heading, series_name
from .numbers import Point, single
from .page import section
from .plan import FigurePlan, NumberPlan, ReportError
from .tables import cell_text, html_table, significant

__all__ = ["answer", "reading"]

_NAME = re.compile(r"\{([^{}]*)\}")

Rows = Callable[[Sequence[str], str], list[dict[str, Any]]]


def answer(text: str, plans: Sequence[NumberPlan], rows: Rows) -> tuple[str, list[str]]:
    """Return the answer as HTML, and a section that says where its numbers come from.

    Args:
        text: The answer, with names of numbers in braces.
        plans: The numbers.
        rows: Returns rows of the table of runs with some columns.

    Raises:
        ReportError: The text names a number that is not there, or one cannot be computed.
    """
    found = {plan.name: single(plan, rows(plan.columns(), f"number {plan.name}")) for plan in plans}
    digits = {plan.name: plan.digits for plan in plans}

    def number(match: re.Match[str]) -> str:
        name = match[1]
        if name not in found:
            raise ReportError(f"the answer names {name!r}, which is no number of the experiment")
        said = significant(found[name].mean, digits[name])
        return f'<a class="value" href="#origins">{escape(said)}</a>'

    said = _NAME.sub(number, escape(" ".join(text.split()), quote=False))
    if not plans:
        return said, []
    table = [
        [cell_text(found[plan.name], plan.digits), plan.source(), str(found[plan.name].seeds)]
        for plan in plans
    ]
    title = "Where the numbers of the answer come from"
    listed = html_table(("number", "what it is", "runs"), table, title)
    return said, [section(title, f'<div id="origins">{listed}</div>')]


def reading(plan: FigurePlan, points: Sequence[Point]) -> str:
    """Return what a figure shows, in a sentence: the least and the greatest at its right end."""
    panel = points[-1].panel
    last = max(point.x for point in points if point.panel == panel)
    there = [point for point in points if point.panel == panel and point.x == last]
    least = min(there, key=lambda point: point.y.mean)
    most = max(there, key=lambda point: point.y.mean)
    where = f"{plan.x_label} = {last:,g}"
    if plan.panels:
        where = f"{heading(plan, panel)}, {where}"
    where = where[:1].upper() + where[1:]
    high = f"{significant(most.y.mean, 3)} with {series_name(plan, most)}"
    if least is most or not least.y.mean:
        return f"{where}: {plan.y_label} {high}."
    low = f"{significant(least.y.mean, 3)} with {series_name(plan, least)}"
    times = significant(most.y.mean / least.y.mean, 2)
    return f"{where}: {plan.y_label} from {low} to {high}, {times} times as much."
