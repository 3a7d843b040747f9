"""The bridge between a transport and an asyncio event loop: a socket, a timer, and turns.

Datagrams from the socket go to the transport, and those of the transport go to the socket
once per turn of the loop: after the application's tasks have had an opportunity to answer,
so that acks share datagrams with the answers.

A turn ends with a callback that is scheduled when there is something to send. Tasks that were
woken before that run first. If datagrams arrive when the end of the turn is scheduled already,
the tasks that they wake would run too late. If it was scheduled for acks or by a timer, it is
put off, once. If somebody has sent, it is not: under load that would cost a tenth of the rate.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from asyncio import _get_running_loop
from collections import deque
from collections.abc import Callable
from typing import Any

from ..transport import Address, DropReason, Transport
from .receipt import NodeError

__all__ = ["Bridge"]

DRAIN = 64
"""Datagrams that are taken from the socket before others get their turn."""

ALONE = 16
"""After this many datagrams in a row that were alone in the socket, one is taken at a time, and
only after as many again it is tested, by a system call, whether there are more. The loop calls
again if there are."""

DRAIN_ALL = 4096
"""The same when one of them says that a process is gone: its last messages may be behind it."""

LARGEST_DATAGRAM = 65536


class Bridge:
    """Drives a transport with a socket, on the running loop."""

    __slots__ = (
        "_alone",
        "_backlog",
        "_late",
        "_notice",
        "_patient",
        "_thread_id",
        "_timer",
        "_timer_at",
        "due",
        "loop",
        "sock",
        "transport",
    )

    def __init__(
        self, transport: Transport[Any], sock: socket.socket, notice: Callable[[], None]
    ) -> None:
        self.transport = transport
        self.sock = sock
        self.loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self.due = False
        """Whether the end of the turn is scheduled."""
        self._patient = False
        """Whether it may be put off: nobody has sent anything yet."""
        self._late = False
        """Whether it is put off, because datagrams have arrived since."""
        self._notice = notice
        """Is called when the transport may have events."""
        self._backlog: deque[tuple[bytes, Address]] = deque()
        """Datagrams that the socket did not accept yet."""
        self._alone = 0
        """How many datagrams in a row were found alone, or not tested for that."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.loop.add_reader(sock, self._readable)

    def stop(self) -> None:
        """Detach from the loop, and close the socket."""
        self.loop.remove_reader(self.sock)
        if self._backlog:
            self.loop.remove_writer(self.sock)
        self._disarm()
        self.sock.close()

    def soon(self) -> None:
        """Have datagrams sent at the end of this turn."""
        if not self.due:
            if _get_running_loop() is not self.loop:
                self.check_loop()
            self.due = True
            self.loop.call_soon(self._end_turn)

    def check_loop(self) -> None:
        """Check that the caller is where the node runs.

        Code that has no event loop may call while the loop is stopped, in the same thread.

        Raises:
            NodeError: The caller is on another event loop, or in another thread.
        """
        running = _get_running_loop()
        here = threading.get_ident() == self._thread_id
        if running is not self.loop and (running is not None or not here):
            raise NodeError(
                f"{self.transport.me.name} runs on another event loop: call it there, with "
                f"asyncio.run_coroutine_threadsafe or loop.call_soon_threadsafe, "
                f"or use causewire.blocking.Node"
            )

    def _soon_for_acks(self) -> None:
        """Do the same for acks and timers, which can wait for what others send."""
        if not self.due:
            self.due = self._patient = True
            self.loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Flush, after everybody who was woken in this turn has had an opportunity to send."""
        if self._late:
            self._late = False
            self.loop.call_soon(self._really_end_turn)
        else:
            self._really_end_turn()

    def _really_end_turn(self) -> None:
        self.due = self._patient = self._late = False
        self.flush()

    def flush(self) -> None:
        """Send datagrams, set the timer, and report events, without waiting for others."""
        if self.sock.fileno() < 0:
            return
        self._transmit()
        self._arm()
        self._notice()

    def _transmit(self) -> None:
        """Send all datagrams that may be sent now."""
        self._send(self.transport.datagrams_to_send(self.loop.time()))

    def _send(self, datagrams: list[tuple[bytes, Address]]) -> None:
        send = self.sock.sendto
        backlog = self._backlog
        for datagram in datagrams:
            if backlog:
                backlog.append(datagram)
                continue
            try:
                send(*datagram)
            except (BlockingIOError, InterruptedError):
                backlog.append(datagram)
                self.loop.add_writer(self.sock, self._writable)
            except OSError:
                self.transport.stats.drop(DropReason.NOT_SENT)

    def _writable(self) -> None:
        backlog = self._backlog
        while backlog:
            try:
                self.sock.sendto(*backlog[0])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.transport.stats.drop(DropReason.NOT_SENT)
            backlog.popleft()
        self.loop.remove_writer(self.sock)

    def _readable(self) -> None:
        receive, handle = self.sock.recvfrom, self.transport.datagram_received
        now = self.loop.time()
        alone = self._alone
        self._alone = 0
        try:
            data, address = receive(LARGEST_DATAGRAM)
            handle(data, address[:2], now)
            self._alone = alone + 1
            if alone < ALONE or alone % ALONE == 0:
                for _ in range(DRAIN):
                    data, address = receive(LARGEST_DATAGRAM)
                    self._alone = 0
                    handle(data, address[:2], now)
            if self.transport.postponed:
                for _ in range(DRAIN_ALL):
                    data, address = receive(LARGEST_DATAGRAM)
                    handle(data, address[:2], now)
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.transport.stats.drop(DropReason.NOT_RECEIVED)
        self._notice()
        self._late = self._patient
        self._soon_for_acks()

    def _arm(self) -> None:
        """Set a timer that fires no later than the transport needs it."""
        due = self.transport.next_timer()
        if self._timer is not None:
            if due is not None and self._timer_at <= due:
                return
            self._disarm()
        if due is not None:
            self._timer = self.loop.call_at(due, self._fired)
            self._timer_at = due

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self) -> None:
        self._timer = None
        self.transport.timer_fired(self.loop.time())
        self._soon_for_acks()
