"""A real Kafka broker, where there is one: see `campaigns/kafka.py` for how to get it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

LIBS = os.environ.get("CAUSEWIRE_KAFKA_LIBS")
"""The directory with the jars of Kafka 0.9."""


@pytest.mark.slow
@pytest.mark.skipif(not LIBS, reason="CAUSEWIRE_KAFKA_LIBS does not name the jars of Kafka")
def test_a_topic_of_a_real_broker(spark: SparkSession, tmp_path: Path) -> None:
    """`watch`, started twice, finds what `check` finds in the whole trace."""
    pytest.importorskip("kafka")
    from campaigns.kafka import broker, campaign

    assert LIBS is not None
    with broker(Path(LIBS), tmp_path) as address:
        assert campaign(spark, address, tmp_path, old=True, messages=400)
