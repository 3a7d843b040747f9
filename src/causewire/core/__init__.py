"""Every causal delivery protocol of the papers, as sans-IO state machines.

Standard library only: no clock, no randomness, no I/O, no logging.
"""

from .endpoint import WORD_BITS, Blocked, Delivery, Endpoint, Footprint, Packet, Wait
from .errors import CausewireError, LocalProtocolError, ProtocolError, RemoteProtocolError
from .run import MessageRun

__all__ = [
    "WORD_BITS",
    "Blocked",
    "CausewireError",
    "Delivery",
    "Endpoint",
    "Footprint",
    "LocalProtocolError",
    "MessageRun",
    "Packet",
    "ProtocolError",
    "RemoteProtocolError",
    "Wait",
]
