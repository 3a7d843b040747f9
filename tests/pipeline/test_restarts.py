"""Long runs with restarted processes: Spark resolves destinations as one process does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.check.lives import resolve_lives
from causewire.pipeline.check import check_paths
from causewire.pipeline.restarts import LOST, labels_of, resolved
from causewire.trace import Event, write_trace

from .runs import SMALL, frame_of


def restarted_run(seed: int, steps: int = 250) -> list[Event]:
    """Four processes that are restarted now and then, which loses what they had to do."""
    rng = random.Random(seed)
    names = ["a", "b", "c/d", "e"]
    label = {name: name for name in names}
    events: list[Event] = []
    seq: dict[str, int] = {}
    mid: dict[str, int] = {}
    waiting: list[tuple[str, int, str]] = []

    def add(process: str, kind: str, origin: str | None, number: int | None, *peers: str) -> None:
        seq[process] = seq.get(process, -1) + 1
        at = len(events) + 1
        events.append(Event("long", process, seq[process], at, at, kind, origin, number, peers))

    for name in names:
        add(name, "start", None, None)
    for step in range(steps):
        name = rng.choice(names)
        if step % 60 == 59:
            life = label[name].rpartition("/")[2]
            life = life if life.isdigit() else "1"
            label[name] = f"{name}/{int(life) + 1}"
            add(label[name], "start", None, None)
            waiting = [copy for copy in waiting if rng.random() < 0.5]
        me = label[name]
        mid[me] = mid.get(me, 0) + 1
        to = rng.sample([other for other in names if other != name], rng.randint(1, 3))
        add(me, "send", me, mid[me], *to)
        waiting += [(me, mid[me], other) for other in to]
        while len(waiting) > 8:
            origin, number, other = waiting.pop(0 if rng.random() < 0.95 else 3)
            add(label[other], "deliver", origin, number, origin)
    return events


@pytest.mark.slow
def test_destinations_become_lives(spark: SparkSession) -> None:
    events = restarted_run(1, steps=130)
    wanted, lost = resolve_lives(events)
    frame = frame_of(spark, events)
    labels = labels_of(frame)
    assert any("/2" in label for label in labels)
    found = {(row.process, row.seq): row for row in resolved(frame, labels).collect()}
    assert {key: tuple(row.peers) for key, row in found.items()} == {
        (event.process, event.seq): event.peers for event in wanted
    }
    assert sum(row[LOST] for row in found.values()) == lost > 0


@pytest.mark.slow
@pytest.mark.parametrize("by_node", [False, True])
def test_a_long_run_with_restarts(spark: SparkSession, tmp_path: Path, by_node: bool) -> None:
    """As one process does: what was lost with a process is not overtaken."""
    events = restarted_run(5)
    place = tmp_path / "run"
    place.mkdir()
    if by_node:
        for name in {event.process for event in events}:
            mine = [event for event in events if event.process == name]
            write_trace(place / f"{name.replace('/', '-')}.parquet", mine)
    else:
        write_trace(place / "whole.parquet", events)
    wanted = check(str(place))
    found = check_paths([place], limits=SMALL)
    assert wanted.lost > 0
    assert found == wanted
