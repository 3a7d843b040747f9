"""Queues: among which of their messages order is expected.

The names of attributes are those of OpenTelemetry's semantic conventions, in all versions, and
those that Brave, the instrumentation of Zipkin, writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .documents import first_of

__all__ = ["Queue", "queue_of"]

_NAMES = (
    "messaging.destination.name",
    "messaging.source.name",
    "messaging.destination",
    "kafka.topic",
    "rabbit.queue",
    "rabbit.exchange",
)
_KEYS = (
    "messaging.kafka.message.key",
    "messaging.kafka.message_key",
    "messaging.message.key",
    "kafka.key",
    "messaging.rabbitmq.message.routing_key",
    "messaging.rabbitmq.destination.routing_key",
    "messaging.rabbitmq.routing_key",
    "rabbit.routing_key",
    "messaging.gcp_pubsub.message.ordering_key",
    "messaging.rocketmq.message.group",
)
_PARTITIONS = (
    "messaging.destination.partition.id",
    "messaging.kafka.destination.partition",
    "messaging.kafka.source.partition",
    "messaging.kafka.partition",
)


class Queue(NamedTuple):
    """The queue of a message, with its key and with its partition; empty where there is none."""

    by_key: str = ""
    by_partition: str = ""


def queue_of(about: Mapping[str, Any]) -> Queue:
    """Return the queue that the attributes of a span name."""
    name = first_of(about, *_NAMES)
    key, partition = first_of(about, *_KEYS), first_of(about, *_PARTITIONS)
    return Queue(f"{name}:{key}" if key else "", f"{name}/{partition}" if partition else "")
