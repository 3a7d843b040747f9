"""Processes with a store that crash: at every boundary of every write, and at random."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from campaigns import crashes, crashes_and_failures
from campaigns.crash_world import Crash, crash_run
from causewire.testing.disk import BOUNDARIES
from causewire.transport import outbound


def every_point(protocol: str, seed: int, step: int = 1, **options: Any) -> Counter[str]:
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


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_a_crash_at_some_points(protocol: str) -> None:
    seen = every_point(protocol, 6, step=12, messages=4)
    assert seen["crashes"] > 5
    assert seen["stores compared"] > 5
    assert seen["handled"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        ("csps", {}),
        ("sps", {}),
        ("adaptive", {}),
        ("adaptive", {"options": {"cap": 0}}),
        ("adaptive", {"options": {"cap": 1}, "loss": 0.1}),
    ],
)
def test_a_crash_at_every_point(protocol: str, options: dict[str, Any]) -> None:
    seen = every_point(protocol, 3, **options)
    assert seen["crashes"] > 50
    assert seen["redelivered"] > 5
    assert seen["sends that a crash undid"] > 5


@pytest.mark.parametrize("protocol", ["csps", "adaptive"])
def test_random_crashes(protocol: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(2):
        options, outcome = crashes.one(seed, protocol)
        assert outcome.ok, (seed, options, outcome.faults[:5])
        seen += outcome.seen
    assert seen["crashes"] > 2


@pytest.mark.slow
def test_crashes_among_other_failures() -> None:
    seen: Counter[str] = Counter()
    for seed in range(6):
        verdict, found = crashes_and_failures.one(seed, "adaptive")
        assert verdict.fine, (seed, verdict.complaints[:5])
        seen += found
    assert seen["crashes"] > 5
    assert seen["stores compared"] > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "mutant"),
    [("csps", mutant) for mutant in crashes.MUTANTS]
    + [("adaptive", mutant) for mutant in crashes.MUTANTS_OF_ADAPTIVE],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_known_bad_variants_are_caught(protocol: str, mutant: object) -> None:
    if mutant is crashes.watermarks_not_repeated and not str(outbound.__file__).endswith(".py"):
        pytest.skip("methods of classes that are compiled cannot be replaced")
    runs, _ = crashes.caught_after(mutant, 30, protocol)  # type: ignore[arg-type]
    assert runs
