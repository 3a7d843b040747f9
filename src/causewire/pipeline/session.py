"""The one place where a Spark session is made.

    with session("local[2]") as spark:
        ...

Settings of every session, wherever it runs:

    time zone   UTC, so that no result depends on the machine
    Arrow       batches of 65,536 rows, and Python workers behind unix domain
                sockets, which halves the cost of a small partition
    Python      the interpreter that runs us, not the first one of the PATH
    shuffles    eight partitions for a core of this machine, where Spark would take
                two hundred
    Java        found, or taken from a wheel (`java.py`)
    logs        none: what goes wrong is raised, in one line. The environment
                variable CAUSEWIRE_SPARK_LOG (`warn`, `info`, ...) shows them
    scratch     a temporary directory that goes when the session does
    the package shipped to executors that do not have the same code already

A program has one session. Whoever asks while there is one gets it, if the
master is the same or does not matter to him, and does not stop it when done.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import PipelineError, reason
from .java import make_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DEFAULT_MASTER", "code_digest", "is_connect", "parallelism", "session"]

DEFAULT_MASTER = "local[*]"

PATIENCE = 60.0
"""Seconds that a cluster has to give us a first executor."""

_PACKAGE = Path(__file__).resolve().parent.parent
_REACHABLE = 5.0
_started_with: str | None = None
"""The master of the session that was started here."""


@contextmanager
def session(
    master: str | None = None,
    *,
    memory: str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Enter a block with a Spark session; one that was started for it is stopped after it.

    Args:
        master: A Spark master (`local[2]`, `spark://host:7077`, `k8s://...`, `yarn`) or a
            Spark Connect address (`sc://host`). By default the session of the program, if
            it has one; else what `spark-submit` says; else the environment variable
            CAUSEWIRE_MASTER; else this machine.
        memory: For the JVM that holds data: `4g`.
        scratch: Where temporary files go.
        config: Settings of Spark, which override those that are made here.

    Raises:
        PipelineError: Spark is not installed, does not start, or cannot be reached; or the
            program has a session on another master.
    """
    running = _running(master)
    if running is not None:
        yield running
        return
    submitted = _submitted()
    master = (
        master
        or submitted.get("spark.master")
        or os.environ.get("CAUSEWIRE_MASTER")
        or DEFAULT_MASTER
    )
    config = {**submitted, **(config or {})}
    try:
        place = Path(tempfile.mkdtemp(prefix="causewire-", dir=scratch))
    except OSError as error:
        raise PipelineError(f"no room for temporary files: {error}") from None
    try:
        with _interruptible() as restore:
            spark = _start(master, memory, place, config)
            restore()
            try:
                _ship(spark, master, place)
                yield spark
            finally:
                _stop(spark)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _submitted() -> dict[str, str]:
    """Return the settings of `spark-submit`, if it started this program.

    They are those of its command line and of `spark-defaults.conf`, and come before ours.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    try:
        from pyspark import SparkConf, SparkContext
    except ImportError:
        return {}
    SparkContext._ensure_initialized()  # SparkConf reads what the Java side was given
    return dict(SparkConf().getAll())


@contextmanager
def _interruptible() -> Iterator[Callable[[], None]]:
    """Let an interrupt end a block as in any program: by `KeyboardInterrupt`, and quietly.

    PySpark's own handler calls Java from within a call to Java, and Py4J prints the
    failure. The block calls what it is given when PySpark has installed that handler.
    An interrupt ends Java as well, which may be noticed first, or instead: whatever fails
    after an interrupt fails because of it.
    """
    root, py4j = logging.getLogger(), logging.getLogger("py4j")
    root.addFilter(_not_of_py4j)
    level = py4j.level
    py4j.setLevel(logging.CRITICAL)
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    interrupts: list[int] = []

    def noted(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    def restore() -> None:
        if main:
            usual = before is signal.default_int_handler
            signal.signal(signal.SIGINT, noted if usual else before)

    try:
        yield restore
    except Exception:
        if interrupts:
            raise KeyboardInterrupt from None
        raise
    finally:
        if main:
            signal.signal(signal.SIGINT, before)
        root.removeFilter(_not_of_py4j)
        py4j.setLevel(level)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    return "while sending command" not in str(record.msg)


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at a time."""
    if is_connect(spark):  # which does not tell, but shares out a range by it
        from pyspark.sql import functions as f

        parts = spark.range(1 << 16).select(f.spark_partition_id().alias("part"))
        return int(parts.agg(f.max("part")).collect()[0][0]) + 1
    return int(spark.sparkContext.defaultParallelism)


# -- starting and stopping -----------------------------------------------------


