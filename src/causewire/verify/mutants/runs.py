"""`csps` and `sps` with mistakes in what a node alone calls: runs and departures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.csps import Csps, Departure
from ...core.hybrid import HybridEndpoint, HybridPeer
from ...core.sps import Sps, SpsPeer, SpsRun
from ..variants import CspsDepartures, SpsDepartures
from .table import Mutant

__all__ = ["TABLE"]


class _RunsUnflagged(HybridEndpoint[Any]):
    """Messages that leave in a run carry no flag."""

    __slots__ = ()

    def _unflagged(self, peer: HybridPeer, start: int, end: int) -> int:
        return end


class CspsRunsUnflagged(_RunsUnflagged, Csps):
    """`csps` whose runs of messages carry no flag."""

    __slots__ = ()


class SpsRunsUnflagged(_RunsUnflagged, Sps):
    """`sps` whose runs of messages carry no flag."""

    __slots__ = ()


class CspsRunFirstPermit(Csps):
    """A run waits for the permit of its first message, not of its last."""

    __slots__ = ()

    def _accept_run(self, source: str, peer: HybridPeer, mids: Sequence[int], per: bool) -> None:
        super()._accept_run(source, peer, mids[:1], per)


class CspsDeparturePermitted(CspsDepartures):
    """All messages of a departure are permitted when one receiver has acked."""

    __slots__ = ()

    def _look_inside(self, front: Departure) -> None:
        self._permit_all(front.ends)


class CspsDepartureStuck(CspsDepartures):
    """A departure that one receiver has acked in part is not looked into."""

    __slots__ = ()

    def _permit_all(self, ends: dict[HybridPeer, int]) -> None:
        pass


class SpsDeparturePermitted(SpsDepartures):
    """A departure is permitted as a whole, though it lacks the acks of others."""

    __slots__ = ()

    def _lacks_others(self, run: SpsRun, lacks: SpsPeer) -> bool:
        run.lack()
        return run.multicast


class SpsDepartureReleased(SpsDepartures):
    """A run leaves entirely where it may leave to one process."""

    __slots__ = ()

    def _release_to(self, run: SpsRun, peer: SpsPeer) -> None:
        if run.held and run.left is None:
            for each in run.ends:
                super()._release_to(run, each)


class SpsDepartureStuck(SpsDepartures):
    """The receivers of a departure are not permitted when all have acked."""

    __slots__ = ()

    def _permit_all(self, ends: dict[SpsPeer, int]) -> None:
        pass


TABLE = (
    Mutant(
        "csps-runs-unflagged",
        "csps",
        CspsRunsUnflagged,
        "",
        "messages that leave in a run carry no flag",
        "0>2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "sps-runs-unflagged",
        "sps",
        SpsRunsUnflagged,
        "",
        "messages that leave in a run carry no flag",
        "0>2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "csps-run-first-permit",
        "csps",
        CspsRunFirstPermit,
        "",
        "a run waits for the permit of its first message instead of its last",
        "0>2,1,2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "csps-departure-permitted",
        "csps",
        CspsDeparturePermitted,
        "",
        "a departure is permitted as a whole when one receiver has acked",
        "0>2,1,2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "csps-departure-stuck",
        "csps",
        CspsDepartureStuck,
        "",
        "the receivers of a departure are not permitted when all have acked",
        "0>2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "sps-departure-permitted",
        "sps",
        SpsDeparturePermitted,
        "",
        "a departure is permitted as a whole though it lacks the acks of others",
        "0>2,1,2,1; 1>2; 2>",
        driver="runs",
    ),
    Mutant(
        "sps-departure-released",
        "sps",
        SpsDepartureReleased,
        "",
        "a run leaves entirely where it may leave to one process",
        "0>2,1; 1>0,2; 2>",
        driver="runs",
    ),
    Mutant(
        "sps-departure-stuck",
        "sps",
        SpsDepartureStuck,
        "",
        "the receivers of a departure are not permitted when all have acked",
        "0>2,1; 1>2; 2>",
        driver="runs",
    ),
)
