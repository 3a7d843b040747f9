"""Experiment files: which runs there are to be, as data.

    name = "bandwidth"
    seeds = 3

    [settings]                      # of every run, as `sim.Config` takes them
    messages_per_process = 100
    network.latency = "5ms"

    [vary]                          # the grid: every combination of these
    protocol = ["mf", "csps"]
    processes.count = [25, 50]
    network.bandwidth = ["20kB/s", "1MB/s"]

A setting inside a table is named with dots, `network.bandwidth`, everywhere: in
`vary`, in `cases`, in `skip`, and as a column of the table of runs.

    [[cases]]     one more factor of the grid, each of whose values sets several
                  things at once
    [[skip]]      leaves out the combinations in which all of these hold
    [[grid]]      a further grid: it has `name`, `seeds`, `settings`, `vary`,
                  `cases` and `skip` of its own, which add to or override those
                  of the file. With any `grid`, the file's own are only a base
    [derive]      columns to add to the table of runs, as Spark SQL expressions
    [[figure]]    and [[table]], [[number]]: what the report shows (`report.plan`)

`messages_per_process` is short for `messages`, times the number of processes.
"""

from __future__ import annotations

import copy
import difflib
import itertools
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ...report.plan import ReportError
from ...report.sweeps import plans_of
from ...sim import Config, SimulationError
from ..errors import PipelineError
from .cost import seconds

__all__ = ["Experiment", "Grid", "Run", "read_experiment"]

_GRID_KEYS = ("seeds", "settings", "vary", "cases", "skip")
_KEYS = (
    *("name", "title", "question", "answer", "about", "traces", *_GRID_KEYS, "grid", "derive"),
    *("figure", "table", "number"),
)
_JSON = ("services", "place")
"""Tables of a run with keys of the user's own, which would make no columns."""


