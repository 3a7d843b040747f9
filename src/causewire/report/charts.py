"""Figures as Vega-Lite specifications: lines, bars, and stacked bars.

A specification is plain JSON with its numbers in it. The page draws it in the
browser, where it can be hovered over, zoomed and saved; `vega` draws the same one
as SVG and PNG. Series differ in colour, shape and dash at once, and every
colour has a contrast of at least 3 to 1 on light and on dark paper. The style
sheet of the page changes the colours of text and axes on dark paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from .names import shown
from .numbers import Point
from .plan import FigurePlan, TablePlan
from .svg import text_width
from .tables import compared, row_name

__all__ = ["PARTS", "Spec", "bars_spec", "heading", "lines_spec", "parts_spec", "series_name"]

Spec = dict[str, Any]

_COLOURS = (
    *("#2b7bba", "#d0580f", "#158f6b", "#c25b93", "#3a93d0", "#a97b0a", "#7a7f87", "#9a6bd3"),
    *("#a0622d", "#cf4450", "#71821d", "#2a8f9c", "#b5651d", "#7d5fff"),
)
_SHAPES = (
    *("circle", "square", "triangle-up", "diamond", "triangle-down", "cross"),
    *("triangle-right", "triangle-left", "M0,-1L.3,-.3L1,0L.3,.3L0,1L-.3,.3L-1,0L-.3,-.3Z"),
    "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z",
    "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z",
    "M-.35,-1L.35,-1L.35,1L-.35,1Z",
    "M-.5,-.87L.5,-.87L1,0L.5,.87L-.5,.87L-1,0Z",
    "M-.9,-.9L.9,-.9L-.9,.9L.9,.9Z",
)
"""As many as there are protocols, so that no two share one."""
_DASHES: tuple[list[int], ...] = (
    *([1, 0], [6, 3], [8, 3, 2, 3], [2, 2], [10, 2], [6, 2, 2, 2], [1, 2], [12, 4]),
)
_PROTOCOLS = (
    *("csps", "sps", "mf", "cykas", "rst", "ks", "fifo", "unordered"),
    *("bss", "newtop", "pak", "pak-credit", "pak-nak", "adaptive"),
)
"""A protocol looks the same in every figure that it is in."""

PARTS = (
    ("held_at_sender", "held at the sender", "#d0580f"),
    ("network", "on the network", "#8a9099"),
    ("held_at_receiver", "held at the receiver", "#2b7bba"),
)
"""The parts of a latency: column, label and colour."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
_INK, _QUIET, _GRID = "#1b212c", "#566070", "#e3e7ec"
_CONFIG: Spec = {
    "font": _FONT,
    "background": "white",
    "aria": False,
    "mark": {"aria": False},
    "view": {"stroke": None},
    "axis": {
        "aria": False,
        "labelColor": _QUIET,
        "titleColor": _INK,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
        "labelFontSize": 11,
        "gridColor": _GRID,
        "domainColor": "#b4bcc8",
        "tickColor": "#b4bcc8",
        "labelLimit": 160,
    },
    "header": {"labelColor": _INK, "labelFontSize": 12, "labelFontWeight": "bold"},
    "legend": {
        "aria": False,
        "labelColor": _INK,
        "labelFontSize": 12,
        "labelLimit": 260,
        "symbolSize": 90,
        "symbolStrokeWidth": 0,
    },
    "title": {"color": _INK, "fontSize": 12, "anchor": "start", "fontWeight": "bold"},
    "text": {"color": _INK},
}
_DRAG = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
_ZOOM: Spec = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "on": _DRAG,
        "translate": _DRAG,
        "zoom": "wheel![event.shiftKey || event.ctrlKey]",
    },
    "bind": "scales",
}
"""Dragging moves a figure, and the wheel zooms it with a key, so that the page still scrolls."""


