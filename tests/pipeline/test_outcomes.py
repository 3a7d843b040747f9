"""Outcomes of many runs, folded by the tasks that found them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from causewire.check import check
from causewire.pipeline.outcomes import OUTCOME, failed, folded, report_of, row_of
from causewire.trace import TraceError

from ..check.random_traces import random_run


def outcomes(runs: int) -> pa.Table:
    """Some in order and some not, with lost, repeated and inconsistent rows."""
    rng = random.Random(5)
    rows = []
    for k in range(runs):
        causal = k % 3 > 0
        events = random_run(rng, f"r{k:03}", causal=causal)
        if k % 5 == 0:
            events = [event for event in events if rng.random() < 0.9]
        rows.append(row_of(f"r{k:03}", rng.randrange(4), check(events, examples=3)))
    return pa.Table.from_pylist(rows, OUTCOME)


@pytest.mark.parametrize("parts", [1, 4])
def test_the_report_of_folded_outcomes_is_the_same(parts: int) -> None:
    table = outcomes(90)
    wanted = report_of(table, 3)
    assert wanted.violations > 3
    assert wanted.bad.total() > 3
    some: list[pa.RecordBatch] = []
    for k in range(parts):
        part = table.take(list(range(k, 90, parts)))
        some += folded(part.to_batches(max_chunksize=7), 3)
    found = pa.Table.from_batches(some, OUTCOME)
    assert report_of(found, 3) == wanted
    calm = [row for row in found.to_pylist() if not row["duplicates"]]
    assert len(calm) <= parts * (3 + 3 + 1)


def test_runs_that_have_to_be_looked_at_again_are_not_folded() -> None:
    trouble = failed("bad", TraceError("x.json", 3, "no"))
    table = pa.concat_tables([outcomes(20), pa.Table.from_pylist([trouble], OUTCOME)])
    again = [row["run"] for row in table.to_pylist() if row["trouble"] or row["duplicates"]]
    rows = pa.Table.from_batches(folded(table.to_batches(), 0), OUTCOME).to_pylist()
    assert "bad" in again
    assert [row["run"] for row in rows] == [*again, None]
    assert rows[-1]["position"] == 21 - len(again)


def test_nothing_to_fold() -> None:
    assert list(folded([], 3)) == []