class Run(NamedTuple):
    """One run of an experiment."""

    run: str
    """Names the run by what it is: the same settings, the same name."""
    grid: str
    config: str
    """All its settings, as JSON from which `Config` makes them again."""
    parameters: dict[str, Any]
    """The same, flat: dotted name -> value."""
    cost: float
    """About how many seconds it takes."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The combinations of some settings."""

    name: str
    seeds: tuple[int, ...]
    settings: Mapping[str, Any]
    vary: Mapping[str, Sequence[Any]]
    cases: Sequence[Mapping[str, Any]]
    skip: Sequence[Mapping[str, Any]]

    def points(self) -> Iterator[dict[str, Any]]:
        """What each combination sets, by dotted name; the seed last."""
        factors = [[{name: value} for value in values] for name, values in self.vary.items()]
        if self.cases:
            factors.append([dict(case) for case in self.cases])
        factors.append([{"seed": seed} for seed in self.seeds])
        for combination in itertools.product(*factors):
            point = {name: value for part in combination for name, value in part.items()}
            every = {**self.settings, **point}
            if not any(_holds(every, condition) for condition in self.skip):
                yield point


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment file, read and checked."""

    file: str
    name: str
    title: str
    about: str
    traces: bool
    grids: tuple[Grid, ...]
    derive: Mapping[str, str]
    source: str
    """The text of the file."""

    def runs(self) -> list[Run]:
        """Every run, in the order of the file.

        The same run may be in two grids; it has the same name in both.

        Raises:
            PipelineError: A combination is not possible, or a grid is empty.
        """
        runs: list[Run] = []
        for grid in self.grids:
            before = len(runs)
            for point in grid.points():
                try:
                    runs.append(_run(grid, point))
                except SimulationError as error:
                    at = ", ".join(f"{name} = {value}" for name, value in point.items())
                    raise PipelineError(f"{self.file}: {error} (at {at})") from None
            if len(runs) == before:
                which = f"grid {grid.name!r}" if grid.name else "the grid"
                raise PipelineError(f"{self.file}: {which} is empty: there is nothing to run")
        return runs


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment file; what is wrong with it is said in one line.

    Raises:
        PipelineError: The file cannot be read, or is not an experiment.
    """
    file = os.fspath(path)
    try:
        source = Path(path).read_text(encoding="utf-8")
        data = tomllib.loads(source)
    except OSError as error:
        raise PipelineError(f"{file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError(f"{file}: not TOML: {error}") from None
    try:
        return _experiment(file, source, data)
    except SimulationError as error:
        raise PipelineError(f"{file}: {error}") from None


# -- the file ------------------------------------------------------------------


def _experiment(file: str, source: str, data: Mapping[str, Any]) -> Experiment:
    _known(data, _KEYS, "an experiment")
    grids = _tables(data, "grid")
    for entry in grids:
        _known(entry, ("name", *_GRID_KEYS), "a grid")
    names = [_text(entry, "name", "") for entry in grids]
    if len(set(names)) < len(names) or (grids and not all(names)):
        raise SimulationError("each grid needs a name of its own")
    derive = data.get("derive", {})
    if not isinstance(derive, Mapping) or not all(type(v) is str for v in derive.values()):
        raise SimulationError("derive must be a table of column = 'expression'")
    traces = data.get("traces", False)
    if type(traces) is not bool:
        raise SimulationError(f"traces must be true or false, not {traces!r}")
    try:
        plans_of(*(_tables(data, part) for part in ("figure", "table", "number")))
    except ReportError as error:
        raise SimulationError(str(error)) from None
    name = _text(data, "name", Path(file).stem)
    return Experiment(
        file=file,
        name=name,
        title=_text(data, "title", name),
        about=_text(data, "about", ""),
        traces=traces,
        grids=tuple(_grid(data, entry) for entry in grids or [{}]),
        derive=dict(derive),
        source=source,
    )


def _grid(data: Mapping[str, Any], entry: Mapping[str, Any]) -> Grid:
    """A grid: what the file says for all, and what this one says."""
    settings = _flat(_table(data, "settings")) | _flat(_table(entry, "settings"))
    vary = _flat(_table(data, "vary")) | _flat(_table(entry, "vary"))
    for name, values in vary.items():
        if not isinstance(values, list):
            raise SimulationError(f"vary.{name} must be a list of values, not {values!r}")
        settings.pop(name, None)
    if "seed" in vary or "seed" in settings:
        raise SimulationError("seeds are given by 'seeds', not by 'seed'")
    cases = [_flat(case) for case in _tables(entry if "cases" in entry else data, "cases")]
    skip = [_flat(case) for case in [*_tables(data, "skip"), *_tables(entry, "skip")]]
    if not all(skip):
        raise SimulationError("skip without any setting would leave out everything")
    seeds = entry.get("seeds", data.get("seeds", 1))
    if type(seeds) is int:
        seeds = list(range(seeds))
    if not isinstance(seeds, list) or not all(type(s) is int and s >= 0 for s in seeds):
        raise SimulationError(f"seeds must be a number of seeds, or a list of them, not {seeds!r}")
    name = _text(entry, "name", "")
    return Grid(name, tuple(dict.fromkeys(seeds)), settings, vary, cases, skip)


def _known(table: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise SimulationError(f"{what} has no {key!r}{hint}; it has {', '.join(known)}")


def _text(table: Mapping[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if type(value) is not str:
        raise SimulationError(f"{key} must be a string, not {value!r}")
    return value


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise SimulationError(f"{key} must be a table, not {value!r}")
    return value


def _tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise SimulationError(f"{key} must be a list of tables: [[{key}]]")
    return value


# -- settings by dotted names --------------------------------------------------


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names; a table with a `kind` is one value."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and "kind" not in value and key not in _JSON:
            flat |= _flat(value, f"{name}.")
        else:
            flat[name] = value
    return flat


def _holds(settings: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Whether all settings are as the condition says (a list: one of these)."""
    return all(
        settings.get(name) in (value if isinstance(value, list) else [value])
        for name, value in condition.items()
    )


_SHORT = {"processes": "count", "workload": "kind"}
"""Tables that may be given by one value, and what this value is then."""


def _nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The tables that dotted names stand for."""
    nested: dict[str, Any] = {}
    for name in sorted(settings, key=lambda name: name.count(".")):
        *tables, last = name.split(".")
        inside = nested
        for depth, table in enumerate(tables):
            found = inside.setdefault(table, {})
            if not isinstance(found, dict):
                if depth or table not in _SHORT:
                    raise SimulationError(f"{name}: {table} is {found!r}, and has no {last}")
                found = inside[table] = {_SHORT[table]: found}
            inside = found
        inside[last] = copy.deepcopy(settings[name])
    return nested


def _run(grid: Grid, point: Mapping[str, Any]) -> Run:
    settings = {**grid.settings, **point}
    per_process = settings.pop("messages_per_process", None)
    config = Config.from_dict(_nested(settings))
    if per_process is not None:
        if type(per_process) is not int or per_process < 0:
            raise SimulationError(f"messages_per_process must be an integer, not {per_process!r}")
        if "messages" in settings:
            raise SimulationError("messages and messages_per_process exclude each other")
        messages = per_process * len(config.names())
        config = Config.from_dict(_nested({**settings, "messages": messages}))
    text = json.dumps(config.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = sha256(text.encode()).hexdigest()[:16]
    parameters = _parameters(config.to_dict(in_nanoseconds=True))
    parameters |= {
        "protocol": config.about.name,
        "workload": config.workload.kind,
        "processes": len(config.names()),
        "messages": config.number_of_messages(),
        "seed": config.seed,
    }
    name = f"{config.about.name}-s{config.seed}-{digest}"
    return Run(name, grid.name, text, parameters, seconds(config))


def _parameters(plain: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every setting by its dotted name; lists, and what is like them, as JSON."""
    flat: dict[str, Any] = {}
    for key, value in plain.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and key not in _JSON:
            flat |= _parameters(value, f"{name}.")
        elif isinstance(value, Mapping | list):
            flat[name] = json.dumps(value, sort_keys=True, separators=(",", ":")) if value else None
        else:
            flat[name] = value
    return flat
