"""The same over Spark Connect, where a program has no Java and no context."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from causewire.check import check
from causewire.sim import Config, simulate
from causewire.trace import open_writer

from .program import LIMITS

pytest.importorskip("grpc", reason='Spark Connect needs pip install "causewire[connect]"')

PROGRAM = """
import json, sys
from tests.pipeline.program import LIMITS
from causewire.pipeline import PipelineError, metrics, session
from causewire.pipeline.check import check_paths, check_runs
from causewire.pipeline.session import parallelism
from causewire.pipeline.sources import ingest
from causewire.pipeline.sweep import read_experiment, sweep
from causewire.pipeline.watch import watch

address, trace, experiment, out = sys.argv[1:]
with session(address) as spark:
    events = ingest(spark, [trace]).events
    told = {
        "cores": parallelism(spark),
        "report": check_paths([trace], limits=LIMITS).to_json(),
        "violations": check_runs(events).first().violations,
        "latency": metrics.runs(events).first().latency_mean_ns,
        "runs": sweep(spark, read_experiment(experiment), out).runs,
        "table": spark.read.parquet(out + "/runs").where("latency_mean_ns > 0").count(),
    }
    try:
        watch(spark, trace, out, tell=print)
    except PipelineError as error:
        told["watch"] = str(error)
print(json.dumps(told))
"""


def test_everything_that_classic_sessions_do(connect: str, tmp_path: Path) -> None:
    trace = tmp_path / "run.parquet"
    system = {"protocol": "fifo", "workload": "relay", "processes": 20, "messages": 4000}
    with open_writer(trace) as writer:
        simulate(Config.from_dict(system), writer)
    verdict = check(trace)
    assert verdict.events > LIMITS.large
    assert verdict.violations > 0
    experiment = tmp_path / "try.toml"
    experiment.write_text('[settings]\nmessages = 50\n[vary]\nprotocol = ["mf", "csps"]\n')
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, connect, trace, experiment, tmp_path / "out"],
        env=os.environ | {"PYTHONPATH": _path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["cores"] == 3
    assert told["report"] == json.loads(json.dumps(verdict.to_json()))
    assert told["violations"] == verdict.violations
    assert told["latency"] > 0
    assert told["runs"] == told["table"] == 2
    assert told["watch"].startswith("Spark Connect cannot tell what a watch finds")


def _path() -> str:
    """Where the program finds what these tests share."""
    return os.pathsep.join(filter(None, sys.path))
