"""Rows in any order, Lamport times or none, cycles, and rows that are wrong."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from causewire.check import check
from causewire.check.order import Sorted
from causewire.trace import Event, TraceError, trace_of, write_trace

from .random_traces import random_run


def one(
    process: str,
    seq: Any,
    kind: str,
    origin: str,
    mid: int,
    *peers: Any,
    run: str = "r",
    lamport: Any = None,
) -> Any:
    return Event(run, process, seq, None, lamport, kind, origin, mid, peers)


def facts(report: Any) -> Any:
    """What must not depend on the order of the rows."""
    return report.events, report.messages, report.processes, report.runs, report.violations


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_rows_makes_no_difference(seed: int) -> None:
    rng = random.Random(seed)
    events = [e for k in range(4) for e in random_run(rng, f"run {k}", causal=seed % 2 == 0)]
    wanted = check(events)
    mixed = list(events)
    rng.shuffle(mixed)
    untimed = [event._replace(lamport=None) for event in mixed]
    lying = [event._replace(lamport=rng.randint(0, 9)) for event in mixed]
    by_process = sorted(events, key=lambda e: (e.process, e.run, e.seq))
    for rows in (mixed, untimed, lying, by_process):
        assert facts(check(rows)) == facts(wanted)
    assert check(mixed).examples == check(list(reversed(mixed))).examples


def test_one_file_for_each_process(tmp_path: Path) -> None:
    events = random_run(random.Random(5), "r", causal=False, steps=60)
    for process in sorted({event.process for event in events}):
        mine = [event for event in events if event.process == process]
        write_trace(tmp_path / f"{process}.jsonl", mine)
    assert facts(check(tmp_path)) == facts(check(events))


def test_new_lamport_times_are_topological() -> None:
    events = random_run(random.Random(1), "r", causal=False, steps=80)
    random.Random(2).shuffle(events)
    sent: set[Any] = set()
    last: dict[Any, Any] = {}
    rows = 0
    for chunk in Sorted(trace_of(e._replace(lamport=None) for e in events)).chunks():
        c, names = chunk.columns, chunk.run.processes
        for t in range(len(c.kind)):
            assert c.seq[t] > last.get(c.process[t], -1)
            last[c.process[t]] = c.seq[t]
            message = names[c.origin[t]], c.mid[t]
            if c.kind[t] == 1:
                sent.add(message)
            else:
                assert message in sent
            rows += 1
    assert rows == sum(event.kind in ("send", "deliver") for event in events)


# -- cycles --------------------------------------------------------------------------------


def test_a_cycle_is_named() -> None:
    events = [
        one("a", 0, "deliver", "b", 1),
        one("a", 1, "send", "a", 1, "b"),
        one("b", 0, "deliver", "a", 1),
        one("b", 1, "send", "b", 1, "a"),
    ]
    with pytest.raises(TraceError) as info:
        check(events)
    assert str(info.value) == (
        "<events>: run 'r' cannot have happened, its events form a cycle: "
        "b delivered a:1 (seq 0) and then sent b:1 (seq 1); "
        "a delivered b:1 (seq 0) and then sent a:1 (seq 1)"
    )


def test_a_process_that_hears_itself_too_early() -> None:
    events = [one("a", 3, "deliver", "a", 7), one("a", 4, "send", "a", 7, "a")]
    with pytest.raises(TraceError, match=r"a delivered a:7 \(seq 3\) and then sent a:7 \(seq 4\)"):
        check(events)


@pytest.mark.parametrize("hops", [3, 6, 7, 40])
def test_long_cycles_are_cut_short_in_words(hops: Any) -> None:
    events = []
    for k in range(hops):
        before = (k - 1) % hops
        events.append(one(f"p{k}", 5, "deliver", f"p{before}", 1))
        events.append(one(f"p{k}", 6, "send", f"p{k}", 1, f"p{(k + 1) % hops}"))
        events.append(one(f"p{k}", 7, "send", f"p{k}", 2, "elsewhere"))
        events.append(one("elsewhere", k, "deliver", f"p{k}", 2))
    random.Random(hops).shuffle(events)
    with pytest.raises(TraceError) as info:
        check(events)
    told = str(info.value)
    assert told.count("delivered") == min(hops, 6)
    assert ("and so on through" in told) == (hops > 6)
    assert "elsewhere" not in told


def test_bad_rows_make_no_cycle() -> None:
    """A delivery that was not addressed there takes no part in the order."""
    events = [
        one("a", 0, "deliver", "b", 1),
        one("a", 1, "send", "a", 1, "b"),
        one("b", 0, "deliver", "a", 1),
        one("b", 1, "send", "b", 1, "c"),
    ]
    report = check(events)
    assert report.bad == {"delivered, but not addressed to it": 1}


# -- bad data ----------------------------------------------------------------------------------


def test_each_kind_of_bad_row() -> None:
    events = [
        one("a", 0, "send", "a", 1, "b"),
        one("a", 1, "send", "z", 5, "b"),
        one("a", 2, "send", "a", 1, "b"),
        one("b", 0, "deliver", "a", 1, "a"),
        one("b", 1, "deliver", "a", 1, "a"),
        one("b", 2, "deliver", "a", 9, "a"),
        one("c", 0, "deliver", "a", 1, "a"),
        one("c", 1, "deliver", "z", 5, "z"),
    ]
    report = check(events)
    assert (report.messages, report.duplicates, report.violations) == (1, 1, 0)
    assert report.bad == {
        "sent by another process than its origin": 1,
        "sent a second time": 1,
        "delivered, but never sent": 2,
        "delivered, but not addressed to it": 1,
    }
    assert [str(row) for row in report.bad_rows] == [
        "process 'a' of run 'r', seq 2: message a:1 sent a second time",
        "process 'c' of run 'r', seq 0: message a:1 delivered, but not addressed to it",
        "process 'a' of run 'r', seq 1: message z:5 sent by another process than its origin",
        "process 'c' of run 'r', seq 1: message z:5 delivered, but never sent",
        "process 'b' of run 'r', seq 2: message a:9 delivered, but never sent",
    ]
    assert [row.seq for row in check(events, examples=2).bad_rows] == [2, 0]


def test_two_rows_in_one_place() -> None:
    events = [one("a", 1, "send", "a", 1, "b"), one("a", 1, "send", "a", 2, "b")]
    with pytest.raises(TraceError, match="process 'a' of run 'r' has two rows with seq 1"):
        check(events)


def test_many_duplicates() -> None:
    """More than the kernel sets aside at once."""
    events = [one("a", k, "send", "a", k + 1, "b") for k in range(300)]
    for k in range(300):
        events.append(one("b", 2 * k, "deliver", "a", k + 1))
        events.append(one("b", 2 * k + 1, "deliver", "a", k + 1))
    report = check(events)
    assert (report.duplicates, report.violations, report.undelivered) == (300, 0, 0)
    assert report.bad_rows == []


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    nothing: list[Iterable[Event]] = [[], iter(())]
    for events in nothing:
        with pytest.raises(TraceError, match="the trace is empty"):
            check(events)
    write_trace(tmp_path / "t.parquet", [])
    with pytest.raises(TraceError, match=r"t\.parquet: the trace is empty"):
        check(tmp_path / "t.parquet")


def test_rows_of_other_kinds_count_as_events_only() -> None:
    quiet = [Event("r", "a", 0, None, None, "job_start"), Event("s", "b", 0, None, None, "job_end")]
    report = check(quiet)
    assert facts(report) == (2, 0, 2, 2, 0)
    events = [*quiet, one("a", 2, "send", "a", 1, "a"), one("a", 1, "deliver", "b", 1)]
    assert facts(check(events)) == (4, 1, 3, 2, 0)


def test_progress_and_kinds_of_input(tmp_path: Path) -> None:
    events = random_run(random.Random(3), "r", causal=True, steps=50)
    write_trace(tmp_path / "t.parquet", events)
    seen: list[Any] = []
    report = check(tmp_path / "t.parquet", progress=seen.append)
    assert seen == [len(events)]
    for same in (str(tmp_path / "t.parquet"), trace_of(events), iter(events)):
        assert check(same) == report
