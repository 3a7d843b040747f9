"""Where the time of messages went, run by run, and what each run cost: figures and tables.

The rows are those of `metrics.RUNS`. A bar for each run has the mean time
that a message was held at its sender, was on the network and was held at its
receiver; a mark says how much of it was unavoidable: what an omniscient protocol
would have taken. What is beyond the mark is non-causal latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .charts import parts_spec
from .names import shown
from .page import csv_link, details, figure, paragraph, section, write_csv
from .tables import html_table, significant
from .vega import write_pictures

__all__ = ["write_times"]

SHOWN = 20
"""Runs of the figure and of the table on the page; the CSV has all."""

_TIMES = (
    ("latency_mean_ns", "mean latency (ms)"),
    ("latency_p99_ns", "99th percentile (ms)"),
    ("held_at_sender_mean_ns", "held at sender (ms)"),
    ("network_mean_ns", "on the network (ms)"),
    ("held_at_receiver_mean_ns", "held at receiver (ms)"),
    ("unavoidable_mean_ns", "unavoidable (ms)"),
    ("noncausal_mean_ns", "non-causal (ms)"),
)
_CLOCKS = (
    "The trace does not say. Its processes have clocks of their own that disagree, or may, and "
    "times of different clocks are not compared."
)
_NEGATIVE = (
    "A negative non-causal latency means that messages were delivered, on average, before "
    "everything that happened before them could have arrived. Causal order forbids that: "
    "the run broke causal order, or the clocks of its processes disagree."
)


def write_times(rows: Sequence[Mapping[str, Any]], place: Path, *, one_clock: bool = True) -> str:
    """Write times.png, times.svg and times.csv, and return the sections of the page.

    Args:
        rows: Rows of `metrics.RUNS`.
        place: The directory to write to.
        one_clock: Whether times of different processes can be compared. If not, or if there
            are no times, only times.csv is written, and the page says why.
    """
    text = write_csv(place / "times.csv", list(rows[0]), (list(row.values()) for row in rows))
    title = "Where did the time of messages go?"
    if not one_clock or any((row["latency_mean_ns"] or 0) < 0 for row in rows):
        return section(title, paragraph(_CLOCKS))
    if all(row["latency_mean_ns"] is None for row in rows):
        return section(title, paragraph("The trace has no times."))
    kept = rows[:SHOWN]
    spec = parts_spec(kept)
    write_pictures(spec, place, "times")
    more = f" The first {SHOWN} of {len(rows):,} runs." if len(rows) > SHOWN else ""
    caption = (
        "Means over all copies that were delivered, from the times of the rows send, release, "
        "receive and deliver of the trace. The upright mark is the unavoidable part: what a "
        f"protocol that knows everything would have taken on this network.{more}"
    )
    heading = ["run", *(label for _, label in _TIMES)]
    table = [[shown(str(row["run"])), *(_ms(row[name]) for name, _ in _TIMES)] for row in kept]
    numbers = html_table(heading, table, title)
    explained = [row for row in kept if (row["noncausal_mean_ns"] or 0) < 0]
    return "\n".join(
        [
            section(
                title,
                paragraph(_reading(kept[0]), "reading") if len(rows) == 1 else "",
                figure("times", spec, caption, numbers),
                paragraph(_NEGATIVE if explained else "", "small"),
            ),
            _criteria(kept, csv_link("times.csv", text)),
        ]
    )


def _ms(value: float | None) -> str:
    return "" if value is None else significant(value * 1e-6, 3)


def _reading(row: Mapping[str, Any]) -> str:
    if row["unavoidable_mean_ns"] is None or row["noncausal_mean_ns"] < 0:
        return f"A message took {_ms(row['latency_mean_ns'])} ms on average."
    return (
        f"A message took {_ms(row['latency_mean_ns'])} ms on average, of which "
        f"{_ms(row['unavoidable_mean_ns'])} ms were unavoidable."
    )


_CRITERIA = (
    ("metadata of a copy (bytes)", "metadata_bytes of release and retransmit, by copies"),
    ("control packets per message", "rows ack, permit and control, by rows send"),
    ("non-causal latency, mean (ms)", "latency less the unavoidable part"),
    ("in transit, one sender, at most", "copies between release and receive"),
    ("in transit, one pair, at most", "the same, to one destination"),
    ("send buffer, at most", "copies between send and release, of one process"),
    ("receive buffer, at most", "copies between receive and deliver, at one process"),
)


def _criteria(rows: Sequence[Mapping[str, Any]], link: str) -> str:
    """Return the table of Almeida's criteria, measured: a row for each, with its origin."""
    columns = [_measured(row) for row in rows]
    table = [
        [what, *(column[k] for column in columns), source]
        for k, (what, source) in enumerate(_CRITERIA)
    ]
    heading = ["criterion", *(shown(str(row["run"])) for row in rows), "counted from"]
    about = (
        "The criteria by which Almeida (2026, table 1) compares protocols, measured in this "
        "trace: space, control messages, latency, and how much can be under way at a time."
    )
    title = "What did it cost?"
    return section(
        title,
        paragraph(about),
        html_table(heading, table, title),
        details("Everything that was measured", f'<p class="small">{link}</p>'),
    )


def _measured(row: Mapping[str, Any]) -> list[str]:
    def number(value: float | None) -> str:
        if isinstance(value, int):
            return f"{value:,}"
        return "" if value is None else significant(value, 3)

    copies = row["copies"] or 0
    return [
        number(row["metadata_bytes"] / copies if copies else None),
        number(row["control_per_message"]) if row["control_per_message"] else "none recorded",
        _ms(row["noncausal_mean_ns"]),
        number(row["max_in_transit"]),
        number(row["max_in_transit_per_pair"]),
        number(row["max_send_buffer"]),
        number(row["max_receive_buffer"]),
    ]
