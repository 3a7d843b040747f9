"""The check from its definition, for small traces: sets, no clocks, no numbers.

Shares no code with the package. For each event the set of all messages that
were sent in its past is computed by going round and round until nothing
changes; then every pair of messages is looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Verdict:
    violations: set[Any] = field(default_factory=set)  # (run, process, first, second)
    duplicates: int = 0
    undelivered: int = 0
    bad: Counter[Any] = field(default_factory=Counter)
    messages: int = 0
    cyclic: bool = False


def judge(events: Any) -> Any:
    """The verdict on the events of one or more runs, in any order."""
    runs = defaultdict(list)
    for event in events:
        runs[event.run].append(event)
    total = Verdict()
    for run, rows in runs.items():
        one = _judge_run(run, rows)
        total.violations |= one.violations
        total.duplicates += one.duplicates
        total.undelivered += one.undelivered
        total.bad += one.bad
        total.messages += one.messages
        total.cyclic |= one.cyclic
    return total


def _judge_run(run: Any, rows: Any) -> Any:
    verdict = Verdict()
    history = defaultdict(list)  # process -> its sends and deliveries in order
    for event in sorted(rows, key=lambda e: e.seq):
        if event.kind in ("send", "deliver"):
            history[event.process].append(event)

    destinations = {}  # message -> whom it was sent to
    for process, events in history.items():
        for event in list(events):
            if event.kind != "send":
                continue
            message = event.origin, event.mid
            if event.origin != process:
                verdict.bad["sent by another process than its origin"] += 1
                events.remove(event)
            elif message in destinations:
                verdict.bad["sent a second time"] += 1
                events.remove(event)
            else:
                destinations[message] = set(event.peers)
    verdict.messages = len(destinations)

    delivered: defaultdict[Any, Any] = defaultdict(set)  # process -> messages
    for process, events in history.items():
        for event in list(events):
            if event.kind != "deliver":
                continue
            message = event.origin, event.mid
            if message not in destinations:
                verdict.bad["delivered, but never sent"] += 1
                events.remove(event)
            elif process not in destinations[message]:
                verdict.bad["delivered, but not addressed to it"] += 1
                events.remove(event)
            elif message in delivered[process]:
                verdict.duplicates += 1  # stays: it is an event, and harmless
            else:
                delivered[process].add(message)
    verdict.undelivered = sum(
        destination not in delivered or message not in delivered[destination]
        for message, names in destinations.items()
        for destination in names
    )

    # Everything that happened before each event: events, by process and place.
    past: Any = {(p, k): set() for p, events in history.items() for k in range(len(events))}
    sent_at = {
        (e.origin, e.mid): (p, k)
        for p, events in history.items()
        for k, e in enumerate(events)
        if e.kind == "send"
    }
    changed = True
    while changed:
        changed = False
        for p, events in history.items():
            for k, event in enumerate(events):
                before = set(past[p, k])
                causes = [(p, k - 1)] if k else []
                if event.kind == "deliver":
                    causes.append(sent_at[event.origin, event.mid])
                for cause in causes:
                    before |= past[cause] | {cause}
                if before != past[p, k]:
                    past[p, k] = before
                    changed = True
    if any(event in before for event, before in past.items()):
        verdict.cyclic = True
        return verdict

    for d, events in history.items():
        got = set()
        for event in events:
            second = event.origin, event.mid
            if event.kind == "send" or second in got:
                continue
            for first, where in sent_at.items():
                if where in past[sent_at[second]] and d in destinations[first] and first not in got:
                    verdict.violations.add((run, d, first, second))
            got.add(second)
    return verdict
