"""Segments: two passes and a walk find what one kernel finds, wherever the cuts are."""

from __future__ import annotations

import random

import numpy as np
import pytest

from causewire.check import Encoder, Kernel, OrderError, Run, Stream
from causewire.check.columns import COLUMNS, Chunk
from causewire.check.kernel import Found
from causewire.check.segments import Cut, Survey, resume
from causewire.check.segments import walk as walk_along
from causewire.trace import Event, trace_of

from . import brute_force
from .campaign import one_run, triples
from .random_traces import random_run

ALL = 1_000_000


def rows_of(events):
    """Name, names and columns of a run in one piece."""
    (chunk,) = Stream(trace_of(events)).chunks()
    return chunk.run, chunk.columns.copy()


def columns_of(events, processes):
    """Columns of some rows, numbered by whom they mention first, or as given."""
    encoder = Encoder()
    if processes:
        known = [Event(events[0].run, name, 0, None, None, "known") for name in processes]
        for batch in trace_of(known).batches(COLUMNS):
            for _ in encoder.chunks(batch):
                pass
    for batch in trace_of(events).batches(COLUMNS):
        (chunk,) = encoder.chunks(batch)
    return chunk.run, chunk.columns.copy()


def surveyed(events, position, ignored=()):
    run, columns = columns_of(events, [])
    survey = Survey(position, ignored)
    survey.feed(columns, len(run.processes), position)
    return survey.result(run.processes)


def in_segments(events, cuts, *, examples=ALL, every=True, origins=None):
    """All that is found, as one kernel would tell it, and the state at the end."""
    cut = Cut.start()
    found, odd, again = [], [], 0
    violations = messages = undelivered = 0
    run = Run(events[0].run)
    for start, end in zip([0, *cuts], [*cuts, len(events)], strict=True):
        part = events[start:end]
        if not part:
            continue
        after, strangers = cut.after(surveyed(part, start))
        if strangers:
            again += 1
            after, strangers = cut.after(surveyed(part, start, strangers))
            assert not strangers
        run, columns = columns_of(part, cut.processes)
        kernel = resume(cut, origins, examples=examples, every=every)
        kernel.feed(columns, len(run.processes), start)
        assert run.processes == after.processes
        found += kernel.found.tolist()
        odd += kernel.odd.tolist()
        violations += kernel.violations
        messages += kernel.messages
        undelivered = kernel.undelivered
        assert after.flight.copies == undelivered
        cut = after
    return run, found, odd, violations, messages, undelivered, again


def whole(events, *, examples=ALL, every=True, origins=None):
    run, columns = rows_of(events)
    kernel = Kernel(origins, examples=examples, every=every)
    kernel.feed(columns, len(run.processes))
    return run, kernel


def some_cuts(rng, rows):
    return sorted(rng.randint(0, rows) for _ in range(rng.randint(1, 6)))


@pytest.mark.parametrize("mode", ["causal", "anyhow", "planted", "spoilt"])
def test_agrees_with_the_kernel(mode):
    strange = compared = 0
    for k in range(80):
        events, _ = one_run(mode, f"segments/{k}", "r")
        if not events:
            continue
        events.sort(key=lambda e: (e.lamport, e.process, e.seq))
        try:
            run, kernel = whole(events)
        except OrderError:
            continue
        rng = random.Random(k)
        cuts = some_cuts(rng, len(events))
        run2, found, odd, violations, messages, undelivered, again = in_segments(events, cuts)
        where = f"run segments/{k}, {mode}, cut at {cuts}"
        assert run2.processes == run.processes, where
        assert found == kernel.found.tolist(), where
        assert odd == kernel.odd.tolist(), where
        assert (violations, messages, undelivered) == (
            kernel.violations,
            kernel.messages,
            kernel.undelivered,
        ), where
        strange += again
        compared += 1
    assert compared > 30
    assert strange > 0 or mode != "spoilt"


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_brute_force(seed):
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=150)
    wanted = brute_force.judge(events)
    run, found, _, violations, _, undelivered, _ = in_segments(events, some_cuts(rng, len(events)))
    rows = np.array(found, np.int64).reshape(-1, len(Found))
    assert triples({"r": (run, rows)}) == wanted.violations
    assert violations == len(wanted.violations)
    assert undelivered == wanted.undelivered


