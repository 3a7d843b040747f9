"""One Spark session for all tests of the pipeline, and a cluster for those that ask."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causewire.pipeline import session
from causewire.pipeline.java import make_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM that lives for a minute: compile quickly, not well."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The shared session: two cores, few shuffle partitions."""
    config = {
        "spark.sql.shuffle.partitions": "4",
        "spark.default.parallelism": "2",
        "spark.driver.extraJavaOptions": QUICK,
    }
    with session("local[2]", memory="1g", config=config) as spark:
        yield spark


class Cluster:
    """A standalone cluster on loopback: a master, and workers of one core each.

    A program that works on it is a process of its own, since a process has one
    Spark session: `run` starts one, with `environment`.
    """

    def __init__(self, place: Path, workers: int = 2) -> None:
        self.place = place
        self.environment = os.environ | {
            "JAVA_HOME": str(make_java_home(place)),
            "JAVA_TOOL_OPTIONS": QUICK,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": str(place / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(place / "work"),
            "TMPDIR": str(place / "tmp"),
        }
        (place / "tmp").mkdir()
        self._processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        self._launch("master.Master", "--port", str(port))
        self._await(port)
        for _ in range(workers):
            self.add_worker()

    def _launch(self, name: str, *arguments: str) -> None:
        import pyspark

        log = (self.place / f"{name}-{len(self._processes)}.log").open("wb")
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
        command += [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"]
        with log:
            process = subprocess.Popen(
                [*command, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes.append(process)

    def _await(self, port: int) -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                assert self._processes[0].poll() is None, "the master died"
                time.sleep(0.1)
        raise AssertionError("the master did not start")

    def add_worker(self) -> None:
        self._launch("worker.Worker", "--cores", "1", "--memory", "1g", self.master)

    def kill_worker(self) -> None:
        """End the worker that was started last, and its executor, in the hardest way."""
        _kill(self._processes.pop())

    def run(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start `python arguments...`, a program that may use the cluster."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=self.environment | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def close(self) -> None:
        while self._processes:
            _kill(self._processes.pop())


def _kill(process: subprocess.Popen[bytes]) -> None:
    """A process that we started, with what it started itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two workers; who kills one adds another."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several test processes, all tests that need Spark go to one of them."""
    here = Path(__file__).parent
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if here in item.path.parents and {"spark", "cluster"} & set(fixtures):
            item.add_marker(pytest.mark.xdist_group("spark"))
