"""Processes that were restarted: whose message was lost with them, and whose was overtaken.

A node that starts again writes its rows under a label of its own (`alice/2`), after a row
of kind `start`, because it knows nothing of its former life. Others send to `alice`, which
may mean any of her lives. So before a trace with restarts is checked,

  - a destination becomes the life that delivered the message;
  - a copy that nobody delivered, and whose sender or destination was restarted, was lost
    with it: it cannot be overtaken, and is counted apart.

Any other copy that nobody delivered stays as it is: undelivered, or overtaken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..trace.reader import Trace
from ..trace.schema import DELIVER, SEND, START, Event

__all__ = [
    "LABEL",
    "WithLives",
    "has_lives",
    "lives_of",
    "resolve_lives",
    "was_restarted",
]

LABEL = re.compile(r"(.+)/(\d+)")
"""What the name of a second life looks like, or of a later one."""


class WithLives(NamedTuple):
    """Events whose destinations are lives of processes."""

    events: list[Event]
    lost: int
    """Copies that were lost with a life of their sender or destination."""


def has_lives(processes: Iterable[str]) -> bool:
    """Whether these names look like those of processes that were restarted."""
    names = set(processes)
    return any((match := LABEL.fullmatch(name)) and match[1] in names for name in names)


def was_restarted(trace: Trace) -> bool:
    """Whether a trace has rows with which a second life, or a later one, begins."""
    for batch in trace.batches(("process", "kind")):
        kinds, processes = batch.columns["kind"], batch.columns["process"]
        if START not in kinds.dictionary.to_pylist():
            continue
        begun = processes.filter(pc.equal(kinds.cast(pa.string()), START))
        if any(LABEL.fullmatch(name) for name in begun.unique().to_pylist()):
            return True
    return False


def resolve_lives(events: Iterable[Event]) -> WithLives:
    """Return the events of a trace with destinations that are lives, and without lost copies."""
    rows = list(events)
    starts = {(e.run, e.process) for e in rows if e.kind == START}
    runs = {run: [label for of, label in starts if of == run] for run, _ in starts}
    lives = {
        (run, base): theirs
        for run, labels in runs.items()
        for base, theirs in lives_of(labels).items()
    }
    delivered = {(e.run, e.origin, e.mid, e.process) for e in rows if e.kind == DELIVER}
    result: list[Event] = []
    lost = 0
    for event in rows:
        if event.kind != SEND:
            result.append(event)
            continue
        peers: list[str] = []
        mine = lives.get((event.run, _base(event.process)), [event.process])
        ended = event.process in mine[:-1]
        for name in dict.fromkeys(event.peers):
            theirs = lives.get((event.run, _base(name)), [name])
            takers = [
                life
                for life in dict.fromkeys([name, *theirs])
                if (event.run, event.origin, event.mid, life) in delivered
            ]
            if takers:
                peers += takers
            elif ended or len(theirs) > 1:
                lost += 1
            else:
                peers.append(name)
        result.append(event._replace(peers=tuple(peers)))
    return WithLives(result, lost)


def lives_of(labels: Iterable[str]) -> dict[str, list[str]]:
    """Return the lives of each process, the first one first, by its name without a number."""
    lives: dict[str, list[str]] = {}
    for label in sorted(labels, key=_number):
        lives.setdefault(_base(label), []).append(label)
    return lives


def _base(label: str) -> str:
    match = LABEL.fullmatch(label)
    return match[1] if match else label


def _number(label: str) -> int:
    match = LABEL.fullmatch(label)
    return int(match[2]) if match else 1
