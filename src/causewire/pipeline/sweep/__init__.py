"""Sweeps: many simulated runs, on Spark, as one table.

with session() as spark:
    sweep(spark, read_experiment("bandwidth.toml"), "out")

experiment.py   the experiment file and its runs
cost.py         how long a run will take, about
simulation.py   the runs on the executors: DataFrame -> DataFrame
journal.py      what was done so far, on disk
table.py        the table of runs: DataFrame -> DataFrame
folder.py       the directory of a sweep
run.py          all of it together
"""

from .experiment import Experiment, read_experiment
from .run import Sweep, finished, sweep

__all__ = ["Experiment", "Sweep", "finished", "read_experiment", "sweep"]