@pytest.mark.parametrize("seed", range(5))
def test_every_row_a_segment(seed):
    """The walk alone is then the kernel; nothing hides inside of a segment."""
    events = random_run(random.Random(seed), "r", causal=False, steps=60)
    _, kernel = whole(events)
    result = in_segments(events, list(range(1, len(events))))
    assert result[1] == kernel.found.tolist()
    assert result[3] == kernel.violations


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_origins_in_segments(seed):
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=100)
    for origins in ((0, 2), (2, 5)):
        _, kernel = whole(events, origins=origins)
        result = in_segments(events, some_cuts(rng, len(events)), origins=origins)
        assert result[1] == kernel.found.tolist()
        assert result[3] == kernel.violations


@pytest.mark.parametrize("seed", range(10))
def test_the_first_examples_can_be_told(seed):
    """Each segment keeps enough, though it does not know what others show."""
    rng = random.Random(seed)
    events = random_run(rng, "r", causal=False, steps=200)
    _, kernel = whole(events, examples=4, every=False)
    found = in_segments(events, some_cuts(rng, len(events)), examples=4, every=False)[1]
    seen, first = set(), []
    for row in found:
        message = row[Found.FIRST_ORIGIN], row[Found.FIRST_MID]
        if message not in seen:
            seen.add(message)
            first.append(row)
    assert first[:4] == kernel.found.tolist()


def one(kind, process, seq, origin, mid, *peers):
    return Event("r", process, seq, None, None, kind, origin, mid, peers)


def survey_all(parts):
    position = 0
    for part in parts:
        yield surveyed(part, position)
        position += len(part)


def walk(*parts):
    cuts, strangers = walk_along(survey_all(parts))
    assert not strangers
    return cuts[-1]


def test_rows_that_do_not_follow_are_noticed():
    with pytest.raises(OrderError):
        walk([one("send", "a", 1, "a", 1, "b")], [one("send", "a", 0, "a", 2, "b")])
    with pytest.raises(OrderError):
        walk([one("send", "a", 0, "a", 2, "b")], [one("send", "a", 1, "a", 2, "b")])
    with pytest.raises(ValueError, match="does not begin"):
        Cut.start().after(surveyed([one("send", "a", 0, "a", 1, "b")], 7))


def test_mids_that_leap_are_refused():
    sends = [one("send", "a", k, "a", mid, "b") for k, mid in enumerate((1, 2**40))]
    late = [one("deliver", "b", 0, "a", 1), one("deliver", "b", 1, "a", 2**40)]
    assert walk(sends, late[:1], late[1:]).flight.copies == 0
    with pytest.raises(OrderError):
        walk(sends, late)


def test_strangers_are_told_apart_from_what_was_in_flight():
    sends = [one("send", "a", 0, "a", 1, "b"), one("send", "a", 1, "a", 2, "b")]
    got = [one("deliver", "b", 0, "a", 1)]
    twice = [one("deliver", "b", 1, "a", 1), one("deliver", "b", 2, "a", 2)]
    cuts, strangers = walk_along(survey_all([sends, got, twice]))
    assert strangers == {2: [3]}
    assert cuts[-1].flight.copies == 0
    # A second delivery in the same segment does no harm to the survey.
    again = [*got, one("deliver", "b", 1, "a", 1)]
    assert walk(sends, again).flight.mid.tolist() == [2]


def test_what_a_cut_takes_does_not_grow_with_the_run():
    def size(rounds):
        parts = [
            [
                one("send", "a", 2 * k, "a", k + 1, "b"),
                one("send", "b", 2 * k, "b", k + 1, "a"),
                one("deliver", "a", 2 * k + 1, "b", k + 1),
                one("deliver", "b", 2 * k + 1, "a", k + 1),
            ]
            for k in range(rounds)
        ]
        return walk(*parts).nbytes

    assert size(3) == size(50)


def test_holds():
    cut = walk([one("send", "a", 0, "a", 1, "b", "c"), one("deliver", "b", 0, "a", 1)])
    a, b, c = (cut.processes.index(name) for name in "abc")
    assert cut.flight.holds(a, 1, c)
    assert not cut.flight.holds(a, 1, b)
    assert not cut.flight.holds(a, 2, c)


def test_batches_of_a_segment():
    """How the rows of a segment are cut into batches makes no difference."""
    events = random_run(random.Random(7), "r", causal=False, steps=80)
    run, columns = rows_of(events)
    survey = Survey()
    for start in range(0, len(events), 7):
        part = Chunk(run, start, columns.rows(start, min(len(events), start + 7)))
        survey.feed(part.columns, len(run.processes), start)
    one_piece = surveyed(events, 0)
    for mine, other in zip(survey.result(run.processes), one_piece, strict=True):
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, other)
        elif not isinstance(mine, tuple):
            assert mine == other
