"""Where the time of messages went, and what processes were doing, in any trace.

    for run in measure("run.parquet"):
        run.summary()        # the whole run: a dictionary with the names of `RUNS`
        run.copies()         # each message for each destination: a table, `COPIES`
        run.processes()      # each process: `PROCESSES`
        run.occupancy()      # buffers and messages in transit over time: `OCCUPANCY`
        run.jobs()           # jobs: `JOBS`

A copy is one message for one destination. Its time is

    sent ... released ... received ... delivered
        held at the      on the       held at the
        sender           network      receiver

`released_by` is what came right before it was released, if it was held: an ack, a permit.
`held_for` is the last of its causal predecessors, if that was delivered after the copy had
arrived. `earliest_ns` is when an omniscient protocol could have delivered it
(`earliest.py`); from the send to then is unavoidable, and what comes after is `noncausal_ns`.
(In a trace that is not causally ordered it may be negative: the message was delivered too
early.) A copy to oneself is not released and not received. Where a trace has no releases and
arrivals, all the time counts as time on the network.

The code is compiled, as that of the check is. `causewire.pipeline.metrics` does the same on
Spark.
"""

from .measure import RunMetrics, measure
from .schemas import COPIES, JOBS, OCCUPANCY, PROCESSES, RUNS

__all__ = [
    "COPIES",
    "JOBS",
    "OCCUPANCY",
    "PROCESSES",
    "RUNS",
    "RunMetrics",
    "measure",
]
