"""The numbers behind a figure or a table: means over seeds, and how sure they are.

A mean of several seeds comes with the half-width of its 95 % confidence interval
(Student's t). A ratio is taken seed by seed, each run against the one with the
same seed, and then averaged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .plan import FigurePlan, NumberPlan, ReportError, TablePlan

__all__ = ["Estimate", "Point", "estimate", "points", "select", "single", "table_rows"]

Row = Mapping[str, Any]

_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179),
    *(2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064),
    *(2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for 95 %, both sides, by degrees of freedom from 1 on."""


class Estimate(NamedTuple):
    """A mean over seeds; `error` is the half-width of its 95 % confidence interval."""

    seeds: int
    mean: float
    error: float | None
    least: float
    most: float


class Point(NamedTuple):
    """One point of a figure."""

    panel: Any
    series: tuple[Any, ...]
    apart: tuple[Any, ...]
    x: float
    y: Estimate


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of values from different seeds, and its error."""
    n = len(values)
    mean = math.fsum(values) / n
    error = None
    if n > 1:
        variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
        t = _T95[n - 2] if n - 2 < len(_T95) else 1.96
        error = t * math.sqrt(variance / n)
    return Estimate(n, mean, error, min(values), max(values))


def select(rows: Iterable[Row], grid: Sequence[str], where: Mapping[str, Any]) -> list[Row]:
    """Return the rows of these grids (of all, if none is named) that meet all conditions."""
    return [row for row in rows if (not grid or row["grid"] in grid) and _holds(row, where)]


def _holds(row: Row, where: Mapping[str, Any]) -> bool:
    return all(
        row[name] in (value if isinstance(value, list) else [value])
        for name, value in where.items()
    )


def points(plan: FigurePlan, rows: Sequence[Row]) -> list[Point]:
    """Return the points of a figure, in the order of their first runs, x ascending.

    Runs that failed have no y, and are left out.

    Raises:
        ReportError: There are no runs for the figure, or runs that must not be averaged.
    """
    what = f"figure {plan.name}"
    chosen = select(rows, plan.grid, plan.where)
    if plan.over:
        values = _ratios(plan, chosen)
    else:
        values = [(row, row[plan.y]) for row in chosen if row[plan.y] is not None]
    if not values:
        raise ReportError(f"{what}: there are no runs for it")
    groups: dict[tuple[Any, ...], list[tuple[Row, float]]] = {}
    for row, value in values:
        series = tuple(row[name] for name in plan.series)
        apart = tuple(row[name] for name in plan.apart)
        panel = row[plan.panels] if plan.panels else None
        groups.setdefault((panel, series, apart, row[plan.x]), []).append((row, value))
    found = []
    for (panel, series, apart, x), group in groups.items():
        if x is None:
            raise ReportError(f"{what}: some runs have no {plan.x}")
        _only_seeds([row for row, _ in group], what)
        y = estimate([value * plan.y_factor for _, value in group])
        found.append(Point(panel, series, apart, x * plan.x_factor, y))
    order = {key: i for i, key in enumerate(dict.fromkeys((p.panel, p.series) for p in found))}
    return sorted(found, key=lambda p: (order[p.panel, p.series], p.x))


def _ratios(plan: FigurePlan, rows: Sequence[Row]) -> list[tuple[Row, float]]:
    """Return each run with the ratio of its base to it."""

    def key(row: Row) -> tuple[Any, ...]:
        # A series is told apart by the very columns in which it differs from its base.
        names = [plan.x, *plan.apart, "seed", *([plan.panels] if plan.panels else [])]
        names += [name for name in plan.series if name not in plan.over]
        return tuple(row[name] for name in names)

    base: dict[tuple[Any, ...], float] = {}
    for row in rows:
        if _holds(row, plan.over) and row[plan.y] is not None:
            if key(row) in base:
                raise ReportError(f"figure {plan.name}: several runs are the base of one")
            base[key(row)] = row[plan.y]
    return [
        (row, base[key(row)] / row[plan.y])
        for row in rows
        if not _holds(row, plan.over) and row[plan.y] and key(row) in base
    ]


def _only_seeds(rows: Sequence[Row], what: str) -> None:
    """Raise `ReportError` if runs to be averaged differ in more than their seeds."""
    if len({row["seed"] for row in rows}) == len(rows):
        return
    configs = [dict(_leaves(json.loads(row["config"]))) for row in rows]
    names = dict.fromkeys(name for config in configs for name in config if name != "seed")
    differ = [name for name in names if len({str(c.get(name)) for c in configs}) > 1]
    raise ReportError(
        f"{what} mixes runs that differ in {', '.join(differ)}"
        if differ
        else f"{what} has the same runs twice: of several grids?"
    )


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def table_rows(plan: TablePlan, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Return the rows of a table: their names, then an `Estimate` or None for each column.

    Raises:
        ReportError: There are no runs for the table, or runs that must not be averaged.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in select(rows, plan.grid, plan.where):
        groups.setdefault(tuple(row[name] for name in plan.rows), []).append(row)
    if not groups:
        raise ReportError(f"table {plan.name}: there are no runs for it")
    found = []
    for key, group in groups.items():
        _only_seeds(group, f"table {plan.name}")
        cells = []
        for cell in plan.column:
            base = {}
            if cell.less:
                where = {**plan.where, **dict(zip(plan.rows, key, strict=True)), **cell.less}
                base = {row["seed"]: row[cell.of] for row in select(rows, plan.grid, where)}
            values = [
                (row[cell.of] - (base[row["seed"]] if cell.less else 0)) * cell.factor
                for row in group
                if row[cell.of] is not None and (not cell.less or base.get(row["seed"]) is not None)
            ]
            cells.append(estimate(values) if values else None)
        found.append((*key, *cells))
    return found


def single(plan: NumberPlan, rows: Sequence[Row]) -> Estimate:
    """Return a number of the answer.

    Raises:
        ReportError: There are no runs for it, or runs that must not be averaged.
    """
    what = f"number {plan.name}"

    def by_seed(where: Mapping[str, Any]) -> dict[Any, float]:
        chosen = [row for row in select(rows, plan.grid, where) if row[plan.of] is not None]
        if not chosen:
            raise ReportError(f"{what}: there are no runs for it")
        _only_seeds(chosen, what)
        return {row["seed"]: row[plan.of] for row in chosen}

    values = by_seed(plan.where)
    if plan.over:
        base = by_seed({**plan.where, **plan.over})
        values = {seed: value / base[seed] for seed, value in values.items() if base.get(seed)}
        if not values:
            raise ReportError(f"{what}: there is nothing to divide it by")
    return estimate([value * plan.factor for value in values.values()])
