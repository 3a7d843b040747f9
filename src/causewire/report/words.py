"""The texts of a space-time diagram: its caption, and its tooltips."""

from __future__ import annotations

from textwrap import wrap

from ..trace.schema import DELIVER, RELEASE, SEND, Event
from .axis import readable
from .picture import Arrow, Bar, MessageKey, Picture, message_of
from .violations import Overtaking

__all__ = ["after", "caption", "length", "name", "reason", "told", "travelled"]


def name(message: MessageKey) -> str:
    """Return the name of a message: its origin and number."""
    return f"{message[0]}:{message[1]}"


def caption(
    picture: Picture, start: int, violation: Overtaking | None, note: str, most: int
) -> list[tuple[str, str]]:
    """Return the lines of the caption, each with its CSS class."""
    counted = _counted(picture, start) + (f"; {note}" if note else "")
    lines = [("caption", line) for line in wrap(counted, most)]
    if violation is not None:
        story = _story(picture, violation)
        chain = "Chain: " + ", ".join(map(name, violation.chain))
        lines += [("red", line) for line in (*wrap(story, most), *wrap(chain, most))]
    return lines


def _counted(picture: Picture, start: int) -> str:
    text = f"{len(picture.rows):,} events at {len(picture.processes)} processes"
    times = picture.times()
    if times:
        text += f", from {readable(min(times) - start)} to {readable(max(times) - start)}"
    return text


def _story(picture: Picture, v: Overtaking) -> str:
    first, second = name(v.first), name(v.second)
    late = any(
        row.kind == DELIVER and row.process == v.process and message_of(row) == v.first
        for row in picture.rows
    )
    rest = f"{first} only later" if late else f"{first} not by the end of this picture"
    return (
        f"Violation: {first} happened before {second}, "
        f"but {v.process} delivered {second} first, and {rest}."
    )


def told(row: Event, start: int) -> str:
    """Return a row in words."""
    words = [row.process, row.kind]
    message = message_of(row)
    if message is not None:
        words.append(name(message))
    if row.kind in (SEND, RELEASE) and row.peers:
        words.append("to " + ", ".join(row.peers))
    if row.time_ns is not None:
        words.append("at " + readable(row.time_ns - start))
    return " ".join([*words, f"(seq {row.seq})"])


def travelled(arrow: Arrow) -> str:
    """Return an arrow in words."""
    words = [name(arrow.message)] if arrow.message else []
    if arrow.sort != "message":
        words.append(arrow.sort)
    words.append(f"from {arrow.source} to {arrow.target}")
    if arrow.lost:
        words.append("is lost")
    return " ".join(words)


def length(bar: Bar, picture: Picture) -> str:
    """Return the duration of a bar in words, if it is known."""
    if bar.begin is None or bar.end is None:
        return ""
    begin, end = picture.rows[bar.begin].time_ns, picture.rows[bar.end].time_ns
    return "" if begin is None or end is None else f" for {readable(end - begin)}"


def reason(bar: Bar, picture: Picture) -> str:
    """Return what a message waited for, if the trace says it."""
    if bar.message is None:
        return ""
    if bar.sort == "held" and bar.message in picture.lanes:
        return f", in the lane of {', '.join(picture.lanes[bar.message])}"
    waits = picture.held_for.get((bar.process, bar.message), []) if bar.sort == "waits" else []
    return f", held for {', '.join(map(name, waits))}" if waits else ""


def after(process: str, message: MessageKey, picture: Picture) -> str:
    """Return what a delivery had to come after, if the trace says that the message waited."""
    waits = picture.held_for.get((process, message), [])
    return f" after {', '.join(map(name, waits))}" if waits else ""
