"""The search for the longest datagram that a path carries: rules, and whole transports."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causewire.node import addresses
from causewire.testing.wire import Wire
from causewire.testing.wire.settings import Faults, WireWorkload
from causewire.transport import TransportConfig
from causewire.transport.path_size import AGAIN, ETHERNET, TRIES, WORTH, PathSize
from causewire.transport.recovery import Probe

from . import pair as places
from .pair import Pair, payloads
from .test_resumption import Kept


def search(path: PathSize, carries: int, now: float = 0.0) -> int:
    """Probe until there is nothing more to try; return how many probes that took."""
    count = 0
    while length := path.probe(now):
        count += 1
        if length <= carries:
            path.arrived(length, True)
        else:
            path.lost(length)
    return count


def worth(path: PathSize) -> int:
    """The bytes that need not be found."""
    return path.size // WORTH


@given(st.integers(1232, 9500), st.integers(1232, 9500))
def test_the_search_ends_close_to_what_the_path_carries(goal: int, carries: int) -> None:
    path = PathSize(1232, 1232, goal)
    probes = search(path, carries)
    best = min(goal, carries)
    assert path.size <= best <= path.size + worth(path)
    assert probes <= TRIES * 10


@pytest.mark.parametrize(("carries", "probes"), [(9000, 1), (ETHERNET, TRIES * 9)])
def test_common_paths_are_found_soon(carries: int, probes: int) -> None:
    path = PathSize(1232, 1232, 8972)
    assert search(path, carries) <= probes
    assert path.size == min(carries, 8972)


def test_a_search_that_ended_begins_again_when_the_path_may_have_changed() -> None:
    path = PathSize(1232, 1232, 8972)
    search(path, 1250)
    assert path.size == 1232
    assert not path.probe(AGAIN - 1.0)
    search(path, 9000, AGAIN + 1.0)
    assert path.size == 8972


def test_one_probe_is_under_way_at_a_time() -> None:
    path = PathSize(1232, 1232, 8972)
    assert path.probe(0.0)
    assert not path.probe(0.0)


def test_a_length_that_never_arrived_is_given_up_sooner() -> None:
    fresh, proved = PathSize(1232, 32768, 32768), PathSize(1232, 32768, 32768)
    proved.arrived(20_000, False)
    assert [fresh.vanished() for _ in range(2)] == [False, True]
    assert [proved.vanished() for _ in range(6)] == [*[False] * 5, True]
    assert (fresh.size, proved.size) == (1232, 1232)
    assert proved.probe(0.0) == 32768  # perhaps the peer was merely silent


def test_losses_between_arrivals_are_no_reason() -> None:
    path = PathSize(1232, 32768, 32768)
    for _ in range(100):
        path.arrived(20_000, False)
        assert not path.vanished()


def test_a_probe_of_the_former_search_does_not_count() -> None:
    path = PathSize(1232, 32768, 32768)
    path.arrived(20_000, False)
    path.size = 1500
    assert path.probe(0.0) == 32768
    assert [path.vanished() for _ in range(6)][-1]
    assert not path.probe(0.0)  # one is under way
    path.lost(32768)
    for _ in range(TRIES):
        assert path.probe(0.0) == 32768
        path.lost(32768)
    assert path.probe(0.0) == ETHERNET


# -- whole transports ------------------------------------------------------------


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Pair]:
    """Two processes on different machines."""
    monkeypatch.setattr(places, "A", ("192.0.2.1", 1))
    monkeypatch.setattr(places, "B", ("192.0.2.2", 2))
    return lambda: Pair(config=TransportConfig()).meet()


def carry(pair: Pair, most: int, rounds: int = 400) -> tuple[list[bytes], list[int]]:
    """Carry datagrams up to a length; return what bob got, and the lengths that ann tried."""
    got: list[bytes] = []
    tried: list[int] = []
    for _ in range(rounds):
        quiet = True
        for one in (pair.ann, pair.bob):
            for data in pair.out(one):
                quiet = False
                if one is pair.ann:
                    tried.append(len(data))
                if len(data) <= most:
                    pair.give(pair.other(one), data)
        got += payloads(pair.bob)
        if quiet and pair.ann.settled:
            break
        pair.later(0.05 if quiet else 0.001)
    return got, tried


BULK = [bytes(400) for _ in range(2000)]


@pytest.mark.parametrize("carries", [1240, 1300, 1472, 4000, 9000])
def test_a_path_is_used_as_far_as_it_goes(remote: Callable[[], Pair], carries: int) -> None:
    pair = remote()
    path = pair.session.path
    for _ in range(40):  # a probe in each round trip
        for payload in BULK[:100]:
            pair.send(payload)
        assert carry(pair, carries)[0] == BULK[:100]
    assert path.size <= min(carries, 8972) <= path.size + worth(path)
    for payload in BULK:
        pair.send(payload)
    got, tried = carry(pair, carries)
    assert got == BULK
    assert max(tried) <= path.size  # nothing is tried any more
    assert max(tried) > path.size - 450


def test_a_lost_probe_is_no_sign_of_congestion(remote: Callable[[], Pair]) -> None:
    pair = remote()
    window = pair.session.recovery.window
    for payload in BULK:
        pair.send(payload)
    carry(pair, 1300)
    assert pair.ann.stats.lost >= TRIES  # probes
    assert window.threshold == 1 << 60  # never shrunk
    assert pair.ann.stats.timeouts == 0


def test_who_sends_little_tries_nothing(remote: Callable[[], Pair]) -> None:
    pair = remote()
    tried: list[int] = []
    for _ in range(50):
        pair.send(bytes(400))
        tried += carry(pair, 9000)[1]
    assert max(tried) < 500


def test_a_path_that_becomes_narrow(remote: Callable[[], Pair]) -> None:
    """Long datagrams have arrived, and vanish from some time on; nothing is lost for good."""
    pair = remote()
    for payload in BULK:
        pair.send(payload)
    carry(pair, 9000)
    assert pair.session.path.size == 8972
    for payload in BULK:
        pair.send(payload)
    got, _ = carry(pair, 1400, rounds=4000)
    assert got == BULK
    assert pair.session.path.size <= 1400


def test_a_path_that_becomes_narrow_while_short_datagrams_pass(remote: Callable[[], Pair]) -> None:
    """They are acknowledged, so there are never several timeouts in a row."""
    pair = remote()
    for payload in BULK:
        pair.send(payload)
    carry(pair, 9000)
    for payload in BULK[:20]:
        pair.send(payload)
    got: list[bytes] = []
    for _ in range(200):
        pair.session.ping_due = True
        pair.ann._peers.active[pair.session] = None
        for one in (pair.ann, pair.bob):
            for data in pair.out(one):
                if len(data) <= 1400:
                    pair.give(pair.other(one), data)
        got += payloads(pair.bob)
        pair.later(0.02)
    assert got == BULK[:20]


@pytest.mark.parametrize("longest", [8000, 8972])
def test_long_datagrams_from_the_beginning_on_a_path_that_drops_them(
    remote: Callable[[], Pair], longest: int
) -> None:
    config = TransportConfig(datagram=8000, longest_datagram=longest)
    pair = Pair(config=config).meet()
    messages = [*BULK[:100], bytes(5000)]
    for payload in messages:
        pair.send(payload)
    got, tried = carry(pair, 1500)
    assert max(tried) > 5000
    assert got == messages


def test_a_probe_under_way_when_the_peer_comes_back(remote: Callable[[], Pair]) -> None:
    pair = Kept("bob", config=TransportConfig())
    pair.meet()
    for payload in BULK[:100]:
        pair.send(payload)
    assert max(map(len, pair.out(pair.ann))) == 8972  # a probe, which is lost with bob
    pair.crash("bob")
    pair.exchange()
    for _ in range(3):
        for payload in BULK[:100]:
            pair.send(payload)
        pair.exchange()
    assert pair.session.path.size == 8972


def test_a_peer_that_comes_back_accepts_less(remote: Callable[[], Pair]) -> None:
    pair = Kept("bob", config=TransportConfig())
    pair.meet()
    for payload in BULK[:100]:
        pair.send(payload)
    pair.exchange()
    assert pair.session.path.size == 8972
    narrow = TransportConfig(longest_datagram=2000, local_datagram=2000)
    pair.settings["config"] = narrow
    pair.crash("bob")
    pair.exchange()
    assert pair.session.connection == 1
    assert pair.session.path.size <= 2000
    assert pair.session.recovery.window.unit == pair.session.path.size


def test_another_host_is_another_path(remote: Callable[[], Pair]) -> None:
    pair = remote()
    session = pair.session
    for payload in BULK[:100]:
        pair.send(payload)
    pair.exchange()
    assert session.path.size == 8972
    session.address = (places.B[0], 7)  # the same host
    for payload in BULK[:100]:
        pair.send(payload)
    late = pair.out(pair.ann)
    assert max(map(len, late)) > 8000
    pair.now += 0.001
    session.address = ("192.0.2.3", 2)
    for payload in BULK[:100]:
        pair.send(payload)
    pair.out(pair.ann)
    path = session.path
    assert (path.size, path.proved, session.recovery.window.unit) == (1232, False, 1232)
    for data in late:  # what was sent on the former path says nothing about this one
        pair.give(pair.bob, data)
    for data in pair.out(pair.bob):
        pair.give(pair.ann, data)
    assert (path.size, path.proved) == (1232, False)


def test_a_system_that_refuses_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node starts, and does not search."""
    config = TransportConfig()
    monkeypatch.setattr("sys.platform", "linux")
    unknown = dict.fromkeys((socket.AF_INET, socket.AF_INET6), (socket.IPPROTO_IP, 9999, 3))
    monkeypatch.setattr(addresses, "NEVER_CUT_UP", unknown)
    addresses.bind(("127.0.0.1", 0), False).close()
    assert addresses.settings(config) == replace(config, longest_datagram=config.datagram)


def test_what_is_not_searched_for(remote: Callable[[], Pair]) -> None:
    pair = Pair(config=TransportConfig(longest_datagram=1232)).meet()
    for payload in BULK:
        pair.send(payload)
    _, tried = carry(pair, 9000)
    assert max(tried) <= 1232


@pytest.mark.parametrize("narrow", [1300, 1500, 4000])
def test_systems_on_narrow_paths(narrow: int) -> None:
    """Many messages, loss, and paths that become narrow in the middle."""
    faults = Faults(loss=0.02, remote=True, narrow=narrow, narrow_from=0.3)
    workload = WireWorkload(processes=3, messages=60, payload=(0, 3000), pace=0.001)
    wire = Wire(narrow, faults=faults, workload=workload)
    verdict = wire.play()
    assert verdict.fine, verdict.complaints
    assert not any(
        isinstance(sent, Probe)
        for host in wire.hosts.values()
        for session in host.transport._peers.live.values()
        for sent in session.recovery.sent.values()
    )
