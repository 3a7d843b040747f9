"""`Node`: what a program without asyncio calls."""

from __future__ import annotations

import queue
import socket
import time
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Any, Self

from ..core.endpoint import destinations
from ..node.addresses import bind, lookup_now
from ..node.base import GOODBYE, BaseNode, Message
from ..node.receipt import Closed, Full, MessageExpired, NodeError
from ..transport import (
    PeerEvent,
    Reason,
    UnknownPeer,
)
from .driver import Receipt, wait_until
from .resolving import Resolving

__all__ = ["Node"]


class Node(Resolving):
    __doc__ = BaseNode.__doc__

    # -- from start to close --------------------------------------------------

    def start(self) -> Self:
        """Open the socket, and look for the peers; `with` does the same.

        Raises:
            NodeError: The node was started before.
            OSError: The address of `listen` is not available, or its name does not resolve.
            ValueError: An address is malformed, or is not loopback and there is no key.
        """
        if self._waker is not None or self._closing:
            raise NodeError(f"{self.name} has been started before")
        places = {name: self._find(name, place) for name, place in self._places.items()}
        if self._socket is None:
            self._socket = bind(lookup_now(self._listen), self._insecure)
        self._sleeper, self._waker = socket.socketpair()
        self._sleeper.setblocking(False)
        known = {} if self._gate is None else self._gate.addresses
        for name, address in {**known, **places}.items():
            self._meet(name, address or known.get(name), time.monotonic())
        self._resume(time.monotonic())
        self._open = True
        self._thread.start()
        if self._resolves:
            self._look_again()
        return self

    def close(self, drain: float | None = None, *, leave: bool | None = None) -> bool:
        """Accept no more messages, wait until all are delivered, and leave.

        A node with a store only stops: its peers see a silence, and a node that is started with
        the store continues.

        Args:
            drain: How many seconds to wait; by default the node's `drain`.
            leave: Whether to say goodbye, so that nobody waits for this process; by default
                only a node without a store does. After that, a node that is started with the
                store is a new incarnation, which still has the messages that were not handled.

        Returns:
            Whether every accepted message was delivered.
        """
        with self._lock:
            if not self._open or self._closing:
                if not self._open and self._gate is not None:
                    self._gate.close()  # it was not started, or that failed
                self._closing = True
                return bool(self.drained)
            self._closing = True
            self._room.notify_all()
            deadline = time.monotonic() + (self._drain if drain is None else drain)
            while not self._transport.settled and self._failure is None:
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._settled.wait(min(0.01, left))
            drained = self._end_drain()
            if leave if leave is not None else self._gate is None:
                self._say_goodbye(deadline, self._drain if drain is None else drain)
            while self._gate is not None and not self._gate.idle and self._failure is None:
                self._wake()
                self._stored.wait(0.01)
            self._stopping.set()
            self._wake()
        self._thread.join()
        if self._gate is not None:
            self._gate.close()
        return drained

    def _say_goodbye(self, deadline: float, wait: float) -> None:
        """Tell everybody that this process leaves; the caller has the lock."""
        self._transport.close()
        self._wake()
        deadline = max(deadline, time.monotonic() + min(GOODBYE, wait))
        while self._goodbye_goes_on and self._failure is None:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self._settled.wait(min(0.01, left))
        self._end_goodbye()
        if self._gate is not None:
            self._next_life(time.monotonic())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(0.0 if kind is not None else None)

    # -- sending --------------------------------------------------------------

    def send(
        self,
        to: str | Collection[str],
        payload: bytes,
        timeout: float | None = None,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt:
        """Send a message to one process or to several; waits only while there is no room.

        Args:
            to: The name of a process, or several names.
            payload: The message.
            timeout: How many seconds to wait for room, or None for no limit.
            wait_for_peer: Whether to keep the message for the next incarnation of a
                destination that is gone, rather than to raise `PeerGone`.
            ttl: How many seconds the message may wait here: for permits of the protocol, for
                room, for a receiver that has not been reached. A message that has not left by
                then is not sent, and its receipt fails with `MessageExpired`. One that has left
                is not affected. A node with a store does not support this.

        Returns:
            A receipt; `receipt.delivered()` waits for the delivery.

        Raises:
            Closed: The node is not running.
            UnknownPeer: Nobody knows where a destination is to be looked for.
            MessageExpired: There was no room within the time to live.
            PeerGone: A destination left, or was given up.
            Superseded: The peers of this node have given it up.
            TimeoutError: There was no room in time.
            ValueError: The payload is too long.
        """
        with self._lock:
            if self._open and not self._closing and not wait_for_peer and ttl is None:
                try:
                    receipt = self._transport.try_send(to, payload)
                except UnknownPeer:
                    receipt = None
                if receipt is not None:
                    if self._asleep:
                        self._wake()
                    return receipt
        if ttl is not None:
            return self._send_in_time(to, payload, timeout, wait_for_peer, ttl)
        return self._send_slowly(to, payload, timeout, wait_for_peer)

    def _send_in_time(
        self,
        to: str | Collection[str],
        payload: bytes,
        timeout: float | None,
        wait_for_peer: bool,
        ttl: float,
    ) -> Receipt:
        """Send a message that may wait for a limited time only."""
        self._check_ttl(ttl)
        deadline = time.monotonic() + ttl
        sooner = timeout is not None and timeout < ttl
        try:
            receipt = self._send_slowly(to, payload, timeout if sooner else ttl, wait_for_peer)
        except TimeoutError:
            if sooner:
                raise
            raise MessageExpired(0, destinations(to)) from None
        with self._lock:
            self._expire(receipt, ttl, deadline, time.monotonic())
            self._wake()
        return receipt

    def _send_slowly(
        self,
        to: str | Collection[str],
        payload: bytes,
        timeout: float | None,
        wait_for_peer: bool,
    ) -> Receipt:
        """Send when the address of the destination is known, and there is room."""
        if not isinstance(to, str):
            to = tuple(to)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._send_when_room(to, payload, deadline, wait_for_peer)
            except UnknownPeer as unknown:
                names = unknown.names
            for name in names:
                self._resolve(name)

    def _send_when_room(
        self,
        to: str | Collection[str],
        payload: bytes,
        deadline: float | None,
        wait_for_peer: bool,
    ) -> Receipt:
        with self._lock:
            while True:
                self._check_running()
                if wait_for_peer:
                    receipt = self._transport.send(to, payload, True)
                else:
                    receipt = self._transport.try_send(to, payload)
                self._wake()
                if receipt is not None:
                    return receipt
                wait_until(self._room, deadline, "no room for another message")

    def send_nowait(
        self, to: str | Collection[str], payload: bytes, *, ttl: float | None = None
    ) -> Receipt:
        """Send a message at once; `ttl` is that of `send`.

        Raises:
            Full: There is no room.
            Closed: The node is not running.
            UnknownPeer: No address is known for a destination.
            PeerGone: A destination left, or was given up.
            Superseded: The peers of this node have given it up.
            ValueError: The payload is too long.
        """
        with self._lock:
            self._check_running()
            if ttl is not None:
                self._check_ttl(ttl)
            receipt = self._transport.send(to, payload)
            if receipt is None:
                raise Full(f"no room for another message to {to}")
            if ttl is not None:
                now = time.monotonic()
                self._expire(receipt, ttl, now + ttl, now)
            self._wake()
        return receipt

    def _send_stored(
        self,
        to: str | Collection[str],
        payload: bytes,
        timeout: float | None = None,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt:
        """Do what `send` does, and wait until the message is in the store."""
        receipt = type(self).send(self, to, payload, timeout, wait_for_peer=wait_for_peer, ttl=ttl)
        self._in_store(receipt, None)
        return receipt

    def _in_store(self, receipt: Receipt, timeout: float | None) -> None:
        """Wait until a message is in the store, or its receivers are gone."""
        gate = self._gate
        if gate is None:
            raise NodeError(f"{self.name} has no store")
        mid, sessions, _ = receipt
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while gate.stored < mid:
                gate.check()
                if sessions and all(session.over for session in sessions):
                    return
                if not self._open:
                    raise Closed(f"{self.name} is not running")
                wait_until(self._stored, deadline, "the message is not in the store")
            while receipt.withdrawn and not gate.idle and self._open:
                self._wake()
                wait_until(self._stored, deadline, "the store does not have it")
            gate.check()

    def _check_running(self) -> None:
        if self._gate is not None:
            self._gate.check()
        if self._failure is not None:
            raise NodeError(f"{self.name} has failed: {self._failure!r}") from self._failure
        if not self._open or self._closing:
            raise Closed(f"{self.name} is not running")

    # -- receiving ------------------------------------------------------------

    def receive(self, timeout: float | None = None) -> Message:
        """Return the next message.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            Closed: The node is closed, and all messages have been taken.
            Superseded: The peers of this node have given it up.
            TimeoutError: No message was delivered in time.
        """
        try:
            return self._messages.popleft()
        except IndexError:
            pass
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while True:
                if self._transport.refill():
                    self._wake()
                if self._messages:
                    return self._messages.popleft()
                if not self._open:
                    raise Closed(f"{self.name} is not running")
                self._check_superseded()
                if self._gate is not None:  # who asks for the next has handled those before
                    self._gate.check()
                    self._gate.inbox.done()
                    self._wake()
                wait_until(self._readable, deadline, "no message")

    def __iter__(self) -> Iterator[Message]:
        """Yield messages until the node is closed."""
        while True:
            try:
                message = self.receive()
            except Closed:
                return
            yield message

    def done(self) -> None:
        """Note that all messages taken so far are handled, and wait until the store has that.

        A node with a store delivers a message again, after a crash, unless it was handled. To
        ask for the next message says the same as this call, without waiting for the store. With
        `reports_handled`, the application says it of each message, and this call only waits.

        Raises:
            NodeError: The node has no store, or is not running.
            StoreFailed: The store could not be written.
        """
        gate = self._gate
        with self._lock:
            self._check_running()
            if gate is None:
                raise NodeError(f"{self.name} has no store")
            gate.inbox.done()
            while not gate.idle:
                self._wake()
                self._stored.wait(0.1)
            gate.check()

    def events(self) -> Iterator[PeerEvent]:
        """Yield what happens to peers and messages from now on, until the node is closed."""
        watcher: queue.SimpleQueue[PeerEvent | None] = queue.SimpleQueue()
        with self._lock:
            if self._closing:
                watcher.put(None)
            self._watchers.append(watcher)
        return self._watch(watcher)

    def _watch(self, watcher: queue.SimpleQueue[PeerEvent | None]) -> Iterator[PeerEvent]:
        try:
            while (event := watcher.get()) is not None:
                yield event
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    # -- peers and status -----------------------------------------------------

    def forget(self, name: str) -> None:
        """Give a peer up: treat it as dead, and tell all others.

        Messages to it fail, and nothing waits for it any longer. If it is alive after all,
        it learns that, and may come back as a new incarnation.

        Raises:
            Closed: The node is not running.
            UnknownPeer: There is no such peer.
        """
        with self._lock:
            self._check_running()
            self._transport.forget(name, time.monotonic())
            self._wake()

    def rejoin(self) -> None:
        """Continue as a new incarnation, after peers have given this process up.

        Receipts that are not settled fail. Messages that were delivered and not taken yet
        can still be received.

        Raises:
            Closed: The node is not running.
        """
        with self._lock:
            self._check_running()
            self._rejoin()
            self._wake()

    def peers_up(self) -> list[str]:
        """Return the names of the peers that were reached, and answer."""
        with self._lock:
            return self._peers_up()

    def blocked(self) -> list[Reason]:
        """Return why messages have not arrived; `str()` of a reason is a sentence."""
        with self._lock:
            return self._transport.blocked(time.monotonic()) if self._open else []

    def stats(self) -> dict[str, Any]:
        """Return counters since the start."""
        with self._lock:
            return self._stats()

    def metrics(self) -> str:
        """Return counters and gauges in the text format of Prometheus."""
        with self._lock:
            return self._metrics()

    # -- those who wait -------------------------------------------------------

    def _wait_for(self, receipt: Receipt, timeout: float | None) -> None:
        """Wait until a receipt is settled, or the node is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._settles and receipt.missing:
                wait_until(self._settled, deadline, "the message has not been delivered")

    def _wait_until_handled(self, receipt: Receipt, timeout: float | None) -> None:
        """Wait until a message is handled, or will never be, or the node is closed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self._settles and receipt.unhandled():
                wait_until(self._settled, deadline, "the message has not been handled")

    @property
    def _settles(self) -> bool:
        """Whether anything is still to be heard of messages: not after it was given up."""
        return self._open and not self._transport.me.superseded
