"""Small traces that tests look at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from causewire.explore.run import RunData
from causewire.explore.table import read
from causewire.sim import Config, simulate
from causewire.trace import Event, trace_of

STORY = (
    # ann tells bob and cid; bob tells cid, who hears bob first.
    Event("story", "ann", 0, 1000, 1, "send", "ann", 1, ("cid",)),
    Event("story", "ann", 1, 2000, 2, "send", "ann", 2, ("bob",)),
    Event("story", "bob", 0, 3000, 3, "deliver", "ann", 2, ("ann",)),
    Event("story", "bob", 1, 4000, 4, "send", "bob", 1, ("cid",)),
    Event("story", "cid", 0, 5000, 5, "deliver", "bob", 1, ("bob",)),
    Event("story", "cid", 1, 6000, 6, "deliver", "ann", 1, ("ann",)),
    Event("story", "dan", 0, 7000, 1, "send", "dan", 1, ("ann",)),
)


class Kept:
    """Takes the rows of a simulation."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        self.events.append(event)


def simulated(protocol: str, messages: int = 60, **more: Any) -> list[Event]:
    """Return the rows of a run of five processes."""
    kept = Kept()
    settings = {"processes": 5, "workload": "relay", "seed": 7, **more}
    simulate(Config.from_dict({"protocol": protocol, "messages": messages, **settings}), kept)
    return kept.events


def latencies(events: Sequence[Event]) -> list[int]:
    """Return the time from the send to the delivery of each message that goes to one process."""
    sent = {(e.origin, e.mid): e.time_ns or 0 for e in events if e.kind == "send"}
    return [(e.time_ns or 0) - sent[e.origin, e.mid] for e in events if e.kind == "deliver"]


def run_of(events: Sequence[Event]) -> RunData:
    """Return the first run of some events."""
    table = read(trace_of(events))
    return RunData(table, table.runs[0])


def shuffled(events: Sequence[Event], seed: int = 1) -> list[Event]:
    """Return the same rows in another order."""
    mixed = list(events)
    random.Random(seed).shuffle(mixed)
    return mixed
