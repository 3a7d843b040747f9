"""Requests and answers between two processes.

A request is a causal message with a number; the answer carries that number and the incarnation
that asked. A request ends in one of these ways, and always in one:

- the answer arrives, or an error that the handler raised: `RequestFailed`;
- the process that was asked is known to be gone: `PeerLost`. Peer events come in the same
  sequence as messages, after the last message of that incarnation, so an answer that was sent
  before the process left is never lost to this rule;
- the caller stops waiting, by a timeout or by cancellation. A request that has not left is
  cancelled. Otherwise the other side learns that nobody waits, and cancels the handler.

A process runs a limited number of handlers at a time. Further requests wait, and start in the
order in which they were delivered, which is causal; when too many wait, they are answered by
the error `Busy`. Reading never stops on their account, so handlers may make requests themselves.

On a node with a store, a request is handled when its answer was sent, or when nobody waits for
one; the answer and that note are stored together. What is not handled comes again after a crash.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple

from ..node import Claim, Message, Node, NodeError, PeerGone, Receipt, Superseded, UnknownPeer
from ..store import StoreFailed
from ..transport import PeerName, message_id
from .codecs import Codec
from .errors import KitError, PeerLost, RequestFailed
from .frames import MARK, Headers, HeaderValue, Kind, Reader, put_headers, put_number, put_text
from .tasks import Tasks
from .tracing import Tracing

__all__ = ["Handler", "Request", "Requests"]


LONGEST_ERROR = 1000
"""How many characters of the text of an error travel."""

HANDLERS_WITHIN = 10.0
"""Seconds that a process which has come back from its store has to say what it serves."""

GONE = "it has left, was given up, or has come back without its memory"


class Request(NamedTuple):
    """A request, as its handler gets it.

    Attributes:
        source: The name of the process that asks.
        service: What it asks for: the name that was given to `serves`.
        payload: The request itself, decoded.
        headers: What it sent along.
    """

    source: str
    service: str
    payload: Any
    headers: dict[str, HeaderValue]


Handler = Callable[[Request], Awaitable[Any]]
"""Returns the answer to a request."""


class _Pending:
    """A request that was made here and is not answered."""

    __slots__ = ("future", "peer", "receipt")

    def __init__(self, peer: str, future: asyncio.Future[Any]) -> None:
        self.peer = peer
        self.future = future
        self.receipt: Receipt | None = None


_Key = tuple[str, int, int]
"""Name and incarnation of the process that asks, and its number of the request."""


class _Asked(NamedTuple):
    """A request as it has arrived."""

    key: _Key
    source: str
    service: str
    headers: dict[str, HeaderValue]
    data: bytes


class Requests:
    """The requests that a process makes, and those that it serves."""

    def __init__(
        self,
        claim: Claim,
        codec: Codec,
        tasks: Tasks,
        tracing: Tracing,
        handlers: int,
        waiting: int,
    ) -> None:
        self._claim = claim
        self._node = claim.node
        self._codec = codec
        self._tasks = tasks
        self._tracing = tracing
        self._handlers = handlers
        self._most_waiting = waiting
        self._numbers = count(1 + (claim.runs << 32))  # an earlier run has used lower ones
        self._pending: dict[int, _Pending] = {}
        self._services: dict[str, Handler] = {}
        self._waiting: deque[tuple[_Key, Request]] = deque()
        self._running: dict[_Key, asyncio.Task[None]] = {}
        self._open: dict[_Key, Message] = {}
        """Requests that are not handled."""
        self._early: list[_Asked] | None = None
        """Requests that nobody serves yet, in a process that has just come back."""

    def begin(self) -> None:
        """Take requests from now on.

        If the process has come back from its store, some are there at once, perhaps before the
        application has said what it serves; it served them before, so they wait for a while.
        """
        if self._claim.runs:
            self._early = []
            self._tasks.spawn(self._refuse_early())

    async def _refuse_early(self) -> None:
        await asyncio.sleep(HANDLERS_WITHIN)
        early, self._early = self._early, None
        for asked in early or ():
            self._admit(asked)

    @property
    def outstanding(self) -> int:
        """The number of requests made here that are not answered."""
        return len(self._pending)

    @property
    def first(self) -> Any:
        """The request that has to be handled next, and waits, or None."""
        return self._waiting[0] if self._waiting else None

    # -- asking ---------------------------------------------------------------

    async def request(
        self,
        peer: str,
        payload: Any,
        *,
        service: str = "",
        timeout: float | None = None,
        headers: Headers | None = None,
    ) -> Any:
        """Ask another process, and return its answer; see `Kit.request`.

        Raises:
            PeerLost: The process is gone.
            RequestFailed: It answered by an error.
            TimeoutError: It has not answered in time.
        """
        with self._tracing.client(service, peer, headers) as sent:
            return await self._request(peer, payload, service, timeout, sent)

    async def _request(
        self, peer: str, payload: Any, service: str, timeout: float | None, headers: Headers | None
    ) -> Any:
        number = next(self._numbers)
        body = put_number(number) + put_text(service) + put_headers(headers)
        frame = MARK + bytes((Kind.REQUEST,)) + body + self._codec.encode(payload)
        pending = _Pending(peer, asyncio.get_running_loop().create_future())
        self._pending[number] = pending
        receipt: Receipt | None = None
        try:
            async with asyncio.timeout(timeout) as limit:
                try:
                    # Not `node.send`, which waits for the store without saying what it sends.
                    receipt = await Node.send(self._node, peer, frame)
                except PeerGone:
                    raise PeerLost(peer, "PeerLost", "it has left, or was given up") from None
                pending.receipt = receipt
                return await pending.future
        except (TimeoutError, asyncio.CancelledError) as error:
            if receipt is not None and not receipt.cancel():
                self._send(peer, Kind.CANCEL, put_number(number))
            if isinstance(error, TimeoutError) and limit.expired():
                asked = f"a request for {service!r}" if service else "a request"
                raise TimeoutError(f"{peer} has not answered {asked} in {timeout} s") from None
            raise
        finally:
            del self._pending[number]

    def lost(self, name: str, incarnation: int) -> None:
        """Act on the event that an incarnation of a process is gone."""
        for pending in self._pending.values():
            if pending.receipt is not None and pending.receipt.gone:
                self._fail(pending, PeerLost(pending.peer, "PeerLost", GONE))
        for key in [k for k in self._open if k[0] == name and k[1] <= incarnation]:
            self._cancelled(key)

    def end(self, error: Exception) -> None:
        """Fail all requests made here, and cancel all handlers."""
        self._early = None
        for pending in self._pending.values():
            self._fail(pending, error)
        self._waiting.clear()
        for task in self._running.values():
            task.cancel()

    @staticmethod
    def _fail(pending: _Pending, error: Exception) -> None:
        if not pending.future.done():
            pending.future.set_exception(error)

    # -- serving --------------------------------------------------------------

    def serve(self, service: str, handler: Handler) -> None:
        """Have a handler answer requests from now on.

        Raises:
            KitError: Another handler serves these requests.
        """
        if service in self._services:
            raise KitError(f"another handler serves {service!r}")
        self._services[service] = handler
        early = self._early or []
        for asked in [one for one in early if one.service == service]:
            early.remove(asked)
            self._admit(asked)

    def received(self, message: Message, kind: Kind, reader: Reader) -> bool:
        """Process a message of another process; return whether it is handled later.

        Raises:
            MalformedError: It is malformed.
        """
        source = message.source
        born = source.incarnation if isinstance(source, PeerName) else 0
        number = reader.number()
        if kind is Kind.REQUEST:
            return self._requested((str(source), born, number), message, reader)
        if kind is Kind.CANCEL:
            self._cancelled((str(source), born, number))
        else:
            self._answered(source, number, kind, reader)
        return False

    def _answered(self, source: str, number: int, kind: Kind, reader: Reader) -> None:
        asked_by = reader.number()
        pending = self._pending.get(number)
        if pending is None or pending.peer != source or pending.future.done():
            return
        if asked_by not in (self._node.incarnation, 0):
            return  # an answer to an earlier incarnation of this process
        if kind is Kind.ERROR:
            self._fail(pending, RequestFailed(source, reader.text(), reader.text()))
            return
        try:
            answer = self._codec.decode(reader.rest())
        except Exception as error:
            self._fail(pending, RequestFailed(source, type(error).__name__, str(error)))
        else:
            pending.future.set_result(answer)

    def _requested(self, key: _Key, message: Message, reader: Reader) -> bool:
        service, headers = reader.text(), reader.headers()
        if key in self._open:  # it came again, as this process has rejoined
            return message_id(message) == message_id(self._open[key])
        self._open[key] = message
        self._admit(_Asked(key, message.source, service, headers, reader.rest()))
        return True

    def _admit(self, asked: _Asked) -> None:
        """Start to handle a request, have it wait, or refuse it."""
        key, source, service, headers, data = asked
        if key not in self._open:
            return  # nobody waits for the answer any more
        if service not in self._services:
            if self._early is not None and len(self._early) < self._most_waiting:
                self._early.append(asked)
                return
            message = f"{self._node.name} does not serve {service!r}"
            self._send_error(key, "NoSuchService", message)
            return
        try:
            payload = self._codec.decode(data)
        except Exception as error:
            self._send_error(key, type(error).__name__, str(error))
            return
        request = Request(source, service, payload, headers)
        if len(self._running) < self._handlers:
            self._start(key, request)
        elif len(self._waiting) < self._most_waiting:
            self._waiting.append((key, request))
        else:
            self._send_error(key, "Busy", f"{len(self._waiting)} requests wait already")

    def _cancelled(self, key: _Key) -> None:
        """Stop handling a request, as nobody waits for the answer."""
        self._finish(key)
        task = self._running.get(key)
        if task is not None:
            task.cancel()
        else:
            self._waiting = deque(entry for entry in self._waiting if entry[0] != key)

    def _start(self, key: _Key, request: Request) -> None:
        task = self._running[key] = self._tasks.spawn(self._handle(key, request))
        task.add_done_callback(lambda _: self._finished(key))

    def _finished(self, key: _Key) -> None:
        del self._running[key]
        while self._waiting and len(self._running) < self._handlers:
            self._start(*self._waiting.popleft())

    async def _handle(self, key: _Key, request: Request) -> None:
        try:
            with self._tracing.server(request.service, request.headers):
                answer = self._codec.encode(await self._services[request.service](request))
            await self._answer(key, Kind.ANSWER, self._to(key) + answer)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise  # nobody waits for the answer
            self._send_error(key, "CancelledError", "a task that the handler waited for")
        except Exception as error:  # also if the answer is too long
            self._send_error(key, type(error).__name__, str(error))

    # -- sending --------------------------------------------------------------

    @staticmethod
    def _to(key: _Key) -> bytes:
        return put_number(key[2]) + put_number(key[1])

    def _send_error(self, key: _Key, kind: str, message: str) -> None:
        if len(message) > LONGEST_ERROR:
            message = message[:LONGEST_ERROR] + "..."
        body = self._to(key) + put_text(kind[:LONGEST_ERROR]) + put_text(message)
        self._tasks.spawn(self._answer(key, Kind.ERROR, body))

    async def _answer(self, key: _Key, kind: Kind, body: bytes) -> None:
        """Send what a request has come to, after which it is handled."""
        try:
            # Not `node.send`, which waits for the store: that gets both in one step.
            await Node.send(self._node, key[0], MARK + bytes((kind,)) + body)
        except (NodeError, StoreFailed):
            return  # this process ends; with a store, the request comes again
        except (PeerGone, Superseded, UnknownPeer):
            pass  # nobody waits
        self._finish(key)

    def _finish(self, key: _Key) -> None:
        message = self._open.pop(key, None)
        if message is not None:
            self._claim.finish(message)

    def _send(self, peer: str, kind: Kind, body: bytes) -> None:
        self._tasks.spawn(self._deliver(peer, kind, body))

    async def _deliver(self, peer: str, kind: Kind, body: bytes) -> None:
        """Send something that nobody waits for; a process that is gone does not need it."""
        with suppress(NodeError, PeerGone, StoreFailed, Superseded):
            await self._node.send(peer, MARK + bytes((kind,)) + body)
