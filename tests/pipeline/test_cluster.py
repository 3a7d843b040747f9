"""The same rows wherever a sweep runs, whatever dies on the way."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import causewire
from causewire.pipeline.sweep import read_experiment, sweep

if TYPE_CHECKING:
    from conftest import Cluster
    from pyspark.sql import SparkSession

EXPERIMENT = """
seeds = 5
[settings]
messages = 3000
[vary]
protocol = ["csps", "mf", "rst"]
processes = [5, 10]
"""

PROGRAM = """
import sys
from causewire.pipeline import session
from causewire.pipeline.sweep import read_experiment, sweep

def where(batches):
    import causewire, pyarrow
    for _ in batches:
        yield pyarrow.RecordBatch.from_pydict({"file": [causewire.__file__]})

master, experiment, *outs = sys.argv[1:]
with session(master) as spark:
    print(spark.range(1).mapInArrow(where, "file string").collect(), flush=True)
    for out in outs:
        print(sweep(spark, read_experiment(experiment), out).to_dict(), flush=True)
"""


def rows(out: Path) -> list[dict[str, Any]]:
    return sorted(pq.read_table(out / "runs").to_pylist(), key=lambda row: row["run"])


def ended(out: Path) -> int:
    """How many runs the journal of a sweep has."""
    text = "".join(file.read_text() for file in out.glob("_journal/*.jsonl"))
    return text.count('{"end":')


def told(program: subprocess.Popen[str]) -> str:
    out, err = program.communicate(timeout=300)
    assert program.returncode == 0, err
    assert err == ""
    return out


def test_the_same_rows_on_one_core_two_and_a_cluster_that_loses_a_worker(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(EXPERIMENT)
    two, one, whole, hurt = (tmp_path / name for name in ("two", "one", "whole", "hurt"))
    sweep(spark, read_experiment(file), two)
    expected = rows(two)
    assert len(expected) == 30
    assert all(row["status"] == "done" for row in expected)

    assert "causewire.zip" not in told(cluster.run("-c", PROGRAM, "local[1]", str(file), str(one)))
    assert rows(one) == expected

    # From a copy of the package that nobody has installed: it has to be shipped.
    copy = tmp_path / "copy" / "causewire"
    shutil.copytree(Path(causewire.__file__).parent, copy)
    (copy / "new.py").write_text("# not there\n")
    outs = (str(whole), str(hurt))
    path = str(copy.parent)
    program = cluster.run("-c", PROGRAM, cluster.master, str(file), *outs, PYTHONPATH=path)
    end = time.monotonic() + 240
    while not (hurt.exists() and ended(hurt) >= 2):
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    cluster.kill_worker()
    assert ended(hurt) < len(expected), "it was over before anything could happen to it"
    cluster.add_worker()
    said = told(program)
    assert "causewire.zip/causewire/__init__.py" in said
    assert "'slots': 2" in said
    assert rows(whole) == expected
    assert rows(hurt) == expected
