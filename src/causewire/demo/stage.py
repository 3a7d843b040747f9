"""Runs the chat over a bad network, and collects the results."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import NamedTuple

from ..core.errors import CausewireError
from ..testing.cluster import Cluster
from . import chat

__all__ = ["DemoNetwork", "Freeze", "Performance", "StageError", "perform"]

PATIENCE = 120.0
"""Seconds after which a chat is given up; it takes a few."""

MessageId = tuple[str, int]
"""The sender of a message, and its number there."""


class StageError(CausewireError):
    """The chat could not be run, or did not end in time."""


class DemoNetwork(NamedTuple):
    """What the network between the friends does to datagrams.

    The first three are probabilities; `delay` is the range of delays, in seconds.
    """

    loss: float = 0.05
    duplicate: float = 0.03
    corrupt: float = 0.02
    delay: tuple[float, float] = (0.001, 0.04)


class Freeze(NamedTuple):
    """One friend's process stands still for a while."""

    who: str
    after: float
    """Seconds from the beginning of the chat."""
    lasting: float
    """Seconds for which it stands still."""

    def conversations(self, asked: int, pause: float) -> int:
        """Return how many conversations each friend opens, so that the chat outlasts the freeze.

        Args:
            asked: The least that is returned.
            pause: The mean time between two of them, in seconds.
        """
        return max(asked, math.ceil(1.5 * (self.after + self.lasting) / pause))


class Performance(NamedTuple):
    """The results of one chat under one protocol."""

    protocol: str
    traces: Path
    said: dict[MessageId, chat.Line]
    lost: int
    """Datagrams that the network lost."""
    totals: Counter[str]
    """The sum of the counters of all nodes."""
    dropped: Counter[str]
    """Datagrams that nodes dropped, by reason."""
    frozen: tuple[int, int] | None = None
    """When a friend stood still: from and to, in nanoseconds, as the traces have it."""

    @property
    def copies(self) -> int:
        """The number of duplicate datagrams, which nodes recognised and dropped."""
        return self.dropped["copy"]

    @property
    def damaged(self) -> int:
        """The number of datagrams dropped for another reason; nearly all were damaged."""
        return self.dropped.total() - self.copies


async def perform(
    protocol: str,
    traces: Path,
    *,
    conversations: int,
    pause: float,
    network: DemoNetwork,
    seed: int,
    progress: Callable[[int, int], None],
    freeze: Freeze | None = None,
) -> Performance:
    """Run the chat, and return its results.

    Args:
        protocol: The name of the protocol.
        traces: The directory for the traces, one file for each friend.
        conversations: The number of conversations that each friend opens.
        pause: The mean time between two of them, in seconds.
        network: What the network does to datagrams.
        seed: The seed of what is said, and of the network.
        progress: Called with the number of deliveries so far and of all deliveries.
        freeze: Stop one friend's process for a while.

    Raises:
        StageError: A friend failed, or the chat did not end in time.
    """
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
        frozen = await _freeze(cluster, freeze) if freeze is not None else None
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
    return Performance(protocol, traces, said, lost, totals, dropped, frozen)


async def _freeze(cluster: Cluster, freeze: Freeze) -> tuple[int, int]:
    """Stop a process and let it go on, and return when that was."""
    process = cluster.processes[freeze.who]
    await asyncio.sleep(freeze.after)
    process.send_signal(SIGSTOP)
    begun = time.time_ns()
    await asyncio.sleep(freeze.lasting)
    ended = time.time_ns()
    process.send_signal(SIGCONT)
    return begun, ended


@asynccontextmanager
async def _excuses() -> AsyncIterator[None]:
    """Turn the errors of a cluster into `StageError`."""
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
    """Wait until a counter, summed over all friends, reaches a value."""
    total = 0
    while total < enough:
        total = sum([(await cluster.ask(name, "state"))[what] for name in cluster.names])
        if progress is not None:
            progress(total, enough)
        await asyncio.sleep(0.05)
