"""What a window of the diagram shows: single messages, or how dense they are.

A screen has room for some thousands of messages. A window with no more than that
is answered with every event and message in it. A larger one is answered with
numbers for each process and column of pixels: how many events there were, and
how many messages were held on average at their sender and at their receiver.
Some messages are drawn there too: the slowest ones, and a fixed random sample
that does not change as the window moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arrays import Floats, Longs, Mask
from .latency import Parts, parts_of
from .packets import Packets, packets_of
from .run import Axis, RunData
from .table import DELIVERED, RECEIVED, RELEASED, SENT

__all__ = ["MOST_COPIES", "MOST_EVENTS", "View", "Window"]

MOST_EVENTS = 12_000
"""Events that a window may have to be shown one by one."""

MOST_COPIES = 3_000
"""Messages that a window may have to be shown one by one."""

_SAMPLED, _SLOWEST = 900, 300
_WIDEST = 2048
_BASE = 4096
_BASE_CELLS = 1 << 25

_CONTROL = ("ack", "permit", "control")
_MARKS = {"drop": 8, "retransmit": 9, "duplicate": 10}


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a run that is on screen.

    `lanes` are the processes in view; None stands for all. Only messages whose
    latency lies between `fastest` and `slowest` are drawn. `control` asks for
    acks, permits and other control packets as well.
    """

    low: float
    high: float
    pixels: int = 1024
    lanes: tuple[int, ...] | None = None
    fastest: float | None = None
    slowest: float | None = None
    control: bool = False