def _running(master: str | None) -> SparkSession | None:
    """The session of this program, if there is one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        return None
    if master is not None:
        current = _started_with or ("" if is_connect(spark) else spark.sparkContext.master)
        if current != master:
            raise PipelineError(f"this program has a Spark session on {current} already")
    return spark


def _start(master: str, memory: str | None, place: Path, config: dict[str, str]) -> SparkSession:
    global _started_with
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise PipelineError('PySpark is not installed: pip install "causewire[spark]"') from None
    _reach(master)
    level = os.environ.get("CAUSEWIRE_SPARK_LOG", "")
    # PySpark repeats on standard error what it raises.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName("causewire")
    for key, value in (_settings(master, memory, place, level) | config).items():
        builder = builder.config(key, value)
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        builder = builder.master(master)
    log = None if level else place / "spark.log"
    if master.startswith("local") or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    environment = {"JAVA_HOME": "", "PYSPARK_DRIVER_PYTHON": sys.executable}
    if not master.startswith("sc://"):
        environment["JAVA_HOME"] = str(make_java_home(place, log))
    before = {key: os.environ.get(key) for key in environment}
    os.environ.update({key: value for key, value in environment.items() if value})
    try:
        spark: SparkSession = builder.getOrCreate()
    except ImportError:
        raise PipelineError(
            f'{master} is Spark Connect, which is not installed: pip install "causewire[connect]"'
        ) from None
    except Exception as error:  # Py4J, gRPC and the JVM raise what they like
        said = reason(error)
        if "JAVA_GATEWAY_EXITED" in said:
            said = _last_line(log) or said
        said = said.rpartition("SparkException: ")[2]
        raise PipelineError(f"Spark did not start on {master}: {said}") from None
    finally:
        for key, earlier in before.items():
            if earlier is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = earlier
    _started_with = master
    try:
        _await_executor(spark, master)
    except BaseException:
        _stop(spark)
        raise
    return spark


def _settings(master: str, memory: str | None, place: Path, level: str) -> dict[str, str]:
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
    }
    if master.startswith("sc://"):
        return settings
    settings |= {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": level.upper() or "OFF",
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": memory or _quarter_of_memory(),
            "spark.sql.shuffle.partitions": str(8 * _cores(master)),
        }
    elif memory:
        settings["spark.executor.memory"] = memory
    return settings


def _cores(master: str) -> int:
    """How many cores a local master has: `local`, `local[4]`, `local[*]`."""
    match = re.match(r"local\[(\d+)", master)
    return int(match[1]) if match else 1 if master == "local" else os.cpu_count() or 1


def _quarter_of_memory() -> str:
    """A quarter of this machine's memory, from one to eight gigabytes."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return f"{min(max(megabytes // 4, 1024), 8192)}m"


def _stop(spark: SparkSession) -> None:
    global _started_with
    _started_with = None
    try:
        spark.stop()
    except Exception:
        # The other side is gone already, which is all that was wanted.
        return


def _last_line(log: Path | None) -> str:
    """The last thing that Java said before it died."""
    if log is None or not log.exists():
        return ""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith(("at ", "WARNING", "..."))]
    return told[-1] if told else ""


# -- clusters ------------------------------------------------------------------


def _reach(master: str) -> None:
    """Fail at once, and clearly, if nobody listens at the address of a master.

    Spark itself would try for minutes and then say that its context is stopped.
    """
    scheme, _, rest = master.partition("://")
    if scheme not in ("spark", "sc"):
        return
    problem = ""
    for address in rest.partition("/")[0].split(",") if scheme == "spark" else [rest]:
        try:
            url = urlsplit(f"//{address}")
            host, port = url.hostname, url.port or (7077 if scheme == "spark" else 15002)
            with socket.create_connection((host or "", port), timeout=_REACHABLE):
                return
        except ValueError as error:
            problem = str(error)
        except OSError as error:
            problem = error.strerror or str(error)
    raise PipelineError(f"no Spark master at {master}: {problem}")


def _await_executor(spark: SparkSession, master: str) -> None:
    """Wait until a standalone cluster has given us something to work with."""
    if not master.startswith("spark://"):
        return
    context: Any = spark.sparkContext._jsc.sc()
    end = time.monotonic() + PATIENCE
    while context.getExecutorMemoryStatus().size() < 2:  # the driver is one of them
        if time.monotonic() > end:
            raise PipelineError(f"{master} gave us no executor in {PATIENCE:.0f} seconds")
        time.sleep(0.1)


def code_digest(*parts: str) -> str:
    """A name for the code of the package, or of some of its parts, as it is here."""
    return _digest(_PACKAGE, parts)


def _digest(package: Path, parts: tuple[str, ...] = ()) -> str:
    sha = hashlib.sha256()
    for file in sorted(f for top in parts or ("",) for f in (package / top).rglob("*.py")):
        sha.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes())
    return sha.hexdigest()[:16]


def _ship(spark: SparkSession, master: str, place: Path) -> None:
    """Give the package to executors that lack it, or have other code.

    Where it is installed it stays as it is: Numba stores compiled code only
    next to installed modules.
    """
    if master.startswith("local"):
        return
    mine = code_digest()

    def look(batches: Any) -> Iterator[Any]:
        # By value: the executor may have no causewire to import this from.
        import hashlib
        from importlib.util import find_spec
        from pathlib import Path

        import pyarrow as pa

        for _ in batches:
            pass
        spec = find_spec("causewire")
        found = "none"
        if spec is not None and spec.origin is not None and Path(spec.origin).is_file():
            package = Path(spec.origin).parent
            sha = hashlib.sha256()
            for file in sorted(package.rglob("*.py")):
                sha.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes())
            found = sha.hexdigest()[:16]
        yield pa.RecordBatch.from_pydict({"digest": [found]})

    tasks = max(parallelism(spark), 1)
    try:
        rows = spark.range(0, tasks, 1, tasks).mapInArrow(look, "digest string").collect()
        if {row.digest for row in rows} == {mine}:
            return
        archive = place / "causewire.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for source in sorted(_PACKAGE.rglob("*.py")):
                file.write(source, Path("causewire") / source.relative_to(_PACKAGE))
        if is_connect(spark):
            spark.addArtifacts(str(archive), pyfile=True)
        else:
            spark.sparkContext.addPyFile(str(archive))
    except Exception as error:
        raise PipelineError(f"{master} does not run Python tasks: {reason(error)}") from None


def is_connect(spark: SparkSession) -> bool:
    """Whether Java, and the context, are somewhere else."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
