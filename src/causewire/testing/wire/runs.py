"""Runs that a seed decides: what goes wrong, what the applications do, and all the rest."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ...protocols import DEFAULT, Protocol, describe
from ...transport import TransportConfig
from ...transport.carrier import is_native
from .judge import Verdict
from .settings import Faults, WireWorkload
from .wire import Wire

__all__ = ["disturbed", "failing", "play", "seeded", "stranded"]


def seeded(seed: int) -> tuple[Faults, WireWorkload, TransportConfig]:
    """Faults and a workload that depend on the seed alone: from calm to terrible."""
    random, paths = Random(f"faults {seed}"), Random(f"paths {seed}")
    slow = random.random() < 0.15
    faults = Faults(
        loss=random.choice((0.0, 0.02, 0.1, 0.3)),
        duplicate=random.choice((0.0, 0.05, 0.2)),
        corrupt=random.choice((0.0, 0.0, 0.02, 0.1)),
        delay=random.choice(((0.001, 0.001), (0.001, 0.01), (0.0005, 0.08))),
        partitions=random.choice((0, 0, 1, 2)),
        pauses=random.choice((0, 0, 1, 2)),
        moves=random.choice((0, 0, 1, 2)),
        restarts=random.choice((0, 0, 1, 2)),
        remote=paths.random() < 0.25,
        narrow=paths.choice((0, 0, 0, 1300, 1500, 4000)),
        narrow_from=paths.choice((0.0, 0.3)),
    )
    workload = WireWorkload(
        processes=random.choice((2, 3, 3, 4)),
        messages=random.choice((3, 6, 12)),
        replies=random.choice((0.0, 0.3, 0.7)),
        multicast=random.choice((0.0, 0.4, 1.0)),
        payload=random.choice(((0, 0), (0, 40), (0, 40), (0, 2000))),
        pace=random.choice((0.002, 0.02)),
        slow=0.01 if slow else 0.0,
    )
    config = TransportConfig(
        local_datagram=random.choice((400, 1232, 16384)),
        peer_messages=random.choice((4, 64, 8192)),
        queue_messages=2 if slow else 8192,
        keepalive=2.0,
    )
    return faults, workload, config


def failing(seed: int, faults: Faults, workload: WireWorkload) -> tuple[Faults, WireWorkload]:
    """More faults that depend on the seed alone: processes that fail, leave and collide.

    The applications answer much of what they get, often to several, so that many messages
    depend on those of the process that fails.
    """
    random, more = Random(f"failures {seed}"), Random(f"more failures {seed}")
    leaves = random.choice((0, 0, 1))
    faults = replace(
        faults,
        dead_links=random.choice((0, 1, 2)),
        slow_links=random.choice((0, 1, 2, 3)),
        betrayals=random.choice((0, 1, 2)),
        orphans=random.choice((0, 1, 3)),
        forgets=random.choice((0, 1, 2, 4)),
        leaves=leaves,
        clocks_set_back=random.choice((0, 0, 1)),
        collisions=random.choice((0, 0, 0, 1)),
        # A goodbye that never gets through is like a crash, which has to be found out.
        give_up_after=random.choice((2.0, 5.0) if leaves else (None, 2.0, 5.0)),
        lasting=random.choice((0.5, 8.0)),
        unread=more.choice((0, 0, 1, 2)),
        read_within=more.choice((None, 0.4, 1.0)),
        chains=more.choice((0, 1, 2)),
    )
    workload = replace(
        workload,
        processes=random.choice((2, 3, 3, 4, 5)),
        messages=random.choice((6, 12, 20)),
        replies=random.choice((0.3, 0.7, 0.9)),
        pace=random.choice((0.005, 0.02, 0.05)),
    )
    return faults, workload


def disturbed(seed: int, faults: Faults, native: bool) -> Faults:
    """More faults that depend on the seed alone: what others do to a system (`strangers`)."""
    random = Random(f"disturbed {seed}")
    faults = replace(
        faults,
        floods=random.choice((0, 1, 3)),
        diversions=random.choice((0, 1, 3)),
        full_disks=random.choice((0.0, 0.0, 0.5)),
    )
    wrong = random.choice((0, 1, 2, 3))
    if native and faults.give_up_after is not None:  # who never answers has to be given up
        faults = replace(faults, misfit=bool(wrong & 1), absent=bool(wrong & 2))
    return faults


def stranded(seed: int, faults: Faults, workload: WireWorkload) -> tuple[Faults, WireWorkload]:
    """Faults after which some processes never reach each other again, though all others do.

    They move, and nobody can look up where they are; what they send to each other fails.
    """
    random = Random(f"stranded {seed}")
    faults = replace(
        faults,
        moves=random.choice((2, 3, 5)),
        resolver=False,
        partitions=random.choice((1, 2, 3)),
        lasting=random.choice((3.0, 6.0)),
        # If every third datagram is lost or damaged, a living process often needs two seconds to
        # answer. All of a group would never be up at the same time.
        give_up_after=random.choice((1.0, 2.0) if faults.loss + faults.corrupt < 0.3 else (4.0,)),
        leaves=0,
        clocks_set_back=0,
        collisions=0,
    )
    workload = replace(
        workload,
        processes=random.choice((4, 5, 6)),
        messages=random.choice((20, 40)),
        pace=random.choice((0.05, 0.1, 0.2)),
    )
    return faults, workload


def play(
    seed: int,
    protocol: str | Protocol = DEFAULT,
    key: bytes | None = None,
    failures: bool = False,
    strand: bool = False,
    disturb: bool = False,
) -> Verdict:
    """One run that the seed decides, as far as the protocol can do what it asks for."""
    faults, workload, config = seeded(seed)
    if failures:
        faults, workload = failing(seed, faults, workload)
        # Who has left is forgotten within the run, or not. Without a key, that must not happen
        # while a datagram may still be under way (see `linger`).
        linger = Random(f"linger {seed}").choice((0.5, 2.0, 60.0))
        config = replace(config, linger=linger if key is not None else 60.0)
    if strand:
        faults, workload = stranded(seed, faults, workload)
    able = describe(protocol)
    if disturb:
        faults = disturbed(seed, faults, is_native(able))
    if not able.unicast:
        workload = replace(workload, broadcast=True)
    elif not able.multicast:
        workload = replace(workload, multicast=0.0)
    return Wire(
        seed, protocol=protocol, key=key, faults=faults, workload=workload, config=config
    ).play()
