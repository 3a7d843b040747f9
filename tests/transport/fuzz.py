"""Fuzzing of every decoder with Atheris, guided by coverage (`make fuzz`).

    python tests/transport/fuzz.py frames|codec|greeting|datagram|session|link [libFuzzer options]

Each target takes bytes as they could come from the network. Anything but the errors
that stand for a counted drop ends the run and leaves the input in a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["causewire"]):
    from hostile import Target

    from causewire import protocols
    from causewire.core.endpoint import RemoteProtocolError
    from causewire.transport import codec, frames
    from causewire.transport.heads import Greeting, read_greeting_head
    from causewire.transport.varint import MalformedError, put


def fuzz_frames(data: bytes) -> None:
    try:
        frames.read(data)
    except MalformedError:
        return


def fuzz_codec(data: bytes) -> None:
    names = protocols.names()
    protocol = names[data[0] % len(names)] if data else names[0]
    try:
        packet = codec.decode(protocol, data[1:])
    except MalformedError:
        return
    assert codec.decode(protocol, codec.encode(protocol, packet)) == packet
    try:
        protocols.create(protocol, "ann", group=["ann", "bob"]).receive("bob", packet)
    except RemoteProtocolError:
        return


def fuzz_greeting(data: bytes) -> None:
    for reader in (read_greeting_head, Greeting.decode):
        try:
            reader(data)  # type: ignore[operator]
        except MalformedError:
            continue


def fuzz_datagram(data: bytes) -> None:
    shared.raw(data)
    shared.check()


def fuzz_session(data: bytes) -> None:
    """Datagrams of a peer that has the key: each is preceded by its length."""
    target = Target(("csps", "sps", "fifo")[data[0] % 3] if data else "csps")
    at = 1
    while at < len(data):
        end = at + 1 + data[at]
        target.hit(data[at + 1 : end])
        if data[at] & 1:
            target.tick()
        at = end
    target.check()


def fuzz_link(data: bytes) -> None:
    """The payload of a link's message."""
    linked = [name for name in protocols.names() if name not in ("csps", "sps", "fifo")]
    target = Target(linked[data[0] % len(linked)] if data else "ks")
    tail = target.bob.session("ann").inbound.tail
    payload = data[1:]
    head = b"\x17\x01" + put(tail + 1) + b"\x00" + put(len(payload) or 1)
    target.hit(head + (payload or b"x"))
    target.check()


TARGETS: dict[str, Callable[[bytes], None]] = {
    name.removeprefix("fuzz_"): function
    for name, function in globals().items()
    if name.startswith("fuzz_")
}
shared = Target()


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"usage: {sys.argv[0]} {'|'.join(TARGETS)} [libFuzzer options]")
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
