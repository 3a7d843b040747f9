"""The kernel against brute force, and against itself in pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from causewire.check import Columns, Kernel, OrderError, Sorted, Stream, check, scan
from causewire.check.columns import DELIVER, SEND, Chunk
from causewire.trace import Event, trace_of

from . import brute_force
from .campaign import ALL, campaign, compare, source_of, triples
from .random_traces import plant, random_run


@pytest.mark.parametrize("start", range(0, 3000, 100))
def test_agrees_with_brute_force(start: Any) -> None:
    """The quick share; `python -m campaigns.check_fuzz` runs 100,000."""
    seen = campaign(seed=3, start=start, count=100, together=25)
    assert seen["planted"] > 0


def test_the_campaign_sees_everything_it_should() -> None:
    seen = campaign(seed=4, start=0, count=120, together=10)
    verdicts = {what for key, count in seen.items() if key != "planted" for what in key[2:]}
    assert verdicts >= {"ordered, stream", "ordered, sorted", "violations, stream"}
    assert "violations, sorted" in verdicts


@pytest.mark.parametrize("seed", range(6))
def test_much_in_flight(seed: int) -> None:
    """Rings, slots, versions and tables grow, and are recycled, and nothing is lost."""
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=400)
    assert compare(events).startswith("violations")


# -- pieces ------------------------------------------------------------------------------


class Recut:
    """The same rows, cut elsewhere."""

    def __init__(self, source: Any, rng: Any) -> None:
        self.name, self.unique, self.repeated = source.name, source.unique, source.repeated
        self.identical = source.identical
        self.source, self.rng = source, rng

    @property
    def rows(self) -> Any:
        return self.source.rows

    def repeated_rows(self, limit: Any) -> Any:
        return self.source.repeated_rows(limit)

    def chunks(self) -> Iterator[Any]:
        for chunk in self.source.chunks():
            rows = len(chunk.columns.kind)
            at = 0
            while at < rows:
                to = min(rows, at + self.rng.randint(1, 7))
                yield Chunk(chunk.run, chunk.position + at, chunk.columns.rows(at, to))
                at = to


@pytest.mark.parametrize("seed", range(20))
def test_where_batches_end_makes_no_difference(seed: int) -> None:
    rng = random.Random(seed)
    events = [e for k in range(5) for e in random_run(rng, str(k), causal=False)]
    source, whole = source_of(events)
    cut = scan(Recut(source, rng), examples=ALL, every=True)
    assert triples(cut.found) == triples(whole.found)
    assert (cut.violations, cut.messages, cut.undelivered) == (
        whole.violations,
        whole.messages,
        whole.undelivered,
    )


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_origins_share_the_violations(seed: int) -> None:
    rng = random.Random(seed)
    events = [e for k in range(5) for e in random_run(rng, str(k), causal=False)]
    source, whole = source_of(events)
    found: set[Any] = set()
    count = 0
    lo = 0
    while lo < 5:
        hi = rng.randint(lo + 1, 5)
        part = scan(source, (lo, hi), examples=ALL, every=True)
        assert (part.messages, part.undelivered) == (whole.messages, whole.undelivered)
        mine = triples(part.found)
        assert not mine & found
        found |= mine
        count += part.violations
        lo = hi
    assert found == triples(whole.found)
    assert count == whole.violations


def wide(processes: Any, seed: int) -> Any:
    """A run of many processes, with a few violations."""
    rng = random.Random(seed)
    events: list[Any] = []
    seq: dict[Any, Any] = {}
    mid: dict[Any, Any] = {}
    sent: list[Any] = []

    def add(p: Any, kind: str, origin: str, number: Any, *peers: Any) -> None:
        seq[p] = seq.get(p, -1) + 1
        events.append(Event("r", p, seq[p], None, len(events), kind, origin, number, peers))

    for _ in range(600):
        p, q = (f"p{rng.randrange(processes)}" for _ in range(2))
        mid[p] = mid.get(p, 0) + 1
        add(p, "send", p, mid[p], q)
        sent.append((p, mid[p], q))
        if len(sent) > 40:
            origin, number, q = sent.pop(rng.randrange(len(sent)))
            add(q, "deliver", origin, number, origin)
    return events


@pytest.mark.parametrize("seed", range(3))
def test_too_wide_for_memory_means_blocks(seed: int) -> None:
    events = wide(70, seed)
    whole = check(events)
    blocks = check(events, memory=12 * 70 * 40)  # 32 origins at a time
    assert whole.violations > 0
    assert blocks == whole


def test_examples_are_the_first_ones() -> None:
    events = wide(20, 1)
    many = check(events, examples=1000)
    assert len(many.examples) < many.violations
    assert len({(v.first) for v in many.examples}) == len(many.examples)
    few = check(events, examples=3)
    assert few.examples == many.examples[:3]
    assert check(events, examples=0).examples == []
    assert check(events, examples=0).violations == many.violations


# -- state -----------------------------------------------------------------------------------


def test_state_does_not_grow_with_the_trace() -> None:
    def state(rounds: Any) -> Any:
        kernel = Kernel()
        position = 0
        for k in range(rounds):
            columns = Columns(
                np.array([SEND, SEND, DELIVER, DELIVER], np.int8),
                np.array([0, 1, 1, 0], np.int32),
                np.array([2 * k, 2 * k, 2 * k + 1, 2 * k + 1], np.int64),
                np.array([0, 1, 0, 1], np.int32),
                np.array([k + 1, k + 1, k + 1, k + 1], np.int64),
                np.array([0, 1, 2, 2, 2], np.int32),
                np.array([1, 0], np.int32),
            )
            kernel.feed(columns, 2, position)
            position += 4
        assert (kernel.messages, kernel.undelivered, kernel.violations) == (2 * rounds, 0, 0)
        return kernel.nbytes

    assert state(10) == state(2000)


def test_a_message_lost_for_good_costs_no_more_in_the_long_run() -> None:
    """It is overtaken again and again, and counted without being walked over."""
    events = [Event("r", "a", 0, None, 1, "send", "a", 1, ("b",))]
    for k in range(2, 1002):
        events.append(Event("r", "a", k, None, 2 * k, "send", "a", k, ("b",)))
        events.append(Event("r", "b", k, None, 2 * k + 1, "deliver", "a", k, ("a",)))
    report = check(events)
    assert (report.violations, report.undelivered) == (1000, 1)
    assert [str(v.second) for v in report.examples] == ["a:2"]


# -- what the kernel refuses -------------------------------------------------------------------


def one(kind: str, process: str, seq: Any, origin: str, mid: int, *peers: Any) -> Any:
    return Event("r", process, seq, None, seq + 1, kind, origin, mid, peers)


@pytest.mark.parametrize(
    "events",
    [
        [one("send", "a", 1, "a", 1, "b"), one("send", "a", 0, "a", 2, "b")],
        [one("send", "a", 0, "a", 1, "b"), one("send", "a", 0, "a", 2, "b")],
        [one("send", "a", 0, "a", 2, "b"), one("send", "a", 1, "a", 1, "b")],
        [one("send", "a", 0, "a", 1, "b"), one("send", "a", 1, "a", 1, "b")],
    ],
)
def test_rows_out_of_order_are_noticed(events: list[Event]) -> None:
    with pytest.raises(OrderError):
        scan(Stream(trace_of(events)))


def test_mids_need_not_grow_if_messages_are_known_to_differ() -> None:
    events = [one("send", "a", 0, "a", 9, "b"), one("send", "a", 1, "a", 2, "b")]
    events.append(one("deliver", "b", 0, "a", 2))
    found = scan(Sorted(trace_of(events)), every=True)
    assert triples(found.found) == {("r", "b", ("a", 9), ("a", 2))}


def test_huge_mids_and_many_destinations() -> None:
    names = [f"p{k}" for k in range(300)]
    events = [one("send", "a", k, "a", 2**62 + k, *names, names[0]) for k in range(3)]
    for name in names[:100]:
        events.append(one("deliver", name, 0, "a", 2**62 + 1))
        events.append(one("deliver", name, 1, "a", 2**62))
    report = check(events)
    assert (report.messages, report.processes) == (3, 301)
    assert (report.violations, report.undelivered) == (100, 3 * 300 - 200)
    assert brute_force.judge(events).violations == {
        ("r", name, ("a", 2**62), ("a", 2**62 + 1)) for name in names[:100]
    }


def test_planted_violations_are_planted() -> None:
    """The generator does what it says, or the campaign would prove little."""
    for seed in range(50):
        rng = random.Random(seed)
        events = random_run(rng, "r", causal=True)
        assert not brute_force.judge(events).violations
        planted = plant(rng, events)
        if planted is not None:
            named = planted.run, planted.process, planted.first, planted.second
            assert named in brute_force.judge(events).violations
