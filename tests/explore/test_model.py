"""Rows, copies, order and causality: what the explorer knows about a run."""

from __future__ import annotations

import numpy as np
import pytest

from causewire.explore.causality import Causality
from causewire.explore.packets import SORTS, packets_of
from causewire.explore.run import RunData
from causewire.explore.table import read
from causewire.trace import Event, TraceError, trace_of

from .stories import STORY, run_of, shuffled, simulated


def _row(run: RunData, process: str, seq: int) -> int:
    number = run.processes.index(process)
    return int(np.flatnonzero((run.rows.process == number) & (run.rows.seq == seq))[0])


def _before(run: RunData) -> list[set[int]]:
    """Return for each row all rows that happened before it, by the definition."""
    edges: list[list[int]] = [[] for _ in range(len(run))]
    last: dict[int, int] = {}
    for row in run.by_process.tolist():
        process = int(run.rows.process[row])
        if process in last:
            edges[row].append(last[process])
        last[process] = row
    for send, deliver in zip(run.copies.send.tolist(), run.copies.deliver.tolist(), strict=True):
        if deliver >= 0:
            edges[deliver].append(send)
    result: list[set[int]] = []
    for row in range(len(run)):
        past: set[int] = set()
        for cause in edges[row]:
            past |= {cause} | result[cause]
        result.append(past)
    return result


def test_copies_know_their_rows() -> None:
    run = run_of(simulated("csps"))
    c, rows = run.copies, run.rows
    assert len(c) == 60
    assert (c.deliver >= 0).all()
    assert (c.send < c.release).all()
    assert (c.release < c.receive).all()
    assert (c.receive < c.deliver).all()
    for row in (c.send, c.release, c.receive, c.deliver):
        assert (rows.mid[row] == rows.mid[c.send]).all()
        assert (rows.origin[row] == rows.process[c.send]).all()
    assert (rows.process[c.deliver] == c.target).all()


def test_a_multicast_has_a_copy_for_each_destination() -> None:
    run = run_of(
        [
            Event("r", "a", 0, 0, 1, "send", "a", 1, ("b", "c", "b")),
            Event("r", "c", 0, 5, 2, "deliver", "a", 1, ("a",)),
            Event("r", "c", 1, 6, 3, "deliver", "a", 1, ("a",)),
        ]
    )
    assert [run.processes[k] for k in run.copies.target.tolist()] == ["b", "c"]
    assert run.copies.deliver.tolist() == [-1, 1]  # the first delivery counts


def test_huge_numbers_of_messages_do_not_clash() -> None:
    big = (1 << 62) + 5
    run = run_of(
        [
            Event("r", "a", 0, 0, 1, "send", "a", big, ("b",)),
            Event("r", "a", 1, 1, 2, "send", "a", big + 1, ("b",)),
            Event("r", "b", 0, 2, 3, "deliver", "a", big + 1, ("a",)),
        ]
    )
    assert run.copies.deliver.tolist() == [-1, 2]


@pytest.mark.parametrize("protocol", ["fifo", "csps"])
def test_rows_in_any_order_make_the_same_run(protocol: str) -> None:
    events = simulated(protocol)
    stored, mixed = run_of(events), run_of(shuffled(events))
    bare = [event._replace(lamport=None) for event in events]
    skewed = [
        event._replace(time_ns=(event.time_ns or 0) - 10**9 * int(event.process[1:]))
        for event in bare
    ]
    for run in (stored, mixed, run_of(shuffled(bare)), run_of(shuffled(skewed))):
        assert len(run.copies) == len(stored.copies)
        assert (run.copies.send < run.copies.deliver).all()
        for process in range(5):
            rows = np.flatnonzero(run.rows.process == process)
            assert (np.diff(run.rows.seq[rows]) > 0).all()


def test_a_trace_without_times_has_the_order_axis_only() -> None:
    run = run_of([event._replace(time_ns=None) for event in STORY])
    assert not run.timed
    assert run.axis("time").name == "order"
    assert run.axis("time").end == len(STORY) - 1


def test_past_and_future_are_those_of_the_definition() -> None:
    run = run_of(simulated("fifo", 40))
    causality = Causality(run)
    before = _before(run)
    for row in range(0, len(run), 7):
        past, future = causality.past(row), causality.future(row)
        process, place = run.rows.process, run.place
        inside = {r for r in range(len(run)) if place[r] < past[process[r]]}
        later = {r for r in range(len(run)) if place[r] >= future[process[r]]}
        assert inside == before[row] | {row}
        assert later == {r for r in range(len(run)) if row in before[r]} | {row}


