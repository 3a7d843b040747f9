"""Protocols by name or by value: `create` an endpoint, list `names`, `describe` one.

Wherever Causewire accepts the name of a protocol it accepts a `Protocol` value as
well, so a protocol of your own runs in a node, in the simulator and in the model
checker without being registered anywhere:

    from causewire import protocols

    mine = protocols.Protocol(name="mine", endpoint=MyEndpoint, tolerates_loss=True)
    alice = protocols.create(mine, "alice")

To make it known by name, in every program and on the command line, a package
declares an entry point in the group `causewire.protocols` whose value is a
`Protocol`; `register` does the same for one program.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from .core.endpoint import Endpoint
from .core.errors import LocalProtocolError
from .core.registry import TABLE, Protocol

__all__ = ["DEFAULT", "Protocol", "create", "describe", "names", "register"]

DEFAULT = "adaptive"
"""The protocol of whoever chooses none. The page "Adaptive" says why it is this one."""

GROUP = "causewire.protocols"
"""The entry-point group in which packages declare protocols."""

_known = {protocol.name: protocol for protocol in TABLE}


def names() -> list[str]:
    """Return the names of all known protocols: ours first, then those of other packages."""
    _load_entry_points()
    return list(_known)


def describe(protocol: str | Protocol) -> Protocol:
    """Return what holds of a protocol by construction.

    Args:
        protocol: A name, or a `Protocol`, which is returned as it is.

    Raises:
        LocalProtocolError: No protocol of that name is known.
    """
    if isinstance(protocol, Protocol):
        return protocol
    try:
        if protocol not in _known:
            _load_entry_points()
        return _known[protocol]
    except (KeyError, TypeError):
        known = ", ".join(names())
        raise LocalProtocolError(
            f"there is no protocol {protocol!r}; the known protocols are {known}"
        ) from None


def create(
    protocol: str | Protocol, me: str, group: Iterable[str] | None = None, **options: Any
) -> Endpoint:
    """Return a new endpoint for process `me`.

    Args:
        protocol: A name, or a `Protocol`.
        me: The name of the process.
        group: All members of the group, for protocols with a fixed group; others ignore it.
        options: Options of the protocol; they take precedence over those that a
            `Protocol` value carries.

    Raises:
        LocalProtocolError: An unknown protocol or option, or a bad name or group.
    """
    about = describe(protocol).with_options(**options)
    return about.endpoint(me, group, **dict(about.chosen))


def register(protocol: Protocol) -> None:
    """Make a protocol known by its name in this program.

    Raises:
        LocalProtocolError: Another protocol has that name.
    """
    if _known.get(protocol.name, protocol) != protocol:
        raise LocalProtocolError(f"there is another protocol with the name {protocol.name!r}")
    _known[protocol.name] = protocol


@cache
def _load_entry_points() -> None:
    for point in entry_points(group=GROUP):
        try:
            value = point.load()
        except Exception as error:
            raise LocalProtocolError(
                f"the entry point {point.name!r} of {GROUP} cannot be loaded: {error}"
            ) from error
        if not isinstance(value, Protocol):
            raise LocalProtocolError(
                f"the entry point {point.name!r} of {GROUP} is not a Protocol: {point.value}"
            )
        register(value)
