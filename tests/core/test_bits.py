"""Footprints in bits: Baldoni's unit, beside the papers' other one."""

from __future__ import annotations

from math import ceil, log2
from typing import Any

import pytest

from causewire import protocols
from causewire.core import WORD_BITS, Packet
from causewire.testing import VARIANTS, run, tolerated_networks

EVERYTHING: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in protocols.names()]
EVERYTHING += [(name, options) for name, _ in EVERYTHING for options in VARIANTS.get(name, ())]


@pytest.mark.parametrize(("protocol", "options"), EVERYTHING, ids=str)
def test_packets_have_the_bits_that_the_footprint_says(
    protocol: str, options: dict[str, Any]
) -> None:
    """Exactly, where a kind of packet always has the same size."""
    outcome = run(
        protocol, tolerated_networks(protocol, options)[0].name, 1, protocol_options=options
    )
    seen = 0
    for endpoint in outcome.play.network.endpoints.values():
        footprint = endpoint.footprint()
        assert footprint.packet.keys() == footprint.packet_bits.keys()
        if not protocol.startswith("pak"):
            assert footprint.state_bits >= WORD_BITS * footprint.state
        packets: list[Packet] = [
            packet
            for (source, _), sent in outcome.play.network.links.items()
            if source == endpoint.me
            for packet in sent
        ]
        for packet in packets:
            bits = endpoint.metadata_bits(packet)
            if protocol not in ("adaptive", "ks", "rst"):
                assert bits == footprint.packet_bits[packet.kind], packet
                assert packet.integers + packet.identifiers == footprint.packet[packet.kind]
                seen += 1
            elif packet.kind == "msg":
                assert bits == WORD_BITS * (packet.integers + packet.identifiers)
                seen += 1
    assert seen


@pytest.mark.parametrize("n", [2, 3, 8, 64])
@pytest.mark.parametrize(
    ("protocol", "options", "k"),
    [
        ("pak", {}, 3),
        ("pak", {"k": 4}, 4),
        ("pak-credit", {}, 5),
        ("pak-credit", {"ct": 8}, 17),
        ("pak-nak", {"ct": 4}, 9),
        ("pak-nak", {"k": 16}, 16),
    ],
)
def test_a_vector_of_pak_takes_n_log_k_bits(
    protocol: str, options: dict[str, Any], k: int, n: int
) -> None:
    group = [f"p{i:02}" for i in range(n)]
    endpoint = protocols.create(protocol, "p00", group, **options)
    bss = protocols.create("bss", "p00", group)
    bits = endpoint.footprint().packet_bits
    assert bits == {"msg": n * ceil(log2(k)), "ack": ceil(log2(k))}
    assert bits["msg"] < bss.footprint().packet_bits["msg"]
    endpoint.send(group[1:], "x")
    _, packet = endpoint.take_packets()[0]
    assert endpoint.metadata_bits(packet) == bits["msg"]


def test_a_flag_is_a_bit_and_no_integer() -> None:
    a = protocols.create("csps", "a")
    a.send("b", "x")
    [(_, packet)] = a.take_packets()
    assert (packet.integers, packet.identifiers, packet.flags) == (2, 0, 1)
    assert a.footprint().packet["msg"] == 2
    assert a.metadata_bits(packet) == a.footprint().packet_bits["msg"] == 2 * WORD_BITS + 1
    assert a.metadata_bits(packet, integer=32) == 65
