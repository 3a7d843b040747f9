"""Messages to one peer that the protocol released, in their order.

Messages leave for the first time in the order of their release (`queue`); those of lost
datagrams leave again before that (`resend`). The peer accepts a limited number of messages
and bytes before it has acknowledged any (its window, stated in its greeting); an ack of the
protocol moves the window on.

Messages stay in the lists in which the protocol handed them over, and go into datagrams in
runs: the only work for a single message is to measure it and to join its bytes to the rest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from ..core.run import MessageRun
from .budget import Budget
from .contents import Piece
from .frames import (
    PIECE_HEAD,
    RUN_HEAD,
    most_messages,
    put_piece,
    put_run,
    put_single,
)
from .withdrawn import Withdrawn

__all__ = ["Item", "Outbound", "messages_in"]

_new = tuple.__new__

Item: TypeAlias = MessageRun | Piece
"""Messages, or a part of one, that a datagram carries, and that leave again if it is lost."""


def messages_in(item: Item) -> int:
    """Return the number of messages, in whole or in part."""
    return len(item.mids) if isinstance(item, MessageRun) else 1


class Outbound:
    """Messages to one peer, between the protocol and datagrams."""

    __slots__ = (
        "_flying",
        "_flying_bytes",
        "_flying_messages",
        "_head",
        "_queue",
        "_resend",
        "acked",
        "departed",
        "last",
        "peer_bytes",
        "peer_messages",
        "released",
        "withdrawn",
    )

    def __init__(self) -> None:
        self._queue: deque[MessageRun] = deque()
        """Released, and not sent yet; its lists are this object's own."""
        self._head = 0
        """How many messages of the first run in the queue have been sent."""
        self._resend: deque[Item] = deque()
        self._flying: deque[MessageRun] = deque()
        """Sent, and not acknowledged."""
        self._flying_messages = 0
        self._flying_bytes = 0
        self.released = 0
        """Messages released to this peer, ever."""
        self.last = 0
        """The last message released."""
        self.departed = 0
        """The last message that has left in a datagram."""
        self.acked = 0
        """The last message acknowledged by the peer's protocol."""
        self.peer_messages = 0
        """The window of the peer; 0 until it is known."""
        self.peer_bytes = 0
        self.withdrawn: list[int] = []
        """Messages that were withdrawn before they left, and are not acknowledged."""

    def release(self, run: MessageRun) -> None:
        """Queue messages that the protocol put on the network; takes over their lists."""
        queue = self._queue
        if queue and queue[-1].per == run.per:
            mids: Any = queue[-1].mids
            payloads: Any = queue[-1].payloads
            mids += run.mids
            payloads += run.payloads
        else:
            queue.append(run)
        self.last = run.mids[-1]
        self.released += len(run.mids)

    @property
    def pending(self) -> bool:
        """Whether there is anything that may be sent now."""
        return bool(self._resend) or (
            bool(self._queue)
            and self._flying_messages < self.peer_messages
            and self._flying_bytes < self.peer_bytes
        )

    def acknowledged(self, mid: int) -> tuple[int, int]:
        """Drop messages up to `mid`; return how many there were, and their bytes."""
        self.acked = mid
        if self.withdrawn:
            del self.withdrawn[: bisect_right(self.withdrawn, mid)]
        flying = self._flying
        if len(flying) == 1 and flying[0].mids[-1] == mid:
            messages, size = self._flying_messages, self._flying_bytes
            flying.clear()
            self._flying_messages = self._flying_bytes = 0
            return messages, size
        messages = size = 0
        while flying and flying[0].mids[0] <= mid:
            run = flying.popleft()
            if run.mids[-1] > mid:
                run, rest = run.split(bisect_right(run.mids, mid))
                flying.appendleft(rest)
            messages += len(run.mids)
            size += run.size
        self._flying_messages -= messages
        self._flying_bytes -= size
        return messages, size

    def lost(self, items: list[Item]) -> None:
        """Queue the items of a lost datagram to be sent again."""
        self._resend.extend(items)

    def restore(self, runs: list[MessageRun], acked: int, left: int, withdrawn: list[int]) -> None:
        """Continue with messages that were released before a crash, and are not acknowledged.

        Args:
            runs: The messages.
            acked: The last message acknowledged.
            left: Later ones have not left; earlier ones may have.
            withdrawn: Which were withdrawn; some of them may not have been released.
        """
        self.acked = self.last = self.departed = acked
        for run in runs:
            flying, rest = run.split(bisect_right(run.mids, left))
            if flying.mids:
                self._flying.append(flying)
                self._flying_messages += len(flying.mids)
                self._flying_bytes += flying.size
                self.released += len(flying.mids)
                self.last = self.departed = flying.mids[-1]
            if rest.mids:
                own = list(rest.mids), rest.pid, list(rest.payloads), rest.per
                self.release(MessageRun(*own))
        self.withdrawn = withdrawn
        self.resume()

    def resume(self) -> None:
        """Send everything again that is not acknowledged: the peer may have lost it."""
        self._resend = deque(self._flying)

    def withdraw(self, mid: int, list_bytes: Callable[[bytes, bool], int]) -> None:
        """Take the payload off a message that has not left.

        Args:
            mid: The message, which may be with the protocol still.
            list_bytes: Returns how many bytes of a payload belong to the protocol, and stay.
        """
        insort(self.withdrawn, mid)
        if mid > self.last:
            return
        run = next(run for run in self._queue if run.mids[-1] >= mid)
        payloads: Any = run.payloads
        k = bisect_left(run.mids, mid)
        payloads[k] = Withdrawn(payloads[k][: list_bytes(payloads[k], run.per)])

    def clear(self) -> None:
        """Drop everything."""
        self._queue.clear()
        self._resend.clear()
        self._flying.clear()

    # -- filling a datagram ---------------------------------------------------

    def take_single(self, most: int) -> tuple[bytes, MessageRun] | None:
        """Return the frame of the only message that has to be sent, and its run.

        This is the short way for a message that leaves alone. Returns None, and changes
        nothing, if there is any other number of messages, or if its length is 0 or above
        `most`, or if the peer's window is full, or if messages were withdrawn.
        """
        queue = self._queue
        if self._resend or len(queue) != 1 or len(queue[0].mids) != 1 or self.withdrawn:
            return None
        mids, pid, payloads, per, _ = queue[0]
        mid, payload = mids[0], payloads[0]
        size = len(payload)
        if (
            not 0 < size <= most
            or self._flying_messages >= self.peer_messages
            or self._flying_bytes >= self.peer_bytes
        ):
            return None
        run: MessageRun = _new(MessageRun, (mids, pid, payloads, per, size))
        queue.clear()
        self._flying.append(run)
        self._flying_messages += 1
        self._flying_bytes += size
        self.departed = mid
        return put_single(mid, pid, payload, per), run

    def fill(self, budget: Budget, full: int, items: list[Item], part: int = 0) -> bool:
        """Put as much into a datagram as fits, and return whether that is anything.

        Args:
            budget: The datagram.
            full: What every datagram has room for; longer messages are sent in parts.
            items: Gets what was put in, so that it can be sent again.
            part: How long the frame of a part of a message may be; by default `full`.
        """
        part = (part or full) - PIECE_HEAD
        used = messages = 0
        while True:
            if self._resend:
                self._skip_acked()
                self._cut_up_again(full, part)
            if (
                not self._resend
                and self._queue
                and _goes_in_parts(self._queue[0].payloads[self._head], full)
                and self.pending
            ):
                self._cut_up(part)
            light = most_messages(used) - messages
            put = self._put_again if self._resend else self._put_new
            left = budget.left
            item = put(budget, light)
            if item is None:
                return used > 0
            items.append(item)
            used += left - budget.left
            messages += messages_in(item)

    def _put_new(self, budget: Budget, light: int) -> MessageRun | None:
        """Put in the longest run possible from the head of the queue, if any fits.

        `light` is the number of short messages that the reader accepts.
        """
        if not self.pending:
            return None
        queued, head = self._queue[0], self._head
        space = budget.left - RUN_HEAD
        length = len(queued.payloads[head])
        room = self.peer_messages - self._flying_messages
        end = head + min(room, max(space, 0) // (length or 1) + 1)
        mids: Any = queued.mids[head:end]
        payloads: Any = queued.payloads[head:end]
        lengths = list(map(len, payloads))
        count = _fitting(mids, lengths, space, light)
        if self.withdrawn:
            count = _before_withdrawn(payloads, count)
        if not count:
            return None
        if count < len(mids):
            del mids[count:], payloads[count:], lengths[count:]
        pid = queued.mids[head - 1] if head else queued.pid
        run = MessageRun(mids, pid, payloads, queued.per, sum(lengths))
        budget.put(put_run(run, lengths))
        self._leaves(run)
        return run

    def _leaves(self, run: MessageRun) -> None:
        """Record that messages at the head of the queue are sent for the first time."""
        count = len(run.mids)
        self.departed = run.mids[-1]
        self._flying.append(run)
        self._flying_messages += count
        self._flying_bytes += run.size
        self._head = head = self._head + count
        queued = self._queue[0]
        mids: Any = queued.mids
        payloads: Any = queued.payloads
        if head == len(mids):
            self._queue.popleft()
            self._head = 0
        elif 2 * head >= len(mids):
            pid = mids[head - 1]
            del mids[:head], payloads[:head]
            self._queue[0] = MessageRun(mids, pid, payloads, queued.per)
            self._head = 0

    def _cut_up(self, size: int) -> None:
        """Split the message at the head of the queue, which goes in parts."""
        queued = self._queue[0]
        head, per = self._head, queued.per
        mid, payload = queued.mids[head], queued.payloads[head]
        pid = queued.mids[head - 1] if head else queued.pid
        run = MessageRun([mid], pid, [payload], per, len(payload))
        self._resend.extend(_parts(run, size))
        self._leaves(run)

    # -- what leaves again ----------------------------------------------------

    def _skip_acked(self) -> None:
        """Drop what has been acknowledged meanwhile from the head of `resend`."""
        resend, acked = self._resend, self.acked
        while resend:
            item = resend[0]
            if isinstance(item, Piece):
                if item.mid > acked:
                    return
            elif item.mids[-1] > acked:
                if item.mids[0] <= acked:
                    resend[0] = item.split(bisect_right(item.mids, acked))[1]
                return
            resend.popleft()

    def _cut_up_again(self, full: int, size: int) -> None:
        """Split a message that left whole and is lost, if it goes in parts now.

        Datagrams may have become shorter. What was withdrawn may not have left before a crash.
        """
        while self._resend:
            item = self._resend[0]
            if isinstance(item, Piece) or not _goes_in_parts(item.payloads[0], full):
                return
            del self._resend[0]
            first, rest = item.split(1)
            if rest.mids:
                self._resend.appendleft(rest)
            self._resend.extendleft(reversed(_parts(first, size)))

    def _put_again(self, budget: Budget, light: int) -> Item | None:
        """Put in the head of `resend`, or as much of it as fits, if any does."""
        item = self._resend.popleft()
        if isinstance(item, Piece):
            if not budget.offer(put_piece(item)):
                self._resend.appendleft(item)
                return None
            return item
        lengths = list(map(len, item.payloads))
        count = _fitting(item.mids, lengths, budget.left - RUN_HEAD, light)
        if self.withdrawn:
            count = _before_withdrawn(item.payloads, count)
        if count < len(item.mids):
            item, rest = item.split(count)
            self._resend.appendleft(rest)
        if not count:
            return None
        budget.put(put_run(item, lengths[:count]))
        return item


def _parts(run: MessageRun, size: int) -> list[Piece]:
    """Return the parts of the only message of a run."""
    (mid,), pid, (payload,), per, _ = run
    count = -(-len(payload) // size) or 1
    data = memoryview(payload)
    gone = payload.__class__ is Withdrawn
    parts = [data[k * size : (k + 1) * size] for k in range(count)]
    return [Piece(mid, pid, per, k, count, part, gone) for k, part in enumerate(parts)]


def _goes_in_parts(payload: bytes, full: int) -> bool:
    """Return whether a message is not put into a run: it is too long, or withdrawn."""
    return len(payload) > full - RUN_HEAD or payload.__class__ is Withdrawn


def _before_withdrawn(payloads: Sequence[bytes], count: int) -> int:
    """Return how many of the first `count` messages are before one that was withdrawn."""
    for k in range(count):
        if payloads[k].__class__ is Withdrawn:
            return k
    return count


def _fitting(mids: Sequence[int], lengths: list[int], space: int, light: int) -> int:
    """Return how many of these messages fit into a frame with `space` bytes after its head."""
    length = lengths[0]
    if length > space:
        return 0
    count = len(mids)
    even = lengths.count(length) == count
    each = 0
    if (span := mids[-1] - mids[0]) >= count:
        each = _width(span - count + 2)  # an upper bound of all steps
    if even and length:
        count = min(count, space // (length + each))
    else:
        each += _width(max(lengths))
        count = bisect_right(list(accumulate([n + each for n in lengths])), space)
    count = max(1, count)  # one alone is known to fit
    return count if even and length >= 16 else _light_enough(lengths, count, light)


def _width(n: int) -> int:
    return 1 if n < 1 << 8 else 2 if n < 1 << 16 else 4 if n < 1 << 32 else 8


def _light_enough(lengths: list[int], count: int, light: int) -> int:
    """Return how many of the messages a reader accepts (`most_messages`)."""
    size = 0
    for k in range(count):
        if k >= light + size // 16:
            return k
        size += lengths[k]
    return count
