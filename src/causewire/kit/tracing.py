"""OpenTelemetry: the context of a trace travels in headers, and spans say what happened.

| span | kind | when |
| --- | --- | --- |
| `send GROUP` | producer | a message to a group was sent |
| `deliver GROUP` | consumer, with a link to the span that sent it | it was delivered here |
| `handle GROUP` | internal, below `deliver` | while the application handles it |
| `request SERVICE` | client | a request, until its answer |
| `serve SERVICE` | server, below `request` | its handler |

The context is carried as W3C Trace Context, in the headers `traceparent` and `tracestate`.
`causewire check` reads these spans back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from .frames import Headers, HeaderValue

__all__ = ["Tracing", "tracing_of"]


class Tracing:
    """Makes no spans: what a kit uses unless it was asked for them."""

    @contextmanager
    def client(self, name: str, peer: str, headers: Headers | None) -> Iterator[Headers | None]:
        """Make the span of a request; the result are the headers to send."""
        yield headers

    @contextmanager
    def server(self, name: str, headers: Mapping[str, HeaderValue]) -> Iterator[None]:
        """Make the span of a handler."""
        yield

    def sent(self, group: str, headers: Headers | None) -> Headers | None:
        """Make the span of a message that is sent, and return the headers to send."""
        return headers

    def delivered(self, group: str, headers: Mapping[str, HeaderValue]) -> Any:
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

    def sent(self, group: str, headers: Headers | None) -> Headers | None:
        kind = self._trace.SpanKind.PRODUCER
        span = self._tracer.start_span(f"send {group}", kind=kind, attributes=self._about(group))
        span.end()
        return self._with_context(span, headers)

    def delivered(self, group: str, headers: Mapping[str, HeaderValue]) -> Any:
        remote = self._context_of(headers)
        cause = self._trace.get_current_span(remote).get_span_context()
        span = self._tracer.start_span(
            f"deliver {group}",
            context=remote,
            kind=self._trace.SpanKind.CONSUMER,
            attributes=self._about(group),
            links=[self._trace.Link(cause)] if cause.is_valid else [],
        )
        span.end()
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


def tracing_of(spec: Any) -> Tracing:
    """Return what makes the spans: of a tracer provider, or True for the one in use.

    Raises:
        ModuleNotFoundError: `opentelemetry-api` is not installed.
    """
    if spec is None or spec is False:
        return Tracing()
    return _Spans(None if spec is True else spec)
