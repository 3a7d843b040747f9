"""Protocols as they are, with a parameter that lets a small system reach a rare case.

A variant is correct, and a check of it must find nothing. `csps` treats messages that
left together as one *departure* if there are at least 32 of them, which no system that
can be searched has. `csps-departures` does so from two messages on, and its states tell
departures from single messages, so that a search explores both where `csps` itself
considers them equivalent. It needs the driver `runs`: with the driver `packets`
messages leave one by one. `sps-departures` is the same for `sps`, from a single message
on, as messages that are held are always in runs.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from .. import protocols
from ..core.csps import Csps, Departure
from ..core.sps import Sps, SpsRun

__all__ = ["VARIANTS", "CspsDepartures", "SpsDepartures"]


class CspsDepartures(Csps):
    """`csps` with departures of two messages and more, which count as part of the state."""

    __slots__ = ()
    many = 2

    def _state(self) -> Hashable:
        departures = [
            (each.mid, each.end, tuple(peer.name for peer in each.peers))
            for each in self._unacked
            if isinstance(each, Departure)
        ]
        lacking = frozenset((peer.name, mid) for peer, mid in self._lacking.items())
        return (super()._state(), tuple(departures), lacking)


class SpsDepartures(Sps):
    """`sps` with departures of one message and more, which count as part of the state."""

    __slots__ = ()
    many = 1

    def _state(self) -> Hashable:
        departures = [
            (each.mid, each.end, each.lacking and frozenset(peer.name for peer in each.lacking))
            for each in self._u.values()
            if isinstance(each, SpsRun)
        ]
        return (super()._state(), tuple(departures), self._u2, self._m2)


VARIANTS = {
    "csps-departures": replace(
        protocols.describe("csps"),
        name="csps-departures",
        endpoint=CspsDepartures,
        summary="csps with departures of two messages and more",
    ),
    "sps-departures": replace(
        protocols.describe("sps"),
        name="sps-departures",
        endpoint=SpsDepartures,
        summary="sps with departures of one message and more",
    ),
}
"""All variants, by name."""
