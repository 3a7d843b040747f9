"""Times of different clocks are not compared, and sentences are shown whole."""

from __future__ import annotations

from pathlib import Path

from causewire.metrics import measure
from causewire.report.names import LONGEST, shown, visible
from causewire.report.times import write_times
from causewire.trace import Event, trace_of


def page_of(delivered: int | None, place: Path) -> str:
    sent = None if delivered is None else 1_000_000
    events = [
        Event("r", "p", 0, sent, 1, "send", "p", 1, ("q",)),
        Event("r", "q", 0, delivered, 2, "deliver", "p", 1, ("p",)),
    ]
    return write_times([run.summary() for run in measure(trace_of(events))], place)


def test_a_message_that_arrives_before_it_is_sent(tmp_path: Path) -> None:
    page = page_of(500, tmp_path)
    assert "different clocks are not compared" in page
    assert "A message took" not in page


def test_a_trace_without_times(tmp_path: Path) -> None:
    page = page_of(None, tmp_path)
    assert "The trace has no times." in page
    assert "A message took" not in page


def test_names_are_shortened_and_sentences_are_not() -> None:
    sentence = ", and then ".join(f"payment/pay-7#{k:016x} sent it" for k in range(40))
    assert visible(sentence) == sentence
    assert len(shown(sentence)) <= LONGEST
