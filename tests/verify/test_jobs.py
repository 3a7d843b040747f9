"""Many units: over several processes, and on from a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from causewire.verify import (
    Checker,
    Checkpoint,
    CheckpointError,
    Result,
    SearchOptions,
    Setup,
    Summary,
    Unit,
    check_unit,
    run_units,
    unicasts,
    up_to_renaming,
)


def units_of(protocol: str, messages: int = 1, how: SearchOptions | None = None) -> list[Unit]:
    setup = Setup(protocol, 3)
    chosen = up_to_renaming(unicasts(3, messages))
    return [Unit(setup, program, how or SearchOptions(engine="python")) for program in chosen]


def numbers(summary: Summary) -> tuple[int, ...]:
    return (summary.units, summary.done, summary.states, summary.transitions, summary.depth)


def test_several_processes_see_what_one_does() -> None:
    units = units_of("mf", 2)
    alone = run_units(units, workers=1)
    together = run_units(units, workers=2)
    assert numbers(alone) == numbers(together)
    assert alone.passed
    assert together.passed
    assert alone.units == 12


def test_the_shortest_of_all_violations_is_kept() -> None:
    summary = run_units(units_of("fifo", 2), workers=1, keep_going=True)
    assert summary.shortest is not None
    assert summary.shortest.violation is not None
    assert summary.done == summary.units
    assert summary.violating > 1
    assert len(summary.shortest.violation.steps) == 5


def test_the_first_violation_ends_a_check_that_is_not_to_keep_going() -> None:
    summary = run_units(units_of("fifo", 2), workers=1)
    assert summary.violating == 1
    assert summary.done < summary.units
    assert not summary.passed


class StoppedError(Exception):
    pass


def stop_after(monkeypatch: pytest.MonkeyPatch, number: int) -> list[Unit]:
    """Make the check stop, as if interrupted, after `number` units; return those done."""
    done: list[Unit] = []
    whole = Checker.check

    def check(self: Checker, unit: Unit, watch: object = None) -> Result:
        if len(done) == number:
            raise StoppedError
        done.append(unit)
        return whole(self, unit)

    monkeypatch.setattr(Checker, "check", check)
    return done


def test_an_interrupted_check_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = units_of("mf", 2)
    whole = run_units(units, workers=1)
    path = tmp_path / "check.jsonl"
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(StoppedError):
            run_units(units, workers=1, checkpoint=Checkpoint(path, units))
    with monkeypatch.context() as patch:
        done = stop_after(patch, 100)
        summary = run_units(units, workers=1, checkpoint=Checkpoint(path, units))
    assert summary.resumed == 5
    assert [unit.program for unit in done] == [unit.program for unit in units[5:]]
    assert numbers(summary) == numbers(whole)
    assert summary.passed


def test_a_line_cut_short_is_done_again(tmp_path: Path) -> None:
    units = units_of("mf", 2)
    path = tmp_path / "check.jsonl"
    run_units(units, workers=1, checkpoint=Checkpoint(path, units))
    text = path.read_text()
    path.write_text(text[:-40])
    summary = run_units(units, workers=1, checkpoint=Checkpoint(path, units))
    assert summary.resumed == len(units) - 1
    assert summary.passed
    assert run_units(units, workers=1, checkpoint=Checkpoint(path, units)).resumed == len(units)


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "check.jsonl"
    units = units_of("mf")
    Checkpoint(path, units)
    with pytest.raises(CheckpointError, match="another check"):
        Checkpoint(path, units_of("csps"))
    with pytest.raises(CheckpointError, match="another check"):
        Checkpoint(
            path,
            [replace(unit, options=SearchOptions(properties=("FIFO order",))) for unit in units],
        )
    before = path.read_bytes()
    path.write_text("nonsense\n")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        Checkpoint(path, units)
    path.write_bytes(before)
    Checkpoint(path, [replace(unit, options=SearchOptions(memory=1 << 20)) for unit in units])


def test_a_unit_that_was_not_looked_at_to_the_end_is_not_done(tmp_path: Path) -> None:
    """More memory the next time, and it is done then."""
    path = tmp_path / "check.jsonl"
    small = units_of("csps", 2, SearchOptions(engine="python", memory=1 << 18))[:2]
    summary = run_units(small, workers=1, checkpoint=Checkpoint(path, small))
    assert not summary.complete
    assert not summary.passed
    ample = [replace(unit, options=SearchOptions(engine="python")) for unit in small]
    summary = run_units(ample, workers=1, checkpoint=Checkpoint(path, ample))
    assert summary.resumed == 0
    assert summary.complete


def test_progress_grows() -> None:
    seen: list[int] = []
    units = units_of("csps", 2)[:3]
    run_units(
        units, workers=1, progress=lambda s, states, moves, depth: seen.append(s.states + states)
    )
    assert len(seen) > 10
    assert seen[-1] == max(seen)


def test_units_can_be_checked_elsewhere(tmp_path: Path) -> None:
    units = units_of("mf", 2)
    asked: list[int] = []

    def elsewhere(todo: list[tuple[int, Unit]]) -> list[tuple[int, Result]]:
        asked.extend(k for k, _ in todo)
        return [(k, check_unit(unit)) for k, unit in reversed(todo)]

    checkpoint = Checkpoint(tmp_path / "check.jsonl", units)
    summary = run_units(units, elsewhere=elsewhere, checkpoint=checkpoint)
    assert numbers(summary) == numbers(run_units(units, workers=1))
    assert asked == list(range(12))
    again = Checkpoint(tmp_path / "check.jsonl", units)
    assert run_units(units, elsewhere=elsewhere, checkpoint=again).resumed == 12
    assert len(asked) == 12
