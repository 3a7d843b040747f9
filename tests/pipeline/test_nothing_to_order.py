"""On Spark, too, a trace in which nothing was delivered is not in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire.check import Report, check
from causewire.pipeline.check import check_paths
from causewire.pipeline.foreign import check_foreign
from causewire.pipeline.large import check_large
from causewire.pipeline.limits import Shape
from causewire.pipeline.pieces import layout
from causewire.trace import Event, write_trace

from ..trace.shop import in_order, otlp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENDS = [Event("r", "a", k, k, k, "send", "a", k + 1, ("b",)) for k in range(200)]
DELIVERED = Event("r", "b", 0, 900, 900, "deliver", "a", 1, ("a",))
NOTHING = "cannot tell: no message was delivered"


def test_traces(spark: SparkSession, tmp_path: Path) -> None:
    for name, events in (("sent", SENDS), ("delivered", [*SENDS, DELIVERED])):
        file = tmp_path / f"{name}.parquet"
        write_trace(file, events)
        assert check_paths([file]) == check(events)
    assert check_paths([tmp_path / "sent.parquet"]).verdict == NOTHING


@pytest.mark.parametrize("shape", [Shape(), Shape(blocks=2), Shape(stretches=3)])
def test_long_runs(
    shape: Shape, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causewire.trace.parquet.ROW_GROUP", 64)

    def checked(events: list[Event]) -> Report:
        file = tmp_path / "long.parquet"
        write_trace(file, events)
        return check_large(spark, "r", layout([str(file)]), shape=shape)

    assert checked(SENDS).verdict == NOTHING
    # The delivery is in another stretch than the send.
    assert checked([*SENDS, DELIVERED]).verdict == "causally ordered"


def test_spans(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("what this is")
    write_trace(tmp_path / "t.parquet", [SENDS[0], DELIVERED])
    (tmp_path / "spans.json").write_bytes(otlp(in_order()))
    found = check_foreign([str(tmp_path)], "spans")
    assert (found.report.verdict, found.refused.total()) == ("causally ordered", 2)
    named = [str(tmp_path / name) for name in ("spans.json", "t.parquet")]
    assert check_foreign(named, "spans").report.verdict.startswith("cannot tell: 1 file")
    callers = [op for op in in_order() if op.kind in ("client", "producer")]
    (tmp_path / "spans.json").write_bytes(otlp(callers))
    assert check_foreign([str(tmp_path)], "spans").report.verdict == NOTHING
