"""The driver `runs` makes the calls that a node makes, and reaches what a node reaches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from causewire import protocols
from causewire.core.csps import Csps
from causewire.core.departure import Departure
from causewire.core.endpoint import Endpoint, Outgoing, Packet
from causewire.core.errors import LocalProtocolError
from causewire.core.hybrid import Permit
from causewire.core.run import MessageRun
from causewire.core.sps import Sps
from causewire.verify import NetworkModel, Setup, find, parse
from causewire.verify.driver import DRIVERS
from causewire.verify.ghost import Plain
from causewire.verify.machine import Machine, Stage
from causewire.verify.search import explore

PROGRAM = parse("0>2,1,1; 1>2; 2>1")


class Spied(Csps):
    """`csps`, with a note of each call."""

    __slots__ = ()
    calls: ClassVar[set[Any]] = set()

    def receive(self, source: str, packet: Packet) -> None:
        self.calls.add(("receive", packet.kind))
        super().receive(source, packet)

    def receive_run(self, source: str, run: MessageRun) -> None:
        self.calls.add(("receive_run", len(run.mids), run.per))
        super().receive_run(source, run)

    def take_packets(self) -> list[Outgoing]:
        self.calls.add("take_packets")
        return super().take_packets()

    def take_permits(self) -> dict[str, int]:
        permits = super().take_permits()
        self.calls.add(("take_permits", bool(permits)))
        return permits


def searched(setup: Setup) -> list[Endpoint]:
    """The endpoints of all local states that a search reaches."""
    stage = Stage(setup)
    assert explore(Machine(stage, PROGRAM, Plain(), "plain")).complete
    return [local.endpoint for actor in stage.everybody() for local in actor.locals]


def test_runs_makes_the_calls_of_a_node() -> None:
    spied = replace(protocols.describe("csps"), name="spied", endpoint=Spied)
    Spied.calls.clear()
    searched(Setup(spied, 3, driver="runs"))
    assert "take_packets" not in Spied.calls
    assert ("receive", "msg") not in Spied.calls
    assert {("receive", "ack"), ("receive", Permit.kind)} <= Spied.calls
    assert {("receive_run", 1, True), ("receive_run", 2, True)} <= Spied.calls
    assert ("receive_run", 1, False) in Spied.calls
    assert ("take_permits", True) in Spied.calls


def test_packets_makes_other_calls() -> None:
    spied = replace(protocols.describe("csps"), name="spied", endpoint=Spied)
    Spied.calls.clear()
    searched(Setup(spied, 3))
    assert not any(call[0] == "receive_run" for call in Spied.calls)
    assert ("receive", "msg") in Spied.calls


@pytest.mark.parametrize(
    ("name", "driver", "reached"),
    [
        ("csps-departures", "runs", True),
        ("csps-departures", "packets", False),
        ("csps", "runs", False),
        ("sps-departures", "runs", True),
    ],
)
def test_departures_are_reached(name: str, driver: str, reached: bool) -> None:
    endpoints = searched(Setup(find(name), 3, driver=driver))
    departures = [
        each
        for endpoint in endpoints
        if isinstance(endpoint, Csps)
        for each in endpoint._unacked
        if isinstance(each, Departure)
    ]
    departures += [
        each
        for endpoint in endpoints
        if isinstance(endpoint, Sps)
        for each in endpoint._u.values()
        if isinstance(each, Departure) and not each.multicast and len(each.peers) > 1
    ]
    assert bool(departures) == reached


def test_what_cannot_be_driven_in_runs_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="Rst has no take_runs"):
        Setup("rst", 3, driver="runs").endpoint(0)
    for network in (NetworkModel(loss=1), NetworkModel(fifo=True), NetworkModel(rounds=1)):
        with pytest.raises(LocalProtocolError, match="no other network"):
            Setup("csps", 3, network, "runs")
    with pytest.raises(LocalProtocolError, match="packets and runs"):
        Setup("csps", 3, driver="datagrams")
    assert set(DRIVERS) == {"packets", "runs"}
