"""The experiments on Cykas with programs: sends that wait for what they depend on."""

from __future__ import annotations

import pytest

from campaigns.programs import CASES, Case, measure, table


@pytest.mark.slow
def test_a_program_is_not_the_random_run_that_it_is_made_of() -> None:
    """In a program, sends wait for deliveries, so what holds up messages holds up the program."""
    some = [Case("10ms", payload=payload) for payload in (100, 300)]
    row, other = measure(some, seeds=1, processes=20, messages=400)
    assert row.program != row.random
    assert row.program["cykas"] < row.program["csps"]
    assert row.program != other.program  # payloads are those of the case
    head, _, line = table(iter([row]))
    assert head.count("|") == line.count("|")


def test_payloads_heads_times_hotspots_and_jobs_vary() -> None:
    for field in Case._fields:
        assert len({getattr(case, field) for case in CASES}) > 1, field
