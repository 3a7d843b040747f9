"""Lets the friends talk over a bad network, and gathers what came of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from ..core.errors import CausewireError
from ..testing.cluster import Cluster
from . import chat

__all__ = ["Network", "Performance", "StageError", "perform"]

PATIENCE = 120.0
"""Seconds for a performance; it takes a few."""

Message = tuple[str, int]


class StageError(CausewireError):
    """The friends could not talk, or not in time."""


class Network(NamedTuple):
    """What the proxy does to datagrams: shares, and seconds."""

    loss: float = 0.05
    duplicate: float = 0.03
    corrupt: float = 0.02
    delay: tuple[float, float] = (0.001, 0.04)


class Performance(NamedTuple):
    """One evening under one protocol."""

    protocol: str
    traces: Path
    said: dict[Message, chat.Line]
    lost: int
    """Datagrams that the network lost."""
    totals: Counter[str]
    """The counters of all nodes, added up."""
    dropped: Counter[str]
    """Datagrams that nodes dropped, by reason."""

    @property
    def copies(self) -> int:
        """Copies of datagrams that were recognised, and dropped."""
        return self.dropped["copy"]

    @property
    def damaged(self) -> int:
        """Datagrams dropped for another reason: damaged, nearly all; a few came too early."""
        return self.dropped.total() - self.copies


async def perform(
    protocol: str,
    traces: Path,
    *,
    conversations: int,
    pause: float,
    network: Network,
    seed: int,
    progress: Callable[[int, int], None],
) -> Performance:
    """Let each friend open so many conversations; `progress` is told of deliveries."""
    each = {name: {"trace": str(traces / f"{name}.jsonl")} for name in chat.FRIENDS}
    cluster = Cluster(
        chat.FRIENDS,
        chat.__file__,
        {"seed": seed, **network._asdict()},
        each=each,
        protocol=protocol,
        run=protocol,
        seed=seed,
    )
    others = len(chat.FRIENDS) - 1
    messages = conversations * len(chat.CONVERSATIONS[0]) * len(chat.FRIENDS)
    async with _excuses(), cluster, asyncio.timeout(PATIENCE):
        await _until(cluster, "up", len(chat.FRIENDS) * others)
        for name in chat.FRIENDS:
            cluster.tell(name, f"talk {conversations} {pause}")
        await _until(cluster, "got", messages * others, progress)
        answers = await cluster.stop()
        lost = cluster.proxy.lost
    said = {
        (name, int(mid)): chat.Line(*line)
        for name, answer in answers.items()
        for mid, line in answer["said"].items()
    }
    totals: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for answer in answers.values():
        dropped.update(answer["stats"].pop("dropped"))
        totals.update(answer["stats"])
    return Performance(protocol, traces, said, lost, totals, dropped)


@asynccontextmanager
async def _excuses() -> AsyncIterator[None]:
    """Say what went wrong."""
    try:
        yield
    except TimeoutError:
        why = "the friends were not done in time: is this machine very busy?"
        raise StageError(why) from None
    except RuntimeError as error:  # one of them ended
        raise StageError(str(error)) from None


async def _until(
    cluster: Cluster, what: str, enough: int, progress: Callable[[int, int], None] | None = None
) -> None:
    """Wait until a count, added up over all friends, is reached."""
    total = 0
    while total < enough:
        total = sum([(await cluster.ask(name, "state"))[what] for name in cluster.names])
        if progress is not None:
            progress(total, enough)
        await asyncio.sleep(0.05)
