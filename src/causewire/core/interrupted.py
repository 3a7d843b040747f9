"""What an endpoint does after its callback `on_delivery` has failed.

One call of an endpoint can deliver several messages. If the application fails on one
of them, the exception must reach the caller, but the messages behind it must not be
lost: the endpoint has counted them as delivered, or will not look at them again. So
they are queued, and the next call hands them over.

"The next call" may be any of a dozen methods of any protocol, all of which are worth
keeping fast. Therefore they do not check for a queue. Instead, an endpoint with a queue
changes its class: to a subclass of its own class, made here, in which each of these
methods hands over the queue as well, and then changes the class back. The subclass adds
no state, so the change is always possible, and nobody who uses the endpoint can tell,
except by asking for its type.

If the callback fails again, the exception reaches the caller of that method. So a method
that takes something in, `send` for example, does its own work first, and what it delivers
joins the end of the queue: the message is sent even if the call raises an exception. A
method that gives something out, `take_packets` for example, hands over the queue first:
if the callback fails, nothing was taken.
"""

from __future__ import annotations

from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .endpoint import Endpoint

__all__ = ["interrupt", "usual_class"]

E = TypeVar("E", bound="Endpoint")

_TAKE_IN = ("forget", "receive", "receive_run", "retransmit", "send")
_GIVE_OUT = ("take_acks", "take_packets", "take_permits", "take_runs")
"""The methods by which a driver makes an endpoint work; not every protocol has them all."""


def interrupt(endpoint: Endpoint) -> None:
    """Let the next call of an endpoint hand over what is queued, if anything is."""
    if endpoint._deliveries and endpoint.on_delivery is not None and not endpoint._interrupted:
        endpoint.__class__ = _interrupted_class(type(endpoint))


def usual_class(kind: type[E]) -> type[E]:
    """Return the class that an endpoint has when no queue is to be handed over."""
    return kind.__mro__[1] if kind._interrupted else kind


@cache
def _interrupted_class(kind: type[Endpoint]) -> type[Endpoint]:
    names: dict[str, Any] = {"__slots__": (), "__module__": kind.__module__, "_interrupted": True}
    for calls, wrapped in ((_TAKE_IN, _then_hand_over), (_GIVE_OUT, _hand_over_first)):
        names |= {name: wrapped(getattr(kind, name)) for name in calls if hasattr(kind, name)}
    return type(kind.__name__, (kind,), names)


def _then_hand_over(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method; when it is done, the callback gets what is queued."""

    @wraps(method)
    def call(endpoint: Endpoint, *args: Any, **options: Any) -> Any:
        endpoint.__class__ = usual_class(type(endpoint))
        callback, endpoint.on_delivery = endpoint.on_delivery, None
        try:
            return method(endpoint, *args, **options)
        finally:
            endpoint.on_delivery = callback
            _hand_over(endpoint)

    return call


def _hand_over_first(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same method; before it does anything, the callback gets what is queued."""

    @wraps(method)
    def call(endpoint: Endpoint) -> Any:
        endpoint.__class__ = usual_class(type(endpoint))
        _hand_over(endpoint)
        return method(endpoint)

    return call


def _hand_over(endpoint: Endpoint) -> None:
    """Call the callback with each queued delivery; on failure, keep those behind it."""
    queue, endpoint._deliveries = endpoint._deliveries, []
    queue.reverse()
    try:
        while queue and endpoint.on_delivery is not None:
            endpoint.on_delivery(queue.pop())
    finally:
        queue.reverse()
        endpoint._deliveries[:0] = queue
        interrupt(endpoint)
