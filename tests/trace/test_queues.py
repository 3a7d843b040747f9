"""Messages in queues: those with the same key are expected in order, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from causewire.check import check
from causewire.trace.formats.foreign import read_foreign
from causewire.trace.formats.spans import NO_KEY, SpanOptions

from .shop import Op, in_order, jaeger, otlp, overtaken, zipkin

KEYS = {
    "kafka": ("messaging.destination.name", "messaging.kafka.message.key"),
    "kafka, until 1.16": ("messaging.destination", "messaging.kafka.message_key"),
    "kafka, consumers until 1.20": ("messaging.source.name", "messaging.kafka.message.key"),
    "kafka, brave": ("kafka.topic", "kafka.key"),
    "rabbitmq": ("messaging.destination.name", "messaging.rabbitmq.destination.routing_key"),
    "rabbitmq, message": ("messaging.destination.name", "messaging.rabbitmq.message.routing_key"),
    "rabbitmq, until 1.16": ("messaging.destination", "messaging.rabbitmq.routing_key"),
    "rabbitmq, brave": ("rabbit.exchange", "rabbit.routing_key"),
    "rabbitmq, brave's consumers": ("rabbit.queue", "rabbit.routing_key"),
    "pub/sub": ("messaging.destination.name", "messaging.gcp_pubsub.message.ordering_key"),
    "rocketmq": ("messaging.destination.name", "messaging.rocketmq.message.group"),
}
PARTITIONS = {
    "any": ("messaging.destination.name", "messaging.destination.partition.id"),
    "kafka": ("messaging.destination.name", "messaging.kafka.destination.partition"),
    "kafka, consumers": ("messaging.source.name", "messaging.kafka.source.partition"),
    "kafka, until 1.16": ("messaging.destination", "messaging.kafka.partition"),
}
MODELS = ["request", "instance", "service", "thread"]


def tagged(ops: list[Op], name: str, key: str, values: tuple[str, str] = ("a", "a")) -> list[Op]:
    """Return the spans with a key for each of the two messages in the queue."""
    of = {4: values[0], 8: values[0], 7: values[1], 9: values[1]}
    return [
        op._replace(partition="", tags=((name, "orders"), (key, of[op.span])))
        if op.span in of
        else op
        for op in ops
    ]


def judged(
    tmp_path: Path,
    ops: list[Op],
    export: Callable[[list[Op]], bytes] = otlp,
    by: str = "request",
    run_by: str = "trace",
) -> list[str]:
    """Return the receivers at which a message was overtaken."""
    file = tmp_path / "spans"
    file.write_bytes(export(ops))
    found = read_foreign([str(file)], options=SpanOptions.checked(by, run_by, None))
    report = check(found.trace)
    assert not report.bad
    assert report.violations == len(report.examples)
    return [violation.process for violation in report.examples]


@pytest.mark.parametrize("export", [otlp, jaeger, zipkin])
@pytest.mark.parametrize(("name", "key"), KEYS.values(), ids=KEYS)
def test_messages_with_the_same_key_are_expected_in_order(
    name: str, key: str, export: Callable[[list[Op]], bytes], tmp_path: Path
) -> None:
    where = judged(tmp_path, tagged(overtaken(), name, key), export)
    assert [receiver[-len("[orders:a]") :] for receiver in where] == ["[orders:a]"]
    assert judged(tmp_path, tagged(in_order(), name, key), export) == []
    assert judged(tmp_path, tagged(overtaken(), name, key, ("a", "b")), export) == []


@pytest.mark.parametrize(("name", "key"), PARTITIONS.values(), ids=PARTITIONS)
def test_messages_in_the_same_partition_are_expected_in_order(
    name: str, key: str, tmp_path: Path
) -> None:
    ops = tagged(overtaken(), name, key, ("0", "0"))
    assert judged(tmp_path, ops) == ["mail/mail-1[orders/0]"]
    assert judged(tmp_path, tagged(overtaken(), name, key, ("0", "1"))) == []


def test_a_key_is_more_than_a_partition(tmp_path: Path) -> None:
    """Consumers that take the keys of a partition in parallel are not at fault."""
    name, key = KEYS["kafka"]
    keyed = tagged(overtaken(), name, key, ("a", "b"))
    both = [op._replace(partition="0") if op.tags else op for op in keyed]
    assert judged(tmp_path, both) == []
    # The producer says which key, and the consumer only from which partition.
    apart = [op._replace(tags=()) if op.kind == "consumer" else op for op in both]
    assert judged(tmp_path, apart) == []


@pytest.mark.parametrize("run_by", ["trace", "all"])
@pytest.mark.parametrize("by", MODELS)
def test_different_keys_have_no_order_whatever_is_a_process(
    by: str, run_by: str, tmp_path: Path
) -> None:
    name, key = KEYS["kafka"]
    assert judged(tmp_path, tagged(overtaken(), name, key, ("a", "b")), by=by, run_by=run_by) == []
    assert len(judged(tmp_path, tagged(overtaken(), name, key), by=by, run_by=run_by)) == 1


@pytest.mark.parametrize("by", MODELS)
def test_messages_without_a_key_have_no_order_whatever_is_a_process(
    by: str, tmp_path: Path
) -> None:
    file = tmp_path / "spans"
    file.write_bytes(otlp([op._replace(partition="") for op in overtaken()]))
    found = read_foreign([str(file)], options=SpanOptions.checked(by, None, None))
    assert check(found.trace).violations == 0
    assert found.notes[NO_KEY] == 2


def test_what_an_instance_has_taken_from_a_queue_it_knows(tmp_path: Path) -> None:
    """Two keys: `mail` takes the second order, calls `audit`, which had not taken its copy."""
    name, key = KEYS["kafka"]
    tags = ((name, "orders"), (key, "a"))
    ops = [
        Op("web", 1, 0, "server", 0, 100),
        Op("web", 2, 1, "client", 10, 20),  # given up
        Op("web", 3, 1, "producer", 30, 31, tags=tags),
        Op("mail", 4, 3, "consumer", 2000, 2100, tags=tags),
        Op("mail", 5, 4, "client", 2010, 2050),
        Op("cart", 6, 5, "server", 1010, 1020),
        Op("cart", 7, 2, "server", 1030, 1040),
    ]
    assert judged(tmp_path, ops, by="instance") == ["cart/cart-1"]
