"""A node for programs without asyncio: the same calls, and they wait.

    with causewire.blocking.Node("alice", peers={"bob": "127.0.0.1:9002"}) as alice:
        receipt = alice.send("bob", b"hello")
        receipt.delivered(timeout=5)
        for message in alice:
            print(message.source, message.payload)

The node drives its transport from a thread of its own, with a selector. A call from another
thread takes a lock and uses the transport directly; it wakes the thread only if that sleeps.
All methods may be called from any thread.
"""

from __future__ import annotations

import inspect
import logging
import queue
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from types import TracebackType
from typing import Any, Self

from .core.endpoint import LocalProtocolError
from .node.addresses import Place, bind, lookup_now
from .node.base import BaseNode, Message
from .node.receipt import BaseReceipt, Closed, Full, NodeError
from .transport import (
    Address,
    Confirmed,
    Delivered,
    DropReason,
    PeerEvent,
    Reason,
    Room,
    UnknownPeer,
)

__all__ = ["Node", "Receipt"]

DRAIN = 64
"""Datagrams that are taken from the socket before others get their turn."""

LARGEST_DATAGRAM = 65536

_log = logging.getLogger("causewire.blocking")


class Receipt(BaseReceipt):
    """A message that was accepted: what `Node.send` returns."""

    __slots__ = ()

    def delivered(self, timeout: float | None = None) -> None:
        """Wait until every receiver has delivered the message.

        Args:
            timeout: How many seconds to wait, or None for no limit.

        Raises:
            DeliveryFailed: A receiver is gone, or the node was closed before.
            TimeoutError: It has not been delivered in time.
        """
        self[2]._wait_for(self, timeout)
        self._check()


