"""Options of a protocol are honoured or refused, never ignored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from causewire import protocols
from causewire.core.fifo import Unordered
from causewire.sim import Config, SimulationError, simulate, workloads
from causewire.testing.promises import VARIANTS

from .simulated import WORKLOADS, Judge


def ks(workload: workloads.Workload, **options: bool) -> Config:
    return Config(protocol="ks", options=options, workload=workload, messages=60)


def test_complement_makes_broadcasts_smaller() -> None:
    plain = simulate(ks(workloads.Broadcast()))
    complement = simulate(ks(workloads.Broadcast(), complement=True))
    broadcast = simulate(ks(workloads.Broadcast(), broadcast=True))
    assert plain.deliveries == complement.deliveries == broadcast.deliveries
    assert broadcast.metadata_bytes < complement.metadata_bytes < plain.metadata_bytes


def test_an_option_that_forbids_a_workload_is_refused() -> None:
    with pytest.raises(SimulationError, match="ks only broadcasts"):
        ks(workloads.Uniform(), broadcast=True)


def test_mf_on_fifo_channels_gets_them() -> None:
    summary = simulate(Config(protocol="mf", options={"fifo": True}, messages=600))
    assert summary.fifo_channels
    assert summary.undelivered is None


@pytest.mark.parametrize("network", [{"fifo": False}, {"loss": 0.1}, {"duplicate": 0.1}], ids=str)
def test_mf_on_fifo_channels_refuses_a_worse_network(network: Any) -> None:
    with pytest.raises(SimulationError, match=r"^mf "):
        Config(protocol="mf", options={"fifo": True}, network=network)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"^run.options: csps has no option speed"):
        Config(protocol="csps", options={"speed": 9})


@pytest.mark.parametrize(
    ("protocol", "options"),
    [(name, options) for name, many in VARIANTS.items() for options in many],
    ids=str,
)
def test_every_option_runs_where_the_protocol_says_it_can(
    protocol: str, options: dict[str, Any]
) -> None:
    ran = 0
    for workload in WORKLOADS.values():
        try:
            config = Config(protocol=protocol, options=options, workload=workload, messages=30)
        except SimulationError as error:
            assert "cannot carry" in str(error)  # noqa: PT017
            continue
        judge = Judge()
        assert simulate(config, judge).undelivered is None
        assert not judge.violations
        ran += 1
    assert ran


class Counting(Unordered):
    """A protocol of somebody else, with an option."""

    made: list[int] = []

    def __init__(self, me: str, group: Iterable[str] | None = None, *, level: int = 0) -> None:
        super().__init__(me, group)
        self.made.append(level)


def test_a_protocol_value_runs_without_being_registered() -> None:
    mine = protocols.Protocol(name="mine", endpoint=Counting, options=("level",), causal=False)
    summary = simulate(Config(protocol=mine, options={"level": 3}, messages=10))
    assert summary.protocol == "mine"
    assert summary.deliveries == 10
    assert set(Counting.made) == {3}
    assert "mine" not in protocols.names()
