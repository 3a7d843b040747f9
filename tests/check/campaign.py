"""Random runs by the hundred, through the check and through brute force."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from causewire.check import OrderError, Sorted, Source, Stream, check, scan
from causewire.check.columns import ScatteredRunError
from causewire.check.kernel import Found
from causewire.check.oddities import judge
from causewire.trace import TraceError, trace_of

from . import brute_force
from .random_traces import plant, random_run, spoil

ALL = 1_000_000
MODES = ("causal", "anyhow", "planted", "spoilt")
ORDERS = ("as it happened", "shuffled", "without times")


def one_run(mode: str, seed: str, run: str) -> Any:
    """The events of a run, and the violation planted in it, if any."""
    rng = random.Random(seed)
    events = random_run(rng, run, causal=mode in ("causal", "planted") or rng.random() < 0.5)
    planted = plant(rng, events) if mode == "planted" else None
    if mode == "spoilt":
        spoil(rng, events)
    return events, planted


def arranged(order: str, seed: str, events: Any) -> Any:
    """The same events in another order of rows."""
    if order != "as it happened":
        events = list(events)
        random.Random(seed).shuffle(events)
    if order == "without times":
        events = [event._replace(lamport=None, time_ns=None) for event in events]
    return events


def source_of(events: Any) -> Any:
    """Where `check` would take these rows from, and all that is found in one scan."""
    trace = trace_of(events)
    try:
        source: Source = Stream(trace)
        found = scan(source, examples=ALL, every=True)
        judge(source, found.odd, 0)
    except (OrderError, ScatteredRunError):
        source = Sorted(trace)
        found = scan(source, examples=ALL, every=True)
    return source, found


def triples(found: Any) -> Any:
    """Violations as brute force names them."""
    result = set()
    for name, (run, rows) in found.items():
        for row in rows.tolist():
            first = run.processes[row[Found.FIRST_ORIGIN]], row[Found.FIRST_MID]
            second = run.processes[row[Found.ORIGIN]], row[Found.MID]
            violation = name, run.processes[row[Found.PROCESS]], first, second
            assert violation not in result, f"{violation} was found twice"
            result.add(violation)
    return result


def compare(events: Any, planted: Any = ()) -> str:
    """Assert that the check and brute force agree; returns what was found.

    One trace with a cycle is a trace that cannot be checked: those have to be
    given alone.
    """
    wanted = brute_force.judge(events)
    if wanted.cyclic:
        try:
            check(events)
        except TraceError as error:
            assert "cycle" in str(error)  # noqa: PT017 - called without pytest too
            return "cycle"
        raise AssertionError("a cycle went unnoticed")
    source, found = source_of(events)
    assert triples(found.found) == wanted.violations
    for violation in planted:
        assert violation in wanted.violations, f"{violation} was not planted well"
    report = check(events)
    assert report.events == len(events)
    assert report.violations == len(wanted.violations)
    assert report.messages == wanted.messages
    assert report.duplicates == wanted.duplicates
    assert report.undelivered == wanted.undelivered
    assert report.bad == wanted.bad
    assert len(report.bad_rows) == min(10, wanted.bad.total())
    overtaken = {(run, first) for run, _, first, _ in wanted.violations}
    assert len(report.examples) == min(10, len(overtaken))
    for example in report.examples:
        named = example.run, example.process, tuple(example.first), tuple(example.second)
        assert named in wanted.violations
    verdict = "violations" if wanted.violations else "ordered"
    return f"{verdict}, {type(source).__name__.lower()}"


def campaign(seed: int, start: int, count: int, together: int = 100) -> Counter[Any]:
    """Compare runs number `start` and following; returns what was seen.

    Runs are checked many together, as one trace, except for the spoilt ones,
    among which one may turn the order of a whole trace upside down.
    """
    seen: Counter[Any] = Counter()
    for begin in range(start, start + count, together):
        mode = MODES[begin // together % len(MODES)]
        order = ORDERS[begin // together // len(MODES) % len(ORDERS)]
        group, planted = [], []
        for k in range(begin, min(begin + together, start + count)):
            name = f"{seed}/{k}"
            events, violation = one_run(mode, name, name)
            if mode == "spoilt":
                where = f"run {name}, {mode}, {order}"
                seen[mode, order, _told(where, arranged(order, name, events))] += 1
            else:
                group += events
                if violation is not None:
                    planted.append(
                        (violation.run, violation.process, violation.first, violation.second)
                    )
        if group:
            where = f"runs from {seed}/{begin} on, {mode}, {order}"
            what = _told(where, arranged(order, str(begin), group), planted)
            seen[mode, order, what] += together
            seen["planted"] += len(planted)
            if mode == "causal":
                assert what.startswith("ordered"), where
    return seen


def _told(where: str, events: Any, planted: Any = ()) -> str:
    try:
        return compare(events, planted) if events else "nothing"
    except BaseException as error:
        error.add_note(where)
        raise
