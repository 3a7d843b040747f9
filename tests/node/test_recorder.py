"""What a node writes of peers that start again under one name, and of a trace that fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causewire.check import check
from causewire.core.endpoint import Delivery
from causewire.core.run import MessageRun
from causewire.node.recorder import TraceRecorder
from causewire.testing.virtual import VirtualLoop, run
from causewire.trace import Event, open_trace

from .test_traces import node

SECOND = "a (incarnation 12)"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """b is asked and answers twice; a is started for each, with a trace file for each."""

    async def main(loop: VirtualLoop) -> None:
        b = await node(loop, "b", 2, tmp_path / "b.jsonl", incarnation=22).start()
        for incarnation in (11, 12):
            place = tmp_path / f"a-{incarnation}.jsonl"
            a = await node(loop, "a", 1, place, incarnation=incarnation).start()
            await (await a.send("b", b"x")).delivered()
            await b.receive()
            await (await b.send("a", b"y")).delivered()
            assert await a.close()
        await b.close()

    run(main)
    return tmp_path


def rows_of_b(folder: Path, kind: str) -> list[Event]:
    return [event for event in open_trace(folder / "b.jsonl").events() if event.kind == kind]


def test_incarnations_of_one_name_are_told_apart(traces: Path) -> None:
    assert [event.origin for event in rows_of_b(traces, "receive")] == ["a", SECOND]
    assert [event.origin for event in rows_of_b(traces, "deliver")] == ["a", SECOND]
    assert [event.peers for event in rows_of_b(traces, "send")] == [("a",), (SECOND,)]
    assert [event.peers for event in rows_of_b(traces, "release")] == [("a",), (SECOND,)]


def test_nothing_was_delivered_twice(traces: Path) -> None:
    """The send of what came second is in the file that was left out."""
    report = check(open_trace(traces / "b.jsonl", traces / "a-11.jsonl"))
    assert report.duplicates == 0
    assert report.verdict == (
        f"cannot tell: the sends of 1 delivery of {SECOND} are missing "
        "(give the files of all nodes)"
    )


def test_the_answer_to_one_start_is_not_overtaken_at_the_other(traces: Path) -> None:
    report = check(open_trace(traces / "b.jsonl", traces / "a-12.jsonl"))
    assert (report.violations, report.duplicates) == (0, 0)
    assert not report.conclusive


def test_each_life_of_this_process_calls_a_peer_by_its_incarnation(tmp_path: Path) -> None:
    """The aliases of a transport begin anew with it."""
    path = tmp_path / "me.jsonl"
    recorder = TraceRecorder(path, "r", "me", 1)
    run = MessageRun((1,), 0, (b"x",), False, 1)
    for life in (1, 2, 3):
        session: Any = SimpleNamespace(label="b", alias="b", incarnation=10 + life)
        if life > 1:
            recorder.begin_life(life)
            recorder.sent(1, ("b",), 1)
            recorder.released(session, run)
        recorder.arrived(session, run)
        recorder.delivered([Delivery("b", 1, b"x")], {"b": "b"})
    recorder.close()
    names = ["b", SECOND.replace("a", "b", 1), "b (incarnation 13)"]
    rows = list(open_trace(path).events())
    assert [event.origin for event in rows if event.kind == "receive"] == names
    assert [event.origin for event in rows if event.kind == "deliver"] == names
    for kind in ("send", "release"):  # until a message arrives, by the last name that is known
        assert [event.peers for event in rows if event.kind == kind] == [("b",), (names[1],)]


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("where", ["write", "flush", "close"])
def test_a_trace_that_fails_is_named(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "alice.jsonl"
    recorder = TraceRecorder(path, "r", "alice", 1)
    monkeypatch.setattr(recorder._writer, where, full)
    if where == "write":
        recorder.sent(1, ("bob",), 1)
    elif where == "flush":
        recorder.flush()
    else:
        recorder.close()
    monkeypatch.undo()
    recorder.close()
    assert recorder.failure == f"{path}: OSError: [Errno 28] No space left on device"
