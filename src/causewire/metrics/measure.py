"""Measure runs: where the time of messages went, and what processes were doing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa

from .._compiled import Longs
from ..trace import Event, Trace, open_trace, trace_of
from .buffers import Peaks, Times, find_peaks, occupancy
from .earliest import earliest
from .rows import DELIVERED, KINDS, NOTHING, RELEASED, SENT, RunRows, runs_of
from .schemas import COPIES, JOBS, PROCESSES, RUNS, TIMES
from .steps import Steps, find_steps

__all__ = ["RunMetrics", "measure"]

_RETRANSMIT, _JOB_START, _JOB_END = map(KINDS.index, ("retransmit", "job_start", "job_end"))
_CONTROL = tuple(map(KINDS.index, ("ack", "permit", "control")))


def measure(trace: Trace | str | os.PathLike[str] | Iterable[Event]) -> Iterator[RunMetrics]:
    """Return the measurements of each run of a trace.

    >>> for run in measure("run.parquet"):  # doctest: +SKIP
    ...     print(run.name, run.summary()["latency_p99_ns"])

    Args:
        trace: A file or directory, a `Trace`, or events in any order.

    Returns:
        An object for each run, which is in memory at that time (about 120 bytes a row).

    Raises:
        TraceError: The trace cannot be read, or the events of a run form a cycle.
    """
    if isinstance(trace, (str, os.PathLike)):
        trace = open_trace(trace)
    elif not isinstance(trace, Trace):
        trace = trace_of(trace)
    for rows in runs_of(trace):
        yield RunMetrics(rows)


class RunMetrics:
    """The measurements of one run, as tables; each is computed when it is asked for."""

    def __init__(self, rows: RunRows) -> None:
        """Find the copies of messages.

        Raises:
            TraceError: The events of the run form a cycle.
        """
        self.name = rows.run
        self.events = len(rows.kind)
        self._steps: Steps = find_steps(rows)
        self._rows = self._steps.rows

    # -- copies ---------------------------------------------------------------------

    @cached_property
    def _times(self) -> Times:
        s, time = self._steps, self._rows.time
        sent = time[s.send][s.message] if len(s.message) else np.empty(0, np.int64)
        known = [_at(time, rows) for rows in (s.release, s.receive, s.deliver)]
        return Times(sent, *known)

    @cached_property
    def _network(self) -> Longs:
        t = self._times
        came = np.where(t.received != NOTHING, t.received, t.delivered)
        left = np.where(t.released != NOTHING, t.released, t.sent)
        return _minus(came, left)

    @cached_property
    def _earliest(self) -> tuple[Longs, Longs]:
        """Of each copy: the earliest delivery, and the row that delivered its last predecessor."""
        s, rows = self._steps, self._rows
        message = s.delivered[s.order]
        sends = message < 0
        number = np.full(len(rows.kind), -1, np.int32)
        number[s.send] = np.arange(len(s.send))
        message[sends] = number[s.order[sends]]
        arrival = np.where(
            (self._network != NOTHING) & (self._times.sent != NOTHING),
            self._times.sent + self._network,
            NOTHING,
        )
        when, before = earliest(
            np.where(sends, 1, 2).astype(np.int8),
            rows.process[s.order],
            message,
            s.begin,
            s.destination,
            arrival,
            s.deliver.astype(np.int32),
            len(rows.processes),
        )
        return when, before.astype(np.int64)

    @cached_property
    def _parts(self) -> dict[str, Longs]:
        """The times of copies, by their names in `TIMES`."""
        t = self._times
        when, _ = self._earliest
        return {
            "latency": _minus(t.delivered, t.sent),
            "held_at_sender": _minus(t.released, t.sent),
            "network": self._network,
            "held_at_receiver": _minus(t.delivered, t.received),
            "unavoidable": _minus(when, t.sent),
            "noncausal": _minus(t.delivered, when),
        }

    def copies(self) -> pa.Table:
        """Return each message for each destination, and where its time went: `COPIES`."""
        s, rows, times, parts = self._steps, self._rows, self._times, self._parts
        when, before = self._earliest
        names = pa.array(rows.processes, pa.string())
        send = s.send[s.message] if len(s.message) else np.empty(0, np.int64)
        held = (times.released != NOTHING) & (times.released > times.sent) & (s.came >= 0)
        came = np.where(held, s.came, 0)
        waited = (s.receive >= 0) & (before > s.receive)
        last = np.where(waited, before, 0)
        peer = np.full(len(came), -1, np.int32)
        has = held & (rows.first[came + 1] > rows.first[came])
        peer[has] = rows.peers[rows.first[came[has]]]
        arrived = (
            pa.array(KINDS, pa.string()).take(pa.array(rows.kind[came].astype(np.int32))),
            names.take(pa.array(peer, mask=peer < 0)),
            _name(names, rows.origin[came]),
            _numbers(rows.mid[came]),
        )
        reason = pa.StructArray.from_arrays(
            arrived, fields=list(COPIES.field("released_by").type), mask=pa.array(~held)
        )
        waiting = pa.StructArray.from_arrays(
            [_name(names, rows.origin[last]), _numbers(rows.mid[last])],
            fields=list(COPIES.field("held_for").type),
            mask=pa.array(~waited),
        )
        metadata = _at(rows.metadata, s.release)
        return pa.table(
            [
                pa.array([rows.run] * len(send), pa.string()),
                names.take(pa.array(rows.process[send])),
                pa.array(rows.mid[send]),
                names.take(pa.array(s.destination)),
                *map(_numbers, times),
                _numbers(parts["latency"]),
                _numbers(parts["held_at_sender"]),
                reason,
                _numbers(parts["network"]),
                _numbers(parts["held_at_receiver"]),
                waiting,
                _numbers(when),
                _numbers(parts["unavoidable"]),
                _numbers(parts["noncausal"]),
                _numbers(rows.payload[send]).cast(pa.int32()),
                _numbers(metadata).cast(pa.int32()),
            ],
            schema=COPIES,
        )

    # -- over time ---------------------------------------------------------------------

    def occupancy(self) -> pa.Table:
        """Return the levels of all buffers, whenever they change: `OCCUPANCY`."""
        return occupancy(self._steps, self._times)

    def jobs(self) -> pa.Table:
        """Return the jobs, when they began and ended: `JOBS`."""
        s, rows = self._steps, self._rows
        key = ["process", "origin", "mid"]

        def first(kind: int, name: str) -> pa.Table:
            at = np.flatnonzero(rows.kind == kind)
            table = pa.table(
                {
                    "process": rows.process[at],
                    "origin": rows.origin[at],
                    "mid": rows.mid[at],
                    name: _numbers(rows.time[at]),
                }
            )
            found = table.group_by(key).aggregate([(name, "min")])
            return found.rename_columns([*key, name])

        whole = first(_JOB_START, "start_ns")
        if whole.num_rows:
            whole = whole.join(first(_JOB_END, "end_ns"), key)
            sends = {
                "origin": rows.process[s.send],
                "mid": rows.mid[s.send],
                "sent_ns": _numbers(rows.time[s.send]),
            }
            whole = whole.join(pa.table(sends), ["origin", "mid"])
        else:
            empty = pa.array([], pa.int64())
            whole = whole.append_column("end_ns", empty).append_column("sent_ns", empty)
        start, sent = whole["start_ns"], whole["sent_ns"]
        names = pa.array(rows.processes, pa.string())
        return pa.table(
            [
                pa.array([rows.run] * whole.num_rows, pa.string()),
                _name(names, whole["process"].to_numpy()),
                _name(names, whole["origin"].to_numpy()),
                _numbers(whole["mid"].to_numpy()),
                start,
                whole["end_ns"],
                _numbers(_minus(_filled(start), _filled(sent))),
            ],
            schema=JOBS,
        )

    # -- processes and the run --------------------------------------------------------------

    @cached_property
    def _peaks(self) -> Peaks:
        return find_peaks(self._steps, self._times)

    @cached_property
    def _span(self) -> tuple[int, int] | None:
        """The first and the last time of the run."""
        time = self._rows.time
        known = time[time != NOTHING] if len(time) and time.min() == NOTHING else time
        return (int(known.min()), int(known.max())) if len(known) else None

    @cached_property
    def _counts(self) -> dict[str, Longs]:
        """What is counted, for each process."""
        s, rows = self._steps, self._rows
        kind, process = rows.kind, rows.process
        size = len(rows.processes)
        control = (kind >= min(_CONTROL)) & (kind <= max(_CONTROL))
        carried = (kind == RELEASED) | (kind == _RETRANSMIT)

        def count(chosen: Any) -> Longs:
            return np.bincount(process[chosen], minlength=size)

        def total(column: Longs, chosen: Any) -> Longs:
            chosen = chosen & (column > 0)
            weight = column[chosen].astype(np.float64)
            return np.bincount(process[chosen], weight, minlength=size).astype(np.int64)

        of = np.diff(s.begin)
        return {
            "rows": np.bincount(process, minlength=size),
            "sent": count(kind == SENT),
            "copies": np.bincount(process[s.send], of, minlength=size).astype(np.int64),
            "delivered": np.bincount(
                s.destination[self._times.delivered != NOTHING], minlength=size
            ),
            "payload_bytes": total(rows.payload, carried),
            "metadata_bytes": total(rows.metadata, carried),
            "control_bytes": total(rows.metadata, control),
            "control_packets": count(control),
            "retransmissions": count(kind == _RETRANSMIT),
        }

    def processes(self) -> pa.Table:
        """Return a row for each process that has rows: `PROCESSES`."""
        counts, peaks = self._counts, self._peaks._asdict()
        rows = []
        for p in np.flatnonzero(counts["rows"]).tolist():
            row: dict[str, Any] = {"run": self.name, "process": self._rows.processes[p]}
            row |= {name: int(values[p]) for name, values in counts.items()}
            row |= {f"max_{name}": int(values[p]) for name, values in peaks.items()}
            rows.append(self._rated(row))
        return pa.Table.from_pylist(rows, PROCESSES)

    def summary(self) -> dict[str, Any]:
        """Return the measurements of the whole run, by the names of `RUNS`."""
        counts, rows = self._counts, self._rows
        row: dict[str, Any] = {"run": self.name, "processes": int(np.count_nonzero(counts["rows"]))}
        row |= {name: int(values.sum()) for name, values in counts.items()}
        row |= {f"max_{name}": int(v.max(initial=0)) for name, v in self._peaks._asdict().items()}
        kind = rows.kind
        worked = ((kind == SENT) | (kind == DELIVERED)) | (kind >= _JOB_START)
        ended = int(rows.time[worked].max(initial=NOTHING))
        row["execution_ns"] = None
        if self._span is not None and ended != NOTHING:
            row["execution_ns"] = ended - self._span[0]
        row |= self._job_means()
        travelled = rows.process[self._steps.send][self._steps.message] != self._steps.destination
        for name in TIMES:
            values = self._parts[name]
            known = values != NOTHING
            if name in ("held_at_sender", "network", "held_at_receiver"):
                known &= travelled
            row |= _statistics(name, values[known])
        row = self._rated(row)
        return {field: row[field] for field in RUNS.names}

    def _job_means(self) -> dict[str, Any]:
        row: dict[str, Any] = {"jobs": 0, "job_start_mean_ns": None, "job_delay_mean_ns": None}
        if not (self._rows.kind == _JOB_START).any():
            return row
        jobs = self.jobs()
        row["jobs"] = jobs.num_rows
        starts, delays = (jobs[name].drop_null().to_numpy() for name in ("start_ns", "delay_ns"))
        if self._span is not None and len(starts):
            row["job_start_mean_ns"] = float((starts - self._span[0]).mean())
        if len(delays):
            row["job_delay_mean_ns"] = float(delays.mean())
        return row

    def _rated(self, row: dict[str, Any]) -> dict[str, Any]:
        """Add rates."""
        duration = None if self._span is None else self._span[1] - self._span[0]
        row["duration_ns"] = duration
        for name in ("sent", "delivered"):
            row[f"{name}_per_second"] = row[name] / (duration / 1e9) if duration else None
        row["control_per_message"] = row["control_packets"] / row["sent"] if row["sent"] else None
        return row


def _at(values: Longs, rows: Longs) -> Longs:
    """Return the values of some rows, `NOTHING` for row -1."""
    if not len(values):
        return np.full(len(rows), NOTHING, np.int64)
    return np.where(rows >= 0, values[np.maximum(rows, 0)], NOTHING)


def _minus(a: Longs, b: Longs) -> Longs:
    return np.where((a != NOTHING) & (b != NOTHING), a - b, NOTHING)


def _filled(column: pa.ChunkedArray) -> Longs:
    values: Longs = column.fill_null(NOTHING).to_numpy()
    return values


def _numbers(values: Any) -> pa.Array:
    return pa.array(values, mask=values == NOTHING)


def _name(names: pa.Array, numbers: Any) -> pa.Array:
    return names.take(pa.array(numbers, pa.int32(), mask=numbers < 0))


def _statistics(name: str, values: Longs) -> dict[str, Any]:
    keys = [f"{name}_{what}_ns" for what in ("mean", "p50", "p99", "max")]
    if not len(values):
        return dict.fromkeys(keys)
    size = len(values)
    places = [max(ceil(share * size), 1) - 1 for share in (0.5, 0.99)]
    ordered = np.partition(values, places)
    numbers = [float(values.mean()), *(int(ordered[k]) for k in places), int(values.max())]
    return dict(zip(keys, numbers, strict=True))
