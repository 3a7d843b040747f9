"""A program with a Spark session of its own, which does what it reads, line by line.

    python program.py MASTER

Each line of its input is a JSON array, a command and its arguments; each line of
its output is the answer.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from causewire.pipeline import session, small
from causewire.pipeline.check import Limits, check_paths
from causewire.pipeline.session import parallelism
from causewire.pipeline.sweep import read_experiment, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMITS = Limits(large=10_000, wide=8, share=5_000)
"""A run of some ten thousand events is shared out as if it had millions."""


SETTINGS = {
    "spark.executor.cores": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""An executor for each core; queries as small as these are not worth compiling."""


class Stages:
    """Counts the tasks that fail in the jobs of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._over = threading.Event()
        self._failed: dict[int, int] = {}
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.is_set():
            for stage in {*self._failed, *self._tracker.getActiveStageIds()}:
                told = self._tracker.getStageInfo(stage)
                if told is not None:
                    self._failed[stage] = told.numFailedTasks
            time.sleep(0.02)

    def close(self) -> int:
        """How many tasks failed, of all that were seen."""
        self._over.set()
        self._thread.join()
        return sum(self._failed.values())


@contextmanager
def gate(folder: str) -> Iterator[None]:
    """Let the tasks of a check wait, after each left a file in `folder`, until `open` is there."""
    module: Any = small
    ask = module.ask

    def waiting(
        spark: SparkSession, works: Sequence[Any], job: Callable[[Any], Any], what: str
    ) -> list[Any]:
        def run(work: Any) -> Any:
            # By value: executors do not have this module.
            import os
            import time
            from pathlib import Path

            place = Path(folder)
            if folder:
                (place / str(os.getppid())).touch()
                while not (place / "open").exists():
                    time.sleep(0.02)
            return job(work)

        found: list[Any] = ask(spark, works, run, what)
        return found

    module.ask = waiting
    try:
        yield
    finally:
        module.ask = ask


def where(spark: SparkSession) -> list[str]:
    """Where executors have the package from."""

    def look(batches: Any) -> Iterator[Any]:
        import pyarrow as pa

        import causewire

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [causewire.__file__]})

    return [row.file for row in spark.range(1).mapInArrow(look, "file string").collect()]


def main() -> None:
    with session(sys.argv[1], config=SETTINGS) as spark:
        for line in sys.stdin:
            answer: Any
            match json.loads(line):
                case ["where"]:
                    answer = where(spark)
                case ["await executors", many]:
                    while parallelism(spark) < many:
                        time.sleep(0.05)
                    answer = many
                case ["sweep", experiment, out]:
                    answer = sweep(spark, read_experiment(experiment), out).to_dict()
                case ["check", traces, folder]:
                    stages = Stages(spark)
                    with gate(folder):
                        report = check_paths([traces], limits=LIMITS)
                    answer = report.to_json() | {"failed tasks": stages.close()}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
