"""Processes with a store that crash: at every boundary of every write, and at random."""

from __future__ import annotations

from collections import Counter

import pytest

from campaigns import crashes
from campaigns.crash_world import Crash, crash_run
from causewire.testing.disk import BOUNDARIES
from causewire.transport import outbound


def every_point(protocol: str, seed: int, step: int = 1, **options: int) -> Counter[str]:
    """Crash once at every boundary of every write, or of every `step`-th; return what was seen."""
    seen: Counter[str] = Counter()
    writes = crash_run(seed, [], protocol=protocol, **options).writes["b"]
    assert writes > 5
    for write in range(1, writes + 1, step):
        for boundary in BOUNDARIES:
            outcome = crash_run(seed, [Crash("b", write, boundary)], protocol=protocol, **options)
            assert outcome.ok, (seed, write, boundary, outcome.faults[:5])
            seen += outcome.seen
    return seen


def test_a_crash_at_some_points() -> None:
    seen = every_point("csps", 4, step=12, messages=4)
    assert seen["crashes"] > 5
    assert seen["handled"]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["csps", "sps"])
def test_a_crash_at_every_point(protocol: str) -> None:
    seen = every_point(protocol, 3)
    assert seen["crashes"] > 50
    assert seen["redelivered"] > 5
    assert seen["sends that a crash undid"] > 5


def test_random_crashes() -> None:
    seen: Counter[str] = Counter()
    for seed in range(2):
        options, outcome = crashes.one(seed)
        assert outcome.ok, (seed, options, outcome.faults[:5])
        seen += outcome.seen
    assert seen["crashes"] > 2


@pytest.mark.slow
@pytest.mark.parametrize("mutant", crashes.MUTANTS, ids=lambda mutant: mutant.__name__)
def test_known_bad_variants_are_caught(mutant: object) -> None:
    if mutant is crashes.watermarks_not_repeated and not str(outbound.__file__).endswith(".py"):
        pytest.skip("methods of classes that are compiled cannot be replaced")
    runs, _ = crashes.caught_after(mutant, 30)  # type: ignore[arg-type]
    assert runs
