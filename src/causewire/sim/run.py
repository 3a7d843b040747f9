"""A run: endpoints, network, processes and workload, joined by the event loop.

The endpoints are the very objects that a node runs; here is their driver. It
hands them packets as they arrive, wakes the application, asks `retransmit` of
whoever is not idle once in a period, and puts on the network what comes out.

    _wake        a process is to send a message of its own
    _arrive      a packet arrives
    _tick        the retransmission timer of a process
    _handled     the application has handled a message
    _job_over    a job has ended
    _strike      a fault happens to the network

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
from .config import Config
from .faults import Fault, Timeline
from .network import Carrier
from .process import DELIVERED, RECEIVED, RELEASED, SENT, Copy, Message, Process
from .recorder import Recorder, Sink
from .scheduler import Scheduler
from .sizes import Shapes
from .summary import Histogram, Summary
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
        simulation.record(trace, run or f"{config.protocol}-{config.workload.kind}-{config.seed}")
    return simulation.run(progress)


def _make_processes(config: Config, names: tuple[str, ...]) -> list[Process]:
    group = names if protocols.describe(config.protocol).fixed_group else None
    return [
        Process(i, name, protocols.create(config.protocol, name, group, **config.options))
        for i, name in enumerate(names)
    ]


class Simulation(Stage):
    """One run, from beginning to end."""

    __slots__ = (
        "_by_name",
        "_carrier",
        "_copies",
        "_cut_short",
        "_deliveries",
        "_duplicates",
        "_handling",
        "_held_at_receiver",
        "_held_at_sender",
        "_job_blocks",
        "_job_delay",
        "_job_length",
        "_job_share",
        "_job_start",
        "_last_arrival",
        "_last_progress",
        "_last_work",
        "_latency",
        "_metadata_bytes",
        "_open",
        "_payload",
        "_payload_bytes",
        "_period",
        "_recorder",
        "_refused",
        "_retransmissions",
        "_scheduler",
        "_shapes",
        "_think",
        "_ticks",
        "_to_self",
        "_traffic",
        "_works",
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
        self.random = Random(config.seed).random
        self.processes = _make_processes(config, self.names)
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
        self._shapes = Shapes(config.sizes, weigh=config.network.bandwidth is not None)
        self._period = config.period()
        self._payload = config.sizes.payload
        self._ticks = config.ticks()

        work = config.processes
        self._think = work.think.sampler(self.random)
        self._handling = work.handling.sampler(self.random)
        self._job_share = work.jobs.share if work.jobs else 0.0
        self._job_length = work.jobs.length.sampler(self.random) if work.jobs else self._handling
        self._job_blocks = work.jobs is not None and work.jobs.blocking
        self._works = work.handling.fixed() != 0 or self._job_share > 0
        """Whether the application takes any time at all."""

        self._copies = 0
        self._deliveries = 0
        self._duplicates = 0
        self._retransmissions = 0
        self._refused = 0
        self._payload_bytes = 0
        self._metadata_bytes = 0
        """Of packets whose metadata varies; the others are weighed at the end."""
        self._latency = Histogram()
        self._held_at_sender = Histogram()
        self._held_at_receiver = Histogram()
        self._job_start = Histogram()
        self._job_delay = Histogram()
        self._to_self = 0
        self._last_arrival = 0
        self._last_progress = 0
        """When something was last sent or delivered."""
        self._last_work = 0
        """When the application last finished something that took time."""
        self._cut_short = False
        self._open: dict[tuple[str, str], int] | None = {} if config.faults else None
        """Undelivered copies by sender and destination, where faults may strand them."""

        for p in self.processes:
            p.endpoint.on_delivery = partial(self._delivered, p)
        self._traffic = config.workload.traffic(self)

    def record(self, sink: Sink, run: str) -> None:
        """Write the rows of the trace there."""
        self._recorder = Recorder(sink, run, self.names, self._scheduler)
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

    # -- sending ---------------------------------------------------------------

    def think(self) -> int:
        return self._think()

    def wake(self, p: Process, delay: int | None = None) -> None:
        scheduler = self._scheduler
        scheduler.at(scheduler.now + (self._think() if delay is None else delay), self._wake, p)

    def _wake(self, p: Process, _b: None, _c: None, _d: None) -> None:
        """A process is to send a message of its own, now or when it is free."""
        if p.busy:
            p.tasks.append(None)
        else:
            self._send_own(p)
            self._flush(p)

    def _send_own(self, p: Process) -> None:
        if self._traffic.wake(p):
            self.wake(p)

    def post(
        self, p: Process, to: str | tuple[str, ...], note: Any = None, size: int | None = None
    ) -> None:
        mid = p.sent = p.sent + 1
        if size is None:
            size = self._payload
        job = self._job_share > 0 and self.random() < self._job_share
        now = self._last_progress = self._scheduler.now
        message = Message(p, mid, now, size, job, note)
        if to.__class__ is str:
            self._copies += 1
            p.waiting += to != p.name
        else:
            message.copies = {name: Copy() for name in to}
            self._copies += len(message.copies)
            p.waiting += len(message.copies) - (p.name in message.copies)
        if self._recorder is not None:
            self._recorder.send(p, message, (to,) if isinstance(to, str) else to)
        if self._open is not None:
            for name in (to,) if isinstance(to, str) else to:
                self._open[p.name, name] = self._open.get((p.name, name), 0) + 1
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
                    copy.state = RELEASED
                    p.waiting -= 1
                    if message.sent != now:
                        self._held_at_sender.add(now - message.sent)
                    p.transit += 1
                    if p.transit > p.max_transit:
                        p.max_transit = p.transit
                    pair = p.pairs[name] = p.pairs.get(name, 0) + 1
                    if pair > p.max_pair:
                        p.max_pair = pair
                elif resend and copy.left > now - self._period:
                    continue
                else:
                    again = True
                    self._retransmissions += 1
                self._payload_bytes += message.size
            shape.count += 1
            q = self._by_name[name]
            size = stamp = 0
            if shape.weigh:
                size = shape.metadata(packet)
                if shape.varies:
                    self._metadata_bytes += size
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
        quiet = now - self._last_progress > self.config.patience * self._period
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
        now = self._last_arrival = self._scheduler.now
        shape = self._shapes[packet.__class__]
        again = False
        if shape.payload:
            message = packet[shape.payload]
            copy = message if message.copies is None else message.copies[q.name]
            if copy.state == RELEASED:
                copy.state = RECEIVED
                copy.at = now
                q.buffer += 1
                p.transit -= 1
                pair = p.pairs[q.name] - 1
                if pair:
                    p.pairs[q.name] = pair
                else:
                    del p.pairs[q.name]
            else:
                again = True
        if self._recorder is not None:
            self._recorder.arrives(p, q, packet, shape, again, stamp)
        try:
            q.endpoint.receive(p.name, packet)
        except RemoteProtocolError:
            if not self.config.allow_worse_network:
                raise
            self._refused += 1
        if q.buffer > q.max_buffer:
            q.max_buffer = q.buffer
        self._flush(q)

    def _delivered(self, p: Process, delivery: Delivery) -> None:
        """The endpoint of p delivers a message; we are inside its `receive` or `send`."""
        message: Message = delivery[2]
        copy = message if message.copies is None else message.copies[p.name]
        state = copy.state
        if self._recorder is not None:
            self._recorder.deliver(p, message)
        if state == DELIVERED:
            self._duplicates += 1
            return
        copy.state = DELIVERED
        now = self._last_progress = self._scheduler.now
        self._deliveries += 1
        self._latency.add(now - message.sent)
        if state == RECEIVED:
            p.buffer -= 1
            if copy.at != now:
                self._held_at_receiver.add(now - copy.at)
        else:
            self._to_self += 1
        if self._open is not None:
            self._close(message.origin.name, p.name)
        if self._works:
            if p.busy:
                p.tasks.append(message)
            else:
                self._handle(p, message)
        elif self._traffic.reacts:
            self._traffic.react(p, message, delivery[0])

    def _close(self, source: str, destination: str) -> None:
        assert self._open is not None
        left = self._open[source, destination] - 1
        if left:
            self._open[source, destination] = left
        else:
            del self._open[source, destination]

    def _dropped(self, p: Process, q: Process, packet: Packet) -> None:
        if self._recorder is not None:
            self._recorder.drop(p, q, packet, self._shapes[packet.__class__])

    def _strike(self, fault: Fault, *_: Any) -> None:
        if self._recorder is not None:
            self._recorder.fault(fault)
        self._carrier.strike(fault)

    # -- the application at work -------------------------------------------------

    def _handle(self, p: Process, message: Message) -> None:
        """A free process takes up a message."""
        takes = self._handling()
        if takes:
            p.busy = True
            self._scheduler.at(self._scheduler.now + takes, self._handled, p, message)
        else:
            self._follow_up(p, message)

    def _handled(self, p: Process, message: Message, *_: Any) -> None:
        p.busy = False
        self._last_work = self._scheduler.now
        self._follow_up(p, message)
        self._go_on(p)

    def _follow_up(self, p: Process, message: Message) -> None:
        """What comes after the handling: the message's job, or the reaction to it."""
        if not message.job:
            if self._traffic.reacts:
                self._traffic.react(p, message, message.origin.name)
            return
        now = self._scheduler.now
        p.busy = self._job_blocks
        self._job_start.add(now)
        self._job_delay.add(now - message.sent)
        if self._recorder is not None:
            self._recorder.job(p, message, "job_start")
        self._scheduler.at(now + self._job_length(), self._job_over, p, message)

    def _job_over(self, p: Process, message: Message, *_: Any) -> None:
        self._last_work = self._scheduler.now
        if self._recorder is not None:
            self._recorder.job(p, message, "job_end")
        if self._job_blocks:
            p.busy = False
        if self._traffic.reacts:
            self._traffic.react(p, message, message.origin.name)
        self._go_on(p)

    def _go_on(self, p: Process) -> None:
        """Take up what has waited, up to the next thing that takes time."""
        while p.tasks and not p.busy:
            task = p.tasks.popleft()
            if task is None:
                self._send_own(p)
            else:
                self._handle(p, task)
        self._flush(p)

    # -- at the end --------------------------------------------------------------

    def _summary(self) -> Summary:
        config = self.config
        carrier = self._carrier
        messages = sum(p.sent for p in self.processes)
        received = self._deliveries - self._to_self
        released = received + sum(p.transit + p.buffer for p in self.processes)
        packets: dict[str, int] = {}
        control = 0
        metadata = self._metadata_bytes
        for shape in self._shapes.values():
            packets[shape.kind] = packets.get(shape.kind, 0) + shape.count
            control += 0 if shape.payload else shape.count
            metadata += 0 if shape.varies else shape.count * shape.fixed
        return Summary(
            protocol=config.protocol,
            workload=config.workload.kind,
            processes=len(self.processes),
            seed=config.seed,
            fifo_channels=config.fifo(),
            messages=messages,
            copies=self._copies,
            deliveries=self._deliveries,
            duplicates=self._duplicates,
            undelivered=explain(
                config,
                self._copies - self._deliveries,
                self._open or {},
                carrier,
                self.processes,
                self._cut_short,
            ),
            simulated_ns=max(self._last_arrival, self._last_progress, self._last_work),
            execution_ns=max(self._last_progress, self._last_work),
            events=self._scheduler.scheduled,
            packets=dict(sorted(packets.items())),
            retransmissions=self._retransmissions,
            lost=carrier.lost,
            duplicated=carrier.duplicated,
            refused=self._refused,
            payload_bytes=self._payload_bytes,
            metadata_bytes=metadata,
            control_per_message=control / messages if messages else 0.0,
            latency=self._latency.times(),
            held_at_sender=self._held_at_sender.times(released),
            held_at_receiver=self._held_at_receiver.times(received),
            max_in_transit=max(p.max_transit for p in self.processes),
            max_in_transit_per_pair=max(p.max_pair for p in self.processes),
            max_send_buffer=max(p.max_waiting for p in self.processes),
            max_receive_buffer=max(p.max_buffer for p in self.processes),
            jobs=self._job_start.count,
            job_start=self._job_start.times(),
            job_delay=self._job_delay.times(),
        )
