"""The report of a sweep: the figures and tables of its experiment, from its table of runs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from .. import protocols
from ..durations import DurationError, parse_duration
from .answers import answer, reading
from .charts import bars_spec, lines_spec, series_name
from .numbers import Point, points, select, table_rows
from .page import csv_link, figure, page, paragraph, section, whole, write_csv
from .plan import FigurePlan, NumberPlan, ReportError, TablePlan
from .sweep_layout import SweepLayout
from .tables import html_table, plan_html, significant, table_csv
from .vega import write_pictures

__all__ = ["SweepReport", "is_sweep", "plans_of", "report_sweep"]

_ALWAYS = ("run", "seed", "status", "error", "config")
_SHOWN = (
    ("latency_mean_ns", "mean latency (ms)", 1e-6),
    ("execution_ns", "execution time (s)", 1e-9),
    ("metadata_bytes", "metadata (kB)", 1e-3),
)
"""What is shown for an experiment that names no figures."""
_EMBEDDED = 1_000_000
"""Bytes up to which the table of runs is part of the page."""


class SweepReport(NamedTuple):
    """What a report of a sweep contains."""

    page: Path
    figures: int
    tables: int
    runs: int
    failed: int


def plans_of(
    figures: Sequence[Mapping[str, Any]],
    tables: Sequence[Mapping[str, Any]],
    numbers: Sequence[Mapping[str, Any]] = (),
) -> tuple[list[FigurePlan], list[TablePlan], list[NumberPlan]]:
    """Return the figures and tables of an experiment file, and the numbers of its answer.

    Raises:
        ReportError: One of them is wrong, or two have the same name.
    """
    drawn = [FigurePlan.from_dict(f, f"figure {f.get('name', '')}".strip()) for f in figures]
    listed = [TablePlan.from_dict(t, f"table {t.get('name', '')}".strip()) for t in tables]
    names = [plan.name for plan in drawn] + [plan.name for plan in listed]
    for name in names:
        if names.count(name) > 1 or name in ("runs", "index"):
            raise ReportError(f"two things of the report are called {name!r}")
    single = [NumberPlan.from_dict(n, f"number {n.get('name', '')}".strip()) for n in numbers]
    return drawn, listed, single


def is_sweep(folder: Path) -> bool:
    """Return whether a directory is that of a sweep."""
    return SweepLayout(folder).is_sweep


def report_sweep(
    folder: Path, out: Path, progress: Callable[[int, int], None] | None = None
) -> SweepReport:
    """Write the report of a sweep, and return what it contains.

    Args:
        folder: The directory of the sweep.
        out: The directory of the report. It appears when the report is complete.
        progress: Called with the figures and tables that are written so far, and all.

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
    parts = (experiment.get(part, []) for part in ("figure", "table", "number"))
    figures, tables, numbers = plans_of(*parts)
    table = _Runs(layout.runs)
    if not figures and not tables:
        figures = _usual(table, set(_durations(experiment)))
    with whole(out) as place:
        sections = _write(experiment, told, table, figures, tables, place, progress)
        title = str(experiment.get("title", told["name"]))
        question = str(experiment.get("question", "")) or f"{title}: what do the runs show?"
        said, sources = answer(str(experiment.get("answer", "")), numbers, table.rows)
        if not said:
            said = " ".join([_first_reading(sections), *_unordered(table)])
        text = page(title, question, said, [*sections.evidence, *sources, sections.runs])
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


def _usual(table: _Runs, durations: Collection[str]) -> list[FigurePlan]:
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
    setting = x.removesuffix(".value")
    timed = setting in durations
    x_label = f"{setting} (ms)" if timed else x
    return [
        FigurePlan(
            name=y.removesuffix("_ns"),
            title=f"{label} against {setting if timed else x}",
            x=x,
            x_label=x_label,
            x_factor=1e-6 if timed else 1.0,
            y=y,
            y_label=label,
            y_factor=factor,
            series=("protocol", *apart),
        )
        for y, label, factor in _SHOWN
    ]


class _Sections(NamedTuple):
    """The sections of the page."""

    evidence: list[str]
    readings: list[str]
    """What the figures show, in a sentence each."""
    runs: str


