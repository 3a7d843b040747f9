"""Protocols that run on a link: what they cannot do is refused with a sentence, and early."""

from __future__ import annotations

import pytest

from causewire import protocols
from causewire.core.endpoint import LocalProtocolError
from causewire.node import Node
from causewire.transport import PeerRefused
from causewire.transport.carrier import is_native

from .pair import A, Pair, events, payloads

LINKED = sorted(name for name in protocols.names() if not is_native(protocols.describe(name)))


def test_these_are_the_protocols_on_a_link() -> None:
    assert {"ks", "rst", "bss", "pak", "newtop", "mf", "cykas"} <= set(LINKED)
    assert not {"csps", "sps", "adaptive", "fifo"} & set(LINKED)


@pytest.mark.parametrize("protocol", LINKED)
def test_giving_up_is_refused_when_the_node_is_made(protocol: str) -> None:
    with pytest.raises(LocalProtocolError, match="give_up_after must be None"):
        Node("ann", peers={"bob": "127.0.0.1:9"}, protocol=protocol, give_up_after=5.0)
    Node("ann", peers={"bob": "127.0.0.1:9"}, protocol=protocol)


@pytest.mark.parametrize("protocol", LINKED)
def test_a_member_that_restarts_is_refused_and_both_sides_know_why(protocol: str) -> None:
    pair = Pair(protocol=protocol, peers=("ann", "bob")).meet()
    to = ["bob"] if protocols.describe(protocol).unicast else ["ann", "bob"]
    pair.ann.send(to, b"before")
    pair.exchange()
    assert b"before" in payloads(pair.bob)
    pair.bob = pair.start("bob", 2 << 20)
    pair.bob.add_peer("ann", A, pair.now)
    pair.bob.timer_fired(pair.now)
    for _ in range(8):
        pair.exchange()
        pair.later(0.5)
    reasons = [event.reason for event in events(pair.ann) if isinstance(event, PeerRefused)]
    assert reasons == [f"{protocol} cannot go on with a peer that restarted"]
    reasons = [event.reason for event in events(pair.bob) if isinstance(event, PeerRefused)]
    assert reasons == [f"it refuses this process: {protocol} cannot go on with a restarted member"]
