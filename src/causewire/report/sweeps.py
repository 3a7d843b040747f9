"""The report of a sweep: the figures and tables of its experiment, from its table of runs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .numbers import points, select, table_rows
from .page import page, paragraph, picture, section, whole
from .plan import FigurePlan, ReportError, TablePlan
from .sweep_layout import SweepLayout
from .tables import html_table, plan_html, write_table

__all__ = ["SweepReport", "is_sweep", "plans_of", "report_sweep"]

_ALWAYS = ("run", "seed", "status", "error", "config")
_SHOWN = (
    ("latency_mean_ns", "mean latency (ms)", 1e-6),
    ("execution_ns", "execution time (s)", 1e-9),
    ("metadata_bytes", "metadata (kB)", 1e-3),
)
"""What is shown for an experiment that names no figures."""


class SweepReport(NamedTuple):
    """What a report of a sweep contains."""

    page: Path
    figures: int
    tables: int
    runs: int
    failed: int


def plans_of(
    figures: Sequence[Mapping[str, Any]], tables: Sequence[Mapping[str, Any]]
) -> tuple[list[FigurePlan], list[TablePlan]]:
    """Return the figures and tables of an experiment file.

    Raises:
        ReportError: One of them is wrong, or two have the same name.
    """
    drawn = [FigurePlan.from_dict(f, f"figure {f.get('name', '')}".strip()) for f in figures]
    listed = [TablePlan.from_dict(t, f"table {t.get('name', '')}".strip()) for t in tables]
    names = [plan.name for plan in drawn] + [plan.name for plan in listed]
    for name in names:
        if names.count(name) > 1 or name in ("runs", "index"):
            raise ReportError(f"two things of the report are called {name!r}")
    return drawn, listed


def is_sweep(folder: Path) -> bool:
    """Return whether a directory is that of a sweep."""
    return SweepLayout(folder).is_sweep


def report_sweep(folder: Path, out: Path) -> SweepReport:
    """Write the report of a sweep, and return what it contains.

    Args:
        folder: The directory of the sweep.
        out: The directory of the report. It appears when the report is complete.

    Raises:
        ReportError: The sweep is not finished, or the report cannot be written.
    """
    layout = SweepLayout(folder)
    if not layout.is_finished:
        raise ReportError(f"{folder}: the sweep is not finished; start it again, and it goes on")
    try:
        experiment = tomllib.loads(layout.experiment.read_text(encoding="utf-8"))
        told = json.loads(layout.summary.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{folder}: not the output of a sweep: {error}") from None
    figures, tables = plans_of(experiment.get("figure", []), experiment.get("table", []))
    table = _Runs(layout.runs)
    if not figures and not tables:
        figures = _usual(table)
    with whole(out) as place:
        sections = _write(experiment, told, table, figures, tables, place)
        text = page(experiment.get("title", told["name"]), sections)
        (place / "index.html").write_text(text, encoding="utf-8")
    return SweepReport(out / "index.html", len(figures), len(tables), told["runs"], told["failed"])


class _Runs:
    """The table of runs, whose columns are read when they are needed."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self._path = path
        with self._reading():
            self.columns: list[str] = pq.ParquetDataset(path).schema.names

    @contextmanager
    def _reading(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise ReportError(f"{self._path} cannot be read: {error}") from None

    def rows(self, columns: Sequence[str], what: str) -> list[dict[str, Any]]:
        import pyarrow.parquet as pq

        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise ReportError(f"{what}: the table of runs has no column {', '.join(missing)}")
        wanted = list(dict.fromkeys([*_ALWAYS, *columns]))
        with self._reading():
            rows: list[dict[str, Any]] = pq.read_table(self._path, columns=wanted).to_pylist()
        return rows

    def every(self) -> Iterator[dict[str, Any]]:
        """Yield complete rows, in batches."""
        import pyarrow.parquet as pq

        with self._reading():
            for fragment in pq.ParquetDataset(self._path).fragments:
                for batch in fragment.to_batches():
                    yield from batch.to_pylist()

    def write_csv(self, path: Path) -> None:
        """Write the whole table as CSV, with maps and lists as JSON."""
        import csv

        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row in self.every():
                writer.writerow([_plain(row[name]) for name in self.columns])


def _plain(value: Any) -> Any:
    if isinstance(value, list):  # a map comes as a list of pairs
        pairs = value and isinstance(value[0], tuple)
        return json.dumps(dict(value) if pairs else value)
    return value


def _usual(table: _Runs) -> list[FigurePlan]:
    """Return figures of latency, execution time and metadata against the first varied number."""
    names = [
        name
        for name in table.columns
        if name in ("processes", "messages") or ("." in name and not name.endswith(".kind"))
    ]
    rows = table.rows([*names, "protocol"], "the report")
    varied = [name for name in names if len({row[name] for row in rows}) > 1]
    numbers = [n for n in varied if all(isinstance(row[n], int | float) for row in rows)]
    if not numbers:
        return []
    x, *others = numbers
    followers = {"processes": ("processes.count", "messages")}.get(x, ())
    apart = tuple(name for name in others if name not in followers)
    return [
        FigurePlan(
            name=y.removesuffix("_ns"),
            title=f"{label} against {x}",
            x=x,
            x_label=x,
            y=y,
            y_label=label,
            y_factor=factor,
            series=("protocol", *apart),
        )
        for y, label, factor in _SHOWN
    ]


def _write(
    experiment: Mapping[str, Any],
    told: Mapping[str, Any],
    table: _Runs,
    figures: Sequence[FigurePlan],
    tables: Sequence[TablePlan],
    place: Path,
) -> list[str]:
    from .figures import write_figure

    sections = [paragraph(str(experiment.get("about", "")))]
    for plan in figures:
        found = points(plan, table.rows(plan.columns(), f"figure {plan.name}"))
        write_figure(plan, found, place)
        seeds = sorted({point.y.seeds for point in found})
        caption = f"{plan.caption} {_error_bars(seeds)}".strip()
        sections.append(section(plan.title, picture(plan.name, plan.title, caption)))
    for listed in tables:
        rows = table_rows(listed, table.rows(listed.columns(), f"table {listed.name}"))
        write_table(listed, rows, place)
        body = f'<div class="wide">\n{plan_html(listed, rows)}\n</div>'
        link = f'<p class="small"><a href="{listed.name}.csv">CSV</a></p>'
        sections.append(section(listed.title, body, paragraph(listed.caption, "small"), link))
    table.write_csv(place / "runs.csv")
    sections.append(_runs_section(told, table))
    return sections


def _error_bars(seeds: Sequence[int]) -> str:
    if seeds == [1]:
        return "One run for each point."
    count = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return f"Means of {count} seeds; bars are 95 % confidence intervals."


def _runs_section(told: Mapping[str, Any], table: _Runs) -> str:
    text = f"{told['runs']:,} runs, {told['events']:,} simulated events."
    parts = [paragraph(text), '<p class="small"><a href="runs.csv">All runs as CSV</a></p>']
    if told["failed"]:
        rows = select(table.rows(["protocol"], "the report"), (), {"status": "failed"})
        parts.append(paragraph(f"{told['failed']:,} runs failed.", "bad"))
        shown = [[row["run"], row["error"]] for row in rows[:20]]
        parts.append(html_table(["run", "error"], shown))
    return section("The runs", *parts)
