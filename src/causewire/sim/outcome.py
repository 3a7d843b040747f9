"""The summary of a run that is over, from what its parts have counted."""

from __future__ import annotations

from collections.abc import Sequence

from .config import SimulationConfig
from .links import Links
from .process import Process
from .sizes import Shapes
from .summary import Summary
from .tally import Tally
from .undelivered import explain

__all__ = ["summarize"]


def summarize(
    config: SimulationConfig,
    tally: Tally,
    links: Links,
    shapes: Shapes,
    processes: Sequence[Process],
    *,
    events: int,
    cut_short: bool,
) -> Summary:
    """Return the summary of a run.

    Args:
        config: The settings of the run.
        tally: What was counted about messages.
        links: What was counted about packets on the network.
        shapes: What was counted about packets of each class.
        processes: The processes of the run.
        events: The number of events of the event loop.
        cut_short: Whether the run was ended before everything had happened.
    """
    messages = sum(p.sent for p in processes)
    received = tally.deliveries - tally.to_self
    released = received + sum(p.transit + p.buffer for p in processes)
    packets: dict[str, int] = {}
    control = 0
    metadata = tally.metadata_bytes
    bits = tally.metadata_bits
    for shape in shapes.values():
        packets[shape.kind] = packets.get(shape.kind, 0) + shape.count
        control += 0 if shape.payload else shape.count
        if not shape.varies:
            metadata += shape.count * (shape.head - (-shape.bits // 8))
            bits += shape.count * shape.bits
    return Summary(
        protocol=config.about.name,
        workload=config.workload.kind,
        processes=len(processes),
        seed=config.seed,
        fifo_channels=config.fifo(),
        messages=messages,
        copies=tally.copies,
        deliveries=tally.deliveries,
        duplicates=tally.duplicates,
        undelivered=explain(config, tally, links, processes, cut_short),
        simulated_ns=max(tally.last_arrival, tally.last_progress, tally.last_work),
        execution_ns=max(tally.last_progress, tally.last_work),
        events=events,
        packets=dict(sorted(packets.items())),
        retransmissions=tally.retransmissions,
        lost=links.lost,
        duplicated=links.duplicated,
        refused=tally.refused,
        payload_bytes=tally.payload_bytes,
        metadata_bytes=metadata,
        metadata_bits=bits,
        control_per_message=control / messages if messages else 0.0,
        latency=tally.latency.times(),
        held_at_sender=tally.held_at_sender.times(released),
        held_at_receiver=tally.held_at_receiver.times(received),
        max_in_transit=max(p.max_transit for p in processes),
        max_in_transit_per_pair=max(p.max_pair for p in processes),
        max_send_buffer=max(p.max_waiting for p in processes),
        max_receive_buffer=max(p.max_buffer for p in processes),
        jobs=tally.job_start.count,
        job_start=tally.job_start.times(),
        job_delay=tally.job_delay.times(),
    )
