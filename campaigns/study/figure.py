"""The study as one figure: what each protocol costs, against the number of processes.

Bars are as long as the distance from the least to the greatest run of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from causewire.report.charts import lines_spec
from causewire.report.numbers import Estimate, Point
from causewire.report.plan import FigurePlan
from causewire.report.vega import write_pictures

from .results import LIMITS, PROTOCOLS, Cell, Results

__all__ = ["PANELS", "write_figure"]

PANELS: dict[str, tuple[str, str, Callable[[Cell, str], Estimate | None] | str]] = {
    "stretch": ("Mean latency / minimum", "log", Cell.stretch),
    "tail": ("p99 of latency / that of the minimum", "log", Cell.tail),
    "bits": ("Metadata (bits per message)", "log", Cell.bits),
    "packets": (
        "Packets per message",
        "linear",
        lambda cell, name: cell.value(name, lambda row: 1 + row["control_per_message"]),
    ),
    "cpu": ("Computation (µs of CPU time per message)", "log", "cpu_us_per_message"),
    "state": ("State of a process (integers, mean)", "log", "state_mean"),
}
"""Title, scale, and where the numbers come from: a cell, or a column of what was measured."""


def write_figure(results: Results, folder: Path, name: str = "study") -> None:
    """Write the figure as NAME.png and NAME.svg; nothing if the part `scale` was not run."""
    panels = [_panel(results, key) for key in PANELS if list(_points(results, key))]
    if not panels:
        return
    first = panels[0]
    spec = {key: first[key] for key in ("$schema", "config", "usermeta")}
    inner = [
        {key: panel[key] for key in ("data", "layer")}
        | {"title": PANELS[key][0], "width": 250, "height": 190}
        for key, panel in zip([k for k in PANELS if list(_points(results, k))], panels, strict=True)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    said = "What each protocol costs against the number of processes."
    whole = spec | {"description": said, "concat": inner, "columns": 3, "spacing": 30}
    write_pictures(_without_interaction(whole), folder, name)


def _panel(results: Results, key: str) -> dict[str, Any]:
    _, scale, _ = PANELS[key]
    limit = LIMITS.get(key)
    plan = FigurePlan(
        name=key,
        title=PANELS[key][0],
        x="processes",
        y=key,
        x_label="processes",
        y_label="",
        x_scale="log",
        y_scale=scale,
        across=(limit.most,) if limit else (),
    )
    return lines_spec(plan, list(_points(results, key)))


def _points(results: Results, key: str) -> Iterator[Point]:
    *_, source = PANELS[key]
    for protocol in PROTOCOLS:
        for size, cell in results.sizes().items():
            if isinstance(source, str):
                row = results.effort.get((protocol, size))
                value = row and row[source]
                found = Estimate(1, value, None, value, value) if value else None
            else:
                found = source(cell, protocol)
            if found is not None:
                found = found._replace(error=(found.most - found.least) / 2 or None)
                yield Point(None, (protocol,), (), size, found)


def _without_interaction(value: Any) -> Any:
    """Return a specification without what needs a reader's hand, which panels cannot share.

    Dashes are left out of the legend, where they would eat into the shapes.
    """
    if isinstance(value, dict):
        kept = {
            key: _without_interaction(inner)
            for key, inner in value.items()
            if key not in ("params", "opacity", "tooltip") or inner == 1
        }
        if "strokeDash" in kept:
            kept["strokeDash"]["legend"] = None
        if isinstance(kept.get("legend"), dict) and "scale" in kept:
            kept["legend"]["symbolDash"] = [1, 0]
        return kept
    return [_without_interaction(item) for item in value] if isinstance(value, list) else value
