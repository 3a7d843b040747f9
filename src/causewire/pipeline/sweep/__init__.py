"""Sweeps: many simulated runs, on Spark, as one table.

with session() as spark:
    sweep(spark, read_experiment("bandwidth.toml"), "out")

experiment.py   the experiment file and its runs
cost.py         how long a run will take, about
simulation.py   the runs on the executors: DataFrame -> DataFrame
journal.py      what was done so far
progress.py     how far it is
table.py        the table of runs: DataFrame -> DataFrame
folder.py       the output of a sweep in a directory
bucket.py       the same in S3
objects.py      what S3 offers for that
run.py          all of it together
"""

from .experiment import Experiment, read_experiment
from .progress import SweepState
from .run import Sweep, finished, sweep

__all__ = ["Experiment", "Sweep", "SweepState", "finished", "read_experiment", "sweep"]
