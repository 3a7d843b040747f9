"""A trace in which nothing was delivered is not in order: there is nothing to order."""

from __future__ import annotations

from pathlib import Path

import pytest

from causewire.check import check
from causewire.check.checker import MEMORY
from causewire.cli import main
from causewire.report.checks import report_check
from causewire.trace import Event, trace_of

from ..trace.shop import in_order, otlp

SENT = Event("r", "a", 0, 0, 0, "send", "a", 1, ("b",))
DELIVERED = Event("r", "b", 0, 1, 1, "deliver", "a", 1, ("a",))
STARTED = Event("r", "c", 0, 0, 0, "start")


@pytest.mark.parametrize("memory", [MEMORY, 1])
@pytest.mark.parametrize(
    ("events", "verdict"),
    [
        ([SENT], "cannot tell: no message was delivered"),
        ([STARTED], "cannot tell: there are no messages"),
        ([SENT, DELIVERED], "causally ordered"),
        ([DELIVERED, SENT], "causally ordered"),
        ([DELIVERED._replace(run="s"), SENT._replace(run="s"), SENT], "causally ordered"),
    ],
)
def test_without_a_delivery_the_check_cannot_tell(
    events: list[Event], verdict: str, memory: int
) -> None:
    report = check(events, memory=memory)
    assert (report.verdict, report.conclusive) == (verdict, verdict == "causally ordered")
    assert report.ordered


def test_a_better_reason_is_told_instead() -> None:
    assert "sends of 1 delivery" in (told := check([DELIVERED]).verdict)
    assert "no message was delivered" not in told


def test_spans_of_clients_and_producers_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "spans.json"
    file.write_bytes(otlp([op for op in in_order() if op.kind in ("client", "producer")]))
    assert main(["check", str(file)]) == 1
    assert "\ncannot tell: no message was delivered\n" in capsys.readouterr().out


def test_the_page_says_so(tmp_path: Path) -> None:
    done = report_check(trace_of([SENT], "t"), check([SENT]), tmp_path / "report")
    assert not done.ordered
    assert "Cannot tell: no message was delivered" in done.page.read_text()
