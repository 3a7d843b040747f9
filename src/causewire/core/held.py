"""Messages that arrived too early, found by what they wait for.

The receiver-buffering protocols (`rst`, `ks`, `bss`, `pak`) read off an arriving
message which predecessors must be delivered here first. Each is named exactly, as
message `mid` of `origin`, and what one origin sends here is delivered in the order
of its numbers, so a need (origin, n) is met by the delivery of n or of any later
message from the same origin.

A delivery therefore looks only at the queue of its origin, and there only at the
needs that it meets: nothing scans everything that is held. Each need enters a queue
once and leaves it once, so the buffer costs O(log b) for each need of a message.

    invariant   missing[m] = the number of entries in the queues that name m;
                m is in `ready` if that number is 0.

Which message is freed by which delivery depends only on the needs; messages freed
by the same delivery come out in the order of what they waited for, then of their
names. Two messages that are ready at once are concurrent (if one were a predecessor
of the other, the other would wait for it), so any order is causal. This order is
fixed so that runs can be repeated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import Self, TypeAlias

from .endpoint import Blocked, Packet, Wait

__all__ = ["HoldingBuffer", "Need"]

Need: TypeAlias = tuple[str, int]
"""A message by its origin and number, to be delivered here first."""


class HoldingBuffer:
    """A receive buffer for messages that wait for the delivery of others."""

    __slots__ = ("_messages", "_missing", "_queues", "_ready")

    def __init__(self) -> None:
        self._messages: dict[tuple[str, int], Packet] = {}
        self._missing: dict[tuple[str, int], int] = {}
        self._queues: dict[str, list[tuple[int, str, int]]] = {}
        """By origin, a heap of (number waited for, source and number of who waits)."""
        self._ready: deque[tuple[str, int]] = deque()

    def __len__(self) -> int:
        """The number of messages that wait."""
        return len(self._missing)

    def get(self, source: str, mid: int) -> Packet | None:
        """Return message `mid` of `source`, or None if the buffer does not hold it."""
        return self._messages.get((source, mid))

    def hold(self, source: str, mid: int, packet: Packet, needs: Iterable[Need]) -> None:
        """Add message `mid` of `source`; without needs it is ready at once."""
        missing = 0
        for origin, needed in needs:
            heappush(self._queues.setdefault(origin, []), (needed, source, mid))
            missing += 1
        self._messages[source, mid] = packet
        if missing:
            self._missing[source, mid] = missing
        else:
            self._ready.append((source, mid))

    def delivered(self, origin: str, mid: int) -> None:
        """Message `mid` of `origin` was delivered: free what waited for it."""
        queue = self._queues.get(origin)
        while queue and queue[0][0] <= mid:
            _, source, waiting = heappop(queue)
            self._met((source, waiting))
        if queue is not None and not queue:
            del self._queues[origin]

    def _met(self, key: tuple[str, int]) -> None:
        """One of the needs of a message is met."""
        self._missing[key] -= 1
        if not self._missing[key]:
            del self._missing[key]
            self._ready.append(key)

    def forget(self, origin: str) -> None:
        """Drop what `origin` sent, and free what waits for its messages, which will not come."""
        gone = {key for key in self._messages if key[0] == origin}
        for key in gone:
            del self._messages[key]
            self._missing.pop(key, None)
        self._ready = deque([key for key in self._ready if key not in gone])
        for name, queue in list(self._queues.items()):
            kept = [need for need in queue if need[1:] not in gone]
            if name == origin:
                del self._queues[name]
                for _, source, mid in sorted(kept):
                    self._met((source, mid))
            elif kept:
                heapify(kept)
                self._queues[name] = kept
            else:
                del self._queues[name]

    def take(self) -> Iterator[tuple[str, Packet]]:
        """Yield messages that are ready, with their sources, until there are none.

        A message stays in the buffer until its turn comes, so none is lost if the
        loop is left early.
        """
        while self._ready:
            key = self._ready.popleft()
            yield key[0], self._messages.pop(key)

    def blocked(self, me: str) -> list[Blocked]:
        """Return what each message waits for, sorted by message, then by need."""
        waits: dict[tuple[str, int], list[Wait]] = {key: [] for key in sorted(self._missing)}
        for origin in sorted(self._queues):
            for needed, source, mid in self._queues[origin]:
                waits[source, mid].append(Wait("predecessor", origin, needed))
        return [
            Blocked(source, mid, me, "receiver", tuple(sorted(missing)))
            for (source, mid), missing in waits.items()
        ]

    def packets(self) -> Iterable[Packet]:
        """Return the messages that wait."""
        return self._messages.values()

    def count_from(self, source: str) -> int:
        """Return how many messages of one source wait."""
        return sum(key[0] == source for key in self._messages)

    def footprint(self) -> int:
        """Return the size of the packets' metadata and sources, in integers and names.

        The index is not counted, because it follows from these.
        """
        return sum(1 + p.integers + p.identifiers for p in self._messages.values())

    def state(self) -> Hashable:
        """Return the contents as a value that does not depend on their order."""
        return frozenset(self._messages.items())

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin._messages = self._messages.copy()
        twin._missing = self._missing.copy()
        twin._queues = {origin: queue[:] for origin, queue in self._queues.items()}
        twin._ready = self._ready.copy()
        return twin
