"""A run: endpoints, network, processes and workload, joined by the event loop.

The endpoints are the very objects that a node runs; here is their driver. It
hands them packets as they arrive, wakes the application, asks `retransmit` of
whoever is not idle once in a period, and puts on the network what comes out.

    _wake     a process is to send a message of its own
    _arrive   a packet arrives
    _tick     the retransmission timer of a process
    _done     the application has finished what it was at
    _strike   a fault happens to the network

Nothing is kept of a message but the message itself, which the endpoints carry as
the payload: it knows when it was sent and where its copies are. When the last
endpoint lets go of it, it is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from .. import protocols
from ..core.endpoint import Delivery, LocalProtocolError, Packet
from .config import Config
from .errors import SimulationError
from .faults import Fault, Timeline
from .network import Carrier
from .process import DELIVERED, RECEIVED, RELEASED, SENT, Copy, Message, Process
from .recorder import Recorder, Sink
from .scheduler import Scheduler
from .sizes import Shape
from .summary import Histogram, Summary, Undelivered
from .workloads import Stage

__all__ = ["simulate"]

SLICE = 1 << 16
"""Events between two calls of `progress`."""


def simulate(
    config: Config,
    trace: Sink | None = None,
    *,
    run: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Run a whole system in simulated time, and say how it went.

    `trace` takes the rows of what happened, as they happen; `run` is what the
    run is called there. `progress` is called now and then with the number of
    messages sent and that of all.
    """
    simulation = Simulation(config)
    if trace is not None:
        simulation.record(trace, run or f"{config.protocol}-{config.workload.kind}-{config.seed}")
    return simulation.run(progress)


class Simulation(Stage):
    """One run, from beginning to end."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.names = config.names()
        self.messages = config.number_of_messages()
        self.random = Random(config.seed).random
        self.processes = _processes(config, self.names)
        self._by_name = {p.name: p for p in self.processes}
        self._scheduler = Scheduler()
        self._carrier = Carrier(
            config.network,
            config.fifo(),
            Timeline(config.faults, self.names),
            self.names,
            self._scheduler,
            self.random,
            self._arrive,
            self._dropped,
        )
        self._recorder: Recorder | None = None
        self._shapes: dict[type[Packet], Shape] = {}
        self._payload = config.sizes.payload
        self.think = config.processes.think.sampler(self.random)
        self._handling = config.processes.handling.sampler(self.random)
        jobs = config.processes.jobs
        self._job_share = jobs.share if jobs else 0.0
        self._job_length = jobs.length.sampler(self.random) if jobs else None
        self._job_blocks = bool(jobs and jobs.blocking)
        self._works = bool(config.processes.handling.fixed() != 0 or self._job_share)
        self._period = config.period()
        self._progress_at = 0
        self._last_arrival = 0
        self._last_work = 0
        self._events = 0

        self._copies = 0
        self._deliveries = 0
        self._duplicates = 0
        self._retransmissions = 0
        self._payload_bytes = 0
        self._metadata_bytes = 0
        self._latency = Histogram()
        self._held_at_sender = Histogram()
        self._held_at_receiver = Histogram()
        self._job_start = Histogram()
        self._job_delay = Histogram()

        for p in self.processes:
            p.endpoint.on_delivery = partial(self._delivered, p)
        self._traffic = config.workload.traffic(self)
        self._react = self._traffic.react if self._traffic.reacts else None

    def record(self, sink: Sink, run: str) -> None:
        """Write the rows of the trace there."""
        self._recorder = Recorder(sink, run, self.names, self._scheduler)

    def run(self, progress: Callable[[int, int], None] | None = None) -> Summary:
        """Let everything happen."""
        scheduler = self._scheduler
        for fault in self.config.faults:
            scheduler.at(fault.at, self._strike, fault)
        if self.config.until is not None:
            scheduler.at(self.config.until + 1, self._stop)
        if self.messages:
            self._traffic.start()
        while scheduler.run(SLICE):
            if progress is not None:
                progress(sum(p.sent for p in self.processes), self.messages)
        return self._summary()
