"""Log lines for events, with a logger for each concern.

causewire.peers       peers that come, go, are silent, or cannot be worked with
causewire.messages    messages that are held back
causewire.security    datagrams that do not verify, and names in use
causewire.trace       traces that cannot be written
causewire.resolver    addresses that cannot be found
causewire.node        the node itself

What is reported again and again while it lasts is logged at once, and then at intervals that
double: up to ten minutes, so that a log that was begun later tells of it as well. Such a line
says how many reports it stands for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable

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

__all__ = ["EventLog", "Repeats"]

_peers = logging.getLogger("causewire.peers")
_messages = logging.getLogger("causewire.messages")
_security = logging.getLogger("causewire.security")
_trace = logging.getLogger("causewire.trace")
_resolver = logging.getLogger("causewire.resolver")
_node = logging.getLogger("causewire.node")

FIRST_INTERVAL = 2.0
"""Seconds until what repeats is logged for the second time; then twice as long, and so on."""

LONGEST_INTERVAL = 600.0
"""The longest of these intervals."""

QUIET = 60.0
"""Seconds without a report after which it is over; if it returns, it is logged at once."""


class Repeats:
    """Decides which reports of something that lasts are logged."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, float, float, int]] = {}
        """For each: when it was reported and logged last, the interval, and reports since."""

    def log(self, key: Hashable, now: float) -> str | None:
        """Return what to add to the log line of a report, or None if it is not logged."""
        seen, logged, interval, unlogged = self._known.get(key, (-QUIET, -QUIET, 0.0, 0))
        if now - seen >= QUIET:
            self._known[key] = now, now, FIRST_INTERVAL, 0
            return ""
        if now - logged < interval:
            self._known[key] = now, logged, interval, unlogged + 1
            return None
        self._known[key] = now, now, min(2 * interval, LONGEST_INTERVAL), 0
        if not unlogged:
            return f" (again after {now - logged:.0f} s)"
        return f" ({unlogged + 1} reports in the last {now - logged:.0f} s)"


class EventLog:
    """Writes the log lines of a node."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._repeats = Repeats()
        self.clock: Callable[[], float] = time.monotonic

    def write(self, event: PeerEvent) -> None:
        """Write a log line for an event, unless it repeats too soon."""
        again: str | None = ""
        if isinstance(event, NameInUse):
            again = self._repeats.log(NameInUse, self.clock())
        if again is not None:
            _log_event(self._name, event, again)

    def no_address(self, name: str, error: Exception) -> None:
        """Write a log line for a peer whose address cannot be found, unless it repeats too soon."""
        again = self._repeats.log((name, type(error)), self.clock())
        if again is not None:
            _resolver.warning(
                "%s: the address of %s: %s; tried again%s", self._name, name, error, again
            )


def _failed(messages: int, unhandled: int | None) -> str:
    text = f"{messages} {'message' if messages == 1 else 'messages'} to it failed"
    if unhandled:
        arrived = "message that arrived is" if unhandled == 1 else "messages that arrived are"
        text += f", and at most {unhandled} {arrived} not known to have been handled"
    return text


def _log_event(me: str, event: PeerEvent, again: str) -> None:
    """Write a log line for an event of node `me`; `again` says how often since the last one."""
    match event:
        case PeerUp(name):
            _peers.info("%s: %s is up", me, name)
        case PeerSilent(name, seconds):
            _peers.warning("%s: %s has not answered for %.1f s", me, name, seconds)
        case PeerRestarted(name, failed, unhandled):
            _peers.warning("%s: %s was restarted; %s", me, name, _failed(failed, unhandled))
        case PeerLeft(name, failed, unhandled):
            level = logging.WARNING if failed or unhandled else logging.INFO
            _peers.log(level, "%s: %s has left; %s", me, name, _failed(failed, unhandled))
        case PeerForgotten(name, failed, reason, unhandled):
            why = f": {reason}" if reason else ""
            _peers.error("%s: %s is gone%s; %s", me, name, why, _failed(failed, unhandled))
        case PeerMoved(name, (host, port)):
            _peers.info("%s: %s is at %s:%d now", me, name, host, port)
        case PeerRefused(name, reason):
            _peers.error("%s: cannot work with %s: %s", me, name, reason)
        case MessageBlocked(reason):
            _messages.warning("%s: %s", me, reason)
        case NameInUse(name, informant):
            _security.error(
                "%s: another living process has the name %s, says %s%s",
                *(me, name, informant, again),
            )
        case VerificationFailed((host, port), datagrams):
            _security.warning(
                "%s: %d %s from %s:%d failed verification: another key?",
                *(me, datagrams, "datagram" if datagrams == 1 else "datagrams", host, port),
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
