"""One Spark session for all tests of the pipeline; a cluster, a server, for those that ask."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from causewire.pipeline import session
from causewire.pipeline.java import find_java, make_java_home
from causewire.pipeline.sweep import Experiment, read_experiment

from ..bucket import Bucket, empty_bucket
from .experiments import Write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For a JVM that lives for a minute: compile quickly, not well, and trust the jars of Spark.

To verify their bytecode takes a quarter of the processor time of a JVM that does little.
"""

ARCHIVES = Path(__file__).parents[2] / ".pytest_cache" / "java"


def archive() -> Path:
    """Where the classes of Spark are kept from one run of the tests to the next.

    Loading them takes half of the time of a JVM that does little.
    """
    of = f"{find_java().resolve()} {version('pyspark')}"
    return ARCHIVES / f"{hashlib.sha256(of.encode()).hexdigest()[:16]}.jsa"


def java_options() -> str:
    """The options of every JVM of the tests; an archive of other classes is ignored."""
    kept = archive()
    return f"{QUICK} -Xlog:disable -XX:SharedArchiveFile={kept}" if kept.exists() else QUICK


def only_here(what: str, factory: pytest.TempPathFactory) -> None:
    """Fail if another process of this run of the tests has started the same."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        claim = factory.getbasetemp().parent / f"{what} was started"
        assert not claim.exists(), f"two test processes start {what}: see tests/groups.py"
        claim.touch()


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The shared session: two cores, few shuffle partitions, queries that are not compiled.

    It ends with the last test of this directory, so that other test processes are still busy
    while Java writes its archive. The first run of a checkout writes none: it may be the only one.
    """
    from pyspark import SparkContext

    only_here("a session", tmp_path_factory)

    kept = archive()
    part = None
    options = java_options()
    if not kept.exists() and kept.parent.exists():
        part = kept.with_suffix(f".{os.getpid()}")
        options += f" -Xlog:disable -XX:ArchiveClassesAtExit={part}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    config = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.extraJavaOptions": options,
    }
    with session("local[2]", memory="1g", config=config) as spark:
        gateway: Any = SparkContext._gateway
        java = gateway.proc
        yield spark
    if part is not None:  # Java writes it when it ends; half an archive would be fatal
        java.stdin.close()
        try:
            if java.wait(120) == 0 and part.exists():
                part.replace(kept)
        except subprocess.TimeoutExpired:  # on a busy machine: then there is none this time
            java.kill()
            java.wait()
            part.unlink(missing_ok=True)


class Cluster:
    """A standalone cluster on loopback: a master and a worker of two cores.

    The worker has an executor for each core. A program that works on it is a process of its
    own, since a process has one Spark session: `run` starts one, with `environment`.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environment = java_environment(place) | {"SPARK_WORKER_DIR": str(place / "work")}
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._launch("master.Master", "--port", str(port))
        _await(port, self._processes[0])
        self._launch("worker.Worker", "--cores", "2", "--memory", "2g", self.master)

    def _launch(self, name: str, *arguments: str) -> None:
        command = [f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"]
        log = self.place / f"{name}.log"
        self._processes.append(_launch([*command, *arguments], self.environment, log))

    def kill_executor(self) -> None:
        """End an executor in the hardest way; the master starts another one."""
        worker = self._processes[-1].pid
        found = subprocess.run(["pgrep", "-P", str(worker)], capture_output=True, check=True)
        os.kill(int(found.stdout.split()[-1]), signal.SIGKILL)

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


def java_environment(place: Path) -> dict[str, str]:
    """For a Java machine of Spark that keeps to loopback and to this directory."""
    (place / "tmp").mkdir()
    return os.environ | {
        "JAVA_HOME": str(make_java_home(place)),
        "JAVA_TOOL_OPTIONS": java_options(),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(place / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(place / "tmp"),
    }


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _launch(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a class of Spark."""
    import pyspark

    with log.open("wb") as file:
        return subprocess.Popen(
            [Path(pyspark.__file__).parent / "bin" / "spark-class", *command],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None, "it died"
            time.sleep(0.1)
    raise AssertionError("it did not start")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """A process that we started, with what it started itself."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with two executors of one core each."""
    only_here("a cluster", tmp_path_factory)
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture
def connect(tmp_path: Path) -> Iterator[str]:
    """The address of a server of Spark Connect with three cores, as PySpark brings it."""
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "3",
        "spark.ui.enabled": "false",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[3]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["spark-internal"]
    server = _launch(command, java_environment(tmp_path), tmp_path / "server.log")
    try:
        _await(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        _kill(server)


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Writes an experiment file, and reads it."""

    def write(text: str) -> Experiment:
        path = tmp_path / "experiment.toml"
        path.write_text(text)
        return read_experiment(path)

    return write


@pytest.fixture
def bucket(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket that is known to this process and to workers."""
    environment: Any = spark.sparkContext.environment  # of workers that are started from now on
    before = dict(environment)
    with empty_bucket(monkeypatch) as store:
        environment.update(store.settings)
        yield store
        environment.clear()
        environment.update(before)
