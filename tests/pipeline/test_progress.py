"""How far a sweep says that it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from causewire.pipeline.sweep import SweepState
from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.progress import SweepProgress


def test_the_work_that_is_done_is_that_of_the_runs_that_ended(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "code")
    writer = JournalWriter(tmp_path, "code", "start", "00000")
    writer.end("a", 1.0, columns.failed("a", "why"))
    journal.refresh()
    now = [0.0]
    costs = {"a": 5.0, "b": 30.0, "c": 10.0}
    told: list[SweepState] = []
    progress = SweepProgress(journal, costs, told.append, lambda: now[0])
    assert progress.state() == (1, 3, 1, 0.0, 0.0, 0.0)
    now[0] = 1000.0  # nothing was begun so far
    assert progress.state().seconds == 0
    writer.begin("b")
    journal.refresh()
    now[0] = 1060.0
    writer.end("b", 1.0, columns.failed("b", "") | {"status": "done"})
    writer.close()
    journal.refresh()
    state = progress.state()
    assert (state.done, state.runs, state.failed, state.seconds) == (2, 3, 1, 60)
    assert state.rate == pytest.approx(1 / 60)
    assert state.share == pytest.approx(0.75)
    with progress:
        pass
    assert told[-1] == state


def test_nobody_is_told_unless_somebody_asks(tmp_path: Path) -> None:
    with SweepProgress(Journal(tmp_path, "code"), {"a": 1.0}) as progress:
        assert progress.state().done == 0