class Node(BaseNode[Receipt]):
    __doc__ = BaseNode.__doc__
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
        self._waker: socket.socket | None = None
        self._open = False
        self._stopping = threading.Event()
        self._failure: BaseException | None = None
        self._backlog: deque[tuple[bytes, Address]] = deque()
        """Datagrams that the socket did not accept yet."""

    # -- from start to close --------------------------------------------------

    def start(self) -> Self:
        """Open the socket, and look for the peers; `with` does the same.

        Raises:
            NodeError: The node was started before.
            OSError: The address is not available, or a name cannot be resolved.
            ValueError: An address is malformed, or is not loopback and there is no key.
        """
        if self._waker is not None or self._closing:
            raise NodeError(f"{self.name} has been started before")
        places = {name: lookup_now(place) for name, place in self._places.items()}
        if self._socket is None:
            self._socket = bind(lookup_now(self._listen), self._insecure)
        self._sleeper, self._waker = socket.socketpair()
        self._sleeper.setblocking(False)
        for name, address in places.items():
            self._transport.add_peer(name, address, time.monotonic())
        self._open = True
        self._thread.start()
        if self._resolver is not None:
            threading.Thread(target=self._resolve_lost, daemon=True).start()
        return self

    def close(self, drain: float | None = None) -> bool:
        """Accept no more messages, wait until all are delivered, and leave.

        Args:
            drain: How many seconds to wait; by default the node's `drain`.

        Returns:
            Whether every accepted message was delivered.
        """
        with self._lock:
            if not self._open or self._closing:
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
            self._transport.close()
            self._stopping.set()
            self._wake()
        self._thread.join()
        return drained

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
        self, to: str | Collection[str], payload: bytes, timeout: float | None = None
    ) -> Receipt:
        """Send a message to one process or to several; waits only while there is no room.

        Args:
            to: The name of a process, or several names.
            payload: The message.
            timeout: How many seconds to wait for room, or None for no limit.

        Returns:
            A receipt; `receipt.delivered()` waits for the delivery.

        Raises:
            Closed: The node is not running.
            LocalProtocolError: A destination is not known.
            TimeoutError: There was no room in time.
            ValueError: The payload is too long.
        """
        with self._lock:
            if self._open and not self._closing:
                try:
                    receipt = self._transport.try_send(to, payload)
                except UnknownPeer:
                    receipt = None
                if receipt is not None:
                    if self._asleep:
                        self._wake()
                    return receipt
        return self._send_slowly(to, payload, timeout)

    def _send_slowly(
        self, to: str | Collection[str], payload: bytes, timeout: float | None
    ) -> Receipt:
        """Send when the address of the destination is known, and there is room."""
        if not isinstance(to, str):
            to = tuple(to)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return self._send_when_room(to, payload, deadline)
            except UnknownPeer as unknown:
                names = unknown.names
            for name in names:
                self._resolve(name)

    def _send_when_room(
        self, to: str | Collection[str], payload: bytes, deadline: float | None
    ) -> Receipt:
        with self._lock:
            while True:
                self._check_running()
                receipt = self._transport.try_send(to, payload)
                self._wake()
                if receipt is not None:
                    return receipt
                _wait(self._room, deadline, "no room for another message")

    def send_nowait(self, to: str | Collection[str], payload: bytes) -> Receipt:
        """Send a message at once.

        Raises:
            Full: There is no room.
            Closed: The node is not running.
            LocalProtocolError: A destination is not known.
            ValueError: The payload is too long.
        """
        with self._lock:
            self._check_running()
            receipt = self._transport.send(to, payload)
            if receipt is None:
                raise Full(f"no room for another message to {to}")
            self._wake()
        return receipt

    def _check_running(self) -> None:
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
                _wait(self._readable, deadline, "no message")

    def __iter__(self) -> Iterator[Message]:
        """Yield messages until the node is closed."""
        while True:
            try:
                message = self.receive()
            except Closed:
                return
            yield message

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

    def add_peer(self, name: str, place: Place) -> None:
        """Make a process known, or its new address.

        Raises:
            OSError: The name of the host cannot be resolved.
            ValueError: The name or the address is malformed, or there are too many peers.
        """
        if self._waker is None:
            self._places[name] = place
            return
        address = lookup_now(place)
        with self._lock:
            if self._open:
                self._transport.add_peer(name, address, time.monotonic())
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
            while receipt.missing and self._open:
                _wait(self._settled, deadline, "the message has not been delivered")

    def _resolve(self, name: str) -> None:
        """Find the address of a process."""
        place = self._resolver(name) if self._resolver is not None else None
        if inspect.isawaitable(place):
            raise TypeError("the resolver of a blocking node must not be a coroutine function")
        if place is None:
            raise LocalProtocolError(f"the address of {name!r} is not known")
        self.add_peer(name, place)

    def _resolve_lost(self) -> None:
        """Ask the resolver again and again for peers that do not answer."""
        while not self._stopping.wait(self._transport.config.silent_after):
            with self._lock:
                names = self._unreached()
            for name in names:
                try:
                    self._resolve(name)
                except (LocalProtocolError, OSError, ValueError):
                    continue

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
                due = self._transport.next_timer()
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
        backlog += transport.datagrams_to_send(time.monotonic())
        while backlog:
            try:
                sock.sendto(*backlog[0])
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                transport.stats.drop(DropReason.NOT_SENT)
            backlog.popleft()
        while (event := transport.next_event()) is not None:
            if isinstance(event, Delivered):
                self._readable.notify_all()
            elif isinstance(event, Confirmed):
                self._settled.notify_all()
            elif isinstance(event, Room):
                self._room.notify_all()
            else:
                for watcher in self._watchers:
                    watcher.put(event)
        if self._recorder is not None:
            self._recorder.flush()

    def _receive(self, sock: socket.socket) -> None:
        """Take datagrams from the socket, and do what is due."""
        transport, now = self._transport, time.monotonic()
        try:
            for _ in range(DRAIN):
                data, address = sock.recvfrom(LARGEST_DATAGRAM)
                transport.datagram_received(data, address[:2], now)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            transport.stats.drop(DropReason.NOT_RECEIVED)
        due = transport.next_timer()
        if due is not None and due <= now:
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
            for condition in (self._readable, self._room, self._settled):
                condition.notify_all()
            for watcher in self._watchers:
                watcher.put(None)


def _wait(condition: threading.Condition, deadline: float | None, what: str) -> None:
    """Wait for a condition; `TimeoutError` if it takes too long."""
    left = None if deadline is None else deadline - time.monotonic()
    if left is not None and left <= 0:
        raise TimeoutError(what)
    condition.wait(left)
