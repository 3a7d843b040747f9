"""Space-time diagrams: processes as lines, time to the right, as SVG.

In the manner of Almeida's Figure 2: messages are solid arrows, acks dotted,
permits dashed; a bar above a line is the time that a message spends in the send
buffer of that process, a bar below it the time in its receive buffer. A ring is
a causal send, a dot in it or after it the release; a frame is an arrival, the
square in it or after it the delivery. A violation of causal order is red: the
chain of messages by which one happened before the other, the lines between, and
the two deliveries that are in the wrong order.

Dark on white, in colours that people with any colour vision tell apart (Okabe and
Ito), and never by colour alone. The same rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise

from ..trace.schema import DELIVER, RECEIVE, RELEASE, SEND, Event
from . import words
from .axis import Axis, place
from .labels import Room, lanes
from .legend import legend
from .picture import Arrow, Bar, Fault, MessageKey, Picture, message_of
from .style import LABEL, SMALL, STYLE, TEXT, cross, frame, ring
from .svg import Svg, text_width
from .violations import Overtaking, overtakings
from .words import name

__all__ = ["AXES", "draw"]

AXES = ("time", "order")

GAP = 12.0
"""The least distance between two events of a process."""
_NARROW, _WIDE = 760.0, 1500.0
_EDGE = 18.0
_BAR, _LANE, _MOST_LANES = 4.5, 6.0, 5
_CLEAR = 7.5
"""From a line to the first bar: the size of a mark, and a little."""
_CONTROL = ("ack", "permit", "control")


def draw(
    events: Iterable[Event],
    *,
    axis: str = "time",
    processes: Sequence[str] | None = None,
    violation: Overtaking | None = None,
    around: MessageKey | None = None,
    control: bool = True,
    start: int | None = None,
    title: str = "",
    note: str = "",
) -> str:
    """Return a space-time diagram of rows of one run, as the text of an SVG file.

    Args:
        events: The rows.
        axis: `time` (to scale, except where events are crowded) or `order`.
        processes: The processes to draw, in this order; all by name, if not given.
        violation: The violation to show in red; by default the first one in the rows.
        around: A message to point out.
        control: Whether to draw acks and permits.
        start: The time at which the axis begins to count; the first row, if not given.
        title: The title; the name of the run, if not given.
        note: A text below the title.

    Raises:
        ValueError: There is no such axis.
    """
    if axis not in AXES:
        raise ValueError(f"an axis is one of {', '.join(AXES)}, not {axis!r}")
    rows = list(events)
    if not control:
        unwanted = {*_CONTROL, *(f"{sort}_receive" for sort in _CONTROL)}
        rows = [row for row in rows if row.kind not in unwanted]
    picture = Picture.of(rows, processes)
    if violation is None:
        violation = next(iter(overtakings(picture.rows)), None)
    to_scale = axis == "time" and picture.times() is not None
    least = place(picture, to_scale=False, width=0, gap=GAP).width
    wide = min(max(_NARROW, 1.8 * least, 92.0 * len(picture.processes)), _WIDE)
    gap = GAP if to_scale else GAP * min(max(1.0, wide / max(least, 1.0)), 4.0)
    places = place(picture, to_scale=to_scale, width=wide, gap=gap)
    return str(_Drawing(picture, places, to_scale, violation, around, start, title, note).svg)


class _Drawing:
    def __init__(
        self,
        picture: Picture,
        axis: Axis,
        to_scale: bool,
        violation: Overtaking | None,
        around: MessageKey | None,
        start: int | None,
        title: str,
        note: str,
    ) -> None:
        self.picture = picture
        self.axis = axis
        self.violation = violation
        self.around = around
        self.title = title
        self.note = note
        times = picture.times()
        self.start = start if start is not None else min(times or [0])
        self.to_scale = to_scale
        self.timed = times is not None
        self._red_rows: set[int] = set()
        self._red_copies: set[tuple[MessageKey, str]] = set()
        if violation is not None:
            self._red_copies = violation.copies()
            self._red_rows = {k for k, row in enumerate(picture.rows) if violation.concerns(row)}
        names = max((text_width(process, TEXT) for process in picture.processes), default=0.0)
        self.left = _EDGE + names + 16
        self.origin = self.left + 16
        self.right = self.origin + max(axis.width, _NARROW / 2) + 20
        self.width = self.right + _EDGE
        self.x = [self.origin + x for x in axis.x]
        self.bars = self._bars()
        self.svg = Svg()
        self._document()

    # -- what is red ---------------------------------------------------------------

    def _lines_between(self) -> list[tuple[str, int, int]]:
        """The parts of process lines along which the chain goes."""
        v = self.violation
        if v is None:
            return []
        sent: dict[MessageKey, int] = {}
        delivered: dict[tuple[MessageKey, str], int] = {}
        for index, row in enumerate(self.picture.rows):
            message = message_of(row)
            if message is not None and row.kind == SEND:
                sent.setdefault(message, index)
            elif message is not None and row.kind == DELIVER:
                delivered.setdefault((message, row.process), index)
        parts = []
        for message, following in pairwise(v.chain):
            at = following[0]
            begin = sent.get(message) if message[0] == at else delivered.get((message, at))
            end = sent.get(following)
            if begin is not None and end is not None:
                parts.append((at, begin, end))
        return parts

    # -- geometry --------------------------------------------------------------------

    def _bars(self) -> list[tuple[Bar, float, float, int]]:
        """Bars that have a length, with their ends and lanes."""
        result: list[tuple[Bar, float, float, int]] = []
        for sort in ("held", "waits", "job"):
            for process in self.picture.processes:
                found = []
                for bar in self.picture.bars:
                    if (bar.sort, bar.process) != (sort, process):
                        continue
                    begin = self.left if bar.begin is None else self.x[bar.begin]
                    end = self.right if bar.end is None else self.x[bar.end]
                    if end > begin and not self._at_once(bar):
                        found.append((bar, begin, end))
                assigned = lanes([(begin, end) for _, begin, end in found], _MOST_LANES)
                result += [(*entry, lane) for entry, lane in zip(found, assigned, strict=True)]
        return result

    def _at_once(self, bar: Bar) -> bool:
        """Whether no time passes, although there is room between its ends."""
        if bar.begin is None or bar.end is None:
            return False
        begin, end = self.picture.rows[bar.begin].time_ns, self.picture.rows[bar.end].time_ns
        return begin is not None and begin == end

    def _deepest(self, sort: str, process: str) -> int:
        return max(
            (
                lane + 1
                for bar, _, _, lane in self.bars
                if (bar.sort, bar.process) == (sort, process)
            ),
            default=0,
        )

    def _vertical(self, top: float) -> float:
        """Give every process its line; returns where the last one's room ends."""
        many = len(self.picture.processes)
        least = 62.0 if many <= 4 else 54.0 if many <= 8 else 46.0
        self.y: dict[str, float] = {}
        bottom = top
        for process in self.picture.processes:
            up = _CLEAR + _LANE * self._deepest("held", process)
            down = _CLEAR + _LANE * self._deepest("waits", process)
            before = max(self.y.values(), default=None)
            line = bottom + LABEL + up
            self.y[process] = line if before is None else max(line, before + least)
            bottom = self.y[process] + down + LABEL + 1
        return bottom

    # -- the document ------------------------------------------------------------------

    def _document(self) -> None:
        most = int((self.width - 2 * _EDGE) / (0.52 * TEXT))
        caption = words.caption(self.picture, self.start, self.violation, self.note, most)
        top = 30.0 + 15.0 * len(caption)
        faults = self.picture.faults if self.timed else []
        if faults:
            top += 20
        bottom = self._vertical(top)
        axis_y = bottom + 12
        entries = legend(self._present(), self.width - 2 * _EDGE)
        height = axis_y + 44 + entries.height + _EDGE / 2
        svg = self.svg
        size = {"width": self.width, "height": height}
        svg.raw('<?xml version="1.0" encoding="UTF-8"?>')
        svg.open(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                **size,
                "viewBox": f"0 0 {self.width:.1f} {height:.1f}",
                "role": "img",
            },
        )
        svg.add("title", {}, text=self._title())
        svg.add("desc", {}, text=" ".join(line for _, line in caption))
        faded = self.violation is not None or self.around is not None
        svg.raw(STYLE)
        svg.add("rect", {"class": "paper", **size})
        svg.add("text", {"class": "heading", "x": _EDGE, "y": 22.0}, text=self._title())
        for k, (kind, line) in enumerate(caption):
            svg.add("text", {"class": kind, "x": _EDGE, "y": 39.0 + 15 * k}, text=line)
        self._time_axis(axis_y, top - (12 if faults else 0))
        self._faults(faults, top, axis_y)
        self._lines()
        self._draw_bars()
        svg.open("g", {"class": "faded" if faded else "all"})
        self._arrows([a for a in self.picture.arrows if not self._pointed_out(a)])
        svg.close("g")
        self._arrows([a for a in self.picture.arrows if self._pointed_out(a)])
        self._marks()
        self._labels()
        entries.draw(svg, _EDGE, axis_y + 44)
        svg.close("svg")

    def _title(self) -> str:
        return self.title or (self.picture.rows[0].run if self.picture.rows else "")

    def _present(self) -> set[str]:
        """What the legend has to explain."""
        present = {arrow.sort for arrow in self.picture.arrows}
        present |= {bar.sort for bar, _, _, _ in self.bars}
        present |= {row.kind for row in self.picture.rows}
        if any(None in (a.leaves, a.comes) and not a.lost for a in self.picture.arrows):
            present.add("outside")
        present |= {"lost" for arrow in self.picture.arrows if arrow.lost}
        present |= {"again" for arrow in self.picture.arrows if arrow.again}
        if any(self._joined(RELEASE)):
            present.add("send+release")
        if any(self._joined(DELIVER)):
            present.add("receive+deliver")
        if self.violation is not None:
            present.add("violation")
        if self.around is not None:
            present.add("around")
        return present

    # -- parts ---------------------------------------------------------------------------

    def _time_axis(self, y: float, top: float) -> None:
        svg = self.svg
        svg.add(
            "line",
            {"class": "axis", "x1": self.left, "y1": y, "x2": self.right + 6, "y2": y},
        )
        middle = (self.left + self.right) / 2
        if not self.to_scale:
            words = "order of events, not to scale"
            if not self.timed:
                words += " (the trace has no times)"
            svg.add("text", {"class": "tick", "x": middle, "y": y + 15}, text=words)
            return
        unit, ticks = self.axis.ticks(self.start, 56.0)
        for tick in ticks:
            x = self.origin + tick.x
            svg.add("line", {"class": "grid", "x1": x, "y1": top, "x2": x, "y2": y})
            svg.add("line", {"class": "axis", "x1": x, "y1": y, "x2": x, "y2": y + 4})
            svg.add("text", {"class": "tick", "x": x, "y": y + 15}, text=tick.label)
        svg.add("text", {"class": "tick", "x": middle, "y": y + 30}, text=f"time in {unit}")

    def _faults(self, faults: Sequence[Fault], top: float, bottom: float) -> None:
        room = Room(self.left, self.right)
        for fault in faults:
            x = self.origin + self.axis.at(fault.time)
            self.svg.add(
                "line",
                {"class": "fault", "x1": x, "y1": top - 8, "x2": x, "y2": bottom},
                title=f"{fault.kind}: {', '.join(fault.processes)}",
            )
            width = text_width(fault.kind, SMALL) * 1.08
            place = room.claim(x, width, SMALL, lambda _: top - 11)
            if place is not None:
                self.svg.add(
                    "text",
                    {"class": "fault-name", "x": place[0], "y": place[1]},
                    text=fault.kind,
                )

    def _lines(self) -> None:
        for process in self.picture.processes:
            y = self.y[process]
            self.svg.add(
                "text", {"class": "process", "x": self.left - 10, "y": y + 4}, text=process
            )
            self.svg.add(
                "line", {"class": "line", "x1": self.left, "y1": y, "x2": self.right, "y2": y}
            )
        for process, begin, end in self._lines_between():
            y = self.y[process]
            self.svg.add(
                "line",
                {"class": "line red", "x1": self.x[begin], "y1": y, "x2": self.x[end], "y2": y},
            )

    def _draw_bars(self) -> None:
        for bar, begin, end, lane in self.bars:
            y = self.y[bar.process]
            height = _BAR
            if bar.sort == "held":
                y -= _CLEAR + lane * _LANE + _BAR - 1.5
                where = "in the send buffer"
            elif bar.sort == "waits":
                y += _CLEAR + lane * _LANE - 1.5
                where = "in the receive buffer"
            else:
                height = 7.0
                y -= height / 2
                where = "job"
            whose = f"{name(bar.message)} " if bar.message else ""
            waited = words.length(bar, self.picture) + words.reason(bar, self.picture)
            place = {"x": begin, "y": y, "width": end - begin, "height": height}
            self.svg.add("rect", {"class": bar.sort, **place}, title=f"{whose}{where}{waited}")

    def _pointed_out(self, arrow: Arrow) -> str:
        """`red` or `blue`, for the messages that matter here."""
        if arrow.sort != "message" or arrow.message is None:
            return ""
        if (arrow.message, arrow.target) in self._red_copies:
            return "red"
        return "blue" if arrow.message == self.around else ""

    def _arrows(self, arrows: Sequence[Arrow]) -> None:
        for arrow in arrows:
            y1, y2 = self.y[arrow.source], self.y[arrow.target]
            colour = self._pointed_out(arrow)
            kind = " ".join(
                filter(None, [arrow.sort, colour, "again" if arrow.again and not colour else ""])
            )
            share = min(0.45, 46 / abs(y2 - y1))
            if arrow.leaves is not None and arrow.comes is not None:
                x1, x2 = self.x[arrow.leaves], self.x[arrow.comes]
            elif arrow.leaves is not None:
                x1 = self.x[arrow.leaves]
                x2, y2 = min(x1 + 26, self.right), y1 + share * (y2 - y1)
                kind += " stub"
            else:
                assert arrow.comes is not None
                x2 = self.x[arrow.comes]
                x1, y1 = max(x2 - 26, self.left), y2 - share * (y2 - y1)
                kind += " from"
            self._arrow(arrow, kind, (x1, y1), (x2, y2))
            if arrow.lost:
                cross(self.svg, x2, y2)

    def _arrow(
        self, arrow: Arrow, kind: str, begin: tuple[float, float], end: tuple[float, float]
    ) -> None:
        (x1, y1), (x2, y2) = begin, end
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1e-9)
        whole = arrow.leaves is not None and arrow.comes is not None
        after = 4.5 if arrow.leaves is not None and arrow.sort == "message" else 1.0
        until = 5.5 if arrow.comes is not None and arrow.sort == "message" else 1.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        attributes: dict[str, str | float] = {
            "class": kind,
            "x1": x1 + after * dx,
            "y1": y1 + after * dy,
            "x2": x2 - until * dx,
            "y2": y2 - until * dy,
        }
        if whole or arrow.comes is not None:
            attributes["marker-end"] = f"url(#{_head(kind)})"
        self.svg.add("line", attributes, title=words.travelled(arrow))

    def _joined(self, kind: str) -> list[int]:
        """Releases (deliveries) that are where their send (receipt) is."""
        mates: set[tuple[str, float, MessageKey | None]] = set()
        result = []
        for index, row in enumerate(self.picture.rows):
            key = (row.process, self.x[index], message_of(row))
            if row.kind == (SEND if kind == RELEASE else RECEIVE):
                mates.add(key)
            elif row.kind == kind and key in mates:
                result.append(index)
        return result

    def _marks(self) -> None:
        svg = self.svg
        inside = {*self._joined(RELEASE), *self._joined(DELIVER)}
        for index, row in enumerate(self.picture.rows):
            x, y = self.x[index], self.y[row.process]
            colour = "red" if index in self._red_rows else ""
            if not colour and self.around is not None and message_of(row) == self.around:
                colour = "blue"
            kind = f"{row.kind} {colour}".strip()
            told = words.told(row, self.start)
            if row.kind in (SEND, RELEASE):
                ring(svg, kind, x, y, hollow=row.kind == SEND, small=index in inside, title=told)
            elif row.kind in (RECEIVE, DELIVER):
                frame(
                    svg, kind, x, y, hollow=row.kind == RECEIVE, small=index in inside, title=told
                )
            elif row.kind == "crash":
                cross(svg, x, y, title=told)
            elif row.kind == "restart":
                svg.add(
                    "line",
                    {"class": "restart", "x1": x, "y1": y - 7, "x2": x, "y2": y + 7},
                    title=told,
                )
            elif row.kind in ("retransmit", "duplicate"):
                svg.add("circle", {"class": row.kind, "cx": x, "cy": y, "r": 2.0}, title=told)

    def _labels(self) -> None:
        """Names of messages; those that matter come first, and find room further off."""
        room = Room(self.left, self.right)
        wanted = [
            (index, row, self._emphasis(index, row))
            for index, row in enumerate(self.picture.rows)
            if row.kind in (SEND, DELIVER)
        ]
        wanted.sort(key=lambda entry: (not entry[2], entry[0]))
        for index, row, emphasis in wanted:
            message = message_of(row)
            if message is None:
                continue
            text = name(message)
            if emphasis == "red" and row.kind == DELIVER:
                text += self._verdict(row)
            elif row.kind == DELIVER:
                text += words.after(row.process, message, self.picture)
            size = LABEL if emphasis else SMALL
            width = text_width(text, size) * (1.08 if emphasis else 1.0)
            for tier in range(4 if emphasis else 1):
                baseline = partial(self._baseline, row, width, tier)
                place = room.claim(self.x[index], width, 0.75 * size, baseline)
                if place is not None:
                    x, y = place
                    kind = f"name {emphasis}".strip()
                    self.svg.add("text", {"class": kind, "x": x, "y": y}, text=text)
                    break

    def _baseline(self, row: Event, width: float, tier: int, x: float) -> float:
        """As close to the process line as the bars there allow."""
        sort = "held" if row.kind == SEND else "waits"
        clear = _CLEAR + _LANE * max(
            (
                lane + 1
                for bar, begin, end, lane in self.bars
                if (bar.sort, bar.process) == (sort, row.process)
                and begin < x + width / 2
                and x - width / 2 < end
            ),
            default=0,
        )
        clear += tier * LABEL
        y = self.y[row.process]
        return y - clear - 1 if row.kind == SEND else y + clear + 0.72 * LABEL + 1

    def _emphasis(self, index: int, row: Event) -> str:
        if index in self._red_rows:
            return "red"
        return "blue" if self.around is not None and message_of(row) == self.around else ""

    def _verdict(self, row: Event) -> str:
        v = self.violation
        if v is None or row.process != v.process:
            return ""
        return {v.first: " too late", v.second: " too early"}.get(message_of(row) or v.chain[0], "")


def _head(kind: str) -> str:
    """The arrowhead that goes with a kind of line."""
    for word in ("red", "blue", "ack", "permit", "control"):
        if word in kind.split():
            return f"head-{word}"
    return "head"
