"""What the failure matrices do to one process of a cluster, the victim, and how they undo it."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from causewire.testing.cluster import Cluster

FAULTS = ("frozen", "killed", "restarted", "left", "partitioned", "deaf")
"""All faults: stopped (SIGSTOP), killed, killed and started again, told to stop, cut off from the
others, and with an application that takes nothing."""

ENDING = ("frozen", "partitioned", "deaf")
"""Faults that end after a while, when `mend` is called."""


async def strike(cluster: Cluster, victim: str, fault: str) -> None:
    """Do something to the victim; its program obeys `stop` and `deaf`."""
    process = cluster.processes[victim]
    if fault in ("killed", "restarted"):
        process.kill()
        await process.wait()
    elif fault == "left":
        cluster.tell(victim, "stop")
    elif fault == "frozen":
        process.send_signal(signal.SIGSTOP)
    elif fault == "partitioned":
        cluster.proxy.partition([victim])
    else:
        cluster.tell(victim, "deaf")


async def mend(cluster: Cluster, victim: str, fault: str, **settings: Any) -> None:
    """End a fault that ends, or start the victim again after a second, with these settings."""
    if fault == "restarted":
        await asyncio.sleep(1.0)
        await cluster.start(victim, **settings)
        cluster.tell(victim, "go")
    elif fault in ENDING:
        cluster.processes[victim].send_signal(signal.SIGCONT)
        cluster.proxy.partition(())
        cluster.tell(victim, "hear")
