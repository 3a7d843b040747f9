"""How the marks of a space-time diagram look."""

from __future__ import annotations

from .svg import Svg

__all__ = ["LABEL", "SMALL", "STYLE", "TEXT", "cross", "frame", "ring"]

TEXT, LABEL, SMALL = 12.0, 10.5, 9.5
"""Sizes of text: names of processes, labels that matter, other labels."""

_INK = "#1f2430"
_GREY = "#8a8f99"
_RED = "#c4161c"
_BLUE = "#0072b2"
_GREEN = "#007a5a"
_ORANGE = "#e69f00"
_SKY = "#56b4e9"


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0.8L8 4L0 7.2z" fill="{colour}"/></marker>'
    )


STYLE = f"""<style>
text {{ font-family: Helvetica, Arial, "Liberation Sans", sans-serif; fill: {_INK}; }}
.paper {{ fill: #fff; }}
.heading {{ font-size: 14px; font-weight: bold; }}
.caption, text.red {{ font-size: 11.5px; }}
.key {{ font-size: 10.5px; }}
.process {{ font-size: {TEXT:g}px; font-weight: bold; text-anchor: end; }}
.tick, .fault-name, .name {{ font-size: {SMALL:g}px; text-anchor: middle; }}
.tick {{ fill: #565b66; }}
.name {{ fill: #464b56; paint-order: stroke; stroke: #fff; stroke-width: 2.5px; }}
text.name.red, text.name.blue {{ font-size: {LABEL:g}px; font-weight: bold; }}
text.red {{ fill: {_RED}; }}
text.blue {{ fill: {_BLUE}; }}
.axis {{ stroke: #565b66; stroke-width: 1; }}
.grid {{ stroke: #eceef1; stroke-width: 1; }}
.line {{ stroke: #565b66; stroke-width: 1.2; }}
.message {{ stroke: #3c4454; stroke-width: 1.2; }}
.again {{ stroke: #a9aeb8; }}
.ack {{ stroke: {_GREY}; stroke-width: 1; stroke-dasharray: 1.2 3; stroke-linecap: round; }}
.permit {{ stroke: {_GREEN}; stroke-width: 1.1; stroke-dasharray: 6 3; }}
.control {{ stroke: #7d5a96; stroke-width: 1; stroke-dasharray: 6 2 1.2 2; }}
.stub, .from {{ stroke-opacity: 0.55; }}
.faded {{ opacity: 0.5; }}
.held {{ fill: {_ORANGE}; }}
.waits {{ fill: {_SKY}; }}
.job {{ fill: #c9ccd2; stroke: #8a8f99; stroke-width: 0.6; }}
circle, rect.receive, rect.deliver {{ stroke: {_INK}; stroke-width: 1.3; }}
.send, .receive {{ fill: #fff; }}
.release, .deliver {{ fill: {_INK}; }}
.retransmit, .duplicate {{ fill: #a9aeb8; stroke: none; }}
.lost {{ stroke: {_INK}; stroke-width: 1.5; fill: none; }}
.restart {{ stroke: {_INK}; stroke-width: 2.5; }}
.fault {{ stroke: #7d5a96; stroke-width: 1; stroke-dasharray: 3 3; }}
.fault-name {{ fill: #7d5a96; font-weight: bold; }}
line.red {{ stroke: {_RED}; stroke-width: 2.2; }}
line.blue {{ stroke: {_BLUE}; stroke-width: 2.2; }}
circle.red, rect.red {{ stroke: {_RED}; }}
circle.blue, rect.blue {{ stroke: {_BLUE}; }}
.release.red, .deliver.red {{ fill: {_RED}; }}
.release.blue, .deliver.blue {{ fill: {_BLUE}; }}
</style>
<defs>
{_marker("head", "#3c4454")}
{_marker("head-ack", _GREY)}
{_marker("head-permit", _GREEN)}
{_marker("head-control", "#7d5a96")}
{_marker("head-red", _RED)}
{_marker("head-blue", _BLUE)}
</defs>"""
"""The style sheet and the arrowheads."""


def ring(
    svg: Svg, kind: str, x: float, y: float, *, hollow: bool, small: bool, title: str = ""
) -> None:
    """A causal send is a ring, its release a dot, in it or after it."""
    radius = 4.2 if hollow else 1.7 if small else 3.0
    svg.add("circle", {"class": kind, "cx": x, "cy": y, "r": radius}, title=title)


def frame(
    svg: Svg, kind: str, x: float, y: float, *, hollow: bool, small: bool, title: str = ""
) -> None:
    """An arrival is a frame, the delivery a square, in it or after it."""
    half = 4.0 if hollow else 1.5 if small else 2.8
    svg.add(
        "rect",
        {"class": kind, "x": x - half, "y": y - half, "width": 2 * half, "height": 2 * half},
        title=title,
    )


def cross(svg: Svg, x: float, y: float, title: str = "") -> None:
    """Something is lost, or ends."""
    a, b, c, d = x - 3.5, y - 3.5, x + 3.5, y + 3.5
    svg.add(
        "path",
        {"class": "lost", "d": f"M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}M{a:.1f} {d:.1f}L{c:.1f} {b:.1f}"},
        title=title,
    )
