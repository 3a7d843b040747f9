"""A run: endpoints, network, application and workload, joined by the event loop.

The endpoints are the very objects that a node runs; here is their driver. It
hands them packets as they arrive, has the application send and react, asks
`retransmit` of whoever is not idle once in a period, and puts on the network what
comes out.

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
from ..core.endpoint import Delivery, Packet, RemoteProtocolError
from .application import Application
from .config import Config
from .faults import Fault, Timeline
from .network import Carrier
from .process import RELEASED, SENT, Copy, Message, Process
from .recorder import Recorder, Sink
from .scheduler import Scheduler
from .sizes import Shapes
from .summary import Summary
from .tally import Tally
from .undelivered import explain
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
        simulation.record(trace, run or f"{config.about.name}-{config.workload.kind}-{config.seed}")
    return simulation.run(progress)


class Simulation(Stage):
    """One run, from beginning to end."""

    __slots__ = (
        "_application",
        "_by_name",
        "_carrier",
        "_cut_short",
        "_job_share",
        "_last_fault",
        "_payload",
        "_period",
        "_recorder",
        "_scheduler",
        "_shapes",
        "_tally",
        "_think",
        "_ticks",
        "_traffic",
        "config",
        "messages",
        "names",
        "processes",
        "random",
    )

    def __init__(self, config: Config) -> None:
        self.config = config
        self.names = config.names()
        self.messages = config.number_of_messages()
        self.random = random = Random(config.seed).random
        self._scheduler = scheduler = Scheduler()
        self._tally = Tally(by_pair=bool(config.faults))
        self._recorder: Recorder | None = None
        self._shapes = Shapes(config.sizes, weigh=config.network.bandwidth is not None)
        self._payload = config.sizes.payload
        self._period = config.period()
        self._ticks = config.ticks()
        self._think = config.processes.think.sampler(random)
        self._job_share = config.processes.jobs.share if config.processes.jobs else 0.0
        self._cut_short = False
        self._last_fault = 0

        group = config.group()
        self.processes = []
        for i, name in enumerate(self.names):
            endpoint = protocols.create(config.about, name, group)
            self.processes.append(Process(i, name, endpoint))
            endpoint.on_delivery = partial(self._delivered, self.processes[i])
        self._by_name = {p.name: p for p in self.processes}

        timeline = Timeline(config.faults, self.names)
        self._carrier = Carrier(
            config.network,
            config.fifo(),
            timeline,
            self.names,
            scheduler,
            random,
            self._arrive,
            self._dropped,
        )
        self._traffic = config.workload.traffic(self)
        self._application = Application(
            config.processes,
            random,
            scheduler,
            self._tally,
            self._traffic,
            self.wake,
            self._flush,
        )

    def record(self, sink: Sink, run: str) -> None:
        """Write the rows of the trace there."""
        self._recorder = Recorder(sink, run, self._scheduler)
        self._application.recorder = self._recorder
        self._shapes = Shapes(self.config.sizes, weigh=True)

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

    def _stop(self, *_: Any) -> None:
        self._cut_short = len(self._scheduler) > 0
        self._scheduler.stop()

    def _strike(self, fault: Fault, *_: Any) -> None:
        self._last_fault = self._scheduler.now
        rules = self._carrier.timeline.apply(fault)
        if self._recorder is not None:
            for i in sorted({i for rule in rules for i in rule.processes}):
                self._recorder.fault(self.processes[i], fault)
        self._carrier.strike(fault, rules)

    # -- sending ---------------------------------------------------------------

    def think(self) -> int:
        return self._think()

    def wake(self, p: Process, delay: int | None = None) -> None:
        scheduler = self._scheduler
        pause = self._think() if delay is None else delay
        scheduler.at(scheduler.now + pause, self._application.due, p)

    def post(
        self, p: Process, to: str | tuple[str, ...], note: Any = None, size: int | None = None
    ) -> None:
        mid = p.sent = p.sent + 1
        now = self._tally.last_progress = self._scheduler.now
        job = self._job_share > 0 and self.random() < self._job_share
        message = Message(p, mid, now, self._payload if size is None else size, job, note)
        names = (to,) if isinstance(to, str) else to
        if len(names) > 1:
            message.copies = {name: Copy() for name in names}
        else:
            to = names[0]
        self._tally.sent(p, names)
        if self._recorder is not None:
            self._recorder.send(p, message, names)
        p.endpoint.send(to, message)

    def _flush(self, p: Process, resend: bool = False) -> None:
        """Put on the network what the endpoint of p has for it.

        The endpoint does not know time, and offers to resend whatever is not
        acknowledged; what left less than a period ago is not sent again.
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
                if self._recorder is not None:
                    stamp = self._recorder.departs(p, q, packet, shape, size, again)
                if shape.payload:
                    size += message.size
            left = self._carrier.carry(p, q, packet, size, stamp)
            if shape.payload:
                copy.left = left
        if p.waiting > p.max_waiting:
            p.max_waiting = p.waiting
        if self._ticks and not p.ticking:
            p.ticking = True
            self._scheduler.at(now + self._period, self._tick, p)

    def _tick(self, p: Process, *_: Any) -> None:
        """Once in a period: let the endpoint of p say again what may be lost.

        The timer stops when there is nothing to say, or nothing has come of it
        for too long; it waits for packets that have not even left yet.
        """
        scheduler = self._scheduler
        now = scheduler.now
        hope = max(self._tally.last_progress, self._last_fault)
        quiet = now - hope > self.config.patience * self._period
        if p.endpoint.idle or (quiet and not self._carrier.timeline.pending):
            p.ticking = False
            return
        leaves = self._carrier.busy_until(p)
        if leaves <= now:
            leaves = now
            p.endpoint.retransmit()
            self._flush(p, resend=True)
        scheduler.at(leaves + self._period, self._tick, p)

    # -- receiving -------------------------------------------------------------

    def _arrive(self, p: Process, q: Process, packet: Packet, stamp: int) -> None:
        """A packet of p arrives at q."""
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
            if not self.config.allow_worse_network:
                raise
            self._tally.refused += 1
        if q.buffer > q.max_buffer:
            q.max_buffer = q.buffer
        self._flush(q)

    def _delivered(self, p: Process, delivery: Delivery) -> None:
        """The endpoint of p delivers a message; we are inside its `receive` or `send`."""
        message: Message = delivery[2]
        copy = message if message.copies is None else message.copies[p.name]
        if self._recorder is not None:
            self._recorder.deliver(p, message)
        if self._tally.delivered(p, message, copy, self._scheduler.now):
            if self._application.takes_time:
                self._application.delivered(p, message)
            elif self._traffic.reacts:
                self._traffic.react(p, message, delivery[0])

    def _dropped(self, p: Process, q: Process, packet: Packet) -> None:
        if self._recorder is not None:
            self._recorder.drop(p, q, packet, self._shapes[packet.__class__])

    # -- at the end --------------------------------------------------------------

    def _summary(self) -> Summary:
        config = self.config
        tally = self._tally
        carrier = self._carrier
        messages = sum(p.sent for p in self.processes)
        received = tally.deliveries - tally.to_self
        released = received + sum(p.transit + p.buffer for p in self.processes)
        packets: dict[str, int] = {}
        control = 0
        metadata = tally.metadata_bytes
        for shape in self._shapes.values():
            packets[shape.kind] = packets.get(shape.kind, 0) + shape.count
            control += 0 if shape.payload else shape.count
            metadata += 0 if shape.varies else shape.count * shape.fixed
        return Summary(
            protocol=config.about.name,
            workload=config.workload.kind,
            processes=len(self.processes),
            seed=config.seed,
            fifo_channels=config.fifo(),
            messages=messages,
            copies=tally.copies,
            deliveries=tally.deliveries,
            duplicates=tally.duplicates,
            undelivered=explain(config, tally, carrier, self.processes, self._cut_short),
            simulated_ns=max(tally.last_arrival, tally.last_progress, tally.last_work),
            execution_ns=max(tally.last_progress, tally.last_work),
            events=self._scheduler.scheduled,
            packets=dict(sorted(packets.items())),
            retransmissions=tally.retransmissions,
            lost=carrier.lost,
            duplicated=carrier.duplicated,
            refused=tally.refused,
            payload_bytes=tally.payload_bytes,
            metadata_bytes=metadata,
            control_per_message=control / messages if messages else 0.0,
            latency=tally.latency.times(),
            held_at_sender=tally.held_at_sender.times(released),
            held_at_receiver=tally.held_at_receiver.times(received),
            max_in_transit=max(p.max_transit for p in self.processes),
            max_in_transit_per_pair=max(p.max_pair for p in self.processes),
            max_send_buffer=max(p.max_waiting for p in self.processes),
            max_receive_buffer=max(p.max_buffer for p in self.processes),
            jobs=tally.job_start.count,
            job_start=tally.job_start.times(),
            job_delay=tally.job_delay.times(),
        )