def _whole(
    values: Sequence[Mapping[str, Any]],
    description: str,
    more: Spec,
    labels: Sequence[str] = (),
    legend: Sequence[str] = (),
) -> Spec:
    """Return a whole specification; `labels` and `legend` are texts that need room next to it."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "config": _CONFIG,
        "usermeta": {
            "labels": round(max([text_width(text, 11) for text in labels], default=60)),
            "legend": round(max([text_width(text, 12) for text in legend], default=60)),
        },
        "data": {"values": list(values)},
        **more,
    }


def _look(name: str, names: Sequence[str], number: int) -> int:
    """Return the number of the look of a series."""
    known = all(each in _PROTOCOLS for each in names)
    return _PROTOCOLS.index(name) if known else number


def lines_spec(plan: FigurePlan, points: Sequence[Point]) -> Spec:
    """Return a figure of lines, with a panel for each value of `plan.panels`."""
    panels = list(dict.fromkeys(point.panel for point in points))
    if all(isinstance(panel, int | float) for panel in panels):
        panels.sort()
    headings = [heading(plan, panel) for panel in panels]
    series = list(dict.fromkeys(series_name(plan, point) for point in points))
    values = [_value(plan, point) for point in points]
    layers = _layers(plan, points, series)
    description = f"{plan.title}. {plan.y_label} against {plan.x_label}."
    if not plan.panels:
        size = {"width": 560, "height": 320}
        return _whole(values, description, {**size, "layer": layers}, legend=series)
    facet: Spec = {"field": "panel", "type": "nominal", "sort": headings}
    facet["header"] = {"title": None}
    inner = {"width": 250, "height": 190, "layer": layers}
    more = {"facet": facet, "columns": min(len(panels), 3), "spec": inner}
    return _whole(values, description, more, legend=series)


def _value(plan: FigurePlan, point: Point) -> Spec:
    mean, error = point.y.mean, point.y.error or 0.0
    low = mean - error
    if plan.y_scale == "log":  # an interval that reaches zero has no place there
        low = low if low > 0 else point.y.least
    value = {
        "series": series_name(plan, point),
        "x": point.x,
        "y": mean,
        "low": low,
        "high": mean + error,
        "least": point.y.least,
        "most": point.y.most,
        "runs": point.y.seeds,
    }
    if plan.panels:
        value["panel"] = heading(plan, point.panel)
    return value


def series_name(plan: FigurePlan, point: Point) -> str:
    """Return what a series is called in the legend."""
    return ", ".join(shown(str(plan.labels.get(str(value), value))) for value in point.series)


def heading(plan: FigurePlan, panel: Any) -> str:
    """Return what is above a panel."""
    value = panel
    if isinstance(panel, int | float) and not isinstance(panel, bool):
        value = f"{panel * plan.panel_factor:,g}"
    label = plan.panel_label or f"{plan.panels} = {{}}"
    return label.replace("{}", str(value)) if "{}" in label else f"{label} {value}"


def _layers(plan: FigurePlan, points: Sequence[Point], series: Sequence[str]) -> list[Spec]:
    looks = [_look(name, series, number) for number, name in enumerate(series)]

    def scale(choices: Sequence[Any]) -> Spec:
        return {"domain": list(series), "range": [choices[k % len(choices)] for k in looks]}

    legend: Spec | None = {"title": None} if len(series) > 1 else None
    shared: Spec = {
        "x": _axis(plan.x_label, plan.x_scale, sorted({p.x for p in points}), zero=False),
        "y": _axis(plan.y_label, plan.y_scale, (), zero=not plan.over),
        "color": {"field": "series", "scale": scale(_COLOURS), "legend": legend},
        "opacity": {"condition": {"param": "chosen", "value": 1}, "value": 0.12},
    }
    shared["x"]["field"], shared["y"]["field"] = "x", "y"
    tooltip = [
        {"field": "series", "title": "series"},
        {"field": "x", "title": plan.x_label, "format": ",~r"},
        {"field": "y", "title": f"{plan.y_label}, mean", "format": ".4~g"},
        {"field": "low", "title": "95 % interval, from", "format": ".4~g"},
        {"field": "high", "title": "to", "format": ".4~g"},
        {"field": "least", "title": "least run", "format": ".4~g"},
        {"field": "most", "title": "greatest run", "format": ".4~g"},
        {"field": "runs", "title": "runs"},
    ]
    guides: list[Spec] = [
        {"mark": {"type": "rule", "color": "#8a9099"}, "encoding": {channel: {"datum": value}}}
        for channel, chosen in (("y", plan.across), ("x", plan.down))
        for value in chosen
    ]
    layers = list(guides)
    if any(point.y.error for point in points):
        interval = {"mark": {"type": "rule", "strokeWidth": 1.2}}
        ends = {**shared, "y": {**shared["y"], "field": "low"}, "y2": {"field": "high"}}
        layers.append({**interval, "encoding": ends})
    if plan.lines:
        dash = {"field": "series", "scale": scale(_DASHES), "legend": legend}
        mark = {"type": "line", "strokeWidth": 1.8}
        layers.append({"mark": mark, "encoding": {**shared, "strokeDash": dash}})
    shape = {"field": "series", "scale": scale(_SHAPES), "legend": legend}
    chosen = {"name": "chosen", "select": {"type": "point", "fields": ["series"]}}
    layers.append(
        {
            "params": [_ZOOM],
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {**shared, "shape": shape, "tooltip": tooltip},
        }
    )
    # The layer that the legend is made from has to have the selection.
    params = layers[len(guides)].setdefault("params", [])
    layers[len(guides)]["params"] = [*params, {**chosen, "bind": "legend"}]
    return layers


def _axis(label: str, scale: str, values: Sequence[float], *, zero: bool) -> Spec:
    axis: Spec = {"format": ",~g", "grid": True, "tickCount": 8}
    if values and all(float(value).is_integer() for value in values):
        axis["tickMinStep"] = 1
    if scale == "log" and 0 < len(values) <= 7:
        axis["values"] = list(values)
    elif scale == "log":
        power = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
        axis["labelOverlap"] = "greedy"
        axis["gridOpacity"] = {"condition": {"test": power, "value": 1}, "value": 0.25}
    kind: Spec = {"type": scale, "nice": scale == "linear"}
    if scale == "linear":
        kind["zero"] = zero
    if scale != "linear" or not zero:
        kind["padding"] = 12  # so that no mark is cut off at an edge
    return {"type": "quantitative", "title": label, "axis": axis, "scale": kind}


def bars_spec(plan: TablePlan, rows: Sequence[tuple[Any, ...]]) -> Spec:
    """Return a table as small multiples: a panel of bars for each of its columns."""
    names = len(plan.rows)
    labels = [row_name(row[:names]) for row in rows]
    protocols = [str(row[0]) for row in rows]
    panels = []
    for number, cell in enumerate(plan.column):
        values = [
            {
                "row": label,
                "value": row[names + number].mean,
                "said": compared(row[names + number], cell, row[0]),
                "runs": row[names + number].seeds,
                "colour": _COLOURS[_look(protocol, protocols, 0) % len(_COLOURS)],
            }
            for row, label, protocol in zip(rows, labels, protocols, strict=True)
            if row[names + number] is not None
        ]
        if any(value["value"] for value in values):
            panels.append(_bars(cell.label, values, labels))
    more = {"concat": panels, "columns": 3, "spacing": 28}
    return _whole([], plan.title, more, labels=labels)


def _bars(label: str, values: Sequence[Spec], labels: Sequence[str]) -> Spec:
    most = max(value["value"] for value in values)
    y: Spec = {"field": "row", "type": "nominal", "sort": list(labels), "title": None}
    y["axis"] = {"ticks": False, "domain": False, "labelPadding": 6}
    x: Spec = {"field": "value", "type": "quantitative", "axis": None}
    room = max(0.31, 0.025 * max(len(v["said"]) for v in values) + 0.02)  # of the width, for text
    x["scale"] = {"domain": [min(0, *(v["value"] for v in values)), most / (1 - room)]}
    x["scale"]["nice"] = False
    tooltip = [
        {"field": "row", "title": "row"},
        {"field": "said", "title": label},
        {"field": "runs", "title": "mean of runs"},
    ]
    colour = {"field": "colour", "type": "nominal", "scale": None}
    bar: Spec = {"mark": {"type": "bar", "height": {"band": 0.72}}}
    bar["encoding"] = {"color": colour, "tooltip": tooltip}
    number: Spec = {"mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11}}
    number["encoding"] = {"text": {"field": "said"}}
    return {
        "title": {"text": wrap(label, 34)},
        "data": {"values": list(values)},
        "width": 250,
        "height": {"step": 19},
        "encoding": {"y": y, "x": x},
        "layer": [bar, number],
    }


def parts_spec(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Return where the time of messages went: a stacked bar for each run.

    Args:
        rows: Rows of `pipeline.metrics.runs`.
    """
    values, marks, labels = [], [], []
    for row in rows:
        run = shown(str(row["run"]))
        labels.append(run)
        for order, (name, label, _) in enumerate(PARTS):
            ms = (row[f"{name}_mean_ns"] or 0) * 1e-6
            values.append({"run": run, "part": label, "ms": ms, "order": order})
        if row["unavoidable_mean_ns"] is not None:
            marks.append({"run": run, "ms": row["unavoidable_mean_ns"] * 1e-6})
    y = {"field": "run", "type": "nominal", "sort": labels, "title": None}
    x: Spec = {
        "field": "ms",
        "type": "quantitative",
        "title": "mean time from send to delivery (ms)",
        "axis": {"tickCount": 8},
    }
    x["scale"] = {"zero": True}
    names, colours = [label for _, label, _ in PARTS], [colour for *_, colour in PARTS]
    colour = {"field": "part", "scale": {"domain": names, "range": colours}}
    colour["legend"] = {"title": None}
    tooltip = [
        {"field": "run"},
        {"field": "part"},
        {"field": "ms", "title": "mean (ms)", "format": ".4~g"},
    ]
    bar: Spec = {"mark": {"type": "bar", "height": {"band": 0.62}}}
    bar["encoding"] = {"x": x, "color": colour, "order": {"field": "order"}, "tooltip": tooltip}
    mark: Spec = {"data": {"values": marks}, "mark": {"type": "tick", "thickness": 4}}
    mark["mark"] |= {"fill": "white", "stroke": _INK, "strokeWidth": 1.2}
    told = [{"field": "run"}, {"field": "ms", "title": "unavoidable (ms)", "format": ".4~g"}]
    mark["encoding"] = {"x": {"field": "ms", "type": "quantitative"}, "tooltip": told}
    more = {
        "width": 560,
        "height": 34 * len(rows) + 4,
        "encoding": {"y": y},
        "layer": [bar, mark][: 1 + bool(marks)],
    }
    said = "Where the time of messages went: means for each run."
    return _whole(values, said, more, labels=labels, legend=names)
