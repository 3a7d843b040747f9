"""The legend of a space-time diagram: only what the diagram has."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .style import cross, frame, ring
from .svg import Svg, text_width

__all__ = ["Legend", "legend"]

_SIZE = 10.5
_LINE = 17.0
_SAMPLE = 26.0

Sample = Callable[[Svg, float, float], None]


def _ring(*marks: str) -> Sample:
    def draw(svg: Svg, x: float, y: float) -> None:
        for mark in marks:
            ring(svg, mark, x + 18, y, hollow=mark == "send", small=len(marks) > 1)

    return draw


def _frame(*marks: str) -> Sample:
    def draw(svg: Svg, x: float, y: float) -> None:
        for mark in marks:
            frame(svg, mark, x + 18, y, hollow=mark == "receive", small=len(marks) > 1)

    return draw


def _line(kind: str, head: str = "") -> Sample:
    def draw(svg: Svg, x: float, y: float) -> None:
        attributes: dict[str, str | float] = {
            "class": kind,
            "x1": x,
            "y1": y,
            "x2": x + _SAMPLE - 3,
            "y2": y,
        }
        if head:
            attributes["marker-end"] = f"url(#{head})"
        svg.add("line", attributes)

    return draw


def _bar(kind: str) -> Sample:
    def draw(svg: Svg, x: float, y: float) -> None:
        svg.add("rect", {"class": kind, "x": x, "y": y - 2.5, "width": _SAMPLE - 3, "height": 5.0})

    return draw


def _cross(svg: Svg, x: float, y: float) -> None:
    cross(svg, x + 18, y)


_ENTRIES: tuple[tuple[str, str, Sample], ...] = (
    ("send", "causal send", _ring("send")),
    ("release", "release", _ring("release")),
    ("send+release", "send and release at once", _ring("send", "release")),
    ("receive", "receive", _frame("receive")),
    ("deliver", "deliver", _frame("deliver")),
    ("receive+deliver", "receive and deliver at once", _frame("receive", "deliver")),
    ("message", "message", _line("message", "head")),
    ("again", "sent or arriving once more", _line("message again", "head")),
    ("outside", "from or to what is not shown", _line("message stub")),
    ("lost", "lost", _cross),
    ("ack", "ack", _line("ack", "head-ack")),
    ("permit", "permit", _line("permit", "head-permit")),
    ("control", "other control packet", _line("control", "head-control")),
    ("held", "in the send buffer", _bar("held")),
    ("waits", "in the receive buffer", _bar("waits")),
    ("job", "job", _bar("job")),
    ("around", "the message chosen", _line("message blue", "head-blue")),
    ("violation", "violates causal order", _line("message red", "head-red")),
)


class Legend:
    """The entries of a legend with their positions."""

    def __init__(self, entries: list[tuple[float, float, str, Sample]], height: float) -> None:
        self._entries = entries
        self.height = height

    def draw(self, svg: Svg, x: float, y: float) -> None:
        """Draw the legend; `y` is the middle of the first line."""
        svg.open("g", {"class": "legend"})
        for dx, dy, text, sample in self._entries:
            sample(svg, x + dx, y + dy)
            svg.add(
                "text", {"class": "key", "x": x + dx + _SAMPLE + 3, "y": y + dy + 3.7}, text=text
            )
        svg.close("g")


def legend(present: Collection[str], width: float) -> Legend:
    """Return a legend for these kinds of marks, in lines of that width."""
    entries = []
    x = y = 0.0
    for name, text, sample in _ENTRIES:
        if name not in present:
            continue
        takes = _SAMPLE + 3 + text_width(text, _SIZE) + 16
        if x and x + takes > width:
            x, y = 0.0, y + _LINE
        entries.append((x, y, text, sample))
        x += takes
    return Legend(entries, y + _LINE if entries else 0.0)
