"""The figures and tables of a report, as data.

An experiment file says it in its own terms, the columns of the table of runs:

    [[figure]]
    name = "latency"                    # of its files
    title = "Latency against processes"
    x = "processes"
    x_label = "processes"
    y = "latency_mean_ns"
    y_label = "mean latency (ms)"
    y_factor = 1e-6                     # from the column's unit to that of the label
    series = "protocol"                 # a line for each

    [[table]]
    name = "costs"
    rows = "protocol"
    [[table.column]]
    of = "metadata_bytes"
    label = "metadata (bytes)"
    less = { protocol = "rst" }         # optional: subtract the same of these runs
    paper = { csps = "O(1)" }           # optional: what a paper says of a row

    [[number]]                          # for {csps} in the answer
    name = "csps"
    of = "latency_mean_ns"
    where = { protocol = "csps" }
    over = { protocol = "rst" }         # divided by the same of these runs

Each point is a mean over seeds, and nothing but seeds: a figure that would mix
runs which differ in anything else is refused, and says in what.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, get_type_hints

from ..core.errors import CausewireError

__all__ = ["Cell", "FigurePlan", "NumberPlan", "ReportError", "TablePlan"]


class ReportError(CausewireError):
    """A report cannot be written; the message is one line that says why."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Part of an experiment file, with every key known and of the right type."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], what: str) -> Self:
        hints = get_type_hints(cls)
        fields = {f.name: f for f in dataclasses.fields(cls)}
        if not isinstance(data, Mapping):
            raise ReportError(f"{what} must be a table, not {data!r}")
        for key in data:
            if key not in fields:
                raise ReportError(f"{what} has no {key!r}; it has {', '.join(fields)}")
        values: dict[str, Any] = {}
        for name, f in fields.items():
            if name in data:
                values[name] = cls._read(name, hints[name], data[name], what)
            elif f.default is f.default_factory is dataclasses.MISSING:
                raise ReportError(f"{what} needs {name!r}")
        return cls(**values)

    @classmethod
    def _read(cls, name: str, hint: Any, value: Any, what: str) -> Any:
        if hint is float and type(value) in (int, float):
            return float(value)
        if hint == tuple[str, ...]:
            value = [value] if type(value) is str else value
            if isinstance(value, list) and all(type(item) is str for item in value):
                return tuple(value)
        elif hint == tuple[float, ...]:
            value = value if isinstance(value, list) else [value]
            if all(type(item) in (int, float) for item in value):
                return tuple(float(item) for item in value)
        elif isinstance(value, Mapping):
            if "Mapping" in str(hint):
                return dict(value)
        elif type(value) is hint:
            return value
        raise ReportError(f"{what}: {name} cannot be {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FigurePlan(_Plan):
    """One figure: what against what, a line for each series, a panel for each ..."""

    name: str
    title: str
    caption: str = ""
    x: str
    y: str
    x_label: str
    y_label: str
    x_factor: float = 1.0
    y_factor: float = 1.0
    x_scale: str = "linear"
    y_scale: str = "linear"
    series: tuple[str, ...] = ("protocol",)
    panels: str = ""
    panel_label: str = ""
    """What is before the value in the heading of a panel, and a unit after it: 'think {} ms'."""
    panel_factor: float = 1.0
    apart: tuple[str, ...] = ()
    """Columns that make points of their own, without being seen in the figure."""
    lines: bool = True
    """Whether the points of a series are joined."""
    grid: tuple[str, ...] = ()
    """The grids of the experiment that it is about; all if not given."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Only the runs of which this holds: column = value, or a list of values."""
    over: Mapping[str, Any] = field(default_factory=dict)
    """Show how much better than these runs the others are: their y, divided by y."""
    labels: Mapping[str, Any] = field(default_factory=dict)
    """What a value of `series` is called."""
    across: tuple[float, ...] = ()
    """Values of y at which a thin line helps the eye."""
    down: tuple[float, ...] = ()
    """The same for x."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ReportError(f"a figure cannot be called {self.name!r}")
        for scale in (self.x_scale, self.y_scale):
            if scale not in ("linear", "log"):
                raise ReportError(f"figure {self.name}: a scale is linear or log, not {scale!r}")

    def columns(self) -> list[str]:
        """Return the columns of the table of runs that are needed."""
        names = [self.x, self.y, *self.series, *self.apart, *self.where, *self.over]
        if self.panels:
            names.append(self.panels)
        if self.grid:
            names.append("grid")
        return list(dict.fromkeys(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(_Plan):
    """One column of a table: a mean over seeds."""

    of: str
    label: str
    factor: float = 1.0
    digits: int = 3
    """Significant ones."""
    less: Mapping[str, Any] = field(default_factory=dict)
    """Subtract, seed by seed, the value of the runs in which these columns differ."""
    paper: Mapping[str, Any] = field(default_factory=dict)
    """What a paper says, by the first name of a row: shown in parentheses after the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan(_Plan):
    """A table: a row for each value of some columns, means in its cells."""

    name: str
    title: str
    caption: str = ""
    rows: tuple[str, ...]
    row_labels: tuple[str, ...] = ()
    column: tuple[Cell, ...]
    grid: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ReportError(f"a table cannot be called {self.name!r}")

    @classmethod
    def _read(cls, name: str, hint: Any, value: Any, what: str) -> Any:
        if name == "column" and isinstance(value, list):
            return tuple(Cell.from_dict(item, f"{what}: a column") for item in value)
        # dataclass(slots=True) makes the class anew, which a bare super() does not know.
        return super(TablePlan, cls)._read(name, hint, value, what)

    def columns(self) -> list[str]:
        """The columns of the table of runs that it looks at."""
        names = [*self.rows, *self.where, *(cell.of for cell in self.column)]
        names += [name for cell in self.column for name in cell.less]
        return list(dict.fromkeys([*names, *(["grid"] if self.grid else [])]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPlan(_Plan):
    """A number of the answer: a mean over seeds, or a ratio of two."""

    name: str
    of: str
    where: Mapping[str, Any]
    over: Mapping[str, Any] = field(default_factory=dict)
    """Divide by the value of the runs in which these columns differ."""
    grid: tuple[str, ...] = ()
    factor: float = 1.0
    digits: int = 2
    """Significant ones."""

    def columns(self) -> list[str]:
        """Return the columns of the table of runs that are needed."""
        names = [self.of, *self.where, *self.over, *(["grid"] if self.grid else [])]
        return list(dict.fromkeys(names))

    def source(self) -> str:
        """Return where the number comes from, in words."""

        def runs(where: Mapping[str, Any]) -> str:
            return ", ".join(f"{name} = {value}" for name, value in where.items())

        text = f"the mean of {self.of} over runs with {runs(self.where)}"
        if self.over:
            text += (
                f", divided seed by seed by that of runs with {runs({**self.where, **self.over})}"
            )
        if self.factor != 1:
            text += f", times {self.factor:g}"
        return text