class View:
    """Answers windows on one axis of one run."""

    def __init__(self, run: RunData, axis: Axis) -> None:
        self.run = run
        self.axis = axis

    @cached_property
    def parts(self) -> Parts:
        """The latencies of all copies on this axis."""
        return parts_of(self.run, self.axis)

    @cached_property
    def marks(self) -> Any:
        """Of each kind of row: the number of its mark in the picture.

        0 to 3 send, release, receive, deliver; 4 a control packet leaves, 5 one
        arrives; 6 a fault; 7 anything else; then losses and repetitions.
        """
        marks = []
        for kind in self.run.kinds:
            if kind.startswith("fault_"):
                mark = 6
            elif kind in _CONTROL:
                mark = 4
            elif kind.endswith("_receive") and kind[:-8] in _CONTROL:
                mark = 5
            else:
                mark = _MARKS.get(kind, 7)
            marks.append(mark)
        marks[:4] = SENT, RELEASED, RECEIVED, DELIVERED
        return np.array(marks, np.uint8)

    @cached_property
    def _luck(self) -> Any:
        """A fixed random number for each copy, by which samples are taken."""
        numbers = np.arange(len(self.run.copies), dtype=np.uint64)
        return ((numbers + 1) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)).astype(np.uint32)

    def answer(self, window: Window) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return facts about a window, and the arrays to draw it from."""
        lanes = self._lanes(window.lanes)
        rows = self.axis.rows_between(window.low, window.high)
        copies = self.chosen(window)
        seen = rows if lanes is None else rows[lanes[self.run.rows.process[rows]]]
        exact = len(seen) <= MOST_EVENTS and len(copies) <= MOST_COPIES
        facts = {
            "exact": exact,
            "low": window.low,
            "high": window.high,
            "events": len(seen),
            "messages": len(copies),
        }
        arrays: dict[str, Any] = {}
        if exact:
            arrays |= self._events(seen)
            if window.control:
                arrays |= self._packets(window)
        else:
            bins = max(16, min(window.pixels, _WIDEST))
            facts["bins"] = bins
            arrays |= self._density(window, bins)
            copies = self._sample(copies)
        facts["drawn"] = len(copies)
        arrays |= self._copies(copies)
        return facts, arrays

    def chosen(self, window: Window) -> Longs:
        """Return the copies under way in a window that pass its filters."""
        c = self.run.copies
        copies = self.axis.copies_between(window.low, window.high)
        lanes = self._lanes(window.lanes)
        if lanes is not None:
            copies = copies[lanes[c.source[copies]] | lanes[c.target[copies]]]
        total = self.parts.total
        if window.fastest is not None:
            copies = copies[total[copies] >= window.fastest]
        if window.slowest is not None:
            copies = copies[total[copies] <= window.slowest]
        return copies

    def _lanes(self, chosen: tuple[int, ...] | None) -> Mask | None:
        if chosen is None:
            return None
        lanes = np.zeros(len(self.run.processes), np.bool_)
        lanes[[lane for lane in chosen if 0 <= lane < len(lanes)]] = True
        return None if lanes.all() else lanes

    def _events(self, rows: Longs) -> dict[str, Any]:
        run = self.run
        return {
            "event_row": rows.astype(np.uint32),
            "event_x": self.axis.x[rows],
            "event_process": run.rows.process[rows].astype(np.uint32),
            "event_place": run.place[rows].astype(np.uint32),
            "event_mark": self.marks[run.rows.kind[rows]],
            "event_copy": run.copies.of_row[rows].astype(np.int32),
        }

    @cached_property
    def _control(self) -> Packets:
        return packets_of(self.run)

    def _packets(self, window: Window) -> dict[str, Any]:
        """Return the control packets under way in a window, if they are not too many."""
        packets, x = self._control, self.axis.x
        begin, end = x[packets.departure], x[packets.arrival]
        chosen = np.flatnonzero((begin <= window.high) & (end >= window.low))[:MOST_COPIES]
        process = self.run.rows.process
        return {
            "packet_sort": packets.sort[chosen].astype(np.uint8),
            "packet_from": process[packets.departure[chosen]].astype(np.uint32),
            "packet_to": process[packets.arrival[chosen]].astype(np.uint32),
            "packet_send": begin[chosen],
            "packet_receive": end[chosen],
        }

    def _copies(self, chosen: Longs) -> dict[str, Any]:
        c, x, place = self.run.copies, self.axis.x, self.run.place

        def at(rows: Longs) -> Floats:
            return np.where(rows >= 0, x[rows], np.nan)

        def placed(rows: Longs) -> Any:
            return np.where(rows >= 0, place[rows], -1).astype(np.int32)

        return {
            "copy": chosen.astype(np.uint32),
            "copy_mid": self.run.rows.mid[c.send[chosen]].astype(np.float64),
            "copy_from": c.source[chosen].astype(np.uint32),
            "copy_to": c.target[chosen].astype(np.uint32),
            "copy_send": at(c.send[chosen]),
            "copy_release": at(c.release[chosen]),
            "copy_receive": at(c.receive[chosen]),
            "copy_deliver": at(c.deliver[chosen]),
            "copy_send_place": placed(c.send[chosen]),
            "copy_deliver_place": placed(c.deliver[chosen]),
        }

    def _sample(self, copies: Longs) -> Longs:
        if len(copies) <= _SAMPLED + _SLOWEST:
            return copies
        lucky = copies[np.argpartition(self._luck[copies], _SAMPLED)[:_SAMPLED]]
        total = np.nan_to_num(self.parts.total[copies], nan=0.0)
        slow = copies[np.argpartition(-total, _SLOWEST)[:_SLOWEST]]
        return np.unique(np.concatenate([lucky, slow]))

    # -- density ------------------------------------------------------------------

    def _density(self, window: Window, bins: int) -> dict[str, Any]:
        """Return events and held messages for each process and column, row by row."""
        lanes = window.lanes
        chosen = np.arange(len(self.run.processes)) if lanes is None else np.array(lanes, np.int64)
        width = (window.high - window.low) / bins
        cell = (self.axis.end or 1.0) / _BASE
        if width >= 2 * cell and self._base is not None:
            layers = self._resampled(self._base, window, bins)
        else:
            layers = self._counted(window.low, window.high, bins)
        names = ("density", "held_sender", "held_receiver")
        return {
            "density_process": chosen.astype(np.uint32),
            **{n: layer[chosen].astype(np.float32) for n, layer in zip(names, layers, strict=True)},
        }

    def overview(self, bins: int) -> dict[str, Any]:
        """Return the density of the whole run, all processes together."""
        window = Window(0.0, self.axis.end or 1.0)
        base = self._base
        if base is not None:
            layers = self._resampled(base, window, bins)
        else:
            layers = self._counted(window.low, window.high, bins)
        names = ("events", "sender", "receiver")
        return {n: layer.sum(0).astype(np.float32) for n, layer in zip(names, layers, strict=True)}

    @cached_property
    def _base(self) -> tuple[Floats, ...] | None:
        """The density of the whole run in narrow columns, if that is not too much."""
        if len(self.run.processes) * _BASE > _BASE_CELLS:
            return None
        return self._counted(0.0, self.axis.end or 1.0, _BASE)

    def _resampled(self, base: tuple[Floats, ...], window: Window, bins: int) -> tuple[Floats, ...]:
        """Return the columns of a window from narrower ones, by their running sums."""
        edges = np.linspace(window.low, window.high, bins + 1) / (self.axis.end or 1.0) * _BASE
        edges = np.clip(edges, 0, _BASE)
        whole = edges.astype(np.int64)
        part = edges - whole
        result = []
        for k, layer in enumerate(base):
            sums = np.zeros((layer.shape[0], _BASE + 2))
            np.cumsum(layer, axis=1, out=sums[:, 1:-1])
            sums[:, -1] = sums[:, -2]
            at = sums[:, whole] * (1 - part) + sums[:, whole + 1] * part
            columns = np.diff(at, axis=1)
            if k:
                columns /= np.maximum((window.high - window.low) / bins, 1e-12) / (
                    (self.axis.end or 1.0) / _BASE
                )
            result.append(columns)
        return tuple(result)

    def _counted(self, low: float, high: float, bins: int) -> tuple[Floats, Floats, Floats]:
        run, axis = self.run, self.axis
        processes = len(run.processes)
        scale = bins / max(high - low, 1e-12)
        rows = axis.rows_between(low, high)
        column = np.minimum(((axis.x[rows] - low) * scale).astype(np.int64), bins - 1)
        cell = run.rows.process[rows].astype(np.int64) * bins + column
        events = np.bincount(cell, minlength=processes * bins).reshape(processes, bins)
        copies = axis.copies_between(low, high)
        parts = self.parts
        begin = axis.begins[copies]
        sender = parts.sender[copies]
        held = np.flatnonzero(sender > 0)
        at_sender = _covered(
            run.copies.source[copies[held]],
            (begin[held] - low) * scale,
            (begin[held] + sender[held] - low) * scale,
            processes,
            bins,
        )
        receiver = parts.receiver[copies]
        held = np.flatnonzero(receiver > 0)
        end = axis.ends[copies[held]]
        at_receiver = _covered(
            run.copies.target[copies[held]],
            (end - receiver[held] - low) * scale,
            (end - low) * scale,
            processes,
            bins,
        )
        return events.astype(np.float64), at_sender, at_receiver


def _covered(lane: Any, begin: Floats, end: Floats, lanes: int, bins: int) -> Floats:
    """Return how many intervals cover each column of each lane, on average over the column."""
    result = np.zeros((lanes, bins + 1))
    for edge, sign in ((begin, 1.0), (end, -1.0)):
        edge = np.clip(edge, 0, bins)
        column = np.minimum(edge.astype(np.int64), bins)
        cell = lane.astype(np.int64) * (bins + 1) + column
        share = np.minimum(column + 1 - edge, 1.0)
        size = lanes * (bins + 1)
        inside = np.bincount(cell, share, minlength=size).reshape(lanes, bins + 1)
        later = np.bincount(cell, minlength=size).reshape(lanes, bins + 1)
        result += sign * inside
        result[:, 1:] += sign * np.cumsum(later[:, :-1], axis=1)
    covered: Floats = np.maximum(result[:, :-1], 0.0)
    return covered