def test_chains_are_chains_and_exist_where_events_are_ordered() -> None:
    run = run_of(simulated("fifo", 40))
    causality = Causality(run)
    before = _before(run)
    lengths = set()
    for a in range(0, len(run), 11):
        for b in range(0, len(run), 13):
            chain = causality.chain(a, b)
            assert (chain is not None) == (a == b or a in before[b])
            if chain is None:
                continue
            at = a
            for hop in chain:
                assert run.rows.process[hop.send] == run.rows.process[at]
                assert run.place[hop.send] >= run.place[at]
                at = hop.deliver
            assert run.rows.process[at] == run.rows.process[b]
            assert run.place[at] <= run.place[b]
            lengths.add(len(chain))
    assert {0, 1, 2, 3} <= lengths


def test_a_chain_is_a_shortest_one() -> None:
    run = run_of(
        [
            Event("r", "a", 0, 0, 1, "send", "a", 1, ("b",)),
            Event("r", "a", 1, 1, 2, "send", "a", 2, ("c",)),
            Event("r", "b", 0, 2, 3, "deliver", "a", 1, ("a",)),
            Event("r", "b", 1, 3, 4, "send", "b", 1, ("c",)),
            Event("r", "c", 0, 4, 5, "deliver", "b", 1, ("b",)),
            Event("r", "c", 1, 5, 6, "deliver", "a", 2, ("a",)),
        ]
    )
    causality = Causality(run)
    first, last = _row(run, "a", 0), _row(run, "c", 1)
    assert [run.message(hop.send) for hop in causality.chain(first, last) or ()] == ["a:2"]
    early = causality.chain(first, _row(run, "c", 0)) or ()
    assert [run.message(hop.send) for hop in early] == ["a:1", "b:1"]


def test_control_packets_are_joined() -> None:
    events = simulated("csps")
    run = run_of(events)
    packets = packets_of(run)
    kinds = [event.kind for event in events]
    assert len(packets.arrival) == kinds.count("ack_receive") + kinds.count("permit_receive")
    rows = run.rows
    for departure, arrival, sort in zip(
        packets.departure.tolist(), packets.arrival.tolist(), packets.sort.tolist(), strict=True
    ):
        assert departure < arrival
        assert run.kinds[rows.kind[departure]] == SORTS[sort]
        assert run.kinds[rows.kind[arrival]] == f"{SORTS[sort]}_receive"
        assert rows.peers[rows.first[departure]] == rows.process[arrival]
        assert rows.peers[rows.first[arrival]] == rows.process[departure]
        assert rows.mid[departure] == rows.mid[arrival]
    assert len(set(packets.departure.tolist())) == len(packets.departure)
    assert len(packets_of(run_of(STORY)).arrival) == 0


def test_a_run_that_contradicts_itself_can_still_be_looked_at() -> None:
    run = run_of(
        [
            Event("r", "a", 0, 0, 1, "deliver", "b", 1, ("b",)),
            Event("r", "a", 1, 1, 2, "send", "a", 1, ("b",)),
            Event("r", "b", 0, 2, 3, "deliver", "a", 1, ("a",)),
            Event("r", "b", 1, 3, 4, "send", "b", 1, ("a",)),
        ]
    )
    causality = Causality(run)
    assert causality.past(0).tolist() == causality.past(3).tolist() == [2, 2]
    assert len(causality.chain(0, 3) or ()) == 1
    assert causality.chain(3, 0) is not None


def test_runs_are_kept_apart() -> None:
    other = [event._replace(run="other", process=event.process.upper()) for event in STORY[:1]]
    other = [event._replace(origin="ANN") for event in other]
    table = read(trace_of([*STORY, *other]))
    assert table.runs == ["other", "story"]
    assert table.rows_in("other") == 1
    assert RunData(table, "other").processes == ["ANN", "cid"]
    assert RunData(table, "story").processes == ["ann", "bob", "cid", "dan"]


def test_an_empty_trace_is_refused() -> None:
    with pytest.raises(TraceError, match="the trace is empty"):
        read(trace_of([]))
