"""The thread that drives the transport of a blocking node, with a selector.

All state is protected by one lock. The thread holds it while it uses the transport, and
releases it while it waits for datagrams and timers.
"""

from __future__ import annotations

import logging
import queue
import selectors
import socket
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import suppress

from ..node.base import BaseNode
from ..node.gate import Gate
from ..node.receipt import BaseReceipt
from ..transport import (
    Address,
    Confirmed,
    Delivered,
    DropReason,
    Handled,
    MessageWithdrawn,
    NodeRejoined,
    NodeSuperseded,
    PeerEvent,
    PeerUp,
    Room,
    Session,
    Transport,
)

__all__ = ["Driver", "Receipt", "wait_until"]

DRAIN = 64
"""Datagrams that are taken from the socket before others get their turn."""

DRAIN_ALL = 4096
"""The same when one of them says that a process is gone: its last messages may be behind it."""

LARGEST_DATAGRAM = 65536

_log = logging.getLogger("causewire.node")


class Receipt(BaseReceipt):
    """A message that was accepted: what `Node.send` returns."""

    def delivered(self, timeout: float | None = None) -> None:
        """Wait until every receiver has delivered the message.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed before.
            MessageCancelled: The message was cancelled.
            MessageExpired: Its time to live passed before it left.
            TimeoutError: It has not been delivered in time.
        """
        self[2]._wait_for(self, timeout)
        self._check()

    def stored(self, timeout: float | None = None) -> None:
        """Wait until the message is in the store of its sender, so that it survives a crash.

        `node.send(...)` has waited for that; after `send_nowait` it is up to you. After
        `cancel`, wait until the store has that.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            NodeError: The node has no store, or was closed before.
            StoreFailed: The store could not be written, and the message is not in it.
            TimeoutError: The message is not in the store in time.
        """
        self[2]._in_store(self, timeout)

    def handled(self, timeout: float | None = None) -> None:
        """Wait until the application of every receiver says that it has handled the message.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed before.
            NodeError: A receiver does not report what its application has handled.
            TimeoutError: It has not been handled in time.
        """
        self[2]._wait_until_handled(self, timeout)
        self._check_handled()


