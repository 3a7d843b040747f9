"""Log lines for events, with a logger for each concern.

causewire.peers       peers that come, go, are silent, or cannot be worked with
causewire.messages    messages that are held back
causewire.security    datagrams that do not verify, and names in use
causewire.trace       traces that cannot be written
causewire.resolver    addresses that cannot be found
causewire.node        the node itself
"""

from __future__ import annotations

import logging

from ..transport import (
    MessageBlocked,
    NameInUse,
    NodeCutOff,
    NodeRejoined,
    NodeRenumbered,
    NodeSuperseded,
    NodeUnread,
    PeerEvent,
    PeerForgotten,
    PeerLeft,
    PeerMoved,
    PeerRefused,
    PeerRestarted,
    PeerSilent,
    PeerUp,
    TraceFailed,
    VerificationFailed,
)

__all__ = ["log_event"]

_peers = logging.getLogger("causewire.peers")
_messages = logging.getLogger("causewire.messages")
_security = logging.getLogger("causewire.security")
_trace = logging.getLogger("causewire.trace")
_node = logging.getLogger("causewire.node")


def log_event(me: str, event: PeerEvent) -> None:
    """Write a log line for an event of node `me`."""
    match event:
        case PeerUp(name):
            _peers.info("%s: %s is up", me, name)
        case PeerSilent(name, seconds):
            _peers.warning("%s: %s has not answered for %.1f s", me, name, seconds)
        case PeerRestarted(name, failed):
            _peers.warning("%s: %s was restarted; %d messages to it failed", me, name, failed)
        case PeerLeft(name, failed):
            level = logging.WARNING if failed else logging.INFO
            _peers.log(level, "%s: %s has left; %d messages to it failed", me, name, failed)
        case PeerForgotten(name, failed, reason):
            why = f": {reason}" if reason else ""
            _peers.error("%s: %s is gone%s; %d messages to it failed", me, name, why, failed)
        case PeerMoved(name, (host, port)):
            _peers.info("%s: %s is at %s:%d now", me, name, host, port)
        case PeerRefused(name, reason):
            _peers.error("%s: cannot work with %s: %s", me, name, reason)
        case MessageBlocked(reason):
            _messages.warning("%s: %s", me, reason)
        case NameInUse(name, informant):
            _security.error(
                "%s: another living process has the name %s, says %s", me, name, informant
            )
        case VerificationFailed((host, port), datagrams):
            _security.warning(
                "%s: %d datagrams from %s:%d failed verification: another key?",
                *(me, datagrams, host, port),
            )
        case TraceFailed(reason):
            _trace.error("%s: the trace ends here: %s", me, reason)
        case NodeCutOff(name, seconds):
            _node.error(
                "%s has heard none of its peers for %.1f s, and starts over: is it cut off?",
                *(name, seconds),
            )
        case NodeUnread(name, seconds):
            _node.error("%s stands down: its application has not read for %.1f s", name, seconds)
        case NodeSuperseded(name, incarnation):
            _node.error("%s was superseded by incarnation %d", name, incarnation)
        case NodeRejoined(name, incarnation):
            _node.warning("%s continues as incarnation %d", name, incarnation)
        case NodeRenumbered(name, incarnation):
            _node.warning(
                "%s takes incarnation %d, since peers know a higher one: was the clock set back?",
                *(name, incarnation),
            )
