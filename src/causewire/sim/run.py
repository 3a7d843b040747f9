"""One run: the loop that takes one event after another, and what each of them does.

    workload ── sends ──> endpoint ── packets ──> links ── arrivals ──> scheduler
        ^                     |                                             |
        └──── deliveries ─────┘<──────────── the loop in `run` ─────────────┘

The scheduler holds what is still to happen. The loop in `Simulation.run` takes the
next event and hands it to the part that it concerns. That part answers with values:
the workload with sends, the endpoint with packets and deliveries, the links with
arrivals, which become events of the scheduler again. No part calls the loop. The
one exception is the endpoint: it announces a delivery from inside `receive` or
`send` (`Endpoint.on_delivery`), because a process that reacts at once has to react
at that very point.

The endpoints are the objects that a node runs. Nothing else is kept of a message
than the message itself, which the endpoints carry as the payload: it knows when it
was sent and where its copies are. When the last endpoint drops it, it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from random import Random
from typing import Any

from .. import protocols
from ..core.endpoint import Delivery, Packet, RemoteProtocolError
from .application import Application
from .config import SimulationConfig
from .faults import Fault, Timeline
from .links import Links
from .outcome import summarize
from .process import RECEIVED, RELEASED, SENT, Copy, Process, SimMessage
from .recorder import SimulationRecorder, Sink
from .scheduler import (
    ARRIVAL,
    END,
    FAULT,
    HANDLED,
    JOB_END,
    TICK,
    WAKE,
    Event,
    Happening,
    Scheduler,
)
from .sizes import Shapes
from .summary import Summary
from .tally import Tally
from .workloads import Action, Environment

__all__ = ["simulate"]

SLICE = 1 << 16
"""The number of events between two calls of `progress`."""


def simulate(
    config: SimulationConfig,
    trace: Sink | None = None,
    *,
    run: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Run a whole system in simulated time, and return how it went.

    Args:
        config: Everything about the run. The same value gives the same run.
        trace: Receives the rows of the trace as things happen.
        run: The name of the run in the trace.
        progress: Called now and then with the number of messages sent so far and
            the number of all messages.

    Example:
        summary = simulate(SimulationConfig(protocol="csps", messages=1000, seed=7))
        print(summary.latency.p99_ns)
    """
    name = run or f"{config.about.name}-{config.workload.kind}-{config.seed}"
    return Simulation(config, trace, name).run(progress)


