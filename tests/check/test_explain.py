"""Chains are chains, and shortest, and said so that one can follow."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.check import explain as explaining
from causewire.trace import Event, write_trace

from .random_traces import random_run


def rows(*specs: Any) -> Any:
    seq: dict[Any, Any] = {}
    events: list[Any] = []
    for process, kind, origin, mid, *peers in specs:
        seq[process] = seq.get(process, -1) + 1
        events.append(
            Event("r", process, seq[process], None, None, kind, origin, mid, tuple(peers))
        )
    return events


TRIANGLE = rows(
    ("p0", "send", "p0", 1, "p2"),
    ("p0", "send", "p0", 2, "p1"),
    ("p1", "deliver", "p0", 2, "p0"),
    ("p1", "send", "p1", 1, "p2"),
    ("p2", "deliver", "p1", 1, "p1"),
    ("p2", "deliver", "p0", 1, "p0"),
)


def test_in_words() -> None:
    report = check(TRIANGLE)
    assert str(report.examples[0]) == (
        "p0 sent p0:1 to p2; p0 then sent p0:2 to p1; "
        "p1 delivered p0:2 and then sent p1:1 to p2; "
        "so p0:1 happened before p1:1, but p2 delivered p1:1 first, and p0:1 only later"
    )
    assert str(check(TRIANGLE[:-1]).examples[0]).endswith(
        "but p2 delivered p1:1 first, and p0:1 never"
    )
    assert str(report).splitlines() == [
        "6 events, 3 messages, 3 processes, 1 run",
        "NOT causally ordered: 1 violation",
        f"in run 'r': {report.examples[0]}",
    ]
    assert str(check(TRIANGLE[:4])).splitlines() == [
        "4 events, 3 messages, 3 processes, 1 run",
        "causally ordered",
        "2 copies undelivered",
    ]


def test_from_one_sender() -> None:
    events = rows(
        ("a", "send", "a", 1, *"bcdefgh"), ("a", "send", "a", 2, "b"), ("b", "deliver", "a", 2)
    )
    assert str(check(events).examples[0]) == (
        "a sent a:1 to b, c, d, e, f and 2 more; a then sent a:2 to b; "
        "so a:1 happened before a:2, but b delivered a:2 first, and a:1 never"
    )


def test_as_json() -> None:
    found = json.loads(json.dumps(check(TRIANGLE).to_json()))
    assert found == {
        "events": 6,
        "messages": 3,
        "processes": 3,
        "runs": 1,
        "violations": 1,
        "duplicates": 0,
        "undelivered": 0,
        "identical": 0,
        "lost": 0,
        "bad": 0,
        "reasons": {},
        "verdict": "NOT causally ordered: 1 violation",
        "unread": [],
        "inferred": False,
        "examples": [
            {
                "run": "r",
                "process": "p2",
                "seq": 0,
                "first": {"origin": "p0", "mid": 1},
                "second": {"origin": "p1", "mid": 1},
                "late": True,
                "chain": [
                    {"origin": "p0", "mid": 1, "to": ["p2"]},
                    {"origin": "p0", "mid": 2, "to": ["p1"]},
                    {"origin": "p1", "mid": 1, "to": ["p2"]},
                ],
            }
        ],
        "bad_rows": [],
    }


def steps(events: list[Event]) -> Any:
    """Which message leads to which, directly: the definition of a chain."""
    history: dict[Any, Any] = {}
    for event in sorted(events, key=lambda e: e.seq):
        history.setdefault((event.run, event.process), []).append(event)
    leads: dict[Any, Any] = {}
    for (run, _), mine in history.items():
        seen: list[Any] = []
        for event in mine:
            message = run, event.origin, event.mid
            if event.kind == "send":
                for earlier in seen:
                    leads.setdefault(earlier, set()).add(message)
            if event.kind in ("send", "deliver"):
                seen.append(message)
    return leads


def distance(leads: Any, start: Any, goal: Any) -> Any:
    queue, length = deque([start]), {start: 1}
    while queue:
        message = queue.popleft()
        if message == goal:
            return length[message]
        for after in leads.get(message, ()):
            if after not in length:
                length[after] = length[message] + 1
                queue.append(after)
    return None


@pytest.mark.parametrize("seed", range(40))
def test_chains_are_shortest(seed: int) -> None:
    rng = random.Random(seed)
    events = [e for k in range(3) for e in random_run(rng, str(k), causal=False, steps=60)]
    if seed % 2:
        rng.shuffle(events)
    leads = steps(events)
    to = {(e.run, e.origin, e.mid): e.peers for e in events if e.kind == "send"}
    delivered = {(e.run, e.process, e.origin, e.mid): e.seq for e in events if e.kind == "deliver"}
    report = check(events, examples=1000)
    for v in report.examples:
        chain = [(v.run, *link.message) for link in v.chain]
        assert chain[0] == (v.run, *v.first)
        assert chain[-1] == (v.run, *v.second)
        for a, b in pairwise(chain):
            assert b in leads[a]
        assert len(chain) == distance(leads, chain[0], chain[-1])
        assert [link.to for link in v.chain] == [to[message] for message in chain]
        assert delivered[v.run, v.process, *v.second] == v.seq
        assert v.late == ((v.run, v.process, *v.first) in delivered)


def test_over_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows between two sends are collected across batches, for several examples."""
    middle = []
    for k in range(1, 400):
        middle.append(("x", "send", "x", k, "y"))
        middle.append(("y", "deliver", "x", k, "x"))
    events = rows(*zip_in(TRIANGLE, middle))
    write_trace(tmp_path / "t.parquet", events)
    monkeypatch.setattr("causewire.trace.reader.BATCH_ROWS", 37)
    report = check(tmp_path / "t.parquet")
    assert [[str(link.message) for link in v.chain] for v in report.examples] == [
        ["p0:1", "p0:2", "p1:1"]
    ]
    assert report.examples[0].late
    monkeypatch.setattr(explaining, "ROWS", 100)
    (short,) = check(tmp_path / "t.parquet").examples
    assert short.chain == ()
    assert str(short).startswith("p0:1 happened before p1:1, but p2 delivered")


def zip_in(events: list[Event], middle: Any) -> Iterator[Any]:
    """The specs of the events, with the others spread between them."""
    part = len(middle) // len(events)
    for k, e in enumerate(events):
        yield e.process, e.kind, e.origin, e.mid, *e.peers
        yield from middle[k * part : (k + 1) * part]
