"""Simulated runs with every kind of row, one story told by hand, and brute force."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from causewire.sim import Config, simulate
from causewire.trace import Event

BASE = {"messages": 60, "processes": {"count": 5}}
RUNS = {
    "csps": {"protocol": "csps"},
    "mf": {"protocol": "mf"},
    "rst": {"protocol": "rst"},
    "newtop": {"protocol": "newtop", "workload": {"kind": "broadcast"}, "messages": 20},
    "lossy": {"protocol": "csps", "network": {"loss": 0.1}},
    "unordered": {"protocol": "unordered", "workload": {"kind": "relay"}},
    "jobs": {
        "protocol": "cykas",
        "processes": {"count": 4, "jobs": {"share": 0.5, "length": "2ms"}},
    },
}

STORY = [
    ("ann", 0, 0, 1, "send", "ann", 1, ["bob", "cy"]),
    ("ann", 1, 0, 2, "release", "ann", 1, ["bob"]),
    ("ann", 2, 0, 3, "release", "ann", 1, ["cy"]),
    ("bob", 0, 10, 4, "receive", "ann", 1, ["ann"]),
    ("bob", 1, 10, 5, "deliver", "ann", 1, ["ann"]),
    ("bob", 2, 20, 6, "send", "bob", 1, ["cy"]),
    ("ann", 3, 40, 4, "permit", "ann", 1, ["bob"]),
    ("bob", 3, 60, 7, "permit_receive", "ann", 1, ["ann"]),
    ("bob", 4, 60, 8, "release", "bob", 1, ["cy"]),
    ("cy", 0, 75, 9, "receive", "bob", 1, ["bob"]),
    ("cy", 1, 100, 10, "receive", "ann", 1, ["ann"]),
    ("cy", 2, 100, 11, "deliver", "ann", 1, ["ann"]),
    ("cy", 3, 105, 12, "deliver", "bob", 1, ["bob"]),
]
"""Process, seq, time and so on, of a story that is worked out by hand, below."""
NAMES = [*RUNS, "story"]


class Sink(list[Event]):
    write = list.append


def simulate_runs() -> tuple[list[Any], dict[Any, Any]]:
    """Return events and summaries of a few runs."""
    events: list[Any] = []
    summaries: dict[Any, Any] = {}
    settings: Any
    for seed, (name, settings) in enumerate(RUNS.items()):
        sink = Sink()
        config = Config.from_dict({**BASE, **settings, "seed": seed})
        summaries[name] = simulate(config, sink, run=name)
        events += sink
    make: Any = Event
    events += [make("story", *row, 100, 8) for row in STORY]
    return events, summaries


def plain(events: list[Event]) -> Any:
    """Copies of one run in order, from the definitions: sets of predecessors, no clocks."""
    copies: dict[Any, Any] = {}
    past: defaultdict[Any, Any] = defaultdict(set)
    needs: dict[Any, Any] = {}
    came: dict[Any, Any] = {}
    for e in events:
        message = e.origin, e.mid
        if e.kind == "send":
            needs[message] = set(past[e.process])
            past[e.process].add(message)
            for d in e.peers:
                copies[(*message, d)] = {"sent": e.time_ns}
        elif e.kind == "release":
            copy = copies[(*message, e.peers[0])]
            copy["released"], copy["by"] = e.time_ns, came.get(e.process)
        elif e.kind == "receive":
            copies[(*message, e.process)].update(received=e.time_ns, received_seq=e.seq)
        elif e.kind == "deliver":
            past[e.process] |= needs[message] | {message}
            copies[(*message, e.process)].update(delivered=e.time_ns, place=e.seq)
        if e.kind.endswith("receive") or e.kind == "duplicate":
            came[e.process] = (e.kind, e.peers[0], e.origin, e.mid)
    for copy in copies.values():
        start, end = copy.get("released", copy["sent"]), copy.get("received", copy.get("delivered"))
        copy["arrival"] = None if end is None else copy["sent"] + end - start
    for (origin, mid, d), copy in copies.items():
        before = [copies[(*m, d)] | {"m": m} for m in needs[origin, mid] if (*m, d) in copies]
        arrivals = [c["arrival"] for c in [*before, copy] if c["arrival"] is not None]
        copy["earliest"] = max(arrivals, default=None)
        done = [c for c in before if "place" in c]
        last: Any = max(done, key=lambda c: c["place"], default=None)
        waited = last is not None and last["place"] > copy.get("received_seq", 1 << 60)
        copy["held_for"] = last["m"] if waited else None
    return copies
