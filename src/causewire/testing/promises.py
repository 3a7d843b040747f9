"""What a protocol promises, and so what to test it for.

The registry says what a protocol needs of the network, what it can carry, and whether it is
causal and live. From this follows on which networks it must keep its promises, and in which
ways it may fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import protocols
from ..protocols import Protocol
from .play import STUCK
from .profiles import PROFILES, Profile

__all__ = ["VARIANTS", "admits", "promised", "tolerated_networks"]

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "adaptive": ({"cap": 0}, {"cap": 1, "groups": 1}, {"cap": 2, "groups": 0}, {"cap": None}),
    "mf": ({"fifo": True},),
    "ks": ({"hardware_multicast": True}, {"complement": True}, {"broadcast": True}),
    "newtop": ({"eager_nulls": True},),
    "pak": ({"k": 4},),
    "pak-credit": ({"ct": 3}, {"ct": 3, "wr": 1}),
    "pak-nak": ({"ct": 3, "k": 8},),
}
"""Options under which a protocol is another one, and worth a test of its own."""


def promised(
    protocol: str | Protocol, protocol_options: Mapping[str, Any] | None = None
) -> Protocol:
    """Return what holds of a protocol with some options.

    Args:
        protocol: A name, or a `Protocol`.
        protocol_options: Options of the protocol; some change what it promises.

    Raises:
        LocalProtocolError: There is no such protocol, or it has no such option.
    """
    return protocols.describe(protocol).with_options(**(protocol_options or {}))


def tolerated_networks(
    protocol: str | Protocol, protocol_options: Mapping[str, Any] | None = None
) -> list[Profile]:
    """Return the networks on which a protocol must keep all that it promises.

    Args:
        protocol: A name, or a `Protocol`.
        protocol_options: Options of the protocol.
    """
    about = promised(protocol, protocol_options)
    names = ["fifo", "fifo-delay"]
    if about.needs_fifo:
        names += ["fifo-loss"] * about.tolerates_loss
    else:
        names += ["reorder", "delay"]
        names += ["loss"] * about.tolerates_loss
        names += ["duplication"] * about.tolerates_duplication
        names += ["lossy"] * (about.tolerates_loss and about.tolerates_duplication)
    return [PROFILES[name] for name in names]


def admits(protocol: str | Protocol) -> frozenset[str]:
    """Return the kinds of failure that a protocol is known for (`Outcome.kinds`)."""
    about = protocols.describe(protocol)
    kinds = frozenset() if about.causal else frozenset({"causal"})
    return kinds if about.live else kinds | STUCK
