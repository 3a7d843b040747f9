"""Figures, for the screen and for print: PNG and SVG, and their numbers as CSV.

Series are told apart by colour, marker and dash at once, so that a photocopy
still shows them; colours are those of Okabe and Ito, which people with any kind
of colour vision can tell apart. The same numbers give the same bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .numbers import Point
from .plan import FigurePlan

__all__ = ["STYLE", "draw_figure", "write_figure"]

_COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"),
    *("#7b3294", "#8c510a", "#b2182b", "#1b7837", "#4d4d4d"),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h", "d")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.hashsalt": "causewire",
    "svg.fonttype": "path",
}
_PROTOCOLS = (
    *("csps", "sps", "mf", "cykas", "rst", "ks", "fifo", "unordered"),
    *("bss", "newtop", "pak", "pak-credit", "pak-nak"),
)
"""A protocol looks the same in every figure that it is in."""


def write_figure(plan: FigurePlan, points: Sequence[Point], folder: Path) -> None:
    """Write a figure as NAME.png and NAME.svg, and its numbers as NAME.csv."""
    with mpl.rc_context(STYLE):
        figure = draw_figure(plan, points)
        figure.savefig(folder / f"{plan.name}.png", dpi=200, metadata={"Software": None})
        figure.savefig(folder / f"{plan.name}.svg", metadata={"Date": None, "Creator": None})
    with (folder / f"{plan.name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        named = [plan.panels] if plan.panels else []
        named += [*plan.series, *plan.apart, plan.x_label]
        writer.writerow([*named, plan.y_label, "error_95", "least", "most", "seeds"])
        for p in points:
            named = [p.panel] if plan.panels else []
            named += [*p.series, *p.apart, _short(p.x)]
            numbers = [p.y.mean, p.y.error, p.y.least, p.y.most]
            writer.writerow([*named, *map(_short, numbers), p.y.seeds])


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.9g}"


def draw_figure(plan: FigurePlan, points: Sequence[Point]) -> Figure:
    """Return the figure as a matplotlib object."""
    panels: list[Any] = list(dict.fromkeys(p.panel for p in points))
    if not any(isinstance(panel, str) for panel in panels):
        panels.sort(key=lambda panel: panel or 0)
    every = list(dict.fromkeys(p.series for p in points))
    across = min(len(panels), 2)
    down = -(-len(panels) // across)
    width, height = (4.6, 3.1) if len(panels) == 1 else (3.3, 2.5)
    size = (width * across + 1.2, height * down + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for i, axis in enumerate(axes.flat):
        if i >= len(panels):
            axis.set_visible(False)
            continue
        _draw_panel(plan, [p for p in points if p.panel == panels[i]], every, axis)
        if panels[i] is not None:
            axis.set_title(_heading(plan, panels[i]))
        if i // across == down - 1 or i + across >= len(panels):
            axis.set_xlabel(plan.x_label)
            axis.tick_params(labelbottom=True)
        if i % across == 0:
            axis.set_ylabel(plan.y_label)
    _limits(plan, axes.flat[0])
    _ticks(plan, points, axes.flat[0])
    figure.suptitle(plan.title, fontsize=10, x=0.02, ha="left")
    handles, names = axes.flat[0].get_legend_handles_labels()
    if len(names) > 1:
        figure.legend(handles, names, loc="outside right center")
    return figure


def _heading(plan: FigurePlan, panel: Any) -> str:
    value = panel
    if isinstance(panel, int | float) and not isinstance(panel, bool):
        value = f"{panel * plan.panel_factor:,g}"
    label = plan.panel_label or f"{plan.panels} = {{}}"
    return label.replace("{}", str(value)) if "{}" in label else f"{label} {value}"


def _draw_panel(
    plan: FigurePlan, points: Sequence[Point], every: Sequence[tuple[Any, ...]], axis: Axes
) -> None:
    for value in plan.across:
        axis.axhline(value, color="#888888", linewidth=0.8, zorder=1)
    for value in plan.down:
        axis.axvline(value, color="#888888", linewidth=0.8, linestyle=":", zorder=1)
    if plan.x_scale == "log":
        axis.set_xscale("log")
    if plan.y_scale == "log":
        axis.set_yscale("log")
    protocols = all(len(series) == 1 and series[0] in _PROTOCOLS for series in every)
    for i, series in enumerate(every):
        mine = [p for p in points if p.series == series]
        look = _PROTOCOLS.index(series[0]) if protocols else i
        errors = [p.y.error or 0.0 for p in mine]
        shows = any(errors)
        if plan.y_scale == "log":  # an interval that reaches zero has no place there
            low = [min(e, p.y.mean * 0.999) for e, p in zip(errors, mine, strict=True)]
        else:
            low = errors
        axis.errorbar(
            [p.x for p in mine],
            [p.y.mean for p in mine],
            yerr=[low, errors] if shows else None,
            # Where lines coincide, the earlier ones show around the later ones.
            linewidth=max(1.0, 2.2 - 0.25 * i),
            markersize=max(3.5, 6.5 - 0.6 * i),
            color=_COLOURS[look % len(_COLOURS)],
            marker=_MARKERS[look % len(_MARKERS)],
            linestyle=_DASHES[look % len(_DASHES)] if plan.lines else "",
            markerfacecolor="white" if look % 2 else None,
            capsize=2.5,
            elinewidth=1.0,
            label=_label(plan, series),
        )


def _limits(plan: FigurePlan, axis: Axes) -> None:
    """Set the limits of the axis: from zero, unless the figure shows ratios around 1."""
    low, high = axis.get_ylim()
    if plan.y_scale == "linear" and not plan.over:
        axis.set_ylim(-0.02 * high, high)
    elif plan.y_scale == "linear":
        axis.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))


def _ticks(plan: FigurePlan, points: Sequence[Point], axis: Axes) -> None:
    """On a logarithmic axis of few values, these; and plain numbers on all (panels share axes)."""
    plain = FuncFormatter(lambda value, _: f"{value:,g}" if value >= 1e-4 else f"{value:.0e}")
    if plan.x_scale == "log":
        values = sorted({p.x for p in points})
        if len(values) <= 7:
            axis.xaxis.set_major_locator(FixedLocator(values))
            axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(plain)
    if plan.y_scale == "log":
        low, high = axis.get_ylim()
        if high / low < 50:
            axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.yaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(plain)


def _label(plan: FigurePlan, series: tuple[Any, ...]) -> str:
    return ", ".join(str(plan.labels.get(str(value), value)) for value in series)
