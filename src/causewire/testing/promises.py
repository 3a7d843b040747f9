"""What a protocol promises, and so what to test it for.

The registry says what a protocol needs of the network, what it can carry and
whether it is causal and live. From that follows the rest: on which networks it
must keep its promises, and what it may fail in all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import protocols
from .play import STUCK
from .profiles import PROFILES, Profile

__all__ = ["VARIANTS", "admits", "bearable", "needs_ticks", "promised"]

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


def promised(protocol: str, options: Mapping[str, Any]) -> protocols.Protocol:
    """What holds of a protocol with these options, as some options change it."""
    return protocols.describe(protocol).with_options(**options)


def bearable(protocol: str, **options: Any) -> list[Profile]:
    """The networks on which a protocol must keep all that it promises."""
    about = promised(protocol, options)
    names = ["fifo", "fifo-delay"]
    if about.needs_fifo:
        names += ["fifo-loss"] * about.tolerates_loss
    else:
        names += ["reorder", "delay"]
        names += ["loss"] * about.tolerates_loss
        names += ["duplication"] * about.tolerates_duplication
        names += ["lossy"] * (about.tolerates_loss and about.tolerates_duplication)
    return [PROFILES[name] for name in names]


def admits(protocol: str) -> frozenset[str]:
    """The kinds of failure that a protocol is known for (`Outcome.kinds`)."""
    about = protocols.describe(protocol)
    kinds = frozenset() if about.causal else frozenset({"causal"})
    return kinds if about.live else kinds | STUCK


def needs_ticks(protocol: str, options: Mapping[str, Any]) -> bool:
    """Whether a protocol needs its periodic block even if the network is reliable.

    The others have it for loss alone, or not at all, and must come to an end
    without it where nothing is lost.
    """
    if protocol == "newtop":  # null messages
        return not options.get("eager_nulls")
    return "wr" in options  # discarding receivers, in pak-credit
