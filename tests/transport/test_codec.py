"""Packets of every protocol as bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causewire import protocols
from causewire.core import ks, mf, pak
from causewire.core.endpoint import LocalProtocolError, Packet, RemoteProtocolError
from causewire.transport.codec import Codec, _put
from causewire.transport.codec import kinds as kinds_of
from causewire.transport.varint import MalformedError


def encode(protocol: str, packet: Packet) -> bytes:
    return Codec(protocols.describe(protocol)).encode(packet)


def decode(protocol: str, data: bytes) -> Packet:
    return Codec(protocols.describe(protocol)).decode(data)


def kinds(protocol: str) -> tuple[type[Packet], ...]:
    return kinds_of(protocols.describe(protocol))


NAMES = ["ann", "bob", "cöl"]


def packets_of(protocol: str, seed: int, **options: object) -> list[Packet]:
    """Packets that endpoints really send."""
    choose = random.Random(seed)
    able = protocols.describe(protocol)
    endpoints = {n: protocols.create(protocol, n, group=NAMES, **options) for n in NAMES}
    seen: list[Packet] = []
    flying: list[tuple[str, str, Packet]] = []
    for step in range(60):
        if step < 12:
            me = choose.choice(NAMES)
            others = [name for name in NAMES if name != me]
            to = others if not able.unicast else [choose.choice(others)]
            if able.multicast and choose.random() < 0.5:
                to = others
            endpoints[me].send(to, bytes([step]))
        for name, endpoint in endpoints.items():
            flying += [(name, there, packet) for there, packet in endpoint.take_packets()]
            endpoint.take_deliveries()
        if flying:
            source, target, packet = flying.pop(0)
            seen.append(packet)
            endpoints[target].receive(source, packet)
        else:
            for endpoint in endpoints.values():
                endpoint.retransmit()
    return seen


@pytest.mark.parametrize("protocol", protocols.names())
def test_packets_of_every_protocol(protocol: str) -> None:
    met = set()
    options = {"cap": 1} if protocol == "adaptive" else {}  # so that lists come in parts
    for seed in range(5):
        for packet in packets_of(protocol, seed, **options):
            data = encode(protocol, packet)
            again = decode(protocol, data)
            assert again == packet
            assert type(again) is type(packet)
            met.add(type(packet))
            for cut in range(len(data)):
                with pytest.raises(MalformedError):
                    decode(protocol, data[:cut])
            with pytest.raises(MalformedError):
                decode(protocol, data + b"\x00")
    assert met == set(kinds(protocol)) - {kinds("csps")[3]} or met == set(kinds(protocol))


@pytest.mark.parametrize("option", ["complement", "broadcast", "hardware_multicast"])
def test_options_of_ks(option: str) -> None:
    for seed in range(3):
        for packet in packets_of("ks", seed, **{option: True}) if option != "broadcast" else ():
            assert decode("ks", encode("ks", packet)) == packet


def test_what_is_no_packet_of_a_protocol_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="no packet of mf"):
        encode("mf", ks.KsMessage(1, frozenset({"a"}), (), b""))
    with pytest.raises(TypeError):
        encode("mf", mf.MfMessage(1, 1.5))


FIELDS = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 2**70), st.text(max_size=3), st.binary(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.frozensets(st.text(max_size=2), max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.sampled_from(protocols.names()), st.binary(max_size=60))
def test_any_bytes(protocol: str, data: bytes) -> None:
    try:
        packet = decode(protocol, data)
    except MalformedError:
        return
    assert type(packet) in kinds(protocol)
    assert decode(protocol, encode(protocol, packet)) == packet


@settings(max_examples=300)
@given(st.sampled_from(protocols.names()), st.data())
def test_no_well_formed_packet_does_harm(protocol: str, data: st.DataObject) -> None:
    """Whatever the fields are: refused as malformed, as impossible, or taken."""
    made = data.draw(st.sampled_from(kinds(protocol)))
    raw = [bytes([kinds(protocol).index(made)])]
    for name in made.fields:
        _put(raw, data.draw(st.binary(max_size=3) if name == "payload" else FIELDS))
    try:
        packet = decode(protocol, b"".join(raw))
    except MalformedError:
        return
    endpoint = protocols.create(protocol, "ann", group=NAMES)
    try:
        endpoint.receive("bob", packet)
    except (RemoteProtocolError, LocalProtocolError):
        assert not endpoint.take_deliveries()


def test_nesting_has_an_end() -> None:
    with pytest.raises(MalformedError, match="deep"):
        decode("ks", b"\x00\x02\x01" + b"\x06\x01" * 2000)


@pytest.mark.parametrize("protocol", ["pak", "pak-credit", "pak-nak"])
def test_vectors_of_pak_take_the_bits_of_the_paper(protocol: str) -> None:
    """n entries below k take n * ceil(log2 k) bits (Baldoni, section 1)."""
    names = [f"p{k}" for k in range(40)]
    endpoint: Any = protocols.create(protocol, names[0], group=names)
    bits = (endpoint.k - 1).bit_length()
    vector = tuple([k % endpoint.k for k in range(40)])
    data = encode(protocol, pak.PakMessage(vector, b""))
    kind, tag, count, width, payload = 1, 1, 1, 1, 2
    assert len(data) == kind + tag + count + width + -(-40 * bits // 8) + payload
    assert decode(protocol, data) == pak.PakMessage(vector, b"")


@given(st.lists(st.integers(0, 2**62 - 1), max_size=20).map(tuple))
def test_any_vector(vector: tuple[int, ...]) -> None:
    packet = pak.PakMessage(vector, b"x")
    assert decode("pak", encode("pak", packet)) == packet
