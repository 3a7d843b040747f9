"""What is to go to one peer: messages released by the protocol, in their order.

Messages leave for the first time in the order of their release (`queue`); those of
lost datagrams leave again before that (`resend`). The peer takes a limited number
of messages and bytes before it has acknowledged any (its window), and says in its
greeting how many; an ack of the protocol moves the window on. What was released is
counted in one piece per run, not by message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from .frames import RUN_HEAD, Fragment, most_messages, put_piece, put_run

__all__ = ["Outbound"]

PIECE_HEAD = 1 + 8 + 8 + 4 + 4 + 4
"""The most bytes that a part of a message takes beside its data."""

_Packet = tuple[Any, ...]


class Outbound:
    """Messages to one peer, between the protocol and datagrams."""

    __slots__ = (
        "_flying",
        "_flying_bytes",
        "_flying_messages",
        "_head",
        "_permits",
        "_queue",
        "_resend",
        "acked",
        "departed",
        "last",
        "peer_bytes",
        "peer_messages",
        "released",
    )

    def __init__(self, permits: bool) -> None:
        self._permits = permits
        self._queue: list[_Packet] = []
        self._head = 0
        self._resend: deque[_Packet] = deque()
        self._flying: deque[tuple[int, int, int, list[_Packet]]] = deque()
        """Runs that have left, and are not acknowledged: last message, messages, bytes."""
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

    def release(self, messages: Sequence[_Packet]) -> None:
        """The protocol puts messages on the network."""
        self._queue += messages
        self.last = messages[-1][1]
        self.released += len(messages)

    @property
    def pending(self) -> bool:
        """Whether there is anything that could leave now."""
        return bool(self._resend) or (
            self._head < len(self._queue)
            and self._flying_messages < self.peer_messages
            and self._flying_bytes < self.peer_bytes
        )

    def acknowledged(self, mid: int) -> tuple[int, int]:
        """The peer has messages up to `mid`; returns how many, in messages and bytes."""
        self.acked = mid
        flying = self._flying
        messages = size = 0
        while flying and flying[0][0] <= mid:
            _, count, length, _ = flying.popleft()
            messages += count
            size += length
        if flying and flying[0][3][0][1] <= mid:
            last, count, length, run = flying.popleft()
            k = bisect_right(run, mid, key=itemgetter(1))
            part = sum([len(message[3]) for message in run[:k]])
            flying.appendleft((last, count - k, length - part, run[k:]))
            messages += k
            size += part
        self._flying_messages -= messages
        self._flying_bytes -= size
        return messages, size

    def lost(self, items: list[Any]) -> None:
        """Messages and fragments that were in a lost datagram are to leave again."""
        acked = self.acked
        for item in items:
            message = item[0] if item.__class__ is Fragment else item
            if message[1] > acked:
                self._resend.append(item)

    def clear(self) -> None:
        """Nothing will leave any more."""
        self._queue = []
        self._head = 0
        self._resend.clear()
        self._flying.clear()

    # -- filling a datagram ---------------------------------------------------

    def fill(self, space: int, full: int, parts: list[bytes], items: list[Any]) -> int:
        """Put as much as fits into `space` bytes; returns how many bytes that is.

        What was put in is added to `parts` as bytes and to `items` as what it was.
        `full` is what every datagram has room for: longer messages are cut up.
        """
        used = 0
        while True:
            if self._resend:
                used += self._refill(space - used, parts, items)
                if self._resend:
                    return used
            while self._head < len(self._queue):
                room = self.peer_messages - self._flying_messages
                if room <= 0 or self._flying_bytes >= self.peer_bytes:
                    return used
                if len(self._queue[self._head][3]) > full - RUN_HEAD:
                    self._cut_up(full - PIECE_HEAD)
                    break
                light = most_messages(used) - len(items)
                size = self._put_new(space - used, room, light, parts, items)
                if not size:
                    return used
                used += size
            else:
                return used

    def _put_new(
        self, space: int, room: int, light: int, parts: list[bytes], items: list[Any]
    ) -> int:
        """One run from the head of the queue, as long as possible; 0 if nothing fits.

        `room` is how many messages the peer takes, `light` how many short ones.
        """
        queue, head = self._queue, self._head
        length = len(queue[head][3])
        space -= RUN_HEAD
        if length > space:
            return 0
        chunk = queue[head : head + min(room, space // (length or 1) + 1)]
        columns = tuple(zip(*chunk, strict=True))
        mids, payloads = columns[1], columns[3]
        per = False
        most = len(chunk)
        if self._permits:
            flags = columns[4]
            per = flags[0]
            if flags.count(per) < most:
                most = flags.index(not per)
        lengths = list(map(len, payloads))
        even = lengths.count(length) == len(lengths)
        each = 0
        if (span := mids[-1] - mids[0]) >= len(mids):
            each = _width(span - len(mids) + 2)  # no step is longer than that
        if even and length:
            count = space // (length + each)
        else:
            each += _width(max(lengths))
            count = bisect_right(list(accumulate([n + each for n in lengths])), space)
        count = min(most, max(1, count))  # one alone needs no more than there is
        if length < 16 or not even:
            count = _light_enough(lengths, count, light)
        if not count:
            return 0
        if count < len(chunk):
            del chunk[count:], lengths[count:]
            mids, payloads = mids[:count], payloads[:count]
        part = put_run(mids, chunk[0][2], payloads, lengths, per)
        parts.append(part)
        items += chunk
        self._note(chunk, sum(lengths))
        return len(part)

    def _note(self, run: list[_Packet], size: int) -> None:
        """These messages leave for the first time."""
        count = len(run)
        self.departed = run[-1][1]
        self._flying.append((self.departed, count, size, run))
        self._flying_messages += count
        self._flying_bytes += size
        self._advance(count)

    def _advance(self, count: int) -> None:
        self._head += count
        if self._head == len(self._queue):
            self._queue = []
            self._head = 0
        elif self._head > 4096:
            del self._queue[: self._head]
            self._head = 0

    def _cut_up(self, size: int) -> None:
        """Make parts of the message at the head of the queue, too long for a datagram."""
        message = self._queue[self._head]
        count = -(-len(message[3]) // size)
        self._resend.extend([Fragment(message, k, count, size) for k in range(count)])
        self._note([message], len(message[3]))

    def _refill(self, space: int, parts: list[bytes], items: list[Any]) -> int:
        """From what is to leave again, and parts: as many frames as it takes."""
        resend = self._resend
        used = 0
        while resend:
            item = resend[0]
            if item.__class__ is Fragment:
                if item[0][1] > self.acked:
                    part = put_piece(item, self._permits and item[0][4])
                    if used + len(part) > space:
                        break
                    parts.append(part)
                    items.append(item)
                    used += len(part)
                resend.popleft()
            elif item[1] <= self.acked:
                resend.popleft()
            else:
                run = self._next_run(space - used, most_messages(used) - len(items))
                if not run:
                    break
                per = self._permits and run[0][4]
                mids = [message[1] for message in run]
                payloads = [message[3] for message in run]
                part = put_run(mids, run[0][2], payloads, list(map(len, payloads)), per)
                parts.append(part)
                items += run
                used += len(part)
        return used

    def _next_run(self, space: int, light: int) -> list[_Packet]:
        """Messages from the head of `resend` that can share a frame."""
        resend = self._resend
        run: list[_Packet] = []
        size = 0
        while resend:
            message = resend[0]
            if message.__class__ is Fragment or len(run) >= light + size // 16:
                break
            if run and (message[2] != run[-1][1] or message[4:] != run[-1][4:]):
                break
            size += len(message[3])
            # Twelve bytes are the most that a message takes in the arrays of a run.
            if RUN_HEAD + size + 12 * len(run) > space:
                break
            run.append(resend.popleft())
        return run


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
