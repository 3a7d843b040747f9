"""The same rows and the same verdict wherever it runs, whatever dies on the way."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import causewire
from causewire.check import check
from causewire.sim import Config, simulate
from causewire.trace import open_writer

if TYPE_CHECKING:
    from .conftest import Cluster

EXPERIMENT = """
seeds = 4
[settings]
messages = 3000
[vary]
protocol = ["csps", "mf", "rst"]
processes = [5, 10]
"""


class Program:
    """A program that has a Spark session of its own, and is told what to do with it."""

    def __init__(self, cluster: Cluster, master: str, **environment: str) -> None:
        file = Path(__file__).with_name("program.py")
        self._process = cluster.run(str(file), master, **environment)

    def ask(self, *command: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], 300)[0], "no answer"
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        return json.loads(line)

    def does(self, *command: Any) -> Any:
        self.ask(*command)
        return self.answer()

    def reaches(self, condition: Callable[[], bool]) -> None:
        """Wait for something that it is about to do."""
        end = time.monotonic() + 120
        while not condition():
            assert self._process.poll() is None, self._process.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)

    def kill(self) -> None:
        """It ends at once, and its Java with it."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def close(self) -> None:
        """It ends in peace, and has complained of nothing; unless it was killed."""
        if self._process.poll() == -signal.SIGKILL:
            return
        try:
            out, err = self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        assert (self._process.returncode, out, err) == (0, "", "")


@pytest.fixture(scope="module")
def alone(cluster: Cluster) -> Iterator[Program]:
    """A program with one core."""
    program = Program(cluster, "local[1]")
    yield program
    program.close()


@pytest.fixture(scope="module")
def many(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A program on the cluster, from a copy of the package that executors do not have."""
    copy = tmp_path_factory.mktemp("copy") / "causewire"
    shutil.copytree(Path(causewire.__file__).parent, copy)
    (copy / "new.py").write_text("# not there\n")
    program = Program(cluster, cluster.master, PYTHONPATH=str(copy.parent))
    yield program
    program.close()


def test_executors_get_the_package_that_the_program_has(alone: Program, many: Program) -> None:
    many.ask("where")
    (installed,) = alone.does("where")
    assert Path(installed) == Path(causewire.__file__)
    (shipped,) = many.answer()
    assert shipped.endswith("causewire.zip/causewire/__init__.py")


# -- sweeps ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("sweeps") / "experiment.toml"
    file.write_text(EXPERIMENT)
    return file


@pytest.fixture(scope="module")
def expected_rows(alone: Program, experiment: Path) -> list[dict[str, Any]]:
    """On one core of this machine."""
    out = experiment.with_name("on 1")
    told = alone.does("sweep", str(experiment), str(out))
    assert (told["simulated"], told["slots"]) == (24, 1)
    found = rows(out)
    assert len(found) == 24
    assert all(row["status"] == "done" for row in found)
    return found


def rows(out: Path) -> list[dict[str, Any]]:
    return sorted(pq.read_table(out / "runs").to_pylist(), key=lambda row: row["run"])


def ended(out: Path) -> int:
    """How many runs the journal of a sweep has."""
    return sum(file.read_text().count('{"end":') for file in out.glob("_journal/*.jsonl"))


def test_a_sweep_on_one_core_and_a_cluster(
    many: Program, experiment: Path, expected_rows: list[dict[str, Any]]
) -> None:
    many.does("await executors", 2)
    out = experiment.with_name("on 2")
    told = many.does("sweep", str(experiment), str(out))
    assert (told["simulated"], told["slots"]) == (24, 2)
    assert rows(out) == expected_rows


def test_a_sweep_that_loses_an_executor(
    many: Program, cluster: Cluster, experiment: Path, expected_rows: list[dict[str, Any]]
) -> None:
    many.does("await executors", 2)
    out = experiment.with_name("hurt")
    many.ask("sweep", str(experiment), str(out))
    many.reaches(lambda: ended(out) >= 2)
    cluster.kill_executor()
    assert ended(out) < 24, "it was over before anything could happen to it"
    assert many.answer()["failed"] == 0
    assert rows(out) == expected_rows


# -- checks ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many short runs and a long one, with violations everywhere."""
    folder = tmp_path_factory.mktemp("traces")
    parts = []
    for messages, copies in ((500, 12), (6000, 1)):
        file = folder / "run.parquet"
        system = {"protocol": "fifo", "workload": "relay", "processes": 10, "messages": messages}
        with open_writer(file) as writer:
            simulate(Config.from_dict(system), writer)
        run = pq.read_table(file)
        file.unlink()
        place = run.schema.get_field_index("run")
        for k in range(copies):
            name = pa.array([f"{messages}-{k:03}"] * len(run), run.schema.field("run").type)
            parts.append(run.set_column(place, "run", name))
    pq.write_table(pa.concat_tables(parts), folder / "runs.parquet", row_group_size=5000)
    return folder


@pytest.fixture(scope="module")
def verdict(traces: Path) -> dict[str, Any]:
    """In this process, without Spark."""
    found = check(str(traces))
    assert found.runs == 13
    assert found.violations > 13
    verdict: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return verdict


def test_a_check_on_one_core_and_a_cluster(
    alone: Program, many: Program, traces: Path, verdict: dict[str, Any]
) -> None:
    many.ask("await executors", 2)
    assert alone.does("check", str(traces), "") == verdict | {"failed tasks": 0}
    many.answer()
    assert many.does("check", str(traces), "") == verdict | {"failed tasks": 0}


def test_a_check_that_loses_an_executor(
    many: Program, cluster: Cluster, traces: Path, verdict: dict[str, Any], tmp_path: Path
) -> None:
    many.does("await executors", 2)
    many.ask("check", str(traces), str(tmp_path))
    many.reaches(lambda: len(list(tmp_path.iterdir())) >= 2)  # a task runs on each executor
    cluster.kill_executor()
    (tmp_path / "open").touch()
    told = many.answer()
    assert told.pop("failed tasks") > 0
    assert told == verdict


# -- and the program itself --------------------------------------------------------------


def test_a_sweep_that_is_killed_goes_on(
    alone: Program, many: Program, experiment: Path, expected_rows: list[dict[str, Any]]
) -> None:
    """The last test: the program is gone after it."""
    out = experiment.with_name("killed")
    alone.ask("sweep", str(experiment), str(out))
    alone.reaches(lambda: ended(out) >= 2)
    alone.kill()
    done = ended(out)
    assert done < 24, "it was over before anything could happen to it"
    assert not (out / "_SUCCESS").exists()
    assert not (out / "runs").exists()
    told = many.does("sweep", str(experiment), str(out))
    assert told["kept"] >= done
    assert told["simulated"] == 24 - told["kept"]
    assert rows(out) == expected_rows
