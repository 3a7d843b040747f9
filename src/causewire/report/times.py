"""Where the time of messages went, run by run: a figure and a table.

The rows are those of `metrics.RUNS`. A bar for each run has the mean time
that a message was held at its sender, was on the network and was held at its
receiver; a mark says how much of it was unavoidable: what an omniscient protocol
would have taken. What is beyond the mark is non-causal latency.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from .figures import STYLE
from .page import paragraph, picture, section
from .tables import html_table, significant

__all__ = ["write_times"]

SHOWN = 20
"""Runs of the figure and of the table on the page; the CSV has all."""

_PARTS = (
    ("held_at_sender", "held at the sender", "#d55e00", "//"),
    ("network", "on the network", "#bbbbbb", ""),
    ("held_at_receiver", "held at the receiver", "#0072b2", "\\\\"),
)
_COLUMNS = (
    ("delivered", "copies delivered", 1.0),
    ("delivered_per_second", "deliveries a second", 1.0),
    ("latency_mean_ns", "mean latency (ms)", 1e-6),
    ("latency_p99_ns", "p99 latency (ms)", 1e-6),
    ("unavoidable_mean_ns", "of the mean, unavoidable (ms)", 1e-6),
    ("noncausal_mean_ns", "of the mean, non-causal (ms)", 1e-6),
    ("control_per_message", "control packets per message", 1.0),
    ("max_in_transit", "in transit, one sender, at most", 1.0),
)


def write_times(rows: Sequence[Mapping[str, Any]], place: Path) -> str:
    """Write times.png, times.svg and times.csv, and return the section of the page."""
    with (place / "times.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)
    shown = rows[:SHOWN]
    with mpl.rc_context(STYLE):
        figure = _draw(shown)
        figure.savefig(place / "times.png", dpi=200, metadata={"Software": None})
        figure.savefig(place / "times.svg", metadata={"Date": None, "Creator": None})
    heading = ["run", *(label for _, label, _ in _COLUMNS)]
    table = [
        [str(row["run"]), *(_cell(row[name], factor) for name, _, factor in _COLUMNS)]
        for row in shown
    ]
    more = f" The first {SHOWN} of {len(rows):,} runs." if len(rows) > SHOWN else ""
    caption = f"Means over all copies delivered; beyond the mark is non-causal latency.{more}"
    title = "Where the time of messages went"
    body = f'<div class="wide">\n{html_table(heading, table)}\n</div>'
    return section(title, picture("times", title, caption), body, paragraph(more, "small"))


def _cell(value: float | None, factor: float) -> str:
    return "" if value is None else significant(value * factor, 3)


def _draw(rows: Sequence[Mapping[str, Any]]) -> Figure:
    figure = Figure(figsize=(6.4, 1.3 + 0.28 * len(rows)), layout="constrained")
    axis = figure.subplots()
    places = range(len(rows), 0, -1)
    left = [0.0] * len(rows)
    for name, label, colour, hatch in _PARTS:
        parts = [(row[f"{name}_mean_ns"] or 0) * 1e-6 for row in rows]
        axis.barh(
            places, parts, 0.6, left, label=label, color=colour, hatch=hatch, edgecolor="white"
        )
        left = [a + b for a, b in zip(left, parts, strict=True)]
    marks = [(row["unavoidable_mean_ns"] or 0) * 1e-6 for row in rows]
    axis.plot(marks, list(places), "k|", markersize=13, markeredgewidth=2, label="unavoidable")
    axis.set_yticks(list(places), [str(row["run"]) for row in rows])
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("mean time from send to delivery (ms)")
    axis.set_xlim(left=0)
    figure.legend(loc="outside upper center", ncols=4)
    return figure
