"""What is to go to one peer: messages released by the protocol, in their order.

Messages leave for the first time in the order of their release (`queue`); those of
lost datagrams leave again before that (`resend`). The peer takes a limited number
of messages and bytes before it has acknowledged any (its window), and says in its
greeting how many; an ack of the protocol moves the window on.

Messages lie here as the protocol had them, in columns, and go into datagrams in runs:
nothing is done for each of them but to measure it and to join its bytes to the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

from ..core.run import MessageRun
from .frames import RUN_HEAD, Piece, most_messages, put_piece, put_run

__all__ = ["Item", "Outbound", "messages_in"]

PIECE_HEAD = 1 + 8 + 8 + 4 + 4 + 4
"""The most bytes that a part of a message takes beside its data."""

Item: TypeAlias = MessageRun | Piece
"""What a datagram carries of messages, to be repeated if it is lost."""


def messages_in(item: Item) -> int:
    """How many messages that is, in whole or in part."""
    return len(item.mids) if isinstance(item, MessageRun) else 1


class _Queued:
    """Messages that follow each other, and have not left yet: those from `head` on."""

    __slots__ = ("head", "mids", "payloads", "per", "pid")

    def __init__(self, mids: list[int], pid: int, payloads: list[bytes], per: bool) -> None:
        self.mids = mids
        self.pid = pid
        """The one before the first, which may have left."""
        self.payloads = payloads
        self.per = per
        self.head = 0

    def passed(self, count: int) -> bool:
        """So many more have left; returns whether that is all."""
        self.head += count
        if 2 * self.head >= len(self.mids):
            self.pid = self.mids[self.head - 1]
            del self.mids[: self.head], self.payloads[: self.head]
            self.head = 0
        return not self.mids


class Outbound:
    """Messages to one peer, between the protocol and datagrams."""

    __slots__ = (
        "_flying",
        "_flying_bytes",
        "_flying_messages",
        "_queue",
        "_resend",
        "acked",
        "departed",
        "last",
        "peer_bytes",
        "peer_messages",
        "released",
    )

    def __init__(self) -> None:
        self._queue: deque[_Queued] = deque()
        self._resend: deque[Item] = deque()
        self._flying: deque[MessageRun] = deque()
        """What has left, and is not acknowledged."""
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
        """What the peer takes at a time; nothing until it is known."""
        self.peer_bytes = 0

    def release(self, run: MessageRun) -> None:
        """The protocol puts messages on the network."""
        mids, pid, payloads, per, _ = run
        queue = self._queue
        if queue and queue[-1].per == per:
            queue[-1].mids += mids
            queue[-1].payloads += payloads
        else:
            queue.append(_Queued(list(mids), pid, list(payloads), per))
        self.last = mids[-1]
        self.released += len(mids)

    @property
    def pending(self) -> bool:
        """Whether there is anything that could leave now."""
        return bool(self._resend) or (
            bool(self._queue)
            and self._flying_messages < self.peer_messages
            and self._flying_bytes < self.peer_bytes
        )

    def acknowledged(self, mid: int) -> tuple[int, int]:
        """The peer has messages up to `mid`; returns how many, in messages and bytes."""
        self.acked = mid
        flying = self._flying
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
        """What was in a lost datagram is to leave again."""
        self._resend.extend(items)

    def clear(self) -> None:
        """Nothing will leave any more."""
        self._queue.clear()
        self._resend.clear()
        self._flying.clear()

    # -- filling a datagram ---------------------------------------------------

    def fill(self, space: int, full: int, parts: list[bytes], items: list[Item]) -> int:
        """Put as much as fits into `space` bytes; returns how many bytes that is.

        What was put in is added to `parts` as bytes and to `items` as what it was.
        `full` is what every datagram has room for: longer messages are cut up.
        """
        used = messages = 0
        while True:
            if self._resend:
                self._skip_acked()
            if not self._resend and self._queue:
                head = self._queue[0]
                if len(head.payloads[head.head]) > full - RUN_HEAD and self.pending:
                    self._cut_up(full - PIECE_HEAD)
            light = most_messages(used) - messages
            put = self._put_again if self._resend else self._put_new
            item = put(space - used, light, parts)
            if item is None:
                return used
            items.append(item)
            used += len(parts[-1])
            messages += messages_in(item)

    def _put_new(self, space: int, light: int, parts: list[bytes]) -> MessageRun | None:
        """One run from the head of the queue, as long as possible; none if nothing fits.

        `light` is how many short messages the reader takes.
        """
        if not self.pending:
            return None
        queued = self._queue[0]
        head = queued.head
        space -= RUN_HEAD
        length = len(queued.payloads[head])
        room = self.peer_messages - self._flying_messages
        end = head + min(room, max(space, 0) // (length or 1) + 1)
        mids = queued.mids[head:end]
        payloads = queued.payloads[head:end]
        lengths = list(map(len, payloads))
        count = _fitting(mids, lengths, space, light)
        if not count:
            return None
        if count < len(mids):
            del mids[count:], payloads[count:], lengths[count:]
        pid = queued.mids[head - 1] if head else queued.pid
        run = MessageRun(mids, pid, payloads, queued.per, sum(lengths))
        parts.append(put_run(run, lengths))
        self._leaves(run)
        return run

    def _leaves(self, run: MessageRun) -> None:
        """These messages leave for the first time."""
        count = len(run.mids)
        self.departed = run.mids[-1]
        self._flying.append(run)
        self._flying_messages += count
        self._flying_bytes += run.size
        if self._queue[0].passed(count):
            self._queue.popleft()

    def _cut_up(self, size: int) -> None:
        """Make parts of the message at the head of the queue, too long for a datagram."""
        queued = self._queue[0]
        head, per = queued.head, queued.per
        mid, payload = queued.mids[head], queued.payloads[head]
        pid = queued.mids[head - 1] if head else queued.pid
        count = -(-len(payload) // size)
        data = memoryview(payload)
        self._resend.extend(
            [Piece(mid, pid, per, k, count, data[k * size : (k + 1) * size]) for k in range(count)]
        )
        self._leaves(MessageRun([mid], pid, [payload], per, len(payload)))

    # -- what leaves again ----------------------------------------------------

    def _skip_acked(self) -> None:
        """Drop from the head of `resend` what has arrived after all."""
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

    def _put_again(self, space: int, light: int, parts: list[bytes]) -> Item | None:
        """The head of `resend`, or as much of it as fits; none if nothing does."""
        item = self._resend.popleft()
        if isinstance(item, Piece):
            part = put_piece(item)
            if len(part) > space:
                self._resend.appendleft(item)
                return None
            parts.append(part)
            return item
        lengths = list(map(len, item.payloads))
        count = _fitting(item.mids, lengths, space - RUN_HEAD, light)
        if count < len(item.mids):
            item, rest = item.split(count)
            self._resend.appendleft(rest)
        if not count:
            return None
        parts.append(put_run(item, lengths[:count]))
        return item


def _fitting(mids: Sequence[int], lengths: list[int], space: int, light: int) -> int:
    """How many of these messages fit into a frame that has `space` behind its head."""
    length = lengths[0]
    if length > space:
        return 0
    count = len(mids)
    even = lengths.count(length) == count
    each = 0
    if (span := mids[-1] - mids[0]) >= count:
        each = _width(span - count + 2)  # no step is longer than that
    if even and length:
        count = min(count, space // (length + each))
    else:
        each += _width(max(lengths))
        count = bisect_right(list(accumulate([n + each for n in lengths])), space)
    count = max(1, count)  # one alone needs no more than there is
    return count if even and length >= 16 else _light_enough(lengths, count, light)


def _width(n: int) -> int:
    return 1 if n < 1 << 8 else 2 if n < 1 << 16 else 4 if n < 1 << 32 else 8


def _light_enough(lengths: list[int], count: int, light: int) -> int:
    """As many short messages as a reader will take (`most_messages`)."""
    size = 0
    for k in range(count):
        if k >= light + size // 16:
            return k
        size += lengths[k]
    return count
