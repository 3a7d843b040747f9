"""Rows that are there twice, partitions in paths, and times as timestamps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causewire.check import check
from causewire.cli import main
from causewire.pipeline.pieces import Region, layout
from causewire.trace import Event, TraceError, open_trace, write_trace

from .random_traces import random_run


def run_of(seed: int, name: str = "r") -> list[Event]:
    return random_run(random.Random(seed), name, causal=False)


@pytest.mark.parametrize("seed", range(5))
def test_identical_rows_count_once(seed: int) -> None:
    """Whatever wrote the log may have written a row again, and once more."""
    events = run_of(seed)
    wanted = check(events)
    rng = random.Random(seed)
    relevant = [event for event in events if event.kind in ("send", "deliver")]
    again = [rng.choice(relevant) for _ in range(5)]
    report = check([*events, *again])
    assert report.identical == 5
    report.identical = 0
    assert report.violations == wanted.violations
    assert report.duplicates == wanted.duplicates
    assert (report.events, report.messages) == (wanted.events, wanted.messages)
    with pytest.raises(TraceError, match="has two rows with seq"):
        check([*events, *again], strict=True)


def test_different_rows_with_the_same_seq_are_refused() -> None:
    events = run_of(1)
    other = next(event for event in events if event.kind == "send")
    with pytest.raises(TraceError, match="has two rows with seq"):
        check([*events, other._replace(mid=(other.mid or 0) + 1000)])


def test_the_command_is_strict_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [Event("r", "a", 0, 0, 0, "send", "a", 1, ("b",))] * 2
    events.append(Event("r", "b", 0, 1, 1, "deliver", "a", 1, ("a",)))
    write_trace(tmp_path / "t.jsonl", events)
    assert main(["check", str(tmp_path / "t.jsonl"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["identical"], told["events"]) == (1, 2)
    assert main(["check", str(tmp_path / "t.jsonl"), "--strict"]) == 2
    assert "two rows with seq 0" in capsys.readouterr().err


@pytest.fixture
def partitioned(tmp_path: Path) -> Path:
    """Two runs as Hive has them: the name of the run is in the path only."""
    for k in (1, 2):
        name = f"run {k}"
        place = tmp_path / f"run={name.replace(' ', '%20')}"
        place.mkdir()
        write_trace(tmp_path / "x.parquet", run_of(k, name))
        table = pq.read_table(tmp_path / "x.parquet").drop_columns(["run"])
        times = table["time_ns"].cast(pa.timestamp("ns"))
        table = table.set_column(table.schema.get_field_index("time_ns"), "time_ns", times)
        pq.write_table(table, place / "part-0.parquet", row_group_size=10)
        (tmp_path / "x.parquet").unlink()
    return tmp_path


def test_partitions_and_timestamps(partitioned: Path) -> None:
    wanted = check([*run_of(1, "run 1"), *run_of(2, "run 2")])
    assert check(str(partitioned)) == wanted
    (first, *_) = open_trace(partitioned).events()
    assert first == run_of(1, "run 1")[0]


def test_pieces_of_partitions(partitioned: Path) -> None:
    """As tasks on Spark read them."""
    pieces = layout([str(file) for file in sorted(partitioned.rglob("*.parquet"))])
    assert {piece.run for piece in pieces} == {"run 1", "run 2"}
    region = Region("run 2", pieces)
    assert sum(len(chunk.columns.kind) for chunk in region.chunks()) == len(run_of(2, "run 2"))
