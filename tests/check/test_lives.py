"""Restarted processes: what is lost with them is not overtaken."""

from __future__ import annotations

import pytest

from causewire.check import check, checker
from causewire.trace import Event


class Log:
    """Writes the rows of nodes, with Lamport times."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._seq: dict[str, int] = {}

    def add(self, process: str, kind: str, origin: str = "", mid: int = 0, *peers: str) -> None:
        seq = self._seq[process] = self._seq.get(process, -1) + 1
        at = len(self.events)
        self.events.append(
            Event("r", process, seq, at, at, kind, origin or None, mid or None, peers)
        )


def begun(*names: str) -> Log:
    log = Log()
    for name in names:
        log.add(name, "start")
    return log


def test_a_message_to_a_name_may_be_delivered_by_its_next_life() -> None:
    log = begun("a", "b")
    log.add("a", "send", "a", 1, "b")
    log.add("b", "deliver", "a", 1, "a")
    log.add("b/2", "start")
    log.add("a", "send", "a", 2, "b")
    log.add("b/2", "deliver", "a", 2, "a")
    report = check(log.events)
    assert (report.violations, report.undelivered, report.bad.total()) == (0, 0, 0)
    assert report.lost == 0


def test_what_a_dead_process_sent_is_lost_and_not_overtaken() -> None:
    """a told b and c; c passed on what it knew, and b never got the message of a."""
    log = begun("a", "b", "c")
    log.add("a", "send", "a", 1, "b")
    log.add("a", "send", "a", 2, "c")
    log.add("c", "deliver", "a", 2, "a")
    log.add("c", "send", "c", 1, "b")
    overtaken = [*log.events]
    log.add("a/2", "start")
    log.add("b", "deliver", "c", 1, "c")
    report = check(log.events)
    assert (report.violations, report.lost, report.undelivered) == (0, 1, 0)
    seq = [event for event in overtaken if event.process == "b"][-1].seq + 1
    overtaken.append(Event("r", "b", seq, 9, 9, "deliver", "c", 1, ("c",)))
    assert check(overtaken).violations == 1  # without a restart nothing excuses it


def test_a_message_that_comes_after_all_was_overtaken() -> None:
    """Its sender was restarted, but the message was not lost."""
    log = begun("a", "b", "c")
    log.add("a", "send", "a", 1, "b")
    log.add("a", "send", "a", 2, "c")
    log.add("c", "deliver", "a", 2, "a")
    log.add("c", "send", "c", 1, "b")
    log.add("a/2", "start")
    log.add("b", "deliver", "c", 1, "c")
    log.add("b", "deliver", "a", 1, "a")
    report = check(log.events)
    assert (report.violations, report.lost) == (1, 0)


def test_names_with_a_stroke_are_no_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the trace, which may be large, is not read into memory to find out."""
    monkeypatch.setattr(checker, "resolve_lives", None)
    log = Log()
    log.add("web/1", "send", "web/1", 1, "web")
    log.add("web", "deliver", "web/1", 1, "web/1")
    report = check(log.events)
    assert (report.violations, report.undelivered, report.lost) == (0, 0, 0)
