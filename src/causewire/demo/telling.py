"""One violation in the words of the chat, and as a diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..check import MessageId, Violation
from ..report import draw
from ..report.checks import overtaking
from ..trace import DELIVER, SEND, Trace
from .chat import Line

__all__ = ["clearest", "drawn", "told"]

Said = Mapping[tuple[str, int], Line]
"""What each message says."""


def clearest(violations: Sequence[Violation], said: Said) -> Violation:
    """Return the violation that is easiest to understand: an answer before its question."""

    def trouble(violation: Violation) -> tuple[bool, bool, int]:
        first, second = said[violation.first], said[violation.second]
        return not second.answers(first), first.turn > 0, len(violation.chain)

    return min(violations, key=trouble)


def told(violation: Violation, said: Said, trace: Trace) -> list[str]:
    """Return the lines that tell who said what, and when the victim read it."""
    started = _began(trace)
    times = {
        (event.process, event.kind, event.origin, event.mid): (event.time_ns or 0) - started
        for event in trace.events()
        if event.kind in (SEND, DELIVER)
    }

    def line(who: str, kind: str, message: MessageId, does: str) -> str:
        time = times.get((who, kind, *message))
        when = "      never" if time is None else f"{time / 1e6:8.1f} ms"
        return f"{when}  {who} {does} “{said[message].text}” ({message})"

    lines = []
    before: MessageId | None = None
    for link in violation.chain:
        who = link.message.origin
        if before is not None and before.origin != who:
            lines.append(line(who, DELIVER, before, "reads"))
        lines.append(line(who, SEND, link.message, "tells everybody"))
        before = link.message
    lines.append(line(violation.process, DELIVER, violation.second, "reads"))
    lines.append(line(violation.process, DELIVER, violation.first, "reads, too late,"))
    return lines


def drawn(violation: Violation, trace: Trace) -> str:
    """Return a space-time diagram of the friends and messages of a violation."""
    messages = {link.message for link in violation.chain}
    concerned = sorted({message.origin for message in messages} | {violation.process})
    events = [
        event
        for event in trace.events()
        if (event.origin, event.mid) in messages and event.process in concerned
    ]
    events.sort(key=lambda event: (event.time_ns, event.process, event.seq))
    start = _began(trace)
    return draw(events, processes=concerned, violation=overtaking(violation), start=start)


def _began(trace: Trace) -> int:
    """Return when the first message was sent."""
    return min(event.time_ns or 0 for event in trace.events() if event.kind == SEND)
