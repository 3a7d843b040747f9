"""Alerts of a watch, its tables, and streams that are not directories of trace files."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causewire.check import check
from causewire.pipeline import PipelineError
from causewire.pipeline.alerts import Counters, Webhook
from causewire.pipeline.sources import from_kafka
from causewire.pipeline.watch import watch
from causewire.pipeline.watch_tables import write_batch

from .runs import long_run

ROW = {"run": "r", "process": "p", "seq": 1}


class Receiver:
    """A server on loopback that answers with the given statuses, the last one for ever."""

    def __init__(self, *statuses: int) -> None:
        self.got: list[Any] = []
        self.asked = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = statuses[min(receiver.asked, len(statuses) - 1)]
                receiver.asked += 1
                if status == 200:
                    receiver.got += json.loads(body)["violations"]
                self.send_response(status)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Say nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts"
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@pytest.fixture
def receiver(request: pytest.FixtureRequest) -> Iterator[Receiver]:
    server = Receiver(*request.param)
    yield server
    server.close()


@pytest.mark.parametrize("receiver", [(500, 429, 200)], indirect=True)
def test_a_webhook_is_tried_again(receiver: Receiver) -> None:
    with Webhook(receiver.url, pause=0.001) as hook:
        for seq in range(250):
            hook("violations", ROW | {"seq": seq})
            hook("windows", {"events": 1})
    assert [row["seq"] for row in receiver.got] == list(range(250))
    assert hook.counts == {"sent": 250}
    assert receiver.asked >= 2 + 3  # two failures, and a hundred rows at a time


@pytest.mark.parametrize(("receiver", "asked"), [((500,), 3), ((404,), 1)], indirect=["receiver"])
def test_a_webhook_gives_up(receiver: Receiver, asked: int) -> None:
    with Webhook(receiver.url, attempts=3, pause=0.001) as hook:
        hook("violations", ROW)
    assert hook.counts == {"failed": 1}
    assert receiver.asked == asked


def test_a_webhook_never_delays_the_watch() -> None:
    """Nobody answers; what does not fit into the queue is dropped, and counted."""
    hook = Webhook("http://127.0.0.1:9", attempts=100, pause=60, most=10)
    for _ in range(500):
        hook("violations", ROW)
    assert hook.counts["dropped"] >= 500 - 10 - 100
    hook.close(patience=0.01)
    assert hook.counts["failed"] + hook.counts["dropped"] == 500


def test_a_webhook_needs_a_url_of_http() -> None:
    with pytest.raises(PipelineError, match="not a URL for a webhook"):
        Webhook("mailto:me")


def test_counters_for_prometheus() -> None:
    with Counters("127.0.0.1", 0) as counters:
        counters("violations", ROW)
        counters("windows", {"events": 7})
        text = urlopen(f"http://127.0.0.1:{counters.port}/metrics").read().decode()
    assert "causewire_watch_violations_total 1\n" in text
    assert "causewire_watch_events_total 7\n" in text
    assert "# TYPE causewire_watch_late_total counter\n" in text


# -- tables ----------------------------------------------------------------------------------


def rows_of(table: Path) -> list[int]:
    files = sorted(table.rglob("part.parquet"))
    return sorted(n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist())


def test_batches_are_put_together(tmp_path: Path) -> None:
    for batch in range(40):
        write_batch(tmp_path / "t", batch, pa.table({"n": [batch]}), many=8)
        assert rows_of(tmp_path / "t") == list(range(batch + 1))
        assert len(list((tmp_path / "t").iterdir())) <= 8 + 2
    write_batch(tmp_path / "t", 39, pa.table({"n": [39]}), many=8)  # done again
    write_batch(tmp_path / "t", 40, pa.table({"n": pa.array([], pa.int64())}), many=8)
    assert rows_of(tmp_path / "t") == list(range(40))


def test_killed_while_batches_are_put_together(tmp_path: Path) -> None:
    """The places of single batches are still there: the next batch removes them."""
    table = tmp_path / "t"
    for batch in range(9):
        write_batch(table, batch, pa.table({"n": [batch]}), many=8)
    assert (table / "batch=00000000-00000007").is_dir()
    (table / "batch=00000003").mkdir()
    pq.write_table(pa.table({"n": [3]}), table / "batch=00000003" / "part.parquet")
    write_batch(table, 9, pa.table({"n": [9]}), many=8)
    assert rows_of(table) == list(range(10))


# -- streams ---------------------------------------------------------------------------------


def test_records_of_kafka(spark: SparkSession, tmp_path: Path) -> None:
    """A stream with the columns of Spark's Kafka source, from files."""
    events = long_run(3, steps=80, causal=False)
    lines = [json.dumps(event._asdict()).encode() for event in events]
    values = [*lines, b"no JSON", b'{"run": "long", "process": "p0"}']
    records = pa.table(
        {
            "key": pa.array([None] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": ["traces"] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
        }
    )
    (tmp_path / "topic").mkdir()
    pq.write_table(records, tmp_path / "topic" / "a.parquet")
    schema = "key binary, value binary, topic string, partition int, offset bigint"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "topic"))
    told: dict[str, list[Any]] = {}
    watching = watch(
        spark,
        from_kafka(stream),
        tmp_path / "out",
        once=True,
        final=True,
        tell=lambda table, row: told.setdefault(table, []).append(row),
    )
    watching.query.awaitTermination()
    wanted = {(v.first.origin, v.first.mid) for v in check(events, examples=1000).examples}
    assert wanted
    assert {(row["first_origin"], row["first_mid"]) for row in told["violations"]} == wanted
    refused = [(row["file"], row["row"], row["reason"]) for row in told["quarantine"]]
    assert sorted(refused) == [
        ("traces/0", len(lines), "has no run"),
        ("traces/0", len(lines) + 1, "has no seq"),
    ]