class Driver(BaseNode[Receipt]):
    """The part of a blocking node that runs in a thread of its own."""

    _receipt = Receipt

    def _prepare(self) -> None:
        self._lock = threading.Lock()
        self._readable = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._settled = threading.Condition(self._lock)
        self._watchers: list[queue.SimpleQueue[PeerEvent | None]] = []
        self._thread = threading.Thread(
            target=self._run, name=f"causewire {self.name}", daemon=True
        )
        self._asleep = False
        """Whether the thread waits in its selector and has to be woken."""
        self._sleeper: socket.socket
        self._waker: socket.socket | None = None
        self._open = False
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._backlog: deque[tuple[bytes, Address]] = deque()
        """Datagrams that the socket did not accept yet."""
        self._stored = threading.Condition(self._lock)
        self._written: deque[Future[None]] = deque()
        """Writes to the store that have ended."""
        if self._gate is not None:
            self._gate.notice = self._store_written
            self._gate.inbox.guard = threading.Lock()
            self.send = self._send_stored

    # -- the thread -----------------------------------------------------------

    def _wake(self) -> None:
        """Make the thread look at the transport; the caller has the lock."""
        if self._asleep:
            self._asleep = False
            self._waker.send(b"\0")  # type: ignore[union-attr]

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                self._loop(selector)
        except BaseException as error:
            self._failure = error
            _log.exception("the thread of %s has failed", self.name)
        finally:
            self._end()

    def _loop(self, selector: selectors.BaseSelector) -> None:
        sock = self._socket
        assert sock is not None
        selector.register(sock, selectors.EVENT_READ)
        selector.register(self._sleeper, selectors.EVENT_READ)
        while True:
            with self._lock:
                self._turn(sock)
                if self._stopping.is_set():
                    return
                interest = selectors.EVENT_READ
                if self._backlog:
                    interest |= selectors.EVENT_WRITE
                selector.modify(sock, interest)
                due = self._next_timer()
                self._asleep = True
            timeout = None if due is None else max(0.0, due - time.monotonic())
            ready = selector.select(timeout)
            with self._lock:
                self._asleep = False
                for key, _ in ready:
                    if key.fileobj is not sock:
                        self._sleeper.recv(4096)
                self._receive(sock)

    def _turn(self, sock: socket.socket) -> None:
        """End a turn: send datagrams, and wake whoever can continue."""
        transport, backlog = self._transport, self._backlog
        if self._gate is None:
            backlog += transport.datagrams_to_send(time.monotonic())
        else:
            backlog += self._stored_turn(self._gate)
        while backlog:
            try:
                sock.sendto(*backlog[0])
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                transport.stats.drop(DropReason.NOT_SENT)
            backlog.popleft()
        self._dispatch(transport)
        if self._recorder is not None:
            self._recorder.flush()
            self._check_trace()
        if self._must_rejoin:
            self._rejoin_in_time()

    def _next_timer(self) -> float | None:
        """Return when the thread has to look at the transport, if nothing arrives."""
        if self._store_failed:
            return None
        times = [self._transport.next_timer()]
        if self._must_rejoin and not self._closing:
            times.append(self._rejoining.until)
        return min([when for when in times if when is not None], default=None)

    @property
    def _store_failed(self) -> bool:
        """Whether nothing happens any more, as what is known here is ahead of the store."""
        return self._gate is not None and self._gate.failure is not None

    def _stored_turn(self, gate: Gate) -> list[tuple[bytes, Address]]:
        """Return the datagrams that may leave: those that follow from what is in the store."""
        leaving: list[tuple[bytes, Address]] = []
        while self._written:
            leaving += gate.finish(self._written.popleft())
            self._stored.notify_all()
            if self._messages:
                self._readable.notify_all()
            if gate.failure is not None:
                _log.error("%s stops: %s", self.name, gate.failure)
                self._transport.abort()
                self._wake_all()
        return leaving + gate.turn(self._transport.datagrams_to_send(time.monotonic()))

    def _store_written(self, future: Future[None]) -> None:
        """Make the thread look at a write that has ended; called in any thread."""
        self._written.append(future)
        with suppress(OSError):  # the node is closed
            self._waker.send(b"\0")  # type: ignore[union-attr]

    @abstractmethod
    def _send_stored(
        self,
        to: str | Collection[str],
        payload: bytes,
        timeout: float | None = None,
        *,
        wait_for_peer: bool = False,
        ttl: float | None = None,
    ) -> Receipt: ...

    def _dispatch(self, transport: Transport[Receipt]) -> None:
        """Wake whoever can continue."""
        while (event := transport.next_event()) is not None:
            if isinstance(event, Delivered):
                self._readable.notify_all()
            elif isinstance(event, Confirmed | Handled | MessageWithdrawn):
                self._settled.notify_all()
            elif isinstance(event, Room):
                self._room.notify_all()
            else:
                self._publish(event)
                if isinstance(event, PeerUp):
                    self._settled.notify_all()
                if isinstance(event, NodeSuperseded):
                    self._wake_all()

    def _publish(self, event: PeerEvent) -> None:
        """Log an event, and pass it on to those who watch."""
        self._event_log.write(event)
        for watcher in self._watchers:
            watcher.put(event)

    def _report(self, session: Session, mid: int) -> None:
        with self._lock:
            self._transport.handled(session, mid)
            self._wake()

    def _withdraw(self, receipt: Receipt) -> bool:
        with self._lock:
            withdrawn = self._open and self._transport.withdraw(receipt)
            self._wake()
        return withdrawn

    def _wake_all(self) -> None:
        for condition in (self._readable, self._room, self._settled, self._stored):
            condition.notify_all()

    def _receive(self, sock: socket.socket) -> None:
        """Take datagrams from the socket, and do what is due."""
        transport, now = self._transport, time.monotonic()
        stopped = self._store_failed
        try:
            for _ in range(DRAIN):
                data, address = sock.recvfrom(LARGEST_DATAGRAM)
                if not stopped:
                    transport.datagram_received(data, address[:2], now)
            if transport.postponed:
                for _ in range(DRAIN_ALL):
                    data, address = sock.recvfrom(LARGEST_DATAGRAM)
                    transport.datagram_received(data, address[:2], now)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            transport.stats.drop(DropReason.NOT_RECEIVED)
        due = transport.next_timer()
        if due is not None and due <= now and not stopped:
            transport.timer_fired(now)

    def _end(self) -> None:
        """Close everything, and wake everybody."""
        with self._lock:
            self._open = False
            self._asleep = False
            for sock in (self._socket, self._sleeper, self._waker):
                if sock is not None:
                    sock.close()
            if self._recorder is not None:
                self._recorder.close()
                self._check_trace()
            self._wake_all()
            for watcher in self._watchers:
                watcher.put(None)

    def _check_superseded(self) -> None:
        if self._must_rejoin:  # it had stood down, and the application reads again
            self._rejoin_in_time()
            self._wake()
        else:
            super()._check_superseded()

    def _rejoin_in_time(self) -> None:
        """Rejoin, unless that is too soon after the last time, or the node is closing."""
        if not self._closing and self._rejoining.now(time.monotonic()):
            self._rejoin()

    def _rejoin(self) -> None:
        old, now = self._transport, time.monotonic()
        self._next_life(now)
        self._rejoining.rejoined(now)
        self._dispatch(old)
        self._publish(NodeRejoined(self.name, self.incarnation))
        self._wake_all()


def wait_until(condition: threading.Condition, deadline: float | None, what: str) -> None:
    """Wait for a condition; `TimeoutError` if it takes too long."""
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise TimeoutError(what)
    condition.wait(left)
