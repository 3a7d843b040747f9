"""Protocols by name and by value: ours, a program's own, and those of other packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Hashable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import given, settings

from causewire import protocols
from causewire.core import Blocked, Endpoint, Footprint, LocalProtocolError, Packet
from causewire.core.fifo import Fifo, Unordered
from causewire.protocols import Protocol
from causewire.testing import (
    Case,
    Network,
    admits,
    command,
    narrate,
    replay,
    run,
    runs,
    shrink,
    tolerated_networks,
)
from causewire.testing.strategies import outcomes, profiles, workloads


class Backwards(Unordered):
    """Delivers on arrival; one option, which does nothing."""

    __slots__ = ("loud",)

    def __init__(self, me: str, group: Any = None, *, loud: bool = False) -> None:
        super().__init__(me, group)
        self.loud = loud

    def _copy_into(self, twin: Self) -> None:
        twin.loud = self.loud


MINE = Protocol(name="mine", endpoint=Backwards, causal=False, options=("loud",))

PLUGIN = """
from causewire.core.fifo import Fifo
from causewire.protocols import Protocol

class Borrowed(Fifo):
    __slots__ = ()

PROTOCOL = Protocol(name="borrowed", endpoint=Borrowed, causal=False, tolerates_loss=True)
NOT_ONE = "borrowed"
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Install a package for the time of a test, as pip would: a module and its metadata."""
    known = dict(protocols._known)

    def installed(entry_point: str) -> None:
        (tmp_path / "borrowed_protocol.py").write_text(PLUGIN)
        metadata = tmp_path / "borrowed_protocol-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: borrowed-protocol\nVersion: 1.0\n"
        )
        (metadata / "entry_points.txt").write_text(f"[causewire.protocols]\n{entry_point}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        protocols._load_entry_points.cache_clear()

    yield installed
    protocols._load_entry_points.cache_clear()
    protocols._known.clear()
    protocols._known.update(known)
    sys.modules.pop("borrowed_protocol", None)


def test_a_protocol_of_another_package_is_known_by_name(install: Callable[[str], None]) -> None:
    assert "borrowed" not in protocols.names()
    install("borrowed = borrowed_protocol:PROTOCOL")
    assert protocols.describe("borrowed").tolerates_loss, "before anybody asked for all names"
    assert protocols.names()[-1] == "borrowed"
    endpoint = protocols.create("borrowed", "a")
    assert isinstance(endpoint, Fifo)
    assert type(endpoint).__name__ == "Borrowed"
    assert run("borrowed", "lossy", 1).deliveries


def test_an_entry_point_that_is_no_protocol(install: Callable[[str], None]) -> None:
    install("borrowed = borrowed_protocol:NOT_ONE")
    with pytest.raises(LocalProtocolError, match=r"'borrowed' of causewire.protocols is not a P"):
        protocols.names()
    assert protocols.create("csps", "a").me == "a", "what is ours works all the same"


def test_an_entry_point_that_cannot_be_loaded(install: Callable[[str], None]) -> None:
    install("borrowed = borrowed_protocol:MISSING")
    with pytest.raises(LocalProtocolError, match=r"'borrowed' .* cannot be loaded: .*MISSING"):
        protocols.describe("borrowed")


def test_an_entry_point_with_a_name_that_is_taken(install: Callable[[str], None]) -> None:
    protocols.register(Protocol(name="borrowed", endpoint=Fifo))
    install("borrowed = borrowed_protocol:PROTOCOL")
    with pytest.raises(LocalProtocolError, match="another protocol"):
        protocols.names()


def test_register(install: Callable[[str], None]) -> None:
    protocols.register(MINE)
    protocols.register(MINE)
    assert protocols.describe("mine") is MINE
    with pytest.raises(LocalProtocolError, match="another protocol"):
        protocols.register(Protocol(name="csps", endpoint=Backwards))


def test_unknown_names_and_options() -> None:
    with pytest.raises(LocalProtocolError, match="no protocol 'nonsense'; the known protocols"):
        protocols.describe("nonsense")
    with pytest.raises(LocalProtocolError, match="mine has no option lowd; its options are: loud"):
        protocols.create(MINE, "a", lowd=True)
    with pytest.raises(LocalProtocolError, match="fifo has no option k"):
        run("fifo", "fifo", 1, protocol_options={"k": 3})


# -- a value is accepted wherever a name is ----------------------------------------------


def test_values_in_the_testing_kit() -> None:
    assert [profile.name for profile in tolerated_networks(MINE)] == [
        "fifo",
        "fifo-delay",
        "reorder",
        "delay",
    ]
    assert admits(MINE) == {"causal"}
    network = Network.of(MINE, ["a", "b"], protocol_options={"loud": True})
    endpoint = network.endpoints["a"]
    assert isinstance(endpoint, Backwards)
    assert endpoint.loud
    assert command(MINE.with_options(loud=True), "fifo", 1).endswith(
        "mine fifo 1 --option loud=true"
    )


def test_a_run_of_a_value_can_be_replayed_shrunk_and_told() -> None:
    failed = next(outcome for outcome in runs(MINE, "reorder", range(100)) if not outcome.ok)
    case = failed.play.case("wrong")
    assert replay(case).kinds == failed.kinds
    small = shrink(case)
    assert len(small.schedule) <= len(case.schedule)
    assert narrate(small).startswith("mine, network reorder")
    assert small.to_json()["protocol"] == "mine"


def test_a_stored_case_of_a_registered_protocol(install: Callable[[str], None]) -> None:
    case = run(MINE, "reorder", 3, protocol_options={"loud": True}).play.case()
    data = case.to_json()
    assert data["corrected_options"] == {"loud": True}
    with pytest.raises(LocalProtocolError, match="no protocol 'mine'"):
        Case.from_json(data)
    protocols.register(MINE)
    assert replay(Case.from_json(data)).kinds == replay(case).kinds


@settings(max_examples=20)
@given(outcomes(MINE.with_options(loud=True)), workloads(MINE), profiles(MINE))
def test_values_in_strategies(outcome: Any, workload: Any, profile: Any) -> None:
    assert set(outcome.kinds) <= admits(MINE)
    assert workload.processes
    assert not profile.loss


class Minimal(Endpoint):
    """The least that a protocol must define, as a page of the docs has it."""

    def send(self, to: str | Collection[str], payload: Any) -> int:
        self._mid += 1
        return self._mid

    def receive(self, source: str, packet: Packet) -> None:
        self._deliver(source, packet[1], packet[2])

    def blocked(self) -> list[Blocked]:
        return []

    def footprint(self) -> Footprint:
        return Footprint(1, {"msg": 1})

    def _state(self) -> Hashable:
        return ()

    def _copy_into(self, twin: Self) -> None:
        pass


def test_the_least_that_a_protocol_must_define() -> None:
    endpoint = protocols.create(Protocol(name="minimal", endpoint=Minimal), "a")
    assert endpoint.idle
    assert endpoint.held_back == 0
    assert endpoint.footprint().packet_bits == {"msg": 64}
    assert repr(endpoint) == "<Minimal 'a': 0 sent, 0 held back>"
