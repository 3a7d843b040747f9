"""OpenTelemetry: the context of a trace travels in headers, and spans say what happened.

| span | kind | when |
| --- | --- | --- |
| `send GROUP` | producer | a message to a group was sent |
| `held GROUP` | internal, below `send` or `deliver` | if it had to wait at its sender, or here |
| `deliver GROUP` | consumer, with a link to the span that sent it | it was delivered here |
| `handle GROUP` | internal, below `deliver` | while the application handles it |
| `request SERVICE` | client | a request, until its answer |
| `serve SERVICE` | server, below `request` | its handler |

The context is carried as W3C Trace Context, in the headers `traceparent` and `tracestate`.
`causewire check` reads these spans back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from ..node import Held, Message, Node, message_id
from .frames import Headers, HeaderValue

__all__ = ["Tracing", "tracing_of"]


MOST = 4096
"""How many messages are remembered whose spans may be needed."""


class Tracing:
    """Makes no spans: what a kit uses unless it was asked for them."""

    def watch(self, node: Node) -> None:
        """Have the node tell which messages had to wait."""

    def forget(self) -> None:
        """Forget all messages, as this process goes on as a new incarnation."""

    def around(self, receive: Callable[[Message], None]) -> Callable[[Message], None]:
        """Return what to call in place of `receive`, which processes a message of the node."""
        return receive

    def accepted(self, mid: int) -> None:
        """Note the number that the node gives to the message that is being sent."""

    @contextmanager
    def client(self, name: str, peer: str, headers: Headers | None) -> Iterator[Headers | None]:
        """Make the span of a request; the result are the headers to send."""
        yield headers

    @contextmanager
    def server(self, name: str, headers: Mapping[str, HeaderValue]) -> Iterator[None]:
        """Make the span of a handler."""
        yield

    def sending(
        self, group: str, headers: Headers | None
    ) -> AbstractContextManager[Headers | None]:
        """Make the span of a message that is sent; the result are the headers to send."""
        return nullcontext(headers)

    def delivered(self, group: str, author: str, headers: Mapping[str, HeaderValue]) -> Any:
        """Make the span of a message that was delivered, and return its context."""
        return None

    @contextmanager
    def handling(self, group: str, context: Any) -> Iterator[None]:
        """Make the span of a message that the application handles."""
        yield


class _Spans(Tracing):
    """Makes spans with OpenTelemetry."""

    def __init__(self, provider: Any) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._context = context
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = trace.get_tracer("causewire.kit", tracer_provider=provider)
        self._sending: tuple[str, Any] | None = None
        """The message that is being sent: its group, and its span."""
        self._sent: dict[int, tuple[str, Any]] = {}
        """The same for messages that were sent, by their numbers at the node."""
        self._held: dict[tuple[str, int, int], Held] = {}
        """Messages that had to wait, and that the kit has not taken from the node yet."""
        self._here: Held | None = None
        """How long the message had to wait that the kit has just taken."""

    def watch(self, node: Node) -> None:
        node.on_held(self._was_held)

    def forget(self) -> None:
        self._sent.clear()

    def _was_held(self, held: Held) -> None:
        if held.where == "receiver":
            self._held[held.source, held.incarnation, held.mid] = held
            _drop_oldest(self._held)
        elif held.mid in self._sent:
            group, span = self._sent.pop(held.mid)
            self._make_held(group, span, held)

    def _make_held(self, group: str, parent: Any, held: Held, links: Any = ()) -> None:
        span = self._tracer.start_span(
            f"held {group}",
            context=self._trace.set_span_in_context(parent, self._context.Context()),
            attributes=self._about(group) | {"causewire.held.at": held.where},
            links=links,
            start_time=held.began,
        )
        span.end(end_time=held.ended)

    def around(self, receive: Callable[[Message], None]) -> Callable[[Message], None]:
        def traced(message: Message) -> None:
            self._here = self._held.pop(message_id(message), None)
            receive(message)
            self._here = None

        return traced

    def accepted(self, mid: int) -> None:
        if self._sending is not None:
            self._sent[mid] = self._sending
            _drop_oldest(self._sent)

    def _with_context(self, span: Any, headers: Headers | None) -> Headers:
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._trace.set_span_in_context(span))
        return {**(headers or {}), **carrier}

    def _context_of(self, headers: Mapping[str, HeaderValue]) -> Any:
        text = {key: value for key, value in headers.items() if isinstance(value, str)}
        return self._propagator.extract(text, context=self._context.Context())

    @staticmethod
    def _about(group: str) -> dict[str, str]:
        return {
            "messaging.system": "causewire",
            "messaging.destination.name": group,
            "messaging.destination.partition.id": group,
        }

    @contextmanager
    def client(self, name: str, peer: str, headers: Headers | None) -> Iterator[Headers | None]:
        about = {"rpc.system": "causewire", "rpc.method": name, "server.address": peer}
        kind = self._trace.SpanKind.CLIENT
        with self._tracer.start_as_current_span(
            f"request {name}", kind=kind, attributes=about
        ) as span:
            yield self._with_context(span, headers)

    @contextmanager
    def server(self, name: str, headers: Mapping[str, HeaderValue]) -> Iterator[None]:
        about = {"rpc.system": "causewire", "rpc.method": name}
        with self._tracer.start_as_current_span(
            f"serve {name}",
            context=self._context_of(headers),
            kind=self._trace.SpanKind.SERVER,
            attributes=about,
        ):
            yield

    @contextmanager
    def sending(self, group: str, headers: Headers | None) -> Iterator[Headers | None]:
        kind = self._trace.SpanKind.PRODUCER
        span = self._tracer.start_span(f"send {group}", kind=kind, attributes=self._about(group))
        span.end()
        self._sending = group, span
        try:
            yield self._with_context(span, headers)
        finally:
            self._sending = None

    def delivered(self, group: str, author: str, headers: Mapping[str, HeaderValue]) -> Any:
        remote = self._context_of(headers)
        cause = self._trace.get_current_span(remote).get_span_context()
        links = [self._trace.Link(cause)] if cause.is_valid else []
        span = self._tracer.start_span(
            f"deliver {group}",
            context=remote,
            kind=self._trace.SpanKind.CONSUMER,
            attributes=self._about(group),
            links=links,
        )
        span.end()
        if self._here is not None and self._here.source == author:
            self._make_held(group, span, self._here, links)
        return self._trace.set_span_in_context(span, self._context.Context())

    @contextmanager
    def handling(self, group: str, context: Any) -> Iterator[None]:
        span = self._tracer.start_span(f"handle {group}", context=context)
        token = self._context.attach(self._trace.set_span_in_context(span))
        try:
            yield
        finally:
            with suppress(ValueError):  # the application iterates in another context now
                self._context.detach(token)
            span.end()


def _drop_oldest(known: dict[Any, Any]) -> None:
    """Keep a record of messages within its limit."""
    if len(known) > MOST:
        del known[next(iter(known))]


def tracing_of(spec: Any) -> Tracing:
    """Return what makes the spans: of a tracer provider, or True for the one in use.

    Raises:
        ModuleNotFoundError: `opentelemetry-api` is not installed.
    """
    if spec is None or spec is False:
        return Tracing()
    return _Spans(None if spec is True else spec)
