"""Fuzzing of every decoder with Atheris, guided by coverage (`make fuzz`).

    python -m campaigns.decoder_fuzz all SECONDS [FOLDER]
    python -m campaigns.decoder_fuzz frames|codec|greeting|datagram|session|link [libFuzzer options]

Each target takes bytes as they could come from the network. Anything but the errors
that stand for a counted drop ends the run and leaves the input in a file. `all` runs
each target for so long and says how often; inputs that reached something new are kept
in the folder, where the next run begins.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["causewire"]):
    from causewire import protocols
    from causewire.core.endpoint import RemoteProtocolError
    from causewire.core.run import MessageRun
    from causewire.transport import frames
    from causewire.transport.codec import Codec
    from causewire.transport.contents import Piece
    from causewire.transport.heads import Greeting, read_greeting_head
    from causewire.transport.varint import MalformedError, put
    from tests.transport.hostile import Target


def fuzz_frames(data: bytes) -> None:
    try:
        frames.read(data)
    except MalformedError:
        return


def fuzz_codec(data: bytes) -> None:
    names = protocols.names()
    protocol = names[data[0] % len(names)] if data else names[0]
    try:
        codec = Codec(protocols.describe(protocol))
        packet = codec.decode(data[1:])
    except MalformedError:
        return
    assert codec.decode(codec.encode(packet)) == packet
    try:
        protocols.create(protocol, "ann", group=["ann", "bob"]).receive("bob", packet)
    except RemoteProtocolError:
        return


def fuzz_greeting(data: bytes) -> None:
    for reader in (read_greeting_head, Greeting.decode):
        try:
            reader(data)
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
    tail = target.bob._peers.session("ann").inbound.tail
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


def seeds() -> dict[str, bytes]:
    """An input for each target that is understood: from there, the rest is near."""
    said = [
        frames.put_ack([[0, 2], [4, 5]]),
        frames.put_run(MessageRun([2, 3], 1, [b"text", b"more"], True, 8), [4, 4]),
        frames.put_run(MessageRun([9], 4, [b"x"], False, 1), [1]),
        frames.put_piece(Piece(5, 3, True, 1, 4, bytes(10))),
        frames.put_obituary("ann", 1001),
        frames.put_because(["ann", "carol"], 100),
        b"\x02\x01\x03\x01\x04\x06\x07\x07\x09",
    ]
    ann = shared.pair.ann
    ann._greeter.greet(ann._peers.known["bob"], 5, False, ("127.0.0.1", 2))
    ((greeting, _),) = ann._greeter.out
    return {
        "frames": b"".join(said),
        "codec": b"\x00\x00\x02\x01\x02\x00\x05\x01x",
        "greeting": greeting,
        "datagram": greeting,
        "session": b"\x00" + b"".join(bytes([len(frame)]) + frame for frame in said),
        "link": b"\x00\x00\x00\x02\x01\x05\x01x",
    }


def run_all(seconds: int, folder: Path) -> int:
    """Every target for so long; returns how many of them found something."""
    found = 0
    for name, seed in seeds().items():
        corpus = folder / name
        corpus.mkdir(parents=True, exist_ok=True)
        (corpus / "seed").write_bytes(seed)
        options = ["-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={folder}/{name}-"]
        options += [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20", str(corpus)]
        command = [sys.executable, "-m", "campaigns.decoder_fuzz", name, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        units = re.search(r"number_of_executed_units: *(\d+)", said)
        covered = re.findall(r" cov: (\d+)", said)
        print(
            f"{name:9} {int(units[1]) if units else 0:10,} executions, "
            f"{covered[-1] if covered else 0:>5} places covered, "
            f"{'nothing found' if not done.returncode else 'FOUND SOMETHING'}",
            flush=True,
        )
        if done.returncode:
            found += 1
            print(said[-3000:], file=sys.stderr)
    return found


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "all" and sys.argv[2].isdecimal():
        folder = Path(sys.argv[3] if len(sys.argv) > 3 else "out/fuzz")
        raise SystemExit(1 if run_all(int(sys.argv[2]), folder) else 0)
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        names = "|".join(TARGETS)
        raise SystemExit(f"usage: {sys.argv[0]} all SECONDS [FOLDER] | {names} [libFuzzer options]")
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
