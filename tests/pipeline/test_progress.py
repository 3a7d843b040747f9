"""Progress of a sweep, as a terminal and a log file show it."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import TYPE_CHECKING

from causewire.pipeline.sweep import results as columns
from causewire.pipeline.sweep.journal import Journal, JournalWriter
from causewire.pipeline.sweep.progress import Progress, duration

if TYPE_CHECKING:
    pass


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "code")
    writer = JournalWriter(tmp_path, "code", "start", "00000")
    writer.end("a", 1.0, columns.failed("a", "why"))
    journal.refresh()
    now = [0.0]
    costs = {"a": 5.0, "b": 30.0, "c": 10.0}
    progress = Progress(journal, costs, Terminal(), lambda: now[0])
    assert progress.line() == "1 of 3 runs, 1 failed"
    now[0] = 1000.0  # nothing was begun so far
    assert progress.line() == "1 of 3 runs, 1 failed"
    writer.begin("b")
    journal.refresh()
    now[0] = 1060.0
    writer.end("b", 1.0, columns.failed("b", "") | {"status": "done"})
    writer.close()
    journal.refresh()
    assert progress.line() == "2 of 3 runs, 1 failed, 0.0167 a second, about 20 s left"
    terminal = Terminal()
    with Progress(journal, costs, terminal):
        time.sleep(0.6)
    assert "\r\x1b[K2 of 3 runs, 1 failed" in terminal.getvalue()
    pipe = io.StringIO()
    with Progress(journal, costs, pipe):
        pass
    assert pipe.getvalue() == ""


def test_durations() -> None:
    assert [duration(s) for s in (0.4, 59, 61, 3700)] == ["0 s", "59 s", "1 min 01 s", "1 h 01 min"]
