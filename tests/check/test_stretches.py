"""Stretches: together they find what one kernel finds, wherever the cuts are."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from causewire.check import Columns, Kernel, OrderError, Stream
from causewire.check import stretches as module
from causewire.check.kernel import Found, Odd
from causewire.check.stretches import Stretch
from causewire.trace import Event, trace_of

from . import brute_force
from .campaign import one_run, triples
from .random_traces import random_run

ALL = 1_000_000


def rows_of(events: list[Event]) -> Any:
    """Name, names and columns of a run in one piece."""
    (chunk,) = Stream(trace_of(events)).chunks()
    return chunk.run, chunk.columns.copy()


def rows_of_many(events: list[Event]) -> Any:
    """The same for more than a batch."""
    chunks = [(c.run, c.columns.copy()) for c in Stream(trace_of(events)).chunks()]
    return chunks[0][0], Columns.joined([columns for _, columns in chunks])


def stretch(
    columns: Any,
    n: int,
    start: Any,
    end: Any,
    *,
    step: int = 1,
    examples: Any = ALL,
    every: bool = True,
) -> Any:
    """The rows from `start` to `end`, and as many beyond as it takes, in steps of a given size."""
    kernel = Stretch(examples=examples, every=every)
    kernel.feed(columns.rows(start, end), n, start)
    kernel.end()
    while kernel.left and end < len(columns.kind):
        kernel.narrow()
        kernel.feed(columns.rows(end, end + step), n, end)
        end += step
    return kernel


def in_stretches(columns: Any, n: int, cuts: Any, **options: Any) -> Any:
    """All that is found, as one kernel would tell it."""
    bounds = [0, *cuts, len(columns.kind)]
    parts = [stretch(columns, n, start, end, **options) for start, end in pairwise(bounds)]
    arrived = {row[Odd.POSITION] for part in parts for row in part.arrived.tolist()}
    early = [row for part in parts for row in part.early.tolist()]
    found = [row for part in parts for row in part.found.tolist()]
    return (
        sorted(
            found, key=lambda r: (r[Found.POSITION], r[Found.FIRST_ORIGIN], r[Found.FIRST_SENT])
        ),
        [row for row in early if row[Odd.POSITION] not in arrived],
        sum(part.violations for part in parts),
        sum(part.messages for part in parts),
        sum(part.left for part in parts),
    )


def whole(columns: Any, n: int, *, examples: Any = ALL, every: bool = True) -> Any:
    kernel = Kernel(examples=examples, every=every)
    kernel.feed(columns, n)
    return (
        kernel.found.tolist(),
        kernel.odd.tolist(),
        kernel.violations,
        kernel.messages,
        kernel.undelivered,
    )


def some_cuts(rng: random.Random, rows: int) -> list[int]:
    return sorted(rng.randint(0, rows) for _ in range(rng.randint(1, 6)))


@pytest.mark.parametrize("mode", ["causal", "anyhow", "planted", "spoilt"])
def test_agrees_with_the_kernel(mode: Any) -> None:
    compared = set_aside = 0
    for k in range(150):
        events, _ = one_run(mode, f"stretches/{k}", "r")
        if not events:
            continue
        events.sort(key=lambda e: (e.lamport, e.process, e.seq))
        run, columns = rows_of(events)
        n = len(run.processes)
        try:
            expected = whole(columns, n)
        except OrderError:
            continue
        rng = random.Random(k)
        cuts = some_cuts(rng, len(events))
        told = in_stretches(columns, n, cuts, step=rng.choice([1, 3, 50]))
        assert told == expected, f"run stretches/{k}, {mode}, cut at {cuts}"
        compared += 1
        set_aside += len(told[1])
    assert compared > 50
    assert set_aside > 0 or mode != "spoilt"


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=150)
    wanted = brute_force.judge(events)
    run, columns = rows_of(events)
    told = in_stretches(columns, len(run.processes), some_cuts(rng, len(events)))
    found = np.array(told[0], np.int64).reshape(-1, len(Found))
    assert triples({"r": (run, found)}) == wanted.violations
    assert told[4] == wanted.undelivered


@pytest.mark.parametrize("seed", range(5))
def test_every_row_a_stretch(seed: int) -> None:
    events = random_run(random.Random(seed), "r", causal=False, steps=60)
    run, columns = rows_of(events)
    n = len(run.processes)
    assert in_stretches(columns, n, range(1, len(events))) == whole(columns, n)


@pytest.mark.parametrize("seed", range(10))
def test_the_first_examples_can_be_told(seed: int) -> None:
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=200)
    run, columns = rows_of(events)
    n = len(run.processes)
    cuts = some_cuts(rng, len(events))
    found = in_stretches(columns, n, cuts, examples=4, every=False)[0]
    assert found[:4] == whole(columns, n, examples=4, every=False)[0]


def wide_run(rng: Any, processes: Any, steps: Any, lost: Any) -> Any:
    """Unicasts among many, delivered anyhow but soon; some never are."""
    events, pending, seq, sent = [], [], [0] * processes, [0] * processes

    def add(p: Any, kind: str, origin: str, mid: int, peers: Any = ()) -> None:
        events.append(Event("r", f"p{p}", seq[p], None, None, kind, f"p{origin}", mid, peers))
        seq[p] += 1

    for _ in range(steps):
        p = rng.randrange(processes)
        sent[p] += 1
        # A few are written to often, so that much is overtaken there.
        q = rng.choice([rng.randrange(min(5, processes)), rng.randrange(processes)])
        add(p, "send", p, sent[p], (f"p{q}",))
        if rng.random() >= lost:
            pending.append((q, p, sent[p]))
        while len(pending) > 20:
            q, origin, mid = pending.pop(rng.randrange(len(pending)))
            add(q, "deliver", origin, mid)
    return events


@pytest.mark.parametrize("lost", [0.0, 0.005, 0.02, 0.3])
def test_clocks_become_narrow_where_little_is_left(lost: Any) -> None:
    rng = random.Random(f"narrow/{lost}")
    events = wide_run(rng, 150, 3000, lost)
    run, columns = rows_of(events)
    n = len(run.processes)
    expected = whole(columns, n)
    assert expected[2] > 0
    cuts = some_cuts(rng, len(events))
    assert in_stretches(columns, n, cuts, step=100) == expected
    first = stretch(columns, n, 0, 3000, step=100)
    second = Kernel()
    second.feed(columns.rows(0, 3000), n)
    if lost == 0.005:
        assert 0 < first.left < 20
        assert first.nbytes < second.nbytes / 2


class Wide(Kernel):
    _numbers = np.int32


def test_clocks_get_more_bits_when_numbers_grow() -> None:
    """One sends more messages than 16 bits can count; in flight then, and overtaken."""
    rng = random.Random("bits")
    events = wide_run(rng, 2, 80_000, 0.0001)
    run, columns = rows_of_many(events)
    kernels = [Kernel(examples=ALL, every=True), Wide(examples=ALL, every=True)]
    for kernel in kernels:
        kernel.feed(columns, len(run.processes))
    narrow, wide = kernels
    assert narrow.found.tolist() == wide.found.tolist()
    assert narrow.violations == wide.violations
    assert narrow.found[0, Found.POSITION] < 50_000 < narrow.found[-1, Found.POSITION]
    n = len(run.processes)
    assert stretch(columns, n, 0, 50_000, step=10_000).left > 0  # so it goes on to the end
    told = in_stretches(columns, n, [50_000, 150_000], step=10_000)
    assert told[2] == wide.violations


def test_it_stops_where_everything_has_arrived() -> None:
    """However long the run is: only rows that it has to see are asked for."""
    events = wide_run(random.Random("stops"), 50, 3000, 0.0)
    run, columns = rows_of(events)
    kernel = Stretch()
    kernel.feed(columns.rows(0, 2000), len(run.processes))
    kernel.end()
    at = 2000
    while kernel.left:
        kernel.feed(columns.rows(at, at + 1), len(run.processes), at)
        at += 1
    assert at < 2500
    assert kernel.messages == sum(e.kind == "send" for e in events[:2000])


def test_processes_that_are_mentioned_beyond_the_end() -> None:
    """They carry what they know, and what they send counts for nothing."""
    rows = [
        ("a", "send", "a", 1, ("c",)),
        ("a", "send", "a", 2, ("b",)),
        # -- the end --
        ("b", "deliver", "a", 2, ()),
        ("b", "send", "b", 1, ("new",)),
        ("new", "deliver", "b", 1, ()),
        ("new", "send", "new", 1, ("c",)),
        ("new", "send", "new", 2, ("c",)),
        ("c", "deliver", "new", 2, ()),
        ("c", "deliver", "a", 1, ()),
    ]
    seq: dict[str, int] = {}
    events = []
    for process, kind, origin, mid, peers in rows:
        seq[process] = seq.get(process, -1) + 1
        events.append(Event("r", process, seq[process], None, None, kind, origin, mid, peers))
    run, columns = rows_of(events)
    assert run.processes == ["a", "c", "b", "new"]
    kernel = Stretch()
    kernel.feed(columns.rows(0, 2), 3)
    kernel.end()
    kernel.feed(columns.rows(2, 9), 4, 2)
    assert kernel.left == 0
    (found,) = kernel.found.tolist()
    assert found[Found.POSITION] == 7
    assert (found[Found.FIRST_ORIGIN], found[Found.FIRST_MID]) == (0, 1)
    assert kernel.first_seq.tolist() == [0, -1, -1]
    assert kernel.last_seq.tolist() == [1, -1, -1]
    assert kernel.first_mid.tolist() == [1, -1, -1]
    assert kernel.last_mid.tolist() == [2, -1, -1]


def test_rows_are_searched_for_first_ones_only_if_somebody_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To go through all rows again would take a tenth of the check of a stretch."""
    search, searches = module._note_first, []

    def counted(*arguments: Any) -> None:
        searches.append(arguments)
        search(*arguments)

    monkeypatch.setattr(module, "_note_first", counted)
    events = wide_run(random.Random("first"), 5, 3000, 0.0)
    events = [e for e in events if e.process != "p4" or e.kind != "send"]  # p4 never sends
    run, columns = rows_of(events)
    kernel, n = Stretch(), len(run.processes)
    for at in range(0, len(events), 100):
        kernel.feed(columns.rows(at, at + 100), n, at)
    kernel.end()
    assert 1 <= len(searches) <= 2 * n < len(events) / 100
    for name, first, last, mid in zip(
        run.processes, kernel.first_seq, kernel.last_seq, kernel.first_mid, strict=True
    ):
        mine = [e for e in events if e.process == name]
        sent = [e.mid for e in mine if e.kind == "send"]
        assert (first, last) == (mine[0].seq, mine[-1].seq)
        assert mid == (sent[0] if sent else -1)