def _durations(experiment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the settings that an experiment varies in durations, such as "processes.think"."""
    for part in (experiment, *experiment.get("grid", [])):
        for name, values in _varied(part.get("vary", {})):
            try:
                for value in values:
                    parse_duration(value)
            except DurationError:
                continue
            yield name


def _varied(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the settings in nested tables, with dots in their names, and their values."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _varied(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield prefix + name, value


def _unordered(table: _Runs) -> Iterator[str]:
    """Yield a sentence on the protocols that keep no causal order, if there are any."""
    known = protocols.names()
    compared = {row["protocol"] for row in table.rows(["protocol"], "the report")}
    bad = [name for name in known if name in compared and not protocols.describe(name).causal]
    if bad:
        keep = "keeps" if len(bad) == 1 else "keep"
        yield escape(f"Of these, {' and '.join(bad)} {keep} no causal order.")


def _first_reading(sections: _Sections) -> str:
    return escape(sections.readings[0]) if sections.readings else "See the numbers below."


def _write(
    experiment: Mapping[str, Any],
    told: Mapping[str, Any],
    table: _Runs,
    figures: Sequence[FigurePlan],
    tables: Sequence[TablePlan],
    place: Path,
    progress: Callable[[int, int], None] | None,
) -> _Sections:
    def done(number: int) -> None:
        if progress is not None:
            progress(number, len(figures) + len(tables))

    sections = [paragraph(str(experiment.get("about", "")))]
    readings = []
    for number, plan in enumerate(figures, 1):
        found = points(plan, table.rows(plan.columns(), f"figure {plan.name}"))
        said = reading(plan, found)
        readings.append(said)
        sections.append(_figure_section(plan, found, said, place))
        done(number)
    for number, listed in enumerate(tables, len(figures) + 1):
        rows = table_rows(listed, table.rows(listed.columns(), f"table {listed.name}"))
        sections.append(_table_section(listed, rows, place))
        done(number)
    return _Sections(sections, readings, _runs_section(told, table, place))


def _figure_section(plan: FigurePlan, found: Sequence[Point], said: str, place: Path) -> str:
    spec = lines_spec(plan, found)
    write_pictures(spec, place, plan.name)
    named = [plan.panels] if plan.panels else []
    heading = [*named, *plan.series, *plan.apart, plan.x_label, plan.y_label]
    heading += ["error_95", "least", "most", "seeds"]
    text = write_csv(place / f"{plan.name}.csv", heading, (_csv_row(plan, p) for p in found))
    table = [
        [
            *([str(p.panel)] if plan.panels else []),
            series_name(plan, p),
            *map(str, p.apart),
            f"{p.x:,g}",
            significant(p.y.mean, 4),
            "" if p.y.error is None else significant(p.y.error, 2),
            str(p.y.seeds),
        ]
        for p in found
    ]
    shown_heading = [*named, ", ".join(plan.series) or "series", *plan.apart, plan.x_label]
    shown_heading += [plan.y_label, "± 95 %", "runs"]
    numbers = html_table(shown_heading, table, plan.title)
    numbers += f'\n<p class="small">Save: {csv_link(f"{plan.name}.csv", text)}.</p>'
    seeds = sorted({point.y.seeds for point in found})
    source = f"From the column {plan.y} of the table of runs"
    source += f", over that of {_words(plan.over)}." if plan.over else "."
    caption = f"{plan.caption} {_error_bars(seeds)} {source}".strip()
    drawn = figure(plan.name, spec, caption, numbers)
    return section(plan.title, paragraph(said, "reading"), drawn)


def _csv_row(plan: FigurePlan, point: Point) -> list[Any]:
    named = [point.panel] if plan.panels else []
    y = point.y
    error = "" if y.error is None else f"{y.error:.9g}"
    numbers = [f"{value:.9g}" for value in (y.least, y.most)]
    key = [*named, *point.series, *point.apart, f"{point.x:.9g}"]
    return [*key, f"{y.mean:.9g}", error, *numbers, y.seeds]


def _words(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in where.items())


def _table_section(plan: TablePlan, rows: Sequence[tuple[Any, ...]], place: Path) -> str:
    text = write_csv(place / f"{plan.name}.csv", *table_csv(plan, rows))
    spec = bars_spec(plan, rows)
    numbers = plan_html(plan, rows)
    numbers += f'\n<p class="small">Save: {csv_link(f"{plan.name}.csv", text)}.</p>'
    if not spec["concat"]:
        return section(plan.title, numbers, paragraph(plan.caption, "small"))
    write_pictures(spec, place, plan.name)
    columns = ", ".join(dict.fromkeys(cell.of for cell in plan.column))
    source = f"Means over seeds, ± their 95 % intervals; from the columns {columns}."
    for cell in plan.column:
        if cell.less:
            source += f" {cell.label}: {cell.of} less that of {_words(cell.less)}, seed by seed."
    about = paragraph(" ".join(plan.caption.split()))
    return section(plan.title, about, figure(plan.name, spec, source, numbers))


def _error_bars(seeds: Sequence[int]) -> str:
    if seeds == [1]:
        return "One run for each point."
    count = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    return f"Means of {count} seeds; bars are 95 % confidence intervals."


def _runs_section(told: Mapping[str, Any], table: _Runs, place: Path) -> str:
    table.write_csv(place / "runs.csv")
    text = f"{told['runs']:,} runs, {told['events']:,} simulated events."
    parts = [paragraph(text)]
    if (place / "runs.csv").stat().st_size < _EMBEDDED:
        link = csv_link("runs.csv", (place / "runs.csv").read_text("utf-8"))
        parts.append(f'<p class="small">All runs with all their numbers: {link}.</p>')
    else:
        parts.append(paragraph("All runs with all their numbers are in runs.csv.", "small"))
    if told["failed"]:
        rows = select(table.rows(["protocol"], "the report"), (), {"status": "failed"})
        parts.append(paragraph(f"{told['failed']:,} runs failed.", "bad"))
        listed = [[row["run"], row["error"]] for row in rows[:20]]
        parts.append(html_table(["run", "error"], listed, "Runs that failed"))
    return section("The runs", *parts)
