"""Spans of a trace that is still going on, for `watch`.

Which process a span belongs to, and whether it is a message, is known from its parent, its
links and its siblings, any of which may come later, in another file. So the spans of a run
are kept until nothing has come for a while, and are then turned into rows and checked at once,
as `causewire check` does it. A span that comes after that is counted as late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..trace.formats.rows import Refused
from ..trace.formats.spans import Span, SpanOptions, rows_of_run
from .live import LateRow, LiveFinding, LiveRun

__all__ = ["AFTER_CHECK", "LiveSpans"]

AFTER_CHECK = "a span that came after its trace had been checked"


class LiveSpans:
    """The state of one run of spans: a value, which can be stored and taken up again."""

    may_hear_more = True
    """Whether to remember the run for a while after its end, to report spans that come late."""

    def __init__(self, run: str, options: SpanOptions, window_ns: int) -> None:
        self._run, self._options, self._window_ns = run, options, window_ns
        self._spans: list[Span] = []
        self._checked = False
        self.timed_out = False

    @property
    def pending(self) -> int:
        """How many spans wait for the end of the run."""
        return len(self._spans)

    def add(self, spans: Iterable[Span]) -> list[LateRow]:
        """Take spans in; returns those that come too late."""
        if self._checked:
            return [LateRow(span.place, None, span.start, AFTER_CHECK) for span in spans]
        self._spans += spans
        return []

    def advance(self, *, ended: bool = False) -> list[LiveFinding | Refused]:
        """Return what the check finds if the run has ended; until then there is nothing to tell."""
        if not ended or self._checked:
            return []
        self._checked = True
        told: list[LiveFinding | Refused] = []
        events = []
        for row in rows_of_run(self._run, self._spans, self._options, Counter()):
            if isinstance(row, Refused):
                told.append(row)
            else:
                events.append(row.event)
        self._spans = []
        live = LiveRun(0, self._window_ns)
        return [*told, *live.add(events), *live.advance(ended=True)]