class Simulation:
    """One run, from beginning to end."""

    __slots__ = (
        "_application",
        "_by_name",
        "_carry",
        "_config",
        "_cut_short",
        "_dropped",
        "_job_share",
        "_last_fault",
        "_links",
        "_messages",
        "_payload",
        "_period",
        "_postponed",
        "_processes",
        "_random",
        "_recorder",
        "_scheduler",
        "_shapes",
        "_tally",
        "_think",
        "_ticks",
        "_timeline",
        "traffic",
    )

    def __init__(self, config: SimulationConfig, trace: Sink | None, run: str) -> None:
        names = config.names()
        self._config = config
        self._messages = config.number_of_messages()
        self._random = random = Random(config.seed).random
        self._scheduler = scheduler = Scheduler()
        self._tally = Tally(by_pair=bool(config.faults))
        self._recorder: SimulationRecorder | None = None
        if trace is not None:
            self._recorder = SimulationRecorder(trace, run, scheduler, config.about.name)
        self._payload = config.sizes.payload
        self._period = config.period()
        self._ticks = config.ticks()
        self._think = config.processes.think.sampler(random)
        self._job_share = config.processes.jobs.share if config.processes.jobs else 0.0
        self._cut_short = False
        self._last_fault = 0
        self._postponed: list[Event] = []
        """What processes that are frozen will do when they are thawed."""

        protocol, group = config.about, config.group()
        self._processes = []
        for i, name in enumerate(names):
            endpoint = protocols.create(protocol, name, group)
            self._processes.append(Process(i, name, endpoint))
            endpoint.on_delivery = partial(self._delivered, self._processes[i])
        self._by_name = {p.name: p for p in self._processes}
        weigh = trace is not None or config.network.bandwidth is not None
        self._shapes = Shapes(config.sizes, self._processes[0].endpoint, weigh)

        self._timeline = Timeline(config.faults, names)
        self._links = Links(config.network, config.fifo(), self._timeline, names, scheduler, random)
        self._carry, self._dropped = self._links.carry, self._links.dropped
        self.traffic = config.workload.traffic(
            Environment(
                processes=self._processes,
                names=names,
                messages=self._messages,
                random=random,
                think=self._think,
                now=lambda: scheduler.now,
            )
        )
        self._application = Application(
            config.processes, random, scheduler, self._tally, self._recorder
        )

    def run(self, progress: Callable[[int, int], None] | None = None) -> Summary:
        """Let everything happen, and return the summary."""
        scheduler, links, timeline = self._scheduler, self._links, self._timeline
        self._begin()
        faulty = bool(self._config.faults)
        events = iter(scheduler)
        while scheduler:
            for event in islice(events, SLICE):
                _, _, what, a, b, c, d = event
                if what is ARRIVAL:
                    if not faulty or links.admits(a, b, c, d):
                        self._arrive(a, b, c, d)
                    elif self._dropped:
                        self._record_drops()
                elif timeline.frozen and self._stands_still(what, a):
                    self._postponed.append(event)
                elif what is WAKE:
                    self._wake(a)
                elif what is TICK:
                    self._tick(a)
                elif what is HANDLED:
                    if self._application.handled(a, b):
                        self._react(a, b)
                    self._go_on(a)
                elif what is JOB_END:
                    self._application.job_ended(a, b)
                    self._react(a, b)
                    self._go_on(a)
                elif what is FAULT:
                    self._strike(a)
                elif what is END:
                    self._cut_short = len(scheduler) > 0
                    scheduler.stop()
            if progress is not None:
                progress(sum(p.sent for p in self._processes), self._messages)
        return summarize(
            self._config,
            self._tally,
            self._links,
            self._shapes,
            self._processes,
            events=scheduler.scheduled,
            cut_short=self._cut_short,
        )

    def _begin(self) -> None:
        """Schedule the faults, the end, and the first steps of the processes."""
        scheduler = self._scheduler
        for fault in self._config.faults:
            scheduler.at(fault.at, FAULT, fault)
        if self._config.until is not None:
            scheduler.at(self._config.until + 1, END)
        if self._messages:
            for p, delay in self.traffic.start():
                scheduler.at(delay, WAKE, p)

    # -- what a process does -----------------------------------------------------

    def _wake(self, p: Process) -> None:
        """Let p send a message of its own, now or when it is no longer busy."""
        if p.busy:
            p.tasks.append(None)
        else:
            self._act(p, self.traffic.wake(p))
            self._flush(p)

    def _react(self, p: Process, message: SimMessage) -> None:
        """Let p do what follows from a message."""
        if self.traffic.reacts:
            self._act(p, self.traffic.react(p, message))

    def _go_on(self, p: Process) -> None:
        """Let p do what has waited while it was busy, up to the next thing that takes time."""
        while p.tasks and not p.busy:
            message = p.tasks.popleft()
            if message is None:
                self._act(p, self.traffic.wake(p))
            elif self._application.handle(p, message):
                self._react(p, message)
        self._flush(p)

    def _act(self, p: Process, actions: Iterable[Action]) -> None:
        """Carry out what the workload says that p does."""
        for action in actions:
            if isinstance(action, SimMessage):
                self._send(p, action)
            else:
                pause = self._think() if action.delay is None else action.delay
                self._scheduler.at(self._scheduler.now + pause, WAKE, p)

    def _send(self, p: Process, message: SimMessage) -> None:
        """Hand a message to the endpoint of p."""
        message.mid = p.sent = p.sent + 1
        message.sent = self._tally.last_progress = self._scheduler.now
        if self._job_share:
            message.job = self._random() < self._job_share
        if message.size is None:
            message.size = self._payload
        to = message.to
        names = (to,) if isinstance(to, str) else to
        if len(names) > 1:
            message.copies = {name: Copy() for name in names}
        else:
            to = names[0]
        self._tally.sent(p, names)
        if self._recorder is not None:
            self._recorder.send(p, message, names)
        p.endpoint.send(to, message)

    # -- from endpoint to endpoint -------------------------------------------------

    def _flush(self, p: Process, resend: bool = False) -> None:
        """Put the packets of p's endpoint on the network.

        The endpoint has no clock, so on `retransmit` it offers everything that is
        not acknowledged. Messages that left less than a period ago are not sent
        again.
        """
        now = self._scheduler.now
        for name, packet in p.endpoint.take_packets():
            shape = self._shapes[packet.__class__]
            again = False
            if shape.payload:
                message = packet[shape.payload]
                copy = message if message.copies is None else message.copies[name]
                if copy.state == SENT:
                    self._tally.released(p, name, message, copy, now)
                elif resend and copy.left > now - self._period:
                    continue
                else:
                    again = True
                    self._tally.retransmissions += 1
                self._tally.payload_bytes += message.size
            shape.count += 1
            q = self._by_name[name]
            size = stamp = 0
            if shape.weigh:
                size = shape.metadata(packet)
                if shape.varies:
                    self._tally.metadata_bytes += size
                    self._tally.metadata_bits += shape.metadata_bits(packet)
                if self._recorder is not None:
                    stamp = self._recorder.departs(p, q, packet, shape, size, again)
                if shape.payload:
                    size += message.size
            left = self._carry(p, q, packet, size, stamp)
            if shape.payload:
                copy.left = left
            if self._dropped:
                self._record_drops()
        if self._recorder is not None:
            self._recorder.packets_left(p)
        if p.waiting > p.max_waiting:
            p.max_waiting = p.waiting
        if self._ticks and not p.ticking:
            p.ticking = True
            self._scheduler.at(now + self._period, TICK, p)

    def _tick(self, p: Process) -> None:
        """Once in a period: let the endpoint of p send again what may have been lost.

        The timer stops when the endpoint has nothing to do, or when repeating has
        led to no progress for too long. It waits for packets that have not left yet.
        """
        now = self._scheduler.now
        hope = max(self._tally.last_progress, self._last_fault)
        quiet = now - hope > self._config.patience * self._period
        if p.endpoint.idle or (quiet and not self._timeline.pending):
            p.ticking = False
            return
        leaves = self._links.busy_until(p)
        if leaves <= now:
            leaves = now
            p.endpoint.retransmit()
            self._flush(p, resend=True)
        self._scheduler.at(leaves + self._period, TICK, p)

    def _arrive(self, p: Process, q: Process, packet: Packet, stamp: int) -> None:
        """Hand a packet of p to the endpoint of q."""
        now = self._tally.last_arrival = self._scheduler.now
        shape = self._shapes[packet.__class__]
        again = False
        if shape.payload:
            message = packet[shape.payload]
            copy = message if message.copies is None else message.copies[q.name]
            if copy.state == RELEASED:
                self._tally.received(p, q, copy, now)
            else:
                again = True
        if self._recorder is not None:
            self._recorder.arrives(p, q, packet, shape, again, stamp)
        try:
            q.endpoint.receive(p.name, packet)
        except RemoteProtocolError:
            if not self._config.allow_worse_network:
                raise
            self._tally.refused += 1
        if self._recorder is not None and shape.payload and copy.state == RECEIVED and not again:
            self._recorder.held(q, message, q.name)
        if q.buffer > q.max_buffer:
            q.max_buffer = q.buffer
        self._flush(q)

    def _delivered(self, p: Process, delivery: Delivery) -> None:
        """The endpoint of p delivers a message; this runs inside its `receive` or `send`."""
        message: SimMessage = delivery[2]
        copy = message if message.copies is None else message.copies[p.name]
        if self._recorder is not None:
            self._recorder.deliver(p, message)
        if not self._tally.delivered(p, message, copy, self._scheduler.now):
            return
        if not self._application.takes_time:
            if self.traffic.reacts:
                self._act(p, self.traffic.react(p, message))
        elif p.busy:
            p.tasks.append(message)
        elif self._application.handle(p, message):
            self._react(p, message)

    # -- faults ------------------------------------------------------------------

    def _strike(self, fault: Fault) -> None:
        """Let a fault happen, and everything that it had held back if it ends one."""
        scheduler = self._scheduler
        self._last_fault = scheduler.now
        rules = self._timeline.apply(fault)
        if self._recorder is not None:
            for i in sorted({i for rule in rules for i in rule.processes}):
                self._recorder.fault(self._processes[i], fault)
        arrivals = self._links.strike(fault, rules)
        self._record_drops()
        for arrival in arrivals:
            if self._links.admits(*arrival):
                self._arrive(*arrival)
            self._record_drops()
        postponed, self._postponed = self._postponed, []
        for event in postponed:
            scheduler.at(scheduler.now, *event[2:])

    def _stands_still(self, what: Happening, a: Any) -> bool:
        """Return whether an event concerns a process that is frozen."""
        return what not in (FAULT, END) and a.index in self._timeline.frozen

    def _record_drops(self) -> None:
        """Write a row for each packet that the links have lost since the last call."""
        dropped = self._dropped
        if self._recorder is not None:
            for p, q, packet in dropped:
                self._recorder.drop(p, q, packet, self._shapes[packet.__class__])
        dropped.clear()
